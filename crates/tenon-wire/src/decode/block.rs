//! Bytes received that hold items at places that the interface fixes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Decoder;
use crate::word::{self, width};
use crate::{Blittable, DecodeError, DecodeErrorKind, Representation, Word, Xdr, kernels};

/// Bytes received that hold items at places that the interface fixes; see
/// [`Decoder::block`](crate::Decoder::block). It knows where in the message it lies and how much is
/// forgiven. All methods panic if the block ends before the item does.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, R = Xdr> {
    bytes: &'a [u8],
    /// Position in the message at which it begins.
    start: usize,
    strict: bool,
    representation: PhantomData<R>,
}

impl<'a, R: Representation> Block<'a, R> {
    #[inline(always)]
    pub(super) fn of(bytes: &'a [u8], start: usize, strict: bool) -> Self {
        Self {
            bytes,
            start,
            strict,
            representation: PhantomData,
        }
    }

    /// Takes the first `N` bytes off.
    #[inline(always)]
    pub(super) fn split_front<const N: usize>(&mut self) -> Self {
        let Some((front, rest)) = self.bytes.split_first_chunk::<N>() else {
            unreachable!("a block for each item was found to be there")
        };
        let front = Self::of(front, self.start, self.strict);
        *self = Self::of(rest, self.start + N, self.strict);
        front
    }

    #[inline(always)]
    fn part(&self, offset: usize, bytes: usize) -> &'a [u8] {
        &self.bytes[offset..][..bytes]
    }

    /// An error of `kind` in the item at `offset`.
    #[inline(always)]
    pub fn error(&self, offset: usize, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.start + offset)
    }

    /// Reads a value that lies on the wire as in memory.
    #[inline(always)]
    pub fn get<T: Blittable>(&self, offset: usize) -> T {
        kernels::take_number::<T, R>(self.part(offset, size_of::<T>()))
    }

    /// Reads a value that lies on the wire as in memory into memory of its own.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooMuchMemory`].
    #[inline]
    pub fn get_boxed<T: Blittable>(
        &self,
        offset: usize,
        input: &mut Decoder<'_, R>,
    ) -> Result<Box<T>, DecodeError> {
        input.charge(1, size_of::<T>())?;
        Ok(kernels::get_boxed(
            self.part(offset, size_of::<T>()),
            R::SWAPPED,
        ))
    }

    /// Reads a word.
    ///
    /// # Errors
    /// The word is no value of `T`; see [`Word::from_word`].
    #[inline(always)]
    pub fn get_word<T: Word>(&self, offset: usize) -> Result<T, DecodeError> {
        let word = word::read::<T, R>(self.part(offset, width::<T, R>()));
        match T::from_word(word, self.strict) {
            Ok(item) => Ok(item),
            Err(kind) => Err(self.error(offset, kind)),
        }
    }

    /// Reads `N` words.
    ///
    /// # Errors
    /// A word is no value of `T`; see [`Word::from_word`].
    #[inline(always)]
    pub fn get_word_array<T: Word, const N: usize>(
        &self,
        offset: usize,
    ) -> Result<[T; N], DecodeError> {
        kernels::try_array(|index| self.get_word(offset + index * width::<T, R>()))
    }

    /// Reads `N` words into memory of their own.
    ///
    /// # Errors
    /// As [`get_word_array`](Self::get_word_array), or [`DecodeErrorKind::TooMuchMemory`].
    pub fn get_boxed_words<T: Word, const N: usize>(
        &self,
        offset: usize,
        input: &mut Decoder<'_, R>,
    ) -> Result<Box<[T; N]>, DecodeError> {
        input.charge(N, size_of::<T>())?;
        self.get_words(offset, N).map(kernels::boxed)
    }

    /// Reads `count` words; their memory was paid for.
    #[inline]
    pub(super) fn get_words<T: Word>(
        &self,
        offset: usize,
        count: usize,
    ) -> Result<Vec<T>, DecodeError> {
        let offsets = (offset..).step_by(width::<T, R>()).take(count);
        let mut items = Vec::with_capacity(count);
        for offset in offsets {
            items.push(self.get_word(offset)?);
        }
        Ok(items)
    }

    /// The `length` bytes at `offset`, padding behind them.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Padding`].
    #[inline(always)]
    pub fn get_bytes(&self, offset: usize, length: usize) -> Result<&'a [u8], DecodeError> {
        let (body, padding) = self.part(offset, R::padded(length)).split_at(length);
        if self.strict && padding.iter().any(|&byte| byte != 0) {
            return Err(self.error(offset + length, DecodeErrorKind::Padding));
        }
        Ok(body)
    }

    /// The `N` bytes at `offset`, padding behind them.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Padding`].
    #[inline(always)]
    pub fn get_byte_array<const N: usize>(&self, offset: usize) -> Result<[u8; N], DecodeError> {
        let bytes = self.get_bytes(offset, N)?;
        Ok(kernels::get(bytes, false))
    }

    /// The `N` bytes at `offset` in memory of their own, padding behind them.
    ///
    /// # Errors
    /// As [`get_byte_array`](Self::get_byte_array), or [`DecodeErrorKind::TooMuchMemory`].
    pub fn get_boxed_bytes<const N: usize>(
        &self,
        offset: usize,
        input: &mut Decoder<'_, R>,
    ) -> Result<Box<[u8; N]>, DecodeError> {
        input.charge(N, 1)?;
        let bytes = self.get_bytes(offset, N)?;
        Ok(kernels::get_boxed(bytes, false))
    }

    /// Skips a hole.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Padding`] in strict mode, if something is in it.
    #[inline(always)]
    pub fn zero(&self, offset: usize, bytes: usize) -> Result<(), DecodeError> {
        if self.strict && self.part(offset, bytes).iter().any(|&byte| byte != 0) {
            return Err(self.error(offset, DecodeErrorKind::Padding));
        }
        Ok(())
    }
}

impl<'a, R: Representation> Decoder<'a, R> {
    /// Takes a block of a size that the interface fixes; one check for all items in it.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn block<const N: usize>(&mut self) -> Result<Block<'a, R>, DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((block, rest)) => {
                let start = self.position();
                self.rest = rest;
                Ok(Block::of(block, start, self.is_strict()))
            }
            None => Err(self.truncated(N as u64)),
        }
    }

    /// A block of `bytes`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn block_of(&mut self, bytes: usize) -> Result<Block<'a, R>, DecodeError> {
        let start = self.position();
        let block = self.take(bytes)?;
        Ok(Block::of(block, start, self.is_strict()))
    }
}
