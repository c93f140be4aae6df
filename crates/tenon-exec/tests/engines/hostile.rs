//! Bytes that lie, and values that do not fit: each is refused with an error that says where.

use crate::support;
use crate::support::{encoded, ids, interface, torture};
use tenon_exec::{Interface, Value, random::Random};
use tenon_schema::{Length, Type, TypeId, TypeKind};
use tenon_wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder, Limits,
};

fn decode(interface: &Interface, name: &str, bytes: &[u8]) -> Result<Value, DecodeError> {
    let id = interface
        .schema()
        .find_type(name)
        .expect("a type of this name");
    interface.decode(id, &mut Decoder::new(bytes))
}

fn encode_error(interface: &Interface, name: &str, value: &Value) -> (EncodeErrorKind, String) {
    let id = interface
        .schema()
        .find_type(name)
        .expect("a type of this name");
    let mut buffer = Buffer::default();
    let error = interface
        .encode(id, value, &mut Encoder::new(&mut buffer))
        .expect_err("no such value");
    (error.kind, error.field.to_string())
}

fn random(interface: &Interface, id: TypeId, seed: u64) -> Vec<u8> {
    let value = Random::new(seed).value(interface.schema(), &Type::Named(id), 30);
    encoded(interface, id, &value)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn a_message_that_ends_anywhere_is_truncated() {
    let interface = torture();
    for id in ids(&interface) {
        let bytes = random(&interface, id, 1);
        for length in 0..bytes.len().min(600) {
            let error = interface
                .decode(id, &mut Decoder::new(&bytes[..length]))
                .unwrap_err();
            assert!(
                matches!(error.kind, DecodeErrorKind::Truncated { .. }),
                "{error}"
            );
            assert!(!error.field.is_empty() && error.offset <= length, "{error}");
        }
    }
}

#[test]
fn what_strict_mode_accepts_of_damaged_bytes_is_what_it_writes() {
    let interface = torture();
    let mut chance = Random::new(7);
    let (mut accepted, mut refused) = (0, 0);
    for id in ids(&interface) {
        for seed in 0..40 {
            let mut bytes = random(&interface, id, seed);
            for _ in 0..=chance.below(2) {
                let at = chance.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << chance.below(8);
            }
            let mut input = Decoder::with(&bytes, DecodeMode::Strict, Limits::default());
            match interface.decode(id, &mut input) {
                Ok(value) => {
                    assert_eq!(encoded(&interface, id, &value), bytes[..input.position()]);
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
            let _ = interface.decode(id, &mut Decoder::new(&bytes));
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
}

#[test]
fn a_count_is_held_against_the_bytes_there_are() {
    let interface = interface(
        "struct empty {};
         struct point { int x; int y; };
         typedef string text<>;
         typedef int ints<>;
         typedef point points<>;
         typedef opaque blob<>;
         typedef text texts<>;
         typedef empty empties<>;
         typedef int few<3>;",
    );
    let lie = words(&[u32::MAX, 0, 0, 0]);
    for name in ["text", "ints", "points", "blob", "texts"] {
        let error = decode(&interface, name, &lie).unwrap_err();
        assert!(
            matches!(error.kind, DecodeErrorKind::Truncated { left: 12, .. }),
            "{error}"
        );
    }
    let error = decode(&interface, "few", &words(&[4, 0, 0, 0, 0])).unwrap_err();
    assert_eq!(
        error.kind,
        DecodeErrorKind::TooLong {
            length: 4,
            bound: 3
        }
    );
    assert_eq!((error.offset, error.field.as_ref()), (0, "few"));
    let error = decode(&interface, "empties", &lie).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooMuchMemory);
    assert!(decode(&interface, "empties", &words(&[100])).is_ok());
}

#[test]
fn memory_is_paid_for_by_bytes() {
    let interface = interface("struct l { opaque o<>; l *next; }; typedef l *list;");
    let bytes = words(&[1, 0].repeat(1000));
    let bytes = [bytes, words(&[0])].concat();
    let id = interface.schema().find_type("list").unwrap();
    let within = |memory_per_byte| {
        let limits = Limits {
            memory_per_byte,
            memory_base: 0,
            ..Limits::default()
        };
        let mut input = Decoder::with(&bytes, DecodeMode::Strict, limits);
        interface.decode(id, &mut input).map_err(|error| error.kind)
    };
    assert_eq!(within(4), Err(DecodeErrorKind::TooMuchMemory));
    assert!(within(16).is_ok());
}

#[test]
fn recursion_ends_at_the_limit() {
    let interface = interface("struct chain { chain *inner; int id; };");
    let nested = |depth: usize| {
        let flags = [vec![1; depth], vec![0]].concat();
        words(&[flags, vec![9; depth + 1]].concat())
    };
    assert!(decode(&interface, "chain", &nested(127)).is_ok());
    let error = decode(&interface, "chain", &nested(128)).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep);
    let error = decode(&interface, "chain", &nested(1_000_000)).unwrap_err();
    assert_eq!(
        (error.kind, error.field.as_ref()),
        (DecodeErrorKind::TooDeep, "chain.inner")
    );
    let leaf = Value::Struct(vec![Value::Optional(None), Value::Int(0)]);
    let deep = (0..128).fold(leaf, |inner, _| {
        Value::Struct(vec![Value::some(inner), Value::Int(0)])
    });
    assert_eq!(
        encode_error(&interface, "chain", &deep).0,
        EncodeErrorKind::TooDeep
    );
}

#[test]
fn lists_of_a_hundred_thousand_elements_do_not_nest() {
    let interface = interface("struct entry { int id; string name<>; entry *next; };");
    let id = TypeId(0);
    let element = |id| Value::Struct(vec![Value::Int(id), Value::String("x".into())]);
    let list = Value::Array((0..100_000).map(element).collect());
    let bytes = encoded(&interface, id, &list);
    assert_eq!(bytes.len(), 100_000 * 16);
    assert_eq!(interface.decode(id, &mut Decoder::new(&bytes)), Ok(list));
}

#[test]
fn errors_name_field_and_offset() {
    let interface = interface(
        "enum kind { FILE = 1, LINK = 2 };
         struct attributes { hyper size; kind what; };
         struct entry { opaque handle<8>; attributes about[2]; };
         union reply switch (int status) { case 0: entry found; };",
    );
    let check = |name, bytes: &[u32], expected: &str| {
        let error = decode(&interface, name, &words(bytes)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        "attributes",
        &[0, 0, 3],
        "attributes.what: 3 is not a value of this type at byte 8",
    );
    check(
        "attributes",
        &[0, 0],
        "attributes.size: 12 bytes needed, 8 left at byte 0",
    );
    check(
        "entry",
        &[9],
        "entry.handle: length 9 is over the bound 8 at byte 0",
    );
    check(
        "entry",
        &[0, 0, 0, 1, 0, 0, 7],
        "attributes.what: 7 is not a value of this type at byte 24",
    );
    check(
        "reply",
        &[5],
        "reply: 5 is not a value of this type at byte 0",
    );
    check(
        "reply",
        &[0, 9],
        "entry.handle: length 9 is over the bound 8 at byte 4",
    );
}

#[test]
fn values_of_another_shape_are_not_sent() {
    let interface = interface(
        "enum kind { FILE = 1 };
         struct entry { int id; opaque sum[2]; kind what; };
         struct link { int id; link *next; };
         union choice switch (int d) { case 0: int zero; case 1: void; };
         typedef int few<2>;
         typedef int pair[2];",
    );
    let entry = |id, sum: &[u8], kind| {
        Value::Struct(vec![id, Value::Opaque(sum.to_vec()), Value::Enum(kind)])
    };
    let check = |name, value: Value, kind, field: &str| {
        assert_eq!(
            encode_error(&interface, name, &value),
            (kind, field.to_owned())
        );
    };
    let shape = EncodeErrorKind::Shape;
    check(
        "entry",
        entry(Value::Uint(1), &[1, 2], 1),
        shape,
        "entry.id",
    );
    check("entry", entry(Value::Int(1), &[1], 1), shape, "entry.sum");
    let unknown = EncodeErrorKind::UnknownValue;
    check(
        "entry",
        entry(Value::Int(1), &[1, 2], 2),
        unknown(2),
        "entry.what",
    );
    check("entry", Value::Struct(vec![]), shape, "entry");
    check("entry", Value::Void, shape, "entry");
    check(
        "link",
        Value::Array(vec![]),
        EncodeErrorKind::EmptyList,
        "link",
    );
    check("choice", Value::union(2, Value::Void), unknown(2), "choice");
    check("choice", Value::union(1, Value::Int(1)), shape, "choice");
    check("choice", Value::union(0, Value::Void), shape, "choice");
    let ints = |count| Value::Array(vec![Value::Int(0); count]);
    let too_long = EncodeErrorKind::TooLong {
        length: 3,
        bound: 2,
    };
    check("few", ints(3), too_long, "few");
    check("pair", ints(3), shape, "pair");
}

#[test]
fn structs_inside_structs_have_all_their_fields_and_no_more() {
    let interface = interface(
        "struct point { int x; int y; }; struct line { point from; point to; };
         struct curve { line first; int at; };",
    );
    let ints = |count| Value::Struct(vec![Value::Int(7); count]);
    let line = |from, to| Value::Struct(vec![from, to]);
    let curve = |first| Value::Struct(vec![first, Value::Int(1)]);
    let refuse = |name, value, field: &str| {
        let refused = (EncodeErrorKind::Shape, field.to_owned());
        assert_eq!(encode_error(&interface, name, &value), refused, "{value:?}");
    };
    let id = interface.schema().find_type("curve").expect("a type");
    assert_eq!(
        encoded(&interface, id, &curve(line(ints(2), ints(2)))).len(),
        20
    );
    refuse("line", line(ints(1), ints(2)), "line.from");
    refuse("line", line(ints(3), ints(2)), "line.from");
    refuse("line", line(ints(2), ints(3)), "line.to");
    refuse("line", line(ints(2), Value::Int(1)), "line.to");
    refuse("curve", curve(ints(3)), "curve.first");
    refuse("curve", curve(line(ints(2), ints(0))), "line.to");
    let three = Value::Struct(vec![ints(2), ints(2), ints(2)]);
    refuse("curve", curve(three), "curve.first");
}

#[test]
fn what_has_no_place_in_memory_is_refused_by_its_name() {
    // No interface that is read from a file has such types; one that is made by a program may.
    let mut schema = support::schema("struct s { int x; }; struct large { opaque x[4]; };");
    let TypeKind::Struct(fields) = &mut schema.types[1].kind else {
        panic!("it is a struct")
    };
    fields[0].ty = Type::Opaque(Length::Fixed(1 << 29));
    let interface = Interface::new(schema).expect("types that end");
    let error = decode(&interface, "s", &words(&[1])).expect_err("there is no layout");
    let unholdable = (DecodeErrorKind::Unholdable, "large");
    assert_eq!((error.kind, error.field.as_ref()), unholdable);
    let value = Value::Struct(vec![Value::Int(1)]);
    let (kind, field) = encode_error(&interface, "s", &value);
    let unholdable = (EncodeErrorKind::Unholdable, "large");
    assert_eq!((kind, field.as_str()), unholdable);
}

#[test]
fn a_type_from_outside_the_interface_is_refused() {
    let interface = interface("struct uses { int id; foreign_thing what; };");
    let error = decode(&interface, "uses", &words(&[1, 2])).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::External);
    assert_eq!((error.field.as_ref(), error.offset), ("foreign_thing", 4));
    let value = Value::Struct(vec![Value::Int(1), Value::Void]);
    let (kind, field) = encode_error(&interface, "uses", &value);
    assert_eq!(
        (kind, field.as_str()),
        (EncodeErrorKind::External, "foreign_thing")
    );
}
