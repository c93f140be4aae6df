//! Representations beside XDR: lean from senders of both orders of bytes, and one that only these
//! tests know, which needed no line of code but its description.

use crate::support::{ids, schema, torture};
use tenon_exec::random::schemas;
use tenon_exec::{Interface, Value, random::Random};
use tenon_plan::{Lists, Order, Representation, lower};
use tenon_schema::{Schema, Type, TypeId};
use tenon_wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder, Lean,
    Limits, Native, Swapped, Xdr,
};

/// Little-endian, without a hole, a padding or a flag in front of an element.
const PACKED: Representation = Representation {
    name: "packed",
    order: Order::Little,
    words: false,
    aligned: false,
    padding: 1,
    lists: Lists::Counted,
};

/// XDR, but aligned, with flags of a byte, and padded to eight.
const ODD: Representation = Representation {
    name: "odd",
    order: Order::Little,
    words: false,
    aligned: true,
    padding: 8,
    lists: Lists::Flagged,
};

/// The lean representation of a sender with this byte order.
const fn lean_of(order: Order) -> Representation {
    Representation {
        order,
        ..Representation::LEAN
    }
}

/// An interface of one representation, and the one that reads the bytes that it writes.
struct RepresentationPair {
    name: &'static str,
    writer: Interface,
    reader: Interface,
    read: DecodeFn,
    #[cfg(feature = "jit")]
    read_by_machine: MachineDecodeFn,
}

/// Reads a value of a type; with it comes how many bytes it took.
type DecodeFn = fn(&Interface, TypeId, &[u8], DecodeMode) -> Result<(Value, usize), DecodeError>;

/// Reads a value of a type leniently, by machine code alone.
#[cfg(feature = "jit")]
type MachineDecodeFn = fn(&Interface, TypeId, &[u8]) -> Option<Value>;

#[cfg(feature = "jit")]
fn read_by_machine<R: tenon_wire::Representation>(
    interface: &Interface,
    id: TypeId,
    bytes: &[u8],
) -> Option<Value> {
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Lenient, Limits::default());
    let message = interface.message(id).expect("a layout");
    let frame = message.decode_by_machine(&mut input)?;
    Some(frame.value())
}

fn read<R: tenon_wire::Representation>(
    interface: &Interface,
    id: TypeId,
    bytes: &[u8],
    mode: DecodeMode,
) -> Result<(Value, usize), DecodeError> {
    let mut input = Decoder::<R>::over(bytes, mode, Limits::default());
    let value = interface.decode(id, &mut input)?;
    assert_eq!(input.depth_left(), Limits::default().depth);
    Ok((value, input.position()))
}

/// DecodeFn by decoders of `R`.
fn way<R: tenon_wire::Representation>(
    name: &'static str,
    writer: Interface,
    reader: Interface,
) -> RepresentationPair {
    RepresentationPair {
        name,
        writer,
        reader,
        read: read::<R>,
        #[cfg(feature = "jit")]
        read_by_machine: read_by_machine::<R>,
    }
}

/// All ways in which a value may travel.
fn ways(schema: &Schema) -> Vec<RepresentationPair> {
    let made = |representation| {
        let made = Interface::with_representation(schema.clone(), representation);
        made.expect("types that end")
    };
    let other = match cfg!(target_endian = "little") {
        true => Order::Big,
        false => Order::Little,
    };
    let (xdr, lean) = (Representation::XDR, Representation::LEAN);
    vec![
        way::<Xdr>("xdr", made(xdr), made(xdr)),
        way::<Lean<Native>>("lean", made(lean), made(lean)),
        way::<Lean<Swapped>>("lean swapped", made(lean_of(other)), made(lean)),
        way::<Xdr>("packed", made(PACKED), made(PACKED)),
        way::<Lean<Swapped>>("odd", made(ODD), made(ODD)),
    ]
}

fn written(interface: &Interface, id: TypeId, value: &Value) -> Vec<u8> {
    let mut buffer = Buffer::default();
    // Positions count from the beginning of the message.
    buffer.extend(b"before");
    let mut out = Encoder::<Lean>::over(&mut buffer);
    let done = interface.encode(id, value, &mut out);
    done.unwrap_or_else(|error| panic!("{error}: {value:?}"));
    buffer.as_slice()[6..].to_vec()
}

