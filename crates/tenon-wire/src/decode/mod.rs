//! The cursor that reads unchecked bytes.
//!
//! Its methods are what the operations of a plan come down to, as those of the
//! [`Encoder`](crate::Encoder) are. A [`Block`] was found to be there as a whole.

mod block;
mod sequence;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

pub use block::Block;

use crate::word::width;
use crate::{
    BStr, BString, Blittable, Cow, DecodeError, DecodeErrorKind, Representation, Word, Xdr, kernels,
};

/// Limits of what a value from outside may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nesting through recursive types.
    pub depth: u32,
    /// Bytes of memory that each byte received pays for.
    pub memory_per_byte: usize,
    /// Bytes of memory granted to every message beside that.
    pub memory_base: usize,
}

impl Limits {
    /// Those that most have.
    const USUAL: Self = Self {
        depth: 128,
        memory_per_byte: 64,
        memory_base: 64 << 10,
    };
}

impl Default for Limits {
    #[inline]
    fn default() -> Self {
        Self::USUAL
    }
}

/// The strictness of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecodeMode {
    /// As libtirpc reads: padding may hold anything, a boolean that is not zero is true, small
    /// integers are truncated, bytes behind the value are ignored.
    #[default]
    Lenient,
    /// As RFC 4506 defines.
    Strict,
}

