//! Frames, the arena behind them and the interpreter on a few small values, whole and cut short: little
//! enough for Miri, which watches every access.

mod support;

use support::{ids, schema};
use tenon_exec::layout::CDialect;
use tenon_exec::{CValues, Interface, Message, MessageId, Value, random::Random};
use tenon_plan::Representation;
use tenon_schema::Type;
use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Native, Swapped, Xdr};

/// Everything that memory is taken for, or that is moved in a way of its own.
const INTERFACE: &str = "
    enum kind { FILE = 1, LINK = 5 };
    struct pair { hyper a; int b; int c; };
    struct chain { chain *inner; short id; };
    union node switch (kind what) { case FILE: opaque data<>; case LINK: string to<9>; };
    struct entry { bool b; node nodes<>; int numbers<>; entry *next; };
    struct all { entry *entries; chain top; opaque key[7]; pair pairs<>; bool *flag; double d[2]; };
    struct point { int x; int y; };
    typedef unsigned hyper longs<>; typedef point points<9>; typedef pair pairs<9>;";

fn lenient<R: tenon_wire::Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Lenient, Limits::default())
}

fn encoded<R: tenon_wire::Representation>(message: Message<'_>, value: &Value) -> Vec<u8> {
    let frame = message.frame(value).expect("a value of the type");
    let mut buffer = Buffer::default();
    let done = frame.encode_by_interpreter(&mut Encoder::<R>::over(&mut buffer));
    done.unwrap_or_else(|error| panic!("{error}: {value:?}"));
    buffer.as_slice().to_vec()
}

/// Moves a value both ways, and again into the same slot, between messages that are cut short.
fn move_both_ways<R: tenon_wire::Representation>(message: Message<'_>, value: &Value) {
    let bytes = encoded::<R>(message, value);
    let frame = message.decode_by_interpreter(&mut lenient::<R>(&bytes));
    assert_eq!(frame.expect("good bytes").value(), *value);
    let mut slot = message.slot();
    for part in [1, 3, 2, 3] {
        let cut = &bytes[..bytes.len() * part / 4];
        assert!(slot.decode_by_interpreter(&mut lenient::<R>(cut)).is_err());
        let mut input = lenient::<R>(&bytes);
        let frame = slot.decode_by_interpreter(&mut input).expect("good bytes");
        assert_eq!(frame.value(), *value);
        let mut again = Buffer::default();
        let done = frame.encode_by_interpreter(&mut Encoder::<R>::over(&mut again));
        assert_eq!((done, again.as_slice()), (Ok(()), bytes.as_slice()));
    }
    slot.clear();
}

/// Moves values of every type.
fn move_all<R: tenon_wire::Representation>(representation: Representation, seed: u64) {
    let interface = Interface::with_representation(schema(INTERFACE), representation);
    let interface = interface.expect("plans");
    for id in ids(&interface) {
        let value = Random::new(seed).value(interface.schema(), &Type::Named(id), 25);
        let message = interface.message(id).expect("a layout");
        move_both_ways::<R>(message, &value);
    }
}

#[test]
fn in_xdr() {
    move_all::<Xdr>(Representation::XDR, 1);
}

#[test]
fn in_lean() {
    move_all::<Lean<Native>>(Representation::LEAN, 2);
}

/// Values as a program in C holds them, in memory of malloc, all of which is freed.
#[test]
fn as_c_has_them() {
    let frames = Interface::new(schema(INTERFACE)).expect("plans");
    for dialect in [CDialect::Tenon, CDialect::Rpcgen] {
        let values = CValues::new(schema(INTERFACE), Representation::XDR, dialect, true);
        let values = values.expect("values that C has");
        for id in ids(&frames) {
            let value = Random::new(4).value(frames.schema(), &Type::Named(id), 25);
            let bytes = encoded::<Xdr>(frames.message(id).expect("a layout"), &value);
            let message = values.message(MessageId::Type(id));
            for part in 1..4 {
                let cut = &bytes[..bytes.len() * part / 4];
                assert!(message.read(&mut lenient::<Xdr>(cut)).is_err());
            }
            let read = message.read(&mut lenient::<Xdr>(&bytes));
            let read = read.expect("good bytes");
            let mut again = Buffer::default();
            let done = read.encode(&mut Encoder::<Xdr>::over(&mut again), bytes.len());
            assert_eq!((done, again.as_slice()), (Ok(()), bytes.as_slice()));
        }
    }
}

/// As from a sender of the other order: what it writes is what it reads.
#[test]
fn in_the_other_order() {
    let order = match cfg!(target_endian = "little") {
        true => tenon_plan::Order::Big,
        false => tenon_plan::Order::Little,
    };
    let swapped = Representation {
        order,
        ..Representation::LEAN
    };
    let [writer, reader] = [swapped, Representation::LEAN].map(|representation| {
        let made = Interface::with_representation(schema(INTERFACE), representation);
        made.expect("plans")
    });
    for id in ids(&writer) {
        let value = Random::new(3).value(writer.schema(), &Type::Named(id), 25);
        let bytes = encoded::<Lean<Native>>(writer.message(id).expect("a layout"), &value);
        let message = reader.message(id).expect("a layout");
        let read = message.decode_by_interpreter(&mut lenient::<Lean<Swapped>>(&bytes));
        assert_eq!(read.expect("good bytes").value(), value);
    }
}