fn value(schema: &Schema, id: TypeId, seed: u64, items: usize) -> Value {
    Random::new(seed).value(schema, &Type::Named(id), items)
}

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    digits.chunks_exact(2).map(byte).collect()
}

/// Checks that the type called `x` of `definition` has these bytes for this value in lean, from a
/// sender that writes the least significant byte first and from one that writes it last.
fn check_lean(definition: &str, value: Value, little: &str, big: &str) {
    let schema = schema(definition);
    let id = schema.find_type("x").expect("a type called x");
    let (native, swapped) = match cfg!(target_endian = "little") {
        true => (hex(little), hex(big)),
        false => (hex(big), hex(little)),
    };
    for way in ways(&schema) {
        let expected = match way.name {
            "lean" => &native,
            "lean swapped" => &swapped,
            _ => continue,
        };
        let bytes = written(&way.writer, id, &value);
        assert_eq!(bytes, *expected, "{} of {definition}", way.name);
        let read = (way.read)(&way.reader, id, &bytes, DecodeMode::Strict);
        assert_eq!(read, Ok((value.clone(), bytes.len())), "{definition}");
    }
}

#[test]
fn lean_is_as_specified() {
    let doubles =
        |values: &[f64]| Value::Array(values.iter().copied().map(Value::Double).collect());
    let sample = "struct x { hyper id; short kind; double values<>; string name<>; int *next; };";
    check_lean(
        sample,
        Value::Struct(vec![
            Value::Hyper(1),
            Value::Short(2),
            doubles(&[0.5]),
            Value::String("ab".into()),
            Value::some(Value::Int(7)),
        ]),
        "0100000000000000 0200 0000 01000000 000000000000e03f 02000000 6162 01 00 07000000",
        "0000000000000001 0002 0000 00000001 3fe0000000000000 00000002 6162 01 00 00000007",
    );
    check_lean(
        sample,
        Value::Struct(vec![
            Value::Hyper(-1),
            Value::Short(-2),
            doubles(&[]),
            Value::String("".into()),
            Value::Optional(None),
        ]),
        "ffffffffffffffff feff 0000 00000000 00000000 00",
        "ffffffffffffffff fffe 0000 00000000 00000000 00",
    );
}

#[test]
fn lean_numbers_take_what_they_need() {
    check_lean("typedef bool x;", Value::Bool(true), "01", "01");
    check_lean("typedef char x;", Value::Char(-2), "fe", "fe");
    check_lean(
        "typedef unsigned short x<>;",
        Value::Array(vec![Value::Ushort(258), Value::Ushort(3)]),
        "02000000 0201 0300",
        "00000002 0102 0003",
    );
    check_lean(
        "enum x { A = 515 };",
        Value::Enum(515),
        "03020000",
        "00000203",
    );
    let quadruple = std::array::from_fn(|byte| byte as u8);
    let digits = "00010203 04050607 08090a0b 0c0d0e0f";
    check_lean(
        "typedef quadruple x;",
        Value::Quadruple(quadruple),
        digits,
        digits,
    );
    check_lean(
        "typedef opaque x<>;",
        Value::Opaque(vec![7; 5]),
        "05000000 0707070707",
        "00000005 0707070707",
    );
    check_lean(
        "union x switch (bool d) { case TRUE: int a; case FALSE: void; };",
        Value::union(1, Value::Int(1)),
        "01 000000 01000000",
        "01 000000 00000001",
    );
}

#[test]
fn lean_structs_lie_as_in_c() {
    let tail = |number, flag| Value::Struct(vec![Value::Hyper(number), Value::Bool(flag)]);
    check_lean(
        "struct tail { hyper a; bool b; }; typedef tail x<>;",
        Value::Array(vec![tail(1, true), tail(2, false)]),
        "00000000 02000000 0100000000000000 01 00000000000000 0200000000000000 00 00000000000000",
        "00000000 00000002 0000000000000001 01 00000000000000 0000000000000002 00 00000000000000",
    );
    let element = |id, name: &str| Value::Struct(vec![Value::Char(id), Value::String(name.into())]);
    check_lean(
        "struct y { char id; string name<>; y *next; }; typedef y *x;",
        Value::Array(vec![element(1, "a"), element(2, "")]),
        "02000000 01 000000 01000000 61 000000 02 000000 00000000",
        "00000002 01 000000 00000001 61 000000 02 000000 00000000",
    );
}

