//! Types of which values take no bytes: interpreter and machine code have the same answers, errors and
//! accounts for them, in both representations and both orders of bytes.
#![cfg(feature = "jit")]

use crate::support::{ids, schema};
use tenon_exec::{Interface, Message, Value, random::Random};
use tenon_plan::Representation as Form;
use tenon_schema::Type;
use tenon_wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, Encoder, Lean, Limits, Native,
    Representation, Swapped, Xdr,
};

/// Nothing in every way that there is, alone, in arrays, and among what takes bytes.
const TEXT: &str = "
    struct fieldless {};
    struct numbers { int x[0]; };
    struct wide { hyper x[0]; };
    struct bytes { opaque x[0]; };
    struct booleans { bool x[0]; };
    struct text { string s<>; };
    struct texts { text x[0]; };
    struct pair { fieldless a; booleans b; };
    struct pairs { pair a; pair b; };
    typedef numbers row[20000];
    typedef pairs rows[3];
    typedef fieldless many_fieldless<>;
    typedef numbers many_numbers<>;
    typedef wide many_wide<>;
    typedef bytes many_bytes<>;
    typedef booleans many_booleans<>;
    typedef texts many_texts<>;
    typedef pairs many_pairs<>;
    typedef row many_rows<>;
    typedef row few_rows<3>;
    struct link { booleans x; link *next; };
    typedef link *links;
    struct mixed { char a; wide b; char c; many_wide d; pairs e[2]; numbers *f; int g; };
    union choice switch (int d) { case 0: rows zero; case 1: wide *one; default: void; };";

/// Counts of elements that must not be walked over one by one, if they take no bytes.
const COUNTS: [u32; 8] = [0, 1, 2, 3, 4, 65_000, 70_000, u32::MAX];

fn interface(form: Form) -> Interface {
    let interface = Interface::with_representation(schema(TEXT), form).expect("types that end");
    assert!(interface.compile(), "machine code is made here");
    interface
}

fn encoded<R: Representation>(message: Message<'_>, value: &Value) -> Vec<u8> {
    let frame = message.frame(value).expect("a value of the type");
    let [mut by_interpreter, mut by_machine] = [Buffer::default(), Buffer::default()];
    let done = frame.encode_by_interpreter(&mut Encoder::<R>::over(&mut by_interpreter));
    done.expect("a value that can be sent");
    assert!(frame.encode_by_machine(&mut Encoder::<R>::over(&mut by_machine)));
    assert_eq!(by_machine.as_slice(), by_interpreter.as_slice());
    by_interpreter.as_slice().to_vec()
}

/// Decodes bytes by the interpreter, and checks that machine code does the same and takes as much memory.
fn judge<R: Representation>(message: Message<'_>, bytes: &[u8]) -> Result<usize, DecodeError> {
    let limits = Limits::default();
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, limits);
    let (mut by_machine, mut by_either) = (input.clone(), input.clone());
    let read = message.decode_by_interpreter(&mut input);
    let is_read = message.decode_by_machine(&mut by_machine).is_some();
    assert_eq!(is_read, read.is_ok(), "{bytes:x?}");
    let error = message.decode(&mut by_either).map(drop).err();
    assert_eq!(error.as_ref(), read.as_ref().map(drop).err(), "{bytes:x?}");
    if is_read {
        let account = (input.position(), input.memory_left());
        assert_eq!((by_machine.position(), by_machine.memory_left()), account);
    }
    read.map(|_| input.position())
}

/// Random values of every type come back, and no prefix of their bytes is taken.
fn come_back<Out: Representation, In: Representation>(form: Form) {
    let interface = interface(form);
    for id in ids(&interface) {
        let message = interface.message(id).expect("a layout");
        for seed in 0..20 {
            let value = Random::new(seed).value(interface.schema(), &Type::Named(id), 10);
            let bytes = encoded::<Out>(message, &value);
            for length in 0..bytes.len() {
                let error = judge::<In>(message, &bytes[..length]).expect_err("bytes are missing");
                assert!(
                    matches!(error.kind, DecodeErrorKind::Truncated { .. }),
                    "{error}"
                );
            }
            assert_eq!(judge::<In>(message, &bytes), Ok(bytes.len()));
            let read = interface.decode(
                id,
                &mut Decoder::<In>::over(&bytes, DecodeMode::Strict, Limits::default()),
            );
            let known = read.or_else(|error| match error.kind {
                // A value takes memory for each part that it names, bytes or not.
                DecodeErrorKind::TooMuchMemory => Ok(value.clone()),
                _ => Err(error),
            });
            assert_eq!(known, Ok(value));
        }
    }
}

#[test]
fn values_come_back() {
    come_back::<Xdr, Xdr>(Form::XDR);
    come_back::<Lean<Native>, Lean<Native>>(Form::LEAN);
}

/// Counts of nothing, as `order` writes them: few are taken, more than a message pays for are not.
fn counted<R: Representation>(form: Form, order: fn(u32) -> [u8; 4]) {
    let interface = interface(form);
    for name in [
        "many_fieldless",
        "many_numbers",
        "many_wide",
        "many_bytes",
        "many_booleans",
        "many_texts",
        "many_pairs",
        "many_rows",
        "few_rows",
    ] {
        let id = interface.schema().find_type(name).expect("it is there");
        let message = interface.message(id).expect("a layout");
        for count in COUNTS {
            // In lean the count of what is aligned to 8 stands right before it.
            let hole = match (name, form == Form::LEAN) {
                ("many_wide", true) => 4,
                _ => 0,
            };
            let bytes = [vec![0; hole], order(count).to_vec()].concat();
            let expected = match count {
                4.. if name == "few_rows" => Err(DecodeErrorKind::TooLong {
                    length: count,
                    bound: 3,
                }),
                ..=65_000 => Ok(bytes.len()),
                _ => Err(DecodeErrorKind::TooMuchMemory),
            };
            let found = judge::<R>(message, &bytes).map_err(|error| error.kind);
            assert_eq!(found, expected, "{name}: {count}");
        }
    }
}

#[test]
fn a_count_of_nothing_is_paid_for() {
    counted::<Xdr>(Form::XDR, u32::to_be_bytes);
    counted::<Lean<Native>>(Form::LEAN, u32::to_ne_bytes);
    counted::<Lean<Swapped>>(Form::LEAN, |count| count.swap_bytes().to_ne_bytes());
}

#[test]
fn structs_of_structs_of_nothing_are_not_gone_through() {
    let levels = (1..=16).map(|n| {
        let below = n - 1;
        format!("struct s{n} {{ s{below} a; s{below} b; }};")
    });
    let text: String = levels.collect();
    for leaf in ["", "int x[0];", "opaque x[0];", "bool x[0];"] {
        let text = format!("struct s0 {{ {leaf} }}; {text} typedef s16 all<>;");
        let interface = Interface::new(schema(&text)).expect("types that end");
        assert!(interface.compile());
        let id = interface.schema().find_type("all").expect("it is there");
        let message = interface.message(id).expect("a layout");
        assert_eq!(judge::<Xdr>(message, &60_000_u32.to_be_bytes()), Ok(4));
        let error = judge::<Xdr>(message, &u32::MAX.to_be_bytes()).expect_err("too many");
        assert_eq!(error.kind, DecodeErrorKind::TooMuchMemory);
        let more = text.replace("typedef", "struct s17 { s16 a; s16 b; }; typedef");
        assert!(Interface::new(schema(&more)).is_err(), "131072 of them");
    }
}
