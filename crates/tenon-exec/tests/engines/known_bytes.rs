//! Values of which the bytes are known from elsewhere: RFC 4506 section 7, and encodings by hand.

use crate::support::{encoded, interface};
use bstr::BString;
use tenon_exec::{Interface, Value};
use tenon_schema::TypeId;
use tenon_wire::{DecodeMode, Decoder, Limits};

fn text(text: &str) -> Value {
    Value::String(BString::from(text))
}

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    };
    digits.chunks_exact(2).map(byte).collect()
}

fn id(interface: &Interface, name: &str) -> TypeId {
    interface
        .schema()
        .find_type(name)
        .expect("a type of this name")
}

/// Checks that the type called `x` of `definition` has these bytes for this value, both ways.
fn check(definition: &str, value: Value, digits: &str) {
    let interface = interface(definition);
    let (id, bytes) = (id(&interface, "x"), hex(digits));
    assert_eq!(encoded(&interface, id, &value), bytes, "{definition}");
    let mut input = Decoder::with(&bytes, DecodeMode::Strict, Limits::default());
    assert_eq!(interface.decode(id, &mut input), Ok(value), "{definition}");
    assert_eq!(input.finish(), Ok(()));
}

#[test]
fn the_file_of_rfc_4506_section_7() {
    let definition = "
        const MAXUSERNAME = 32;
        const MAXFILELEN = 65535;
        const MAXNAMELEN = 255;
        enum filekind { TEXT = 0, DATA = 1, EXEC = 2 };
        union filetype switch (filekind kind) {
        case TEXT: void;
        case DATA: string creator<MAXNAMELEN>;
        case EXEC: string interpretor<MAXNAMELEN>;
        };
        struct x {
            string filename<MAXNAMELEN>;
            filetype type;
            string owner<MAXUSERNAME>;
            opaque data<MAXFILELEN>;
        };";
    let value = Value::Struct(vec![
        text("sillyprog"),
        Value::union(2, text("lisp")),
        text("john"),
        Value::Opaque(b"(quit)".to_vec()),
    ]);
    check(
        definition,
        value,
        "00000009 73696c6c 7970726f 67000000 00000002 00000004 6c697370
         00000004 6a6f686e 00000006 28717569 74290000",
    );
}

#[test]
fn numbers() {
    check("typedef int x;", Value::Int(-2), "fffffffe");
    check(
        "typedef unsigned int x;",
        Value::Uint(0xdead_beef),
        "deadbeef",
    );
    check("typedef hyper x;", Value::Hyper(-2), "ffffffff fffffffe");
    check(
        "typedef unsigned hyper x;",
        Value::Uhyper(1 << 63),
        "80000000 00000000",
    );
    check("typedef short x;", Value::Short(-2), "fffffffe");
    check(
        "typedef unsigned short x;",
        Value::Ushort(65535),
        "0000ffff",
    );
    check("typedef char x;", Value::Char(-128), "ffffff80");
    check("typedef unsigned char x;", Value::Uchar(255), "000000ff");
    check("typedef float x;", Value::Float(-1.5), "bfc00000");
    check("typedef double x;", Value::Double(0.1), "3fb99999 9999999a");
    check("typedef bool x;", Value::Bool(true), "00000001");
    check("enum x { A = -3 };", Value::Enum(-3), "fffffffd");
    let quadruple = std::array::from_fn(|byte| byte as u8);
    let digits = "00010203 04050607 08090a0b 0c0d0e0f";
    check("typedef quadruple x;", Value::Quadruple(quadruple), digits);
}

#[test]
fn bytes_and_their_padding() {
    check(
        "typedef opaque x[5];",
        Value::Opaque(vec![1; 5]),
        "01010101 01000000",
    );
    check("typedef opaque x<>;", Value::Opaque(vec![]), "00000000");
    check(
        "typedef opaque x<9>;",
        Value::Opaque(vec![7; 4]),
        "00000004 07070707",
    );
    check("typedef string x<>;", text("\u{e9}t"), "00000003 c3a97400");
}

