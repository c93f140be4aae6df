//! Items that are moved whole: numbers as they are ([`Scalar`]), and words of which not every
//! value is allowed ([`Word`]).

use alloc::vec::Vec;

use crate::{
    DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder, kernels,
};

/// An item for which every pattern of bytes is a value.
pub trait Scalar: Copy {
    /// Bytes on the wire.
    const SIZE: usize;

    /// Writes the item to the front of `to`.
    ///
    /// # Panics
    /// If `to` has less than [`SIZE`](Self::SIZE) bytes.
    fn write(self, to: &mut [u8]);

    /// Reads the item from the front of `from`.
    ///
    /// # Panics
    /// If `from` has less than [`SIZE`](Self::SIZE) bytes.
    fn read(from: &[u8]) -> Self;

    /// Writes `items` to `to`.
    ///
    /// # Panics
    /// If they do not fill it exactly.
    fn write_all(items: &[Self], to: &mut [u8]);

    /// Reads the items that fill `from`.
    ///
    /// # Panics
    /// If `from` ends inside of an item.
    fn read_all(from: &[u8]) -> Vec<Self>;

    /// Reads the `N` items that fill `from`.
    ///
    /// # Panics
    /// If they do not fill it exactly.
    fn read_array<const N: usize>(from: &[u8]) -> [Self; N];
}

macro_rules! scalar {
    ($($number:ty),*) => {$(
        impl Scalar for $number {
            const SIZE: usize = size_of::<$number>();

            #[inline(always)]
            fn write(self, to: &mut [u8]) {
                match to.first_chunk_mut() {
                    Some(to) => *to = self.to_be_bytes(),
                    None => too_short(),
                }
            }

            #[inline(always)]
            fn read(from: &[u8]) -> Self {
                match from.first_chunk() {
                    Some(from) => Self::from_be_bytes(*from),
                    None => too_short(),
                }
            }

            #[inline(always)]
            fn write_all(items: &[Self], to: &mut [u8]) {
                kernels::put(items, to);
            }

            #[inline(always)]
            fn read_all(from: &[u8]) -> Vec<Self> {
                kernels::get_vec(from)
            }

            #[inline(always)]
            fn read_array<const N: usize>(from: &[u8]) -> [Self; N] {
                kernels::get_array(from)
            }
        }
    )*};
}

scalar!(i32, u32, i64, u64, f32, f64);

/// A quadruple-precision number (RFC 4506 section 4.8), kept as its bytes.
impl Scalar for [u8; 16] {
    const SIZE: usize = 16;

    #[inline(always)]
    fn write(self, to: &mut [u8]) {
        match to.first_chunk_mut() {
            Some(to) => *to = self,
            None => too_short(),
        }
    }

    #[inline(always)]
    fn read(from: &[u8]) -> Self {
        match from.first_chunk() {
            Some(from) => *from,
            None => too_short(),
        }
    }

    #[inline(always)]
    fn write_all(items: &[Self], to: &mut [u8]) {
        to.copy_from_slice(items.as_flattened());
    }

    #[inline(always)]
    fn read_all(from: &[u8]) -> Vec<Self> {
        whole_chunks(from).to_vec()
    }

    #[inline(always)]
    fn read_array<const N: usize>(from: &[u8]) -> [Self; N] {
        match whole_chunks(from).try_into() {
            Ok(items) => items,
            Err(_) => panic!("the items do not fill their bytes"),
        }
    }
}

fn whole_chunks(bytes: &[u8]) -> &[[u8; 16]] {
    let (items, rest) = bytes.as_chunks();
    assert!(rest.is_empty(), "whole items");
    items
}

#[cold]
#[inline(never)]
fn too_short() -> ! {
    panic!("the item does not end inside of its block")
}

/// An item that takes a word of four bytes of which not every value is allowed: booleans,
/// enums, and the small integers of dialects.
pub trait Word: Copy {
    /// The word on the wire.
    fn to_word(self) -> u32;

    /// The item that `word` stands for.
    ///
    /// # Errors
    /// The word is none. With `strict` unset, a boolean that is not zero is true and a small
    /// integer takes the low bits.
    fn from_word(word: u32, strict: bool) -> Result<Self, DecodeErrorKind>;
}

