//! Stubs for several representations, one of which only this test knows: what is sent comes back,
//! bytes lie where the specification says, and nothing is read that is not there.
#![forbid(unsafe_code)]
#![deny(warnings)]
#![allow(missing_docs, dead_code)]

use std::fmt::Debug;
use std::path::Path;

use tenon::wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder, Lean,
    Limits, Marshal, Native, Representation, Swapped, Xdr,
};
use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_schema::Type;

mod common;

#[path = "golden/representations.rs"]
mod stubs;

use stubs::*;

/// Little-endian, every number as wide as it is, nothing aligned: a representation of this test's
/// own. The generator knows it from [`common::PACKED`].
#[derive(Debug, Clone, Copy)]
pub struct Packed;

impl Representation for Packed {
    const SWAPPED: bool = cfg!(target_endian = "big");
    const WORDS: bool = false;
    const PADDING: usize = 1;
    const FLAGGED_LISTS: bool = false;
}

/// The lean representation of a sender whose numbers begin with the least significant byte, and of
/// the other.
#[cfg(target_endian = "little")]
type Orders = (Lean<Native>, Lean<Swapped>);
#[cfg(target_endian = "big")]
type Orders = (Lean<Swapped>, Lean<Native>);
type Little = <Orders as Pair>::First;
type Big = <Orders as Pair>::Second;

trait Pair {
    type First;
    type Second;
}

impl<A, B> Pair for (A, B) {
    type First = A;
    type Second = B;
}

fn encoded<R: Representation>(value: &impl Marshal<R>) -> Vec<u8> {
    let mut buffer = Buffer::default();
    // Positions count from here, whatever stands before.
    buffer.extend(b"abc");
    let done = value.encode(&mut Encoder::over(&mut buffer));
    done.expect("the value can be sent");
    buffer.as_slice()[3..].to_vec()
}

fn decoded<R: Representation, T: Marshal<R>>(
    bytes: &[u8],
    mode: DecodeMode,
) -> Result<T, DecodeError> {
    let mut input = Decoder::<R>::over(bytes, mode, Limits::default());
    let value = T::decode(&mut input)?;
    input.finish().map(|()| value)
}

/// A value comes back (as its bytes show: what is not a number does not equal itself), and no
/// beginning of its bytes is taken for one.
fn travels<R: Representation, T: Marshal<R> + Marshal<Xdr> + Debug>(value: &T) {
    let bytes = encoded::<R>(value);
    let back = decoded::<R, T>(&bytes, DecodeMode::Strict).expect("the bytes are a value");
    assert_eq!(encoded::<Xdr>(&back), encoded::<Xdr>(value));
    assert_eq!(encoded::<R>(&back), bytes);
    for end in 0..bytes.len() {
        for mode in [DecodeMode::Strict, DecodeMode::Lenient] {
            let part = decoded::<R, T>(&bytes[..end], mode);
            assert!(part.is_err(), "{end} of {} bytes: {part:?}", bytes.len());
        }
    }
}

/// A value travels in every representation.
fn travels_in_all<T>(value: &T)
where
    T: Marshal<Xdr> + Marshal<Little> + Marshal<Big> + Marshal<Packed> + Debug,
{
    travels::<Xdr, T>(value);
    travels::<Little, T>(value);
    travels::<Big, T>(value);
    travels::<Packed, T>(value);
}

/// Random values of the type `name` travel in every representation.
fn all_travel<T>(name: &str)
where
    T: Marshal<Xdr> + Marshal<Little> + Marshal<Big> + Marshal<Packed> + Debug,
{
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/representations.x");
    let interface = Interface::new(common::schema(&path)).expect("the interface has plans");
    let id = interface.schema().find_type(name).expect(name);
    let mut random = Random::new(1);
    for size in 0..40 {
        let value = random.value(interface.schema(), &Type::Named(id), size);
        let mut buffer = Buffer::default();
        let done = interface.encode(id, &value, &mut Encoder::new(&mut buffer));
        done.expect("the value can be sent");
        let value = decoded::<Xdr, T>(buffer.as_slice(), DecodeMode::Strict);
        travels_in_all(&value.expect("the bytes are a value"));
    }
}

#[test]
fn values_come_back_whole_or_not_at_all() {
    all_travel::<Suit>("suit");
    all_travel::<Pixel>("pixel");
    all_travel::<Vertex>("vertex");
    all_travel::<Stamp>("stamp");
    all_travel::<Holes>("holes");
    all_travel::<Record>("record");
    all_travel::<Shape>("shape");
    all_travel::<Tiny>("tiny");
    all_travel::<Everything>("everything");
    all_travel::<Sample>("sample");
}

