//! Frames: C's layout, large lists, depth, errors, and what they own.
#![cfg(feature = "jit")]

use std::mem::offset_of;

use crate::support::interface;
use tenon_exec::layout::CountedArray;
use tenon_exec::{Interface, Message, Value};
use tenon_schema::TypeId;
use tenon_wire::{Buffer, DecodeErrorKind, Decoder, EncodeErrorKind, Encoder, Limits};

fn message<'a>(interface: &'a Interface, name: &str) -> Message<'a> {
    let id = interface.schema().find_type(name).expect("a type");
    interface.message(id).expect("a layout")
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// `struct record` below as C has it.
#[repr(C)]
#[allow(dead_code)]
struct SampleRecord {
    letter: i8,
    wide: i64,
    yes: i32,
    sum: [u8; 3],
    small: u16,
    numbers: CountedArray,
    maybe: *mut u8,
    last: f32,
}

#[test]
fn a_frame_lies_as_c_has_it() {
    let interface = interface(
        "struct record { char letter; hyper wide; bool yes; opaque sum[3]; unsigned short small;
                         int numbers<>; int *maybe; float last; };",
    );
    let schema = interface.schema();
    let layouts = tenon_exec::layout::TypeLayouts::new(schema).expect("a layout");
    let layout = tenon_plan::Layout::of_type(schema, TypeId(0));
    let extent = layouts.extent(schema, layout);
    assert_eq!(extent.size, size_of::<SampleRecord>() as u64);
    assert_eq!(extent.align, align_of::<SampleRecord>() as u64);
    let offsets = [
        offset_of!(SampleRecord, letter),
        offset_of!(SampleRecord, wide),
        offset_of!(SampleRecord, yes),
        offset_of!(SampleRecord, sum),
        offset_of!(SampleRecord, small),
        offset_of!(SampleRecord, numbers),
        offset_of!(SampleRecord, maybe),
        offset_of!(SampleRecord, last),
    ];
    let fields = layout.fields(schema).expect("fields");
    let found = layouts.offsets(schema, fields);
    assert_eq!(found, offsets.map(|offset| offset as u64));
}

#[test]
fn lists_of_a_hundred_thousand_elements_do_not_nest() {
    let interface = interface("struct entry { int id; string name<>; entry *next; };");
    let message = message(&interface, "entry");
    let element = |id| Value::Struct(vec![Value::Int(id), Value::String("x".into())]);
    let list = Value::Array((0..100_000).map(element).collect());
    let mut buffer = Buffer::default();
    let frame = message.frame(&list).expect("a list");
    assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
    assert_eq!(buffer.len(), 100_000 * 16);
    let read = message.decode_by_machine(&mut Decoder::new(buffer.as_slice()));
    assert_eq!(read.expect("a list").value(), list);
}

#[test]
fn recursion_ends_at_the_limit() {
    let interface = interface("struct chain { chain *inner; int id; };");
    let message = message(&interface, "chain");
    let nested = |depth: usize| {
        let flags = [vec![1; depth], vec![0]].concat();
        words(&[flags, vec![9; depth + 1]].concat())
    };
    let decode = |bytes: &[u8]| message.decode(&mut Decoder::new(bytes));
    let frame = decode(&nested(127)).expect("128 levels");
    let mut buffer = Buffer::default();
    assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
    let error = decode(&nested(128)).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep);
    let deep = Limits {
        depth: 1000,
        ..Limits::default()
    };
    let bytes = nested(500);
    let mut input = Decoder::with(&bytes, Default::default(), deep);
    let frame = message.decode_by_machine(&mut input).expect("500 levels");
    let error = frame.encode(&mut Encoder::new(&mut buffer)).unwrap_err();
    assert_eq!(error.kind, EncodeErrorKind::TooDeep);
}