#[test]
fn lean_holes_follow_from_what_surrounds_them() {
    let hyper = Value::Hyper;
    let int = Value::Int;
    let of = Value::Struct;
    // A struct of fixed size in another: 4 bytes behind `n`, 6 behind `s`.
    check_lean(
        "struct d { int n; double d; }; struct x { char c; d it; short s; };",
        of(vec![
            Value::Char(1),
            of(vec![int(2), Value::Double(0.5)]),
            Value::Short(3),
        ]),
        "01 00000000000000 02000000 00000000 000000000000e03f 0300 000000000000",
        "01 00000000000000 00000002 00000000 3fe0000000000000 0003 000000000000",
    );
    // The hole behind `p` is a part of it; the count of `r` needs none.
    check_lean(
        "struct behind { hyper a; int b; }; struct x { behind p; int q; hyper r<>; };",
        of(vec![
            of(vec![hyper(1), int(2)]),
            int(3),
            Value::Array(vec![hyper(4)]),
        ]),
        "0100000000000000 02000000 00000000 03000000 01000000 0400000000000000",
        "0000000000000001 00000002 00000000 00000003 00000001 0000000000000004",
    );
    // Here it needs one more, and has it without elements, too.
    check_lean(
        "struct behind { hyper a; int b; }; struct x { behind p; hyper r<>; };",
        of(vec![of(vec![hyper(1), int(2)]), Value::Array(vec![])]),
        "0100000000000000 02000000 00000000 00000000 00000000",
        "0000000000000001 00000002 00000000 00000000 00000000",
    );
    check_lean(
        "enum e { A = 1 }; struct x { bool b; e e; opaque o[3]; short s; };",
        of(vec![
            Value::Bool(true),
            Value::Enum(1),
            Value::Opaque(vec![5, 6, 7]),
            Value::Short(4),
        ]),
        "01 000000 01000000 050607 00 0400 0000",
        "01 000000 00000001 050607 00 0004 0000",
    );
    // No elements, and yet their alignment.
    check_lean(
        "struct x { char c; hyper none[0]; char d; };",
        of(vec![Value::Char(1), Value::Array(vec![]), Value::Char(2)]),
        "01 00000000000000 02 00000000000000",
        "01 00000000000000 02 00000000000000",
    );
}

#[test]
fn lean_positions_follow_from_what_varies() {
    let (hyper, char) = (Value::Hyper, Value::Char);
    let of = Value::Struct;
    let element = |c, s: &str, h| of(vec![char(c), Value::String(s.into()), hyper(h)]);
    // It begins at a multiple of 4, as `s` does, whatever `h` needs; behind `h` there is no hole.
    check_lean(
        "struct e { char c; string s<>; hyper h; }; typedef e x<2>;",
        Value::Array(vec![element(1, "a", 2), element(3, "", 4)]),
        "02000000 01 000000 01000000 61 000000 0200000000000000 03 000000 00000000 0400000000000000",
        "00000002 01 000000 00000001 61 000000 0000000000000002 03 000000 00000000 0000000000000004",
    );
    let link = |values: [Value; 2]| of(values.into());
    check_lean(
        "struct y { char c; hyper v; y *next; }; typedef y *x;",
        Value::Array(vec![link([char(1), hyper(2)]), link([char(3), hyper(4)])]),
        "02000000 00000000 01 00000000000000 0200000000000000 03 00000000000000 0400000000000000",
        "00000002 00000000 01 00000000000000 0000000000000002 03 00000000000000 0000000000000004",
    );
    check_lean(
        "struct y { hyper v; char c; y *next; }; typedef y *x;",
        Value::Array(vec![link([hyper(1), char(2)])]),
        "01000000 00000000 0100000000000000 02 00000000000000",
        "00000001 00000000 0000000000000001 02 00000000000000",
    );
    // Each lies where the one before it ends: a union asks for no more than its discriminant.
    check_lean(
        "union u switch (bool b) { case TRUE: hyper h; case FALSE: void; }; typedef u x[3];",
        Value::Array(vec![
            Value::union(1, hyper(1)),
            Value::union(0, Value::Void),
            Value::union(1, hyper(2)),
        ]),
        "01 00000000000000 0100000000000000 00 01 000000000000 0200000000000000",
        "01 00000000000000 0000000000000001 00 01 000000000000 0000000000000002",
    );
    check_lean(
        "struct d { int n; double d; }; struct x { char c; d *it; };",
        of(vec![
            char(9),
            Value::some(of(vec![Value::Int(2), Value::Double(0.5)])),
        ]),
        "09 01 000000000000 02000000 00000000 000000000000e03f",
        "09 01 000000000000 00000002 00000000 3fe0000000000000",
    );
    check_lean(
        "typedef int c<>; typedef c x[2];",
        Value::Array(vec![
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![]),
        ]),
        "01000000 01000000 00000000",
        "00000001 00000001 00000000",
    );
}