fn sample() -> Sample {
    Sample {
        id: 1,
        kind: 2,
        values: vec![0.5],
        name: "ab".into(),
        next: Some(7),
    }
}

#[test]
fn the_example_of_the_specification_lies_as_it_says() {
    let little = [
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 2, 0, 0, 0,
        0x61, 0x62, 1, 0, 7, 0, 0, 0,
    ];
    let big = [
        0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 1, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
        0x61, 0x62, 1, 0, 0, 0, 0, 7,
    ];
    assert_eq!(encoded::<Little>(&sample()), little);
    assert_eq!(encoded::<Big>(&sample()), big);
    let packed = [
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 2, 0, 0, 0, 0x61,
        0x62, 1, 7, 0, 0, 0,
    ];
    assert_eq!(encoded::<Packed>(&sample()), packed);
}

#[test]
fn blocks_of_numbers_lie_as_in_memory() {
    let stamp = Stamp {
        seconds: 0x0102_0304_0506_0708,
        fraction: 0x090A_0B0C,
        zone: 0x0D0E,
        name: [15, 16],
    };
    let in_order: Vec<u8> = (1..=16).collect();
    assert_eq!(encoded::<Big>(&stamp), in_order);
    let reversed = [8, 7, 6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 14, 13, 15, 16];
    assert_eq!(encoded::<Little>(&stamp), reversed);
    assert_eq!(encoded::<Packed>(&stamp), reversed);
}

#[test]
fn holes_are_zeros_which_strict_mode_demands() {
    let bytes = encoded::<Little>(&sample());
    for hole in [10, 11, 31] {
        let mut dirty = bytes.clone();
        dirty[hole] = 1;
        assert_eq!(
            decoded::<Little, _>(&dirty, DecodeMode::Lenient),
            Ok(sample())
        );
        let error = decoded::<Little, Sample>(&dirty, DecodeMode::Strict).expect_err("dirty");
        assert_eq!(error.kind, DecodeErrorKind::Padding);
    }
    let holes = encoded::<Little>(&Holes::default());
    assert_eq!(holes.len(), 24);
    for hole in (1..8).chain(17..24) {
        let mut dirty = holes.clone();
        dirty[hole] = 0x80;
        assert!(decoded::<Little, Holes>(&dirty, DecodeMode::Lenient).is_ok());
        assert!(decoded::<Little, Holes>(&dirty, DecodeMode::Strict).is_err());
    }
    assert_eq!(encoded::<Packed>(&Holes::default()).len(), 10);
}

#[test]
fn functions_of_typedefs_are_there_for_each() {
    let vertex = |number: u16| Vertex {
        at: [1.0, 2.0, number.into()],
        color: number.into(),
    };
    let mesh: Mesh = (0..100)
        .map(|of| [vertex(of), vertex(of + 1), vertex(of + 2)])
        .collect();
    let mut buffer = Buffer::default();
    encode_mesh_lean(&mesh, &mut Encoder::<Big>::over(&mut buffer)).expect("sent");
    let bytes = buffer.as_slice();
    let mut input = Decoder::<Big>::over(bytes, DecodeMode::Strict, Limits::default());
    assert_eq!(decode_mesh_lean(&mut input).as_ref(), Ok(&mesh));
    let mut input = Decoder::<Little>::over(bytes, DecodeMode::Strict, Limits::default());
    let error = decode_mesh_lean(&mut input).expect_err("a count in the other order");
    assert!(
        matches!(error.kind, DecodeErrorKind::Truncated { .. }),
        "{error}"
    );
    let mut buffer = Buffer::default();
    encode_label_packed(&"ab".into(), &mut Encoder::over(&mut buffer)).expect("sent");
    assert_eq!(buffer.as_slice(), [2, 0, 0, 0, 0x61, 0x62]);
}

#[test]
fn a_list_by_value_has_an_element() {
    let empty = Everything::default();
    let mut buffer = Buffer::default();
    let error = empty.encode(&mut Encoder::<Little>::over(&mut buffer));
    assert_eq!(error.expect_err("empty").kind, EncodeErrorKind::EmptyList);
    // lead, no shapes, a tiny with holes, no inner, and a chain of no elements.
    let mut bytes = vec![0; 48];
    let error = decoded::<Little, Everything>(&bytes, DecodeMode::Strict).expect_err("kind 0");
    assert_eq!(error.kind, DecodeErrorKind::UnknownValue(0));
    bytes[8] = 1;
    let error = decoded::<Little, Everything>(&bytes, DecodeMode::Strict).expect_err("no chain");
    assert_eq!(error.kind, DecodeErrorKind::BadList);
}