#[test]
fn what_the_interpreter_says_of_bad_values_is_said() {
    let interface = interface(
        "enum kind { FILE = 1, LINK = 5 };
         struct entry { int ids<2>; kind what; };
         struct link { int id; link *next; };
         union choice switch (int d) { case 0: int zero; case 1: void; };",
    );
    let check = |name, value: Value, kind, field: &str| {
        let message = message(&interface, name);
        let mut buffer = Buffer::default();
        let frame = message.frame(&value);
        let done = frame.and_then(|frame| frame.encode(&mut Encoder::new(&mut buffer)));
        let error = done.expect_err("a bad value");
        assert_eq!((error.kind, error.field.as_ref()), (kind, field));
    };
    let entry = |count, kind| {
        Value::Struct(vec![
            Value::Array(vec![Value::Int(0); count]),
            Value::Enum(kind),
        ])
    };
    let too_long = EncodeErrorKind::TooLong {
        length: 3,
        bound: 2,
    };
    check("entry", entry(3, 1), too_long, "entry.ids");
    let unknown = EncodeErrorKind::UnknownValue;
    check("entry", entry(1, 2), unknown(2), "entry.what");
    check(
        "link",
        Value::Array(vec![]),
        EncodeErrorKind::EmptyList,
        "link",
    );
    check("choice", Value::union(2, Value::Void), unknown(2), "choice");
    check("entry", Value::Void, EncodeErrorKind::Shape, "entry");
}

#[test]
fn a_frame_is_paid_for_by_its_bytes() {
    let interface = interface(
        "struct wide { hyper numbers[1000]; };
         union thin switch (int d) { case 0: wide full; default: void; };
         typedef thin many<>;",
    );
    let message = message(&interface, "many");
    let bytes = words(&[vec![1000], vec![7; 1000]].concat());
    let mut input = Decoder::new(&bytes);
    assert!(message.decode_by_machine(&mut input).is_none());
    assert_eq!(input.position(), 0);
    let few = words(&[2, 7, 7]);
    assert!(message.decode_by_machine(&mut Decoder::new(&few)).is_some());
}

#[test]
fn a_union_that_holds_itself_has_a_pointer_there() {
    let interface = interface(
        "union u switch (bool more) { case FALSE: void; case TRUE: w next; };
         struct w { hyper id; u rest; };",
    );
    assert!(interface.compile());
    let schema = interface.schema();
    let layouts = tenon_exec::layout::TypeLayouts::new(schema).expect("a layout");
    let bytes = |name| {
        let id = schema.find_type(name).expect("a type");
        let layout = tenon_plan::Layout::of_type(schema, id);
        layouts.extent(schema, layout).size
    };
    assert_eq!((bytes("u"), bytes("w")), (16, 24));
    let message = message(&interface, "u");
    let nested = |levels| {
        (0..levels).fold(Value::union(0, Value::Void), |inner, id| {
            Value::union(1, Value::Struct(vec![Value::Hyper(id), inner]))
        })
    };
    // Each of them is two levels.
    let mut buffer = Buffer::default();
    let frame = message.frame(&nested(63)).expect("a value");
    assert!(frame.encode_by_machine(&mut Encoder::new(&mut buffer)));
    assert_eq!(buffer.len(), 63 * 12 + 4);
    let read = message.decode_by_machine(&mut Decoder::new(buffer.as_slice()));
    assert_eq!(read.expect("good bytes").value(), nested(63));
    let error = message.frame(&nested(64)).expect_err("129 levels");
    assert_eq!(error.kind, EncodeErrorKind::TooDeep);
}

#[test]
fn clones_share_machine_code_and_outlive_each_other() {
    let first = interface("struct kind { int id; };");
    assert!(first.compile());
    let second = first.clone();
    drop(first);
    let message = message(&second, "kind");
    let threads = (0..4).map(|_| {
        std::thread::spawn({
            let interface = second.clone();
            move || assert!(interface.compile())
        })
    });
    threads.for_each(|thread| thread.join().expect("a good end"));
    assert!(message.interface().compile());
}