/// Values of every type survive, and passes do not change a byte.
fn check_all(schema: &Schema, seeds: std::ops::Range<u64>, items: usize) {
    for way in ways(schema) {
        let plans = lower(schema, way.writer.plans().representation).expect("types that end");
        let naive = Interface::with_plans(schema.clone(), plans).expect("plans that fit");
        for id in ids(&way.writer) {
            for seed in seeds.clone() {
                let value = value(schema, id, seed, items);
                let bytes = written(&way.writer, id, &value);
                let context = || format!("{} of type {}, seed {seed}", way.name, id.0);
                assert_eq!(bytes, written(&naive, id, &value), "{}", context());
                for mode in [DecodeMode::Strict, DecodeMode::Lenient] {
                    let read = (way.read)(&way.reader, id, &bytes, mode);
                    assert_eq!(read, Ok((value.clone(), bytes.len())), "{}", context());
                }
            }
        }
    }
}

#[test]
fn values_survive_in_every_representation() {
    check_all(torture().schema(), 0..25, 60);
}

#[test]
fn random_interfaces_hold_together_in_every_representation() {
    let mut checked = 0;
    for seed in 0..150 {
        let schema = schemas::schema(&mut Random::new(seed));
        if lower(&schema, Representation::XDR).is_ok() {
            check_all(&schema, seed..seed + 1, 30);
            checked += 1;
        }
    }
    assert!(checked > 75, "{checked}");
}

#[test]
fn every_truncation_is_refused() {
    let interface = torture();
    for way in ways(interface.schema()) {
        for id in ids(&interface) {
            let bytes = written(&way.writer, id, &value(interface.schema(), id, 1, 30));
            for length in 0..bytes.len().min(600) {
                let read = (way.read)(&way.reader, id, &bytes[..length], DecodeMode::Lenient);
                let error = read.expect_err("the end is missing");
                let is_truncated = matches!(error.kind, DecodeErrorKind::Truncated { .. });
                assert!(
                    is_truncated && error.offset <= length,
                    "{}: {error}",
                    way.name
                );
                assert!(!error.field.is_empty(), "{}: {error}", way.name);
            }
        }
    }
}

