//! The slower ways of moving a single number, each number or each byte of it, by the stub or by a procedure. Stubs that
//! are compiled take them as representations, the interpreter as a [`NumberMover`].
#![allow(unsafe_code, reason = "compilers must not make these ways better")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use tenon_exec::NumberMover;
use tenon_wire::Representation;
use tenon_wire::kernels::Blittable;

/// What compiled stubs import from the run time, these ways among it.
pub mod wire {
    pub use super::{Bytewise, Called};
    pub use tenon_wire::*;
}

/// Moves each byte of a number by itself: for compiled stubs as the representation `R` has it, and by the interpreter.
#[derive(Debug, Clone, Copy)]
pub struct Bytewise<R = ()>(PhantomData<R>);

/// Moves numbers as `M` does, but by procedures that are called through pointers.
#[derive(Debug, Clone, Copy)]
pub struct Called<M>(PhantomData<M>);

impl<R: Representation> Representation for Bytewise<R> {
    const SWAPPED: bool = R::SWAPPED;
    const WORDS: bool = R::WORDS;
    const ALIGNED: bool = R::ALIGNED;
    const PADDING: usize = R::PADDING;
    const FLAGGED_LISTS: bool = R::FLAGGED_LISTS;

    #[inline(always)]
    fn put_number<T: Blittable>(number: &T, to: &mut [u8]) {
        assert!(to.len() == size_of::<T>(), "the number fills its bytes");
        let from = ptr::from_ref(number).cast::<u8>();
        for (at, to) in to.iter_mut().enumerate() {
            // SAFETY: the number has so many bytes.
            put_byte(unsafe { from.add(place::<T>(at, R::SWAPPED)).read() }, to);
        }
    }

    #[inline(always)]
    fn take_number<T: Blittable>(from: &[u8]) -> T {
        assert!(from.len() == size_of::<T>(), "the number fills its bytes");
        let mut number = MaybeUninit::<T>::uninit();
        let to = number.as_mut_ptr().cast::<u8>();
        for (at, from) in from.iter().enumerate() {
            // SAFETY: the number has so many bytes; a reference may be read.
            unsafe {
                to.add(place::<T>(at, R::SWAPPED))
                    .write(ptr::from_ref(from).read_volatile())
            };
        }
        // SAFETY: all its bytes were just written, and whatever they are, they make a number (the
        // contract of `Blittable`).
        unsafe { number.assume_init() }
    }
}

impl<R: Representation> Representation for Called<R> {
    const SWAPPED: bool = R::SWAPPED;
    const WORDS: bool = R::WORDS;
    const ALIGNED: bool = R::ALIGNED;
    const PADDING: usize = R::PADDING;
    const FLAGGED_LISTS: bool = R::FLAGGED_LISTS;

    #[inline(always)]
    fn put_number<T: Blittable>(number: &T, to: &mut [u8]) {
        procedure(&const { R::put_number::<T> as fn(&T, &mut [u8]) })(number, to);
    }

    #[inline(always)]
    fn take_number<T: Blittable>(from: &[u8]) -> T {
        procedure(&const { R::take_number::<T> as fn(&[u8]) -> T })(from)
    }
}

// SAFETY: each byte is written.
unsafe impl NumberMover for Bytewise {
    #[inline(always)]
    fn move_number<const N: usize, const SWAP: bool>(
        from: &[u8; N],
        to: &mut [MaybeUninit<u8>; N],
    ) {
        for (at, byte) in from.iter().enumerate() {
            let behind = if SWAP { N - 1 - at } else { at };
            put_byte(MaybeUninit::new(*byte), &mut to[behind]);
        }
    }
}

type MoveFn<const N: usize> = fn(&[u8; N], &mut [MaybeUninit<u8>; N]);

// SAFETY: `M` writes all bytes.
unsafe impl<M: NumberMover> NumberMover for Called<M> {
    #[inline(always)]
    fn move_number<const N: usize, const SWAP: bool>(
        from: &[u8; N],
        to: &mut [MaybeUninit<u8>; N],
    ) {
        procedure(&const { M::move_number::<N, SWAP> as MoveFn<N> })(from, to);
    }
}

/// Returns the offset in memory of the byte that comes at `at` on the wire.
#[inline(always)]
fn place<T>(at: usize, swapped: bool) -> usize {
    match swapped {
        true => size_of::<T>() - 1 - at,
        false => at,
    }
}

/// Writes a byte by itself: compilers would make one store of several.
#[inline(always)]
fn put_byte<B: Copy>(byte: B, to: &mut B) {
    // SAFETY: a reference may be written to.
    unsafe { ptr::from_mut(to).write_volatile(byte) };
}

/// Returns the procedure behind a pointer that compilers may not look behind: it might be bound when the
/// program is started.
#[inline(always)]
fn procedure<F: Copy>(pointer: &'static F) -> F {
    // SAFETY: a reference may be read.
    unsafe { ptr::from_ref(pointer).read_volatile() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use tenon_wire::{Buffer, DecodeMode, Decoder, Encoder, Lean, Limits, Swapped, Word, Xdr};

    use super::*;

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
            let mut input = read::<Called<Bytewise<Xdr>>>(&bytes[..length]);
            assert!(input.get::<u64>().is_err());
        }
    }
}
