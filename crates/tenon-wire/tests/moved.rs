//! Numbers that are moved byte by byte or by procedures: the bytes and the values are those of the
//! representation.

use std::fmt::Debug;

use tenon_wire::{
    Blittable, Buffer, Bytewise, Called, DecodeMode, Decoder, Encoder, Lean, Limits,
    Representation, Swapped, Word, Xdr,
};

fn written<R: Representation>(write: impl FnOnce(&mut Encoder<'_, R>)) -> Vec<u8> {
    let mut buffer = Buffer::default();
    write(&mut Encoder::over(&mut buffer));
    buffer.as_slice().to_vec()
}

fn read<R: Representation>(bytes: &[u8]) -> Decoder<'_, R> {
    Decoder::over(bytes, DecodeMode::Strict, Limits::default())
}

/// Moves a value as `R` does and as `M` does, alone and in a block.
fn value<R: Representation, M: Representation, T>(value: T)
where
    T: Blittable + Copy + PartialEq + Debug,
{
    let expected = written::<R>(|out| out.put(value));
    assert_eq!(written::<M>(|out| out.put(value)), expected);
    assert_eq!(read::<M>(&expected).get::<T>(), Ok(value));
    let in_block = written::<M>(|out| {
        let mut block = out.block_of(3 + size_of::<T>());
        block.zero(0, 3);
        block.put(3, value);
    });
    assert_eq!(in_block[3..], expected);
    let mut input = read::<M>(&in_block);
    let block = input.block_of(in_block.len()).expect("all of it is there");
    assert_eq!(block.get::<T>(3), value);
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
    }
}

fn word<R: Representation, M: Representation, T: Word + PartialEq + Debug>(value: T) {
    let expected = written::<R>(|out| out.put_word(value));
    assert_eq!(written::<M>(|out| out.put_word(value)), expected);
    assert_eq!(read::<M>(&expected).get_word::<T>(), Ok(value));
}

fn everything<R: Representation, M: Representation>() {
    value::<R, M, _>(0x1234_5678_i32);
    value::<R, M, _>(0x0102_0304_0506_0708_u64);
    value::<R, M, _>(-2.5_f64);
    value::<R, M, _>(1.5_f32);
    value::<R, M, _>(0x0102_u16);
    value::<R, M, _>(-3_i8);
    // These are no single numbers.
    value::<R, M, _>([0x0102_0304_u32; 3]);
    value::<R, M, _>([9_u8; 16]);
    word::<R, M, _>(true);
    word::<R, M, _>(-2_i16);
    word::<R, M, _>(200_u8);
}

fn every_way<R: Representation>() {
    everything::<R, Bytewise<R>>();
    everything::<R, Called<R>>();
    everything::<R, Called<Bytewise<R>>>();
}

#[test]
fn bytes_and_values_are_those_of_the_representation() {
    every_way::<Xdr>();
    every_way::<Lean>();
    every_way::<Lean<Swapped>>();
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
fn counts_and_padding_are_those_of_the_representation() {
    let bytes = written::<Called<Bytewise<Xdr>>>(|out| {
        out.put_opaque(b"x", 3).expect("it is short enough");
    });
    assert_eq!(bytes, [0, 0, 0, 1, b'x', 0, 0, 0]);
    let mut input = read::<Called<Bytewise<Xdr>>>(&bytes);
    assert_eq!(input.get_opaque(3), Ok(b"x".to_vec()));
}

#[test]
fn a_number_that_is_not_all_there_is_refused() {
    for length in 0..8 {
        let bytes = [0; 8];
        let mut input = read::<Called<Bytewise>>(&bytes[..length]);
        assert!(input.get::<u64>().is_err());
    }
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