/// One type each that has a count, and a value with a count of 3.
fn counted() -> (Schema, Vec<(&'static str, Value)>) {
    let schema = schema(
        "struct point { int x; int y; }; struct mixed { hyper a; bool b; };
         struct named { string name<>; };
         struct link { char id; link *next; };
         typedef string text<>; typedef opaque blob<>; typedef int ints<>; typedef bool bools<>;
         typedef hyper hypers<>; typedef point points<>; typedef mixed mixeds<>;
         typedef named nameds<>; typedef link *links; typedef quadruple quadruples<>;",
    );
    let three = |value: Value| Value::Array(vec![value; 3]);
    let (int, hyper, bool) = (Value::Int(9), Value::Hyper(9), Value::Bool(true));
    let values = vec![
        ("text", Value::String("abc".into())),
        ("blob", Value::Opaque(vec![9; 3])),
        ("ints", three(int.clone())),
        ("bools", three(bool.clone())),
        ("hypers", three(hyper.clone())),
        ("points", three(Value::Struct(vec![int.clone(), int]))),
        ("mixeds", three(Value::Struct(vec![hyper, bool]))),
        (
            "nameds",
            three(Value::Struct(vec![Value::String("abc".into())])),
        ),
        ("quadruples", three(Value::Quadruple([9; 16]))),
        ("links", three(Value::Struct(vec![Value::Char(9)]))),
    ];
    (schema, values)
}

#[test]
fn every_corrupted_count_is_refused() {
    let (schema, values) = counted();
    for way in ways(&schema) {
        for (name, value) in &values {
            let id = schema.find_type(name).expect("a type");
            let bytes = written(&way.writer, id, value);
            let count = |value: u32| match (way.name, way.writer.plans().representation.order) {
                ("lean", _) => value.to_ne_bytes(),
                (_, Order::Little) => value.to_le_bytes(),
                (_, Order::Big | Order::Sender) => value.to_be_bytes(),
            };
            let Some(at) = bytes.windows(4).position(|window| window == count(3)) else {
                assert!(*name == "links" && ["xdr", "odd"].contains(&way.name));
                continue;
            };
            #[cfg(feature = "jit")]
            let by_machine = |bytes: &[u8]| (way.read_by_machine)(&way.reader, id, bytes);
            #[cfg(feature = "jit")]
            assert_eq!(by_machine(&bytes).as_ref(), Some(value), "{}", way.name);
            // What follows the last element is missing.
            for lie in [9, 0x0100_0000, i32::MAX as u32, u32::MAX] {
                let mut lying = bytes.clone();
                lying[at..at + 4].copy_from_slice(&count(lie));
                let read = (way.read)(&way.reader, id, &lying, DecodeMode::Lenient);
                let error = read.expect_err("there are three").kind;
                let is_truncated = matches!(error, DecodeErrorKind::Truncated { .. });
                assert!(is_truncated, "{lie} {name} in {}: {error}", way.name);
                #[cfg(feature = "jit")]
                assert_eq!(by_machine(&lying), None, "{lie} {name} in {}", way.name);
            }
        }
    }
}

#[test]
fn what_strict_mode_accepts_of_damaged_bytes_is_what_it_writes() {
    let interface = torture();
    let mut chance = Random::new(7);
    for way in ways(interface.schema()) {
        let (mut accepted, mut refused) = (0, 0);
        for id in ids(&interface) {
            for seed in 0..20 {
                let mut bytes = written(&way.writer, id, &value(interface.schema(), id, seed, 30));
                for _ in 0..=chance.below(2) {
                    let at = chance.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << chance.below(8);
                }
                match (way.read)(&way.reader, id, &bytes, DecodeMode::Strict) {
                    Ok((value, read)) => {
                        assert_eq!(written(&way.writer, id, &value), bytes[..read]);
                        accepted += 1;
                    }
                    Err(_) => refused += 1,
                }
                let _ = (way.read)(&way.reader, id, &bytes, DecodeMode::Lenient);
            }
        }
        let name = way.name;
        assert!(
            accepted > 50 && refused > 50,
            "{name}: {accepted} {refused}"
        );
    }
}

#[test]
fn holes_are_zero_in_strict_mode_only() {
    let schema = schema("struct x { bool a; int b; string s<>; hyper h; };");
    let interface = Interface::with_representation(schema, Representation::LEAN).expect("a plan");
    let sent = Value::Struct(vec![
        Value::Bool(true),
        Value::Int(1),
        Value::String("abc".into()),
        Value::Hyper(2),
    ]);
    let good = written(&interface, TypeId(0), &sent);
    for hole in [1, 3, 15] {
        let mut bytes = good.clone();
        assert_eq!(bytes[hole], 0);
        bytes[hole] = 1;
        let lenient = read::<Lean>(&interface, TypeId(0), &bytes, DecodeMode::Lenient);
        assert_eq!(lenient, Ok((sent.clone(), bytes.len())));
        let strict = read::<Lean>(&interface, TypeId(0), &bytes, DecodeMode::Strict);
        let error = strict.expect_err("a hole");
        assert_eq!(error.kind, DecodeErrorKind::Padding);
        assert_eq!(error.field, "x");
    }
}

#[test]
fn a_list_that_is_never_empty_is_refused_when_it_is() {
    let schema = schema("struct x { int id; x *next; };");
    let interface = Interface::with_representation(schema, Representation::LEAN).expect("a plan");
    let error = read::<Lean>(&interface, TypeId(0), &[0; 4], DecodeMode::Lenient);
    assert_eq!(error.expect_err("none").kind, DecodeErrorKind::BadList);
    let mut buffer = Buffer::default();
    let mut out = Encoder::<Lean>::over(&mut buffer);
    let empty = interface.encode(TypeId(0), &Value::Array(vec![]), &mut out);
    assert_eq!(empty.expect_err("none").kind, EncodeErrorKind::EmptyList);
}
