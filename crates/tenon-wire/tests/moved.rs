//! What is moved past the operations of a plan: values that are filled in where they are sent from, room that is
//! written later, and decoders that catch up.

use std::alloc::Layout;
use std::fmt::Debug;

use tenon_wire::kernels::Run;
use tenon_wire::{
    Blittable, Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Representation, ReservedValue,
    Swapped, Xdr,
};

fn written<R: Representation>(write: impl FnOnce(&mut Encoder<'_, R>)) -> Vec<u8> {
    let mut buffer = Buffer::default();
    write(&mut Encoder::over(&mut buffer));
    buffer.as_slice().to_vec()
}

fn read<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Strict, Limits::default())
}

/// A value that is filled in where it is sent from is the value that is put there, wherever that is.
fn filled<R: Representation, T>(value: T)
where
    T: Blittable + Copy + PartialEq + Debug,
{
    for before in 0..9 {
        let expected = written::<R>(|out| {
            out.room(before).fill(7);
            out.put(value);
        });
        let found = written::<R>(|out| {
            out.room(before).fill(7);
            let refused = out.fill(|room: &mut T| {
                *room = value;
                Err("refused")
            });
            assert_eq!(refused, Err("refused"));
            let done: Result<(), ()> = out.fill(|room: &mut T| {
                assert_ne!(*room, value, "nothing is left of what was refused");
                *room = value;
                Ok(())
            });
            assert_eq!(done, Ok(()));
        });
        assert_eq!(found, expected, "{before}");
        assert_eq!(reserved::<R, _>(before, value), expected, "{before}");
        if let [Run { unit, .. }] = T::RUNS {
            let found = by_layout::<R, _>((before, *unit), &value);
            assert_eq!(found, expected, "{before}");
        }
    }
}

/// The same as a value that stays where it is while its owner moves.
fn reserved<R: Representation, T>(before: usize, value: T) -> Vec<u8>
where
    T: Blittable + Copy + PartialEq + Debug,
{
    let mut buffer = Buffer::default();
    buffer.extend(&[0xA5; 2000]);
    buffer.clear();
    buffer.room(before).fill(7);
    let mut room = Box::new(ReservedValue::<T>::new(buffer));
    assert_ne!(**room, value, "all of it is zero");
    **room = value;
    let room = *room;
    assert_eq!(*room, value);
    room.finish::<R>().as_slice().to_vec()
}

/// The same as a value of whose type only the layout is known.
fn by_layout<R: Representation, T: Blittable>(
    (before, unit): (usize, usize),
    value: &T,
) -> Vec<u8> {
    let layout = Layout::new::<T>();
    let native = written::<Lean>(|out| out.blit(value));
    written::<R>(|out| {
        out.room(before).fill(7);
        let refused = out.fill_bytes(layout, unit, |room| {
            room.copy_from_slice(&native);
            Err("refused")
        });
        assert_eq!(refused, Err("refused"));
        let done: Result<(), ()> = out.fill_bytes(layout, unit, |room| {
            assert!(room.iter().all(|byte| *byte == 0), "all of it is zero");
            assert_eq!(room.as_ptr().align_offset(layout.align()), 0);
            room.copy_from_slice(&native);
            Ok(())
        });
        assert_eq!(done, Ok(()));
    })
}

fn all_are_filled<R: Representation>() {
    filled::<R, _>(7_u8);
    filled::<R, _>(-2.5_f64);
    filled::<R, _>([0x0102_u16; 3]);
    filled::<R, _>([0x0102_0304_u32; 30]);
    filled::<R, _>([9_u8; 1440]);
}

#[test]
fn what_is_filled_in_is_what_is_put() {
    all_are_filled::<Xdr>();
    all_are_filled::<Lean>();
    all_are_filled::<Lean<Swapped>>();
}

#[test]
fn spare_room_is_written_only_when_it_is_said_to_be() {
    let mut buffer = Buffer::default();
    buffer.extend(b"ab");
    assert!(buffer.spare(1000).len() >= 1000);
    buffer.spare(3)[..3].copy_from_slice(b"cde");
    assert_eq!(buffer.as_slice(), b"ab");
    buffer.advance(2);
    assert_eq!(buffer.as_slice(), b"abcd");
    buffer.advance(usize::MAX);
    assert_eq!(
        (buffer.len(), buffer.spare(0).len()),
        (buffer.capacity(), 0)
    );
}

#[test]
fn a_decoder_catches_up_with_its_copy_and_never_goes_back() {
    let mut input = read::<Xdr>(&[0; 8]);
    let paid = input.memory_left();
    input.catch_up(5, paid - 10);
    assert_eq!((input.position(), input.memory_left()), (3, paid - 10));
    input.catch_up(8, paid);
    assert_eq!((input.position(), input.memory_left()), (3, paid - 10));
}
