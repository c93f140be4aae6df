//! Items of which not every pattern of bytes is a value: booleans, enums and, where each takes a
//! word, the small integers of dialects.

use crate::{DecodeErrorKind, Representation, kernels};

/// An item of at most four bytes of which not every value is allowed, or which takes a whole word
/// in some representations.
pub trait Word: Copy {
    /// Bytes that it needs: 1, 2 or 4.
    const BYTES: usize = 4;

    /// The word that stands for it.
    fn to_word(self) -> u32;

    /// The item that `word` stands for.
    ///
    /// # Errors
    /// The word is none. With `strict` unset, a boolean that is not zero is true and a small
    /// integer takes the low bits.
    fn from_word(word: u32, strict: bool) -> Result<Self, DecodeErrorKind>;

    /// The word that has the [`BYTES`](Self::BYTES) in `low` as its low bytes.
    #[inline(always)]
    fn widened(low: u32) -> u32 {
        low
    }
}

/// RFC 4506 section 4.4.
impl Word for bool {
    const BYTES: usize = 1;

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
            const BYTES: usize = size_of::<$small>();

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

            #[inline(always)]
            fn widened(low: u32) -> u32 {
                (low as $small).to_word()
            }
        }
    )*};
}

small_integer!(i16 as i32, u16 as u32, i8 as i32, u8 as u32);

/// Bytes that a word takes on the wire.
#[inline(always)]
pub(crate) const fn width<T: Word, R: Representation>() -> usize {
    if R::WORDS { 4 } else { T::BYTES }
}

/// Writes a word to its bytes.
#[inline(always)]
pub(crate) fn write<T: Word, R: Representation>(item: T, to: &mut [u8]) {
    let word = item.to_word();
    match width::<T, R>() {
        1 => kernels::put_number::<_, R>(&(word as u8), to),
        2 => kernels::put_number::<_, R>(&(word as u16), to),
        _ => kernels::put_number::<_, R>(&word, to),
    }
}

/// The word in its bytes.
#[inline(always)]
pub(crate) fn read<T: Word, R: Representation>(from: &[u8]) -> u32 {
    match width::<T, R>() {
        1 => T::widened(kernels::take_number::<u8, R>(from).into()),
        2 => T::widened(kernels::take_number::<u16, R>(from).into()),
        _ => kernels::take_number::<u32, R>(from),
    }
}
