//! Values in C's layout: the same bytes as frames have, by the interpreter and by machine code, the same verdict on bytes
//! that lie, and bounds on what they cost.

use tenon_exec::layout::CDialect;
use tenon_exec::random::schemas::schema_for_c;
use tenon_exec::{CMessage, CValues, CValuesError, Interface, MessageId, random::Random};
use tenon_plan::{Representation, lower};
use tenon_schema::{Schema, Type, TypeId};
use tenon_wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder, Lean,
    Limits, Native, Representation as WireRepresentation, Swapped, Xdr,
};

use crate::support::{self, damaged, ids};

const DIALECTS: [CDialect; 2] = [CDialect::Tenon, CDialect::Rpcgen];

/// An interface by all engines.
struct Engines {
    frames: Interface,
    interpreted: CValues,
    compiled: CValues,
}

impl Engines {
    fn new(schema: &Schema, representation: Representation, dialect: CDialect) -> Self {
        let in_c = |is_interpreted| {
            CValues::new(schema.clone(), representation, dialect, is_interpreted)
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let (interpreted, compiled) = (in_c(true), in_c(false));
        assert!(!interpreted.compile());
        assert_eq!(compiled.compile(), cfg!(feature = "jit"));
        Self {
            frames: Interface::with_representation(schema.clone(), representation)
                .expect("types that end"),
            interpreted,
            compiled,
        }
    }

    /// Moves random values of every type, and bytes that are no values.
    fn check<R: WireRepresentation>(&self, seed: u64) {
        for id in ids(&self.frames) {
            let ty = Type::Named(id);
            let value = Random::new(seed).value(self.frames.schema(), &ty, 30);
            let frame = self.frames.message(id).expect("a layout").frame(&value);
            let mut buffer = Buffer::default();
            let mut out = Encoder::<R>::over(&mut buffer);
            frame
                .and_then(|frame| frame.encode(&mut out))
                .expect("a value");
            let bytes = buffer.as_slice();
            self.judge::<R>(id, bytes);
            let mut chance = Random::new(seed);
            for _ in 0..4 {
                let damaged = damaged(bytes, &mut chance);
                self.judge::<R>(id, &damaged);
            }
        }
    }

    /// All engines say the same of the bytes; but C refuses strings that hold a NUL, and takes other memory.
    fn judge<R: WireRepresentation>(&self, id: TypeId, bytes: &[u8]) {
        for mode in [DecodeMode::Lenient, DecodeMode::Strict] {
            let input = Decoder::<R>::over(bytes, mode, Limits::default());
            let framed = self.frames.message(id).expect("a layout");
            let framed = framed.decode(&mut input.clone()).map(|frame| {
                let mut buffer = Buffer::default();
                frame
                    .encode(&mut Encoder::<R>::over(&mut buffer))
                    .expect("a value");
                buffer.as_slice().to_vec()
            });
            let interpreted = moved(self.interpreted.message(MessageId::Type(id)), input.clone());
            let compiled = moved(self.compiled.message(MessageId::Type(id)), input);
            assert_eq!(interpreted, compiled, "{bytes:?}");
            let kinds = [&framed, &interpreted].map(|it| it.as_ref().err().map(|it| it.kind));
            let is_other = |kind: &Option<DecodeErrorKind>| {
                use DecodeErrorKind::{HoldsNul, TooMuchMemory};
                matches!(kind, Some(HoldsNul | TooMuchMemory))
            };
            if !kinds.iter().any(is_other) {
                assert_eq!(framed, interpreted, "{bytes:?}");
            }
        }
    }
}

/// The bytes of what was read from bytes.
fn moved<R: WireRepresentation>(
    message: CMessage<'_>,
    mut input: Decoder<'_, R>,
) -> Result<Vec<u8>, DecodeError> {
    let value = message.read(&mut input)?;
    let mut buffer = Buffer::default();
    buffer.extend(b"12345678");
    let mut out = Encoder::<R>::over(&mut buffer);
    value.encode(&mut out, usize::MAX).expect("a value");
    let bytes = buffer.as_slice()[8..].to_vec();
    // It fits where there is room for just so many, and not where there is less.
    let limited = |limit| {
        let mut buffer = Buffer::default();
        value.encode(&mut Encoder::<R>::over(&mut buffer), limit)
    };
    assert_eq!(limited(bytes.len()), Ok(()), "{bytes:?}");
    if let Some(limit) = bytes.len().checked_sub(1) {
        let error = limited(limit).expect_err("too many bytes");
        assert_eq!(error.kind, EncodeErrorKind::TooLarge { limit });
    }
    Ok(bytes)
}

/// Moves random values of an interface in all representations and dialects.
fn check(schema: &Schema, seed: u64) {
    for dialect in DIALECTS {
        let xdr = Engines::new(schema, Representation::XDR, dialect);
        xdr.check::<Xdr>(seed);
        let lean = Engines::new(schema, Representation::LEAN, dialect);
        lean.check::<Lean<Native>>(seed);
        lean.check::<Lean<Swapped>>(seed);
    }
}

#[test]
fn random_interfaces_have_the_same_bytes_as_frames() {
    let mut checked = 0;
    for seed in 0..60 {
        let schema = schema_for_c(&mut Random::new(seed));
        if lower(&schema, Representation::XDR).is_ok() {
            checked += 1;
            check(&schema, seed);
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn real_interfaces_have_the_same_bytes_as_frames() {
    let mut checked = 0;
    for interface in support::interfaces() {
        let known = CValues::new(
            interface.schema().clone(),
            Representation::XDR,
            CDialect::Tenon,
            true,
        );
        match known {
            Ok(_) => {
                checked += 1;
                check(interface.schema(), checked);
            }
            Err(CValuesError::External(_) | CValuesError::Quadruple(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(checked > 3, "{checked}");
}

fn values(text: &str, representation: Representation, is_compiled: bool) -> CValues {
    let schema = support::schema(text);
    let values = CValues::new(schema, representation, CDialect::Tenon, !is_compiled);
    let values = values.expect("values that C has");
    assert_eq!(values.compile(), is_compiled && cfg!(feature = "jit"));
    values
}

/// The message of the type `name` in an interface by the interpreter, and by machine code.
fn by_both(text: &str, representation: Representation, test: impl Fn(&CValues, bool)) {
    for is_compiled in [false, true] {
        test(&values(text, representation, is_compiled), is_compiled);
    }
}

fn message<'a>(values: &'a CValues, name: &str) -> CMessage<'a> {
    let id = values.schema().find_type(name).expect("a type");
    values.message(MessageId::Type(id))
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn a_list_is_a_chain_of_pointers_however_long() {
    let text = "struct entry { int id; entry *next; };";
    by_both(text, Representation::XDR, |values, _| {
        let element = |id| [1, id];
        let elements = (2..=100_000).flat_map(element);
        let list: Vec<u32> = [1].into_iter().chain(elements).chain([0]).collect();
        let bytes = words(&list);
        let read = message(values, "entry").read(&mut Decoder::new(&bytes));
        let list = read.expect("a list");
        let mut buffer = Buffer::default();
        let encoded = list.encode(&mut Encoder::new(&mut buffer), bytes.len());
        assert_eq!((encoded, buffer.as_slice()), (Ok(()), bytes.as_slice()));
    });
}

#[test]
fn a_string_with_a_nul_is_refused_where_it_is() {
    let text = "struct names { int id; string name<9>; };";
    by_both(text, Representation::XDR, |values, _| {
        let bytes = [words(&[7, 3]), b"a\0b\0".to_vec()].concat();
        let read = message(values, "names").read(&mut Decoder::new(&bytes));
        let error = read.expect_err("a NUL");
        assert_eq!(error.kind, DecodeErrorKind::HoldsNul);
        assert_eq!((error.offset, error.field.as_ref()), (8, "names.name"));
    });
}

#[test]
fn memory_is_paid_for_by_bytes() {
    let text = "struct large { opaque room[4096]; }; struct maybe { large *it; }; typedef maybe pointers<>;";
    by_both(text, Representation::XDR, |values, _| {
        // A pointer to nothing takes 4 bytes on the wire and 8 in memory: that is paid for.
        let count = 5_000_u32;
        let bytes = [words(&[count]), vec![0; 4 * count as usize]].concat();
        let pointers = message(values, "pointers");
        assert!(pointers.read(&mut Decoder::new(&bytes)).is_ok());
        let limits = Limits {
            memory_per_byte: 1,
            memory_base: 0,
            ..Limits::default()
        };
        let mut input = Decoder::with(&bytes, DecodeMode::Lenient, limits);
        let error = pointers.read(&mut input).expect_err("too much memory");
        assert_eq!(error.kind, DecodeErrorKind::TooMuchMemory);
        // A count of more than there is takes no memory at all.
        let error = pointers.read(&mut Decoder::new(&words(&[u32::MAX])));
        let error = error.expect_err("there are no elements");
        assert!(matches!(error.kind, DecodeErrorKind::Truncated { .. }));
    });
}

#[test]
fn nesting_ends_at_the_limit() {
    let text = "struct chain { chain *inner; int id; };";
    by_both(text, Representation::XDR, |values, _| {
        let nested = |depth: usize| {
            let flags = [vec![1; depth], vec![0]].concat();
            words(&[flags, vec![9; depth + 1]].concat())
        };
        let chain = message(values, "chain");
        assert!(chain.read(&mut Decoder::new(&nested(127))).is_ok());
        let error = chain.read(&mut Decoder::new(&nested(128)));
        assert_eq!(error.expect_err("too deep").kind, DecodeErrorKind::TooDeep);
    });
}

#[test]
fn types_that_c_does_not_have_are_named() {
    let refused = |text| {
        let schema = support::schema(text);
        CValues::new(schema, Representation::XDR, CDialect::Tenon, true).expect_err("no layout")
    };
    assert_eq!(
        refused("struct holds { other thing; };"),
        CValuesError::External("other".to_owned())
    );
    assert_eq!(
        refused("struct wide { quadruple numbers<>; };"),
        CValuesError::Quadruple("wide".to_owned())
    );
}

#[test]
fn sizes_are_those_of_c() {
    let text = "
        struct empty {};
        struct mixed { bool yes; empty none; hyper wide; string name<>; bool no; };
        struct entry { bool yes; entry *next; };
        union choice switch (bool on) { case TRUE: hyper wide; case FALSE: void; };
        union bare switch (unsigned char c) { case 0: void; default: void; };";
    let sizes = |dialect, name: &str| {
        let schema = support::schema(text);
        let values = CValues::new(schema, Representation::XDR, dialect, true);
        let values = values.expect("values that C has");
        let extent = message(&values, name).extent();
        (extent.size, extent.align)
    };
    let in_tenon = |name| sizes(CDialect::Tenon, name);
    let in_rpcgen = |name| sizes(CDialect::Rpcgen, name);
    let pointer = size_of::<*const u8>() as u64;
    let wide = align_of::<u64>() as u64;
    assert_eq!((in_tenon("empty"), in_rpcgen("empty")), ((1, 1), (0, 1)));
    assert_eq!(in_tenon("mixed"), (8 + 8 + 2 * pointer, wide));
    assert_eq!(in_rpcgen("mixed"), (8 + 8 + 2 * pointer, wide));
    assert_eq!(in_tenon("entry"), (2 * pointer, pointer));
    assert_eq!(in_tenon("choice"), (8 + wide, wide));
    assert_eq!((in_tenon("bare"), in_rpcgen("bare")), ((1, 1), (1, 1)));
}