/// RFC 4506 section 4.4.
impl Word for bool {
    #[inline(always)]
    fn to_word(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn from_word(word: u32, strict: bool) -> Result<Self, DecodeErrorKind> {
        if strict && word > 1 {
            return Err(DecodeErrorKind::NotABoolean(word));
        }
        Ok(word != 0)
    }
}

macro_rules! small_integer {
    ($($small:ty as $word:ty),*) => {$(
        impl Word for $small {
            #[inline(always)]
            fn to_word(self) -> u32 {
                <$word>::from(self) as u32
            }

            #[inline(always)]
            fn from_word(word: u32, strict: bool) -> Result<Self, DecodeErrorKind> {
                let small = word as $small;
                if strict && small.to_word() != word {
                    return Err(DecodeErrorKind::OutOfRange(word));
                }
                Ok(small)
            }
        }
    )*};
}

small_integer!(i16 as i32, u16 as u32, i8 as i32, u8 as u32);

/// Writes `value` at `offset` of `block`.
///
/// # Panics
/// If the block ends before the item does.
#[inline(always)]
pub fn put<T: Scalar>(block: &mut [u8], offset: usize, value: T) {
    value.write(&mut block[offset..]);
}

/// Reads the value at `offset` of `block`.
///
/// # Panics
/// If the block ends before the item does.
#[inline(always)]
pub fn get<T: Scalar>(block: &[u8], offset: usize) -> T {
    T::read(&block[offset..])
}

/// Writes `value` at `offset` of `block`.
///
/// # Panics
/// If the block ends before the word does.
#[inline(always)]
pub fn put_word<T: Word>(block: &mut [u8], offset: usize, value: T) {
    put(block, offset, value.to_word());
}

/// Reads the word at `offset` of `block`, the bytes that `input` has read last.
///
/// # Errors
/// The word is no value of `T`; see [`Word::from_word`].
///
/// # Panics
/// If the block ends before the word does.
#[inline(always)]
pub fn get_word<T: Word>(
    input: &Decoder<'_>,
    block: &[u8],
    offset: usize,
) -> Result<T, DecodeError> {
    T::from_word(get(block, offset), input.is_strict())
        .map_err(|kind| error_in(input, block, offset, kind))
}

/// Reads the next item.
///
/// # Errors
/// [`DecodeErrorKind::Truncated`].
#[inline(always)]
pub fn next<T: Scalar>(input: &mut Decoder<'_>) -> Result<T, DecodeError> {
    input.take(T::SIZE).map(T::read)
}

/// Reads the next word.
///
/// # Errors
/// [`DecodeErrorKind::Truncated`], or the word is no value of `T`; see [`Word::from_word`].
#[inline(always)]
pub fn next_word<T: Word>(input: &mut Decoder<'_>) -> Result<T, DecodeError> {
    let block = input.block::<4>()?;
    get_word(input, block, 0)
}

/// An error at `offset` of `block`, the bytes that `input` has read last.
#[cold]
#[inline(never)]
pub(super) fn error_in(
    input: &Decoder<'_>,
    block: &[u8],
    offset: usize,
    kind: DecodeErrorKind,
) -> DecodeError {
    DecodeError::new(kind, input.position() - block.len() + offset)
}

/// Appends the discriminant of a union (RFC 4506 section 4.15).
#[inline(always)]
pub fn put_discriminant(out: &mut Encoder<'_>, value: i32) {
    *out.block() = value.to_be_bytes();
}

/// No arm of the union is selected by the discriminant `value`, which `input` has read last.
#[cold]
#[inline(never)]
pub fn unknown_value(input: &Decoder<'_>, value: i32) -> DecodeError {
    DecodeError::new(DecodeErrorKind::UnknownValue(value), input.position() - 4)
}

/// The default arm of a union holds a discriminant that has an arm of its own.
#[cold]
#[inline(never)]
pub fn bad_discriminant(value: i32) -> EncodeError {
    EncodeError::new(EncodeErrorKind::BadDiscriminant(value))
}
