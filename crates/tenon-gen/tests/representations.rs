//! Stubs for several representations, one of which only this test knows: what is sent comes back,
//! bytes lie where the specification says, and nothing is read that is not there.
#![forbid(unsafe_code)]
#![deny(warnings)]

use std::fmt::Debug;
use std::path::Path;

use tenon::wire::{
    Buffer, Cow, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder, Lean,
    Limits, Marshal, Native, Representation, Swapped, View, Xdr,
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
    const ALIGNED: bool = false;
    const PADDING: usize = 1;
    const FLAGGED_LISTS: bool = false;
}

/// The lean representation of a little-endian sender, and of a big-endian one.
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

/// Random values of the type `name`.
fn random_values<T: Marshal<Xdr>>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/representations.x");
    let interface = Interface::new(common::schema(&path)).expect("the interface has plans");
    let id = interface.schema().find_type(name).expect(name);
    let mut random = Random::new(1);
    let values = (0..40).map(|size| {
        let value = random.value(interface.schema(), &Type::Named(id), size);
        let mut buffer = Buffer::default();
        let done = interface.encode(id, &value, &mut Encoder::new(&mut buffer));
        done.expect("the value can be sent");
        decoded::<Xdr, T>(buffer.as_slice(), DecodeMode::Strict).expect("the bytes are a value")
    });
    values.collect()
}

/// Random values of the type `name` travel in every representation.
fn all_travel<T>(name: &str)
where
    T: Marshal<Xdr> + Marshal<Little> + Marshal<Big> + Marshal<Packed> + Debug,
{
    random_values::<T>(name).iter().for_each(travels_in_all);
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

/// Reads a view of a whole message.
fn viewed<'a, R: Representation, V: View<'a, R>>(bytes: &'a [u8]) -> Result<V, DecodeError> {
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, Limits::default());
    let view = V::view(&mut input)?;
    input.finish().map(|()| view)
}

/// A view of a value is the value, and no beginning of its bytes is taken for one.
macro_rules! is_viewed {
    ($value:expr, $type:ident, $view:ident: $($representation:ty)*) => {$(
        let bytes = encoded::<$representation>($value);
        let view = viewed::<$representation, $view<'_>>(&bytes).expect("the bytes are a value");
        assert_eq!(encoded::<Xdr>(&$type::from(view)), encoded::<Xdr>($value));
        for end in 0..bytes.len() {
            assert!(viewed::<$representation, $view<'_>>(&bytes[..end]).is_err());
        }
    )*};
}

#[test]
fn views_are_the_values_that_they_borrow_from() {
    for value in &random_values::<Record>("record") {
        is_viewed!(value, Record, RecordView: Xdr Little Big Packed);
    }
    for value in &random_values::<Shape>("shape") {
        is_viewed!(value, Shape, ShapeView: Xdr Little Big Packed);
    }
    for value in &random_values::<Tiny>("tiny") {
        is_viewed!(value, Tiny, TinyView: Xdr Little Big Packed);
    }
    for value in &random_values::<Everything>("everything") {
        is_viewed!(value, Everything, EverythingView: Xdr Little Big Packed);
    }
}

/// A place for bytes at a multiple of 8.
#[repr(align(8))]
struct Aligned([u8; 64]);

impl Aligned {
    /// The bytes, so many behind a multiple of 8.
    fn hold(&mut self, bytes: &[u8], behind: usize) -> &[u8] {
        let place = &mut self.0[behind..behind + bytes.len()];
        place.copy_from_slice(bytes);
        place
    }
}

#[test]
fn views_borrow_arrays_that_lie_as_in_memory() {
    let is_borrowed = |samples: &Cow<'_, [f64]>| matches!(samples, Cow::Borrowed(_));
    let mut place = Aligned([0; 64]);
    let native = encoded::<Lean<Native>>(&sample());
    let message = place.hold(&native, 0);
    let view: SampleView<'_> = viewed::<Lean<Native>, _>(message).expect("a value");
    assert!(is_borrowed(&view.values));
    assert_eq!(view.values.as_ref(), [0.5]);
    let name = view.name.as_ptr_range();
    assert!(
        message.as_ptr_range().contains(&name.start),
        "the name is in the message"
    );

    for behind in 1..8 {
        let message = place.hold(&native, behind);
        let view: SampleView<'_> = viewed::<Lean<Native>, _>(message).expect("a value");
        assert!(
            !is_borrowed(&view.values),
            "{behind} bytes behind a multiple of 8"
        );
        assert_eq!(Sample::from(view), sample());
    }
    let swapped = encoded::<Lean<Swapped>>(&sample());
    let message = place.hold(&swapped, 0);
    let view: SampleView<'_> = viewed::<Lean<Swapped>, _>(message).expect("a value");
    assert!(!is_borrowed(&view.values));
    assert_eq!(Sample::from(view), sample());
    let view = viewed::<Xdr, SampleView<'_>>(&[0; 8]).expect_err("too short");
    assert!(matches!(view.kind, DecodeErrorKind::Truncated { .. }));
}

#[test]
fn what_a_view_cannot_borrow_is_paid_for() {
    let mesh: Mesh = vec![[Vertex::default(); 3]; 1000];
    let mut buffer = Buffer::default();
    encode_mesh_lean(&mesh, &mut Encoder::<Lean<Swapped>>::over(&mut buffer)).expect("sent");
    let limits = Limits {
        memory_per_byte: 0,
        memory_base: 0,
        ..Limits::default()
    };
    let bytes = buffer.as_slice();
    let mut input = Decoder::<Lean<Swapped>>::over(bytes, DecodeMode::Strict, limits);
    let error = view_mesh_lean(&mut input).expect_err("nothing is paid for");
    assert_eq!(error.kind, DecodeErrorKind::TooMuchMemory);
}