#[test]
fn arrays() {
    let ints = || Value::Array(vec![Value::Int(1), Value::Int(2)]);
    check("typedef int x[2];", ints(), "00000001 00000002");
    check("typedef int x<2>;", ints(), "00000002 00000001 00000002");
    check(
        "typedef int y<2>; typedef y x[1];",
        Value::Array(vec![ints()]),
        "00000002 00000001 00000002",
    );
    let words = Value::Array(vec![text("a"), text("")]);
    check(
        "typedef string y<>; typedef y x<>;",
        words,
        "00000002 00000001 61000000 00000000",
    );
}

#[test]
fn optional_data() {
    check("typedef hyper *x;", Value::Optional(None), "00000000");
    check(
        "typedef hyper *x;",
        Value::some(Value::Hyper(5)),
        "00000001 00000000 00000005",
    );
    let twice = Value::some(Value::some(Value::Int(5)));
    check(
        "typedef int *y; typedef y *x;",
        twice,
        "00000001 00000001 00000005",
    );
}

#[test]
fn unions() {
    let union = "union x switch (unsigned int d) { case 4294967295: int a; default: void; };";
    check(union, Value::union(-1, Value::Int(9)), "ffffffff 00000009");
    check(union, Value::union(3, Value::Void), "00000003");
    let union = "union x switch (bool d) { case TRUE: opaque a[2]; case FALSE: void; };";
    check(
        union,
        Value::union(1, Value::Opaque(vec![9, 9])),
        "00000001 09090000",
    );
}

#[test]
fn linked_lists() {
    let element = |id| Value::Struct(vec![Value::Int(id)]);
    let definition = "struct y { int id; y *next; }; typedef y *x;";
    check(definition, Value::Array(vec![]), "00000000");
    let two = || Value::Array(vec![element(7), element(8)]);
    check(
        definition,
        two(),
        "00000001 00000007 00000001 00000008 00000000",
    );
    check(
        "struct x { int id; x *next; };",
        two(),
        "00000007 00000001 00000008 00000000",
    );
}

#[test]
fn trees() {
    let leaf = Value::Struct(vec![Value::Optional(None), Value::Int(2)]);
    let tree = Value::Struct(vec![Value::some(leaf), Value::Int(1)]);
    check(
        "struct x { x *left; int id; };",
        tree,
        "00000001 00000000 00000002 00000001",
    );
}

/// Checks bytes that libtirpc accepts and RFC 4506 does not: the type called `x` of `definition` is read as
/// `value` leniently, and not strictly.
fn check_lenient(definition: &str, digits: &str, value: Value) {
    let interface = interface(definition);
    let (id, bytes) = (id(&interface, "x"), hex(digits));
    let lenient = interface.decode(id, &mut Decoder::new(&bytes));
    assert_eq!(lenient, Ok(value), "{definition}");
    let mut strict = Decoder::with(&bytes, DecodeMode::Strict, Limits::default());
    assert!(interface.decode(id, &mut strict).is_err(), "{definition}");
}

#[test]
fn lenient_mode_forgives_what_libtirpc_forgives() {
    check_lenient("typedef bool x;", "00000100", Value::Bool(true));
    check_lenient(
        "typedef opaque x[3];",
        "01010199",
        Value::Opaque(vec![1; 3]),
    );
    check_lenient("typedef string x<>;", "00000001 61000001", text("a"));
    check_lenient("typedef unsigned char x;", "00000101", Value::Uchar(1));
    check_lenient(
        "typedef int *x;",
        "00000002 00000001",
        Value::some(Value::Int(1)),
    );
    let union = "union x switch (bool d) { case TRUE: int a; case FALSE: void; };";
    check_lenient(union, "00000007 00000001", Value::union(1, Value::Int(1)));
}