/// Reads a value out of received bytes. Each length is held against what is really there
/// before anything is allocated.
#[derive(Debug, Clone)]
pub struct Decoder<'a, R = Xdr> {
    /// Not read yet.
    rest: &'a [u8],
    /// Bytes of the whole message.
    length: usize,
    mode: DecodeMode,
    depth_left: u32,
    memory_left: usize,
    representation: PhantomData<R>,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes`, which are XDR, leniently within the default [`Limits`].
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::over(bytes, DecodeMode::Lenient, Limits::USUAL)
    }

    /// Reads `bytes`, which are XDR, in `mode` within `limits`.
    #[inline]
    pub fn with(bytes: &'a [u8], mode: DecodeMode, limits: Limits) -> Self {
        Self::over(bytes, mode, limits)
    }
}

impl<'a, R: Representation> Decoder<'a, R> {
    /// Reads `bytes`, a whole message, in `mode` within `limits`.
    #[inline]
    pub fn over(bytes: &'a [u8], mode: DecodeMode, limits: Limits) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
            mode,
            depth_left: limits.depth,
            memory_left: bytes
                .len()
                .saturating_mul(limits.memory_per_byte)
                .saturating_add(limits.memory_base),
            representation: PhantomData,
        }
    }

    /// Returns the strictness.
    pub fn mode(&self) -> DecodeMode {
        self.mode
    }

    /// Returns whether nothing is forgiven.
    #[inline(always)]
    pub fn is_strict(&self) -> bool {
        matches!(self.mode, DecodeMode::Strict)
    }

    /// Bytes read so far.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Bytes not read yet.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// All bytes not read yet; they stay unread.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Levels of recursive types that may still be entered.
    pub fn depth_left(&self) -> u32 {
        self.depth_left
    }

    /// Bytes of memory that are still paid for.
    pub fn memory_left(&self) -> usize {
        self.memory_left
    }

    /// Takes over what other code has done with a copy of this decoder: how many bytes are left to read,
    /// and how much memory is still paid for. Nothing is taken back.
    #[inline(always)]
    pub fn catch_up(&mut self, left: usize, memory_left: usize) {
        let read = self.rest.len().saturating_sub(left);
        self.rest = self.rest.get(read..).unwrap_or_default();
        self.memory_left = self.memory_left.min(memory_left);
    }

    // Errors are made from values and not from `self`: a cursor of which the address is not taken
    // lives in registers.

    /// An error of `kind` at the present position.
    #[inline(always)]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.position())
    }

    /// No arm of the union is selected by `value`, which the last `bytes` that were read say.
    #[inline(always)]
    pub fn unknown_value(&self, value: i32, bytes: usize) -> DecodeError {
        let kind = DecodeErrorKind::UnknownValue(value);
        DecodeError::new(kind, self.position().saturating_sub(bytes))
    }

    /// The next `bytes`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(bytes) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.truncated(bytes as u64)),
        }
    }

    /// Reads the next value, which lies on the wire as in memory.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn get<T: Blittable>(&mut self) -> Result<T, DecodeError> {
        let bytes = self.take(size_of::<T>())?;
        Ok(kernels::take_number::<T, R>(bytes))
    }

    /// Reads the next word.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`], or the word is no value of `T`; see [`Word::from_word`].
    #[inline(always)]
    pub fn get_word<T: Word>(&mut self) -> Result<T, DecodeError> {
        self.block_of(width::<T, R>())?.get_word(0)
    }

    /// Skips zeros until what lies `before` bytes further is at a multiple of `to`, a power of
    /// two, if the representation [aligns](Representation::ALIGNED) anything.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`]; in strict mode [`DecodeErrorKind::Padding`].
    #[inline(always)]
    pub fn align(&mut self, to: usize, before: usize) -> Result<(), DecodeError> {
        if !R::ALIGNED {
            return Ok(());
        }
        let hole = (self.position() + before).wrapping_neg() & (to - 1);
        self.block_of(hole)?.zero(0, hole)
    }

    /// Reads a count of elements and holds it against `bound` and against the bytes that
    /// are left, of which every element takes at least `wire_min`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooLong`], [`DecodeErrorKind::Truncated`].
    #[inline]
    pub fn count(&mut self, bound: u32, wire_min: usize) -> Result<usize, DecodeError> {
        let length = self.get::<u32>()?;
        if length > bound {
            return Err(self.too_long(length, bound));
        }
        let needed = u64::from(length) * wire_min as u64;
        if needed > self.left() as u64 {
            return Err(self.truncated(needed));
        }
        Ok(length as usize)
    }

    /// Reads a count and so many items, which lie on the wire as in memory.
    ///
    /// # Errors
    /// The count is over `bound`, or the items are not all there.
    #[inline]
    pub fn get_counted<T: Blittable>(&mut self, bound: u32) -> Result<Vec<T>, DecodeError> {
        let count = self.count(bound, size_of::<T>())?;
        self.charge(count, size_of::<T>())?;
        let bytes = self.take(count * size_of::<T>())?;
        Ok(kernels::get_vec(bytes, count, R::SWAPPED))
    }

    /// Reads a count and so many items, which lie on the wire as in memory: where they lie, if
    /// they are aligned there and their bytes have this machine's order.
    ///
    /// # Errors
    /// As [`get_counted`](Self::get_counted).
    #[inline]
    pub fn view_counted<T: Blittable + Clone>(
        &mut self,
        bound: u32,
    ) -> Result<Cow<'a, [T]>, DecodeError> {
        let count = self.count(bound, size_of::<T>())?;
        let bytes = self.take(count * size_of::<T>())?;
        let is_alike = !R::SWAPPED || kernels::has_no_order::<T>();
        if is_alike && let Some(items) = kernels::borrowed(bytes, count) {
            return Ok(Cow::Borrowed(items));
        }
        self.charge(count, size_of::<T>())?;
        Ok(Cow::Owned(kernels::get_vec(bytes, count, R::SWAPPED)))
    }

    /// Reads a count and so many words.
    ///
    /// # Errors
    /// The count is over `bound`, the words are not all there, or one is no value of `T`.
    #[inline]
    pub fn get_counted_words<T: Word>(&mut self, bound: u32) -> Result<Vec<T>, DecodeError> {
        let count = self.count(bound, width::<T, R>())?;
        self.charge(count, size_of::<T>())?;
        let block = self.block_of(count * width::<T, R>())?;
        block.get_words(0, count)
    }

    /// Reads a count and hands out so many bytes where they are.
    ///
    /// # Errors
    /// The count is over `bound`, the bytes are not all there, or (strict mode) the padding is
    /// not zero.
    #[inline]
    pub fn get_opaque_ref(&mut self, bound: u32) -> Result<&'a [u8], DecodeError> {
        let length = self.count(bound, 1)?;
        self.block_of(R::padded(length))?.get_bytes(0, length)
    }

    /// Reads a count and so many bytes.
    ///
    /// # Errors
    /// As [`get_opaque_ref`](Self::get_opaque_ref).
    #[inline]
    pub fn get_opaque(&mut self, bound: u32) -> Result<Vec<u8>, DecodeError> {
        let bytes = self.get_opaque_ref(bound)?;
        self.charge(bytes.len(), 1)?;
        Ok(bytes.to_vec())
    }

    /// Reads a string, which need not be UTF-8.
    ///
    /// # Errors
    /// As [`get_opaque_ref`](Self::get_opaque_ref).
    #[inline]
    pub fn get_string(&mut self, bound: u32) -> Result<BString, DecodeError> {
        self.get_opaque(bound).map(BString::from)
    }

    /// Reads a string and hands it out where it is.
    ///
    /// # Errors
    /// As [`get_opaque_ref`](Self::get_opaque_ref).
    #[inline]
    pub fn get_str_ref(&mut self, bound: u32) -> Result<&'a BStr, DecodeError> {
        self.get_opaque_ref(bound).map(BStr::new)
    }

    /// Reads a string of UTF-8.
    ///
    /// # Errors
    /// As [`get_utf8_ref`](Self::get_utf8_ref).
    #[inline]
    pub fn get_utf8(&mut self, bound: u32) -> Result<String, DecodeError> {
        let text = self.get_utf8_ref(bound)?;
        self.charge(text.len(), 1)?;
        Ok(text.to_owned())
    }

    /// Reads a string of UTF-8 and hands it out where it is.
    ///
    /// # Errors
    /// As [`get_opaque_ref`](Self::get_opaque_ref), or [`DecodeErrorKind::NotUtf8`] at the first byte that is not.
    #[inline]
    pub fn get_utf8_ref(&mut self, bound: u32) -> Result<&'a str, DecodeError> {
        let length = self.count(bound, 1)?;
        let start = self.position();
        let bytes = self.block_of(R::padded(length))?.get_bytes(0, length)?;
        str::from_utf8(bytes).map_err(|error| {
            DecodeError::new(DecodeErrorKind::NotUtf8, start + error.valid_up_to())
        })
    }

    /// Takes the memory of `count` items of `size` bytes out of what the message has paid for.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooMuchMemory`].
    #[inline]
    pub fn charge(&mut self, count: usize, size: usize) -> Result<(), DecodeError> {
        // An item without size on the wire or in memory still costs the time to make it.
        let price = count.saturating_mul(size.max(1));
        match self.memory_left.checked_sub(price) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::TooMuchMemory)),
        }
    }

    /// Enters a value of a recursive type; [`leave`](Self::leave) it afterwards.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooDeep`].
    #[inline]
    pub fn enter(&mut self) -> Result<(), DecodeError> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::TooDeep)),
        }
    }

    /// Leaves what was entered.
    #[inline]
    pub fn leave(&mut self) {
        self.depth_left += 1;
    }

    /// Ends a message: in strict mode nothing may be left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Trailing`].
    #[inline]
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.is_strict() && self.left() > 0 {
            return Err(self.error(DecodeErrorKind::Trailing(self.left())));
        }
        Ok(())
    }

    #[inline(always)]
    fn truncated(&self, needed: u64) -> DecodeError {
        self.error(DecodeErrorKind::Truncated {
            needed,
            left: self.left() as u64,
        })
    }

    /// The count that was just read is too large.
    #[inline(always)]
    fn too_long(&self, length: u32, bound: u32) -> DecodeError {
        let kind = DecodeErrorKind::TooLong { length, bound };
        DecodeError::new(kind, self.position() - size_of::<u32>())
    }
}
