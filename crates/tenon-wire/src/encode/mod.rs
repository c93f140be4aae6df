//! The cursor that writes.
//!
//! Its methods are what the operations of a plan come down to. A [`BlockMut`] holds items at places
//! that the interface fixes: room was made once for the whole block, and offsets are constants, so
//! that each item comes down to a store. What varies in size makes room for itself.

mod block;
mod sequence;

use core::alloc::Layout;
use core::marker::PhantomData;

pub use block::BlockMut;

use crate::word::width;
use crate::{Blittable, Buffer, EncodeError, EncodeErrorKind, Representation, Word, Xdr, kernels};

/// Most levels that a value to be encoded may nest.
const DEPTH: u32 = 128;

/// Appends to a [`Buffer`]. Generated code writes every argument exactly once, right behind the
/// header that the engine has already put there.
#[derive(Debug)]
pub struct Encoder<'a, R = Xdr> {
    buffer: &'a mut Buffer,
    /// Position in the buffer at which the message begins: positions count from there.
    start: usize,
    depth_left: u32,
    representation: PhantomData<R>,
}

impl<'a> Encoder<'a> {
    /// Appends behind what `buffer` holds, as XDR.
    #[inline]
    pub fn new(buffer: &'a mut Buffer) -> Self {
        Self::over(buffer)
    }
}

impl<'a, R: Representation> Encoder<'a, R> {
    /// Appends behind what `buffer` holds.
    #[inline]
    pub fn over(buffer: &'a mut Buffer) -> Self {
        Self {
            start: buffer.len(),
            buffer,
            depth_left: DEPTH,
            representation: PhantomData,
        }
    }

    /// Bytes in the buffer, those before this encoder included.
    pub fn position(&self) -> usize {
        self.buffer.len()
    }

    /// Makes room for a block of a size that the interface fixes; one check for all items in it. Every
    /// byte must be written.
    #[inline(always)]
    pub fn block<const N: usize>(&mut self) -> BlockMut<'_, R> {
        BlockMut::of(self.buffer.chunk::<N>())
    }

    /// Room for a block of `bytes`. Every byte must be written.
    #[inline(always)]
    pub fn block_of(&mut self, bytes: usize) -> BlockMut<'_, R> {
        BlockMut::of(self.buffer.room(bytes))
    }

    /// Room for `bytes`. Every byte must be written.
    #[inline(always)]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.buffer.room(bytes)
    }

    /// Bytes that can be appended before the buffer has to grow.
    #[inline]
    pub fn spare(&self) -> usize {
        self.buffer.capacity() - self.buffer.len()
    }

    /// Returns this encoder once more, to be handed on by value: one of which the address is not taken
    /// lives in registers.
    #[inline(always)]
    pub fn again(&mut self) -> Encoder<'_, R> {
        Encoder {
            buffer: self.buffer,
            start: self.start,
            depth_left: self.depth_left,
            representation: PhantomData,
        }
    }

    /// Takes back what was appended behind `position`.
    pub fn truncate(&mut self, position: usize) {
        self.buffer.truncate(position);
    }

    /// Appends a value that lies on the wire as in memory.
    #[inline(always)]
    pub fn put<T: Blittable>(&mut self, value: T) {
        self.blit(&value);
    }

    /// Appends a value that lies on the wire as in memory, from where it is.
    #[inline(always)]
    pub fn blit<T: Blittable>(&mut self, value: &T) {
        self.block_of(size_of::<T>()).blit(0, value);
    }

    /// Appends a value that lies on the wire as in memory and that `write` fills in: where it will be
    /// sent from, so that nothing is copied. Before, all of it is zero.
    ///
    /// # Errors
    /// The error that `write` returns; then nothing is appended.
    #[inline]
    pub fn fill<T: Blittable, E>(
        &mut self,
        write: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.buffer.storage.fill(R::SWAPPED, write)
    }

    /// Appends a value that lies on the wire as in memory and that `write` fills in, as [`fill`](Self::fill) does, if what
    /// is known of its type is only known at run time: how it lies in memory, and that each of its numbers has `unit`
    /// bytes: 1, 2, 4 or 8.
    ///
    /// # Errors
    /// The error that `write` returns; then nothing is appended.
    ///
    /// # Panics
    /// If the numbers are to be swapped and do not fill the value exactly, or have another size.
    pub fn fill_bytes<E>(
        &mut self,
        layout: Layout,
        unit: usize,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (bytes, align) = (layout.size(), layout.align());
        let spare = self.buffer.spare(bytes + align - 1);
        let gap = spare.as_ptr().addr().wrapping_neg() & (align - 1);
        let place = &mut spare[gap..][..bytes];
        place.fill(0);
        write(place)?;
        if R::SWAPPED {
            kernels::reverse_numbers(place, unit);
        }
        if gap > 0 {
            spare.copy_within(gap..gap + bytes, 0);
        }
        self.buffer.advance(bytes);
        Ok(())
    }

    /// Appends a word.
    #[inline(always)]
    pub fn put_word<T: Word>(&mut self, value: T) {
        self.block_of(width::<T, R>()).put_word(0, value);
    }

    /// Appends zeros until what lies `before` bytes further is at a multiple of `to`, a power of
    /// two up to 8, if the representation [aligns](Representation::ALIGNED) anything. Positions count from where this
    /// encoder began.
    #[inline(always)]
    pub fn align(&mut self, to: usize, before: usize) {
        if to == 1 || !R::ALIGNED {
            return;
        }
        let position = self.buffer.len() - self.start;
        let hole = (position + before).wrapping_neg() & (to - 1);
        self.buffer.storage.append_zeros(hole);
    }

    /// Appends the count and the items, which lie on the wire as in memory.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`].
    #[inline]
    pub fn put_counted<T: Blittable>(
        &mut self,
        items: &[T],
        bound: u32,
    ) -> Result<(), EncodeError> {
        let count = bounded(items.len(), bound)?;
        kernels::put_counted(&mut self.buffer.storage, count, items, R::SWAPPED);
        Ok(())
    }

    /// Appends the count and the items, a word each.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`].
    #[inline]
    pub fn put_counted_words<T: Word>(
        &mut self,
        items: &[T],
        bound: u32,
    ) -> Result<(), EncodeError> {
        let count = bounded(items.len(), bound)?;
        let mut block = self.block_of(4 + items.len() * width::<T, R>());
        block.put(0, count);
        block.put_words(4, items);
        Ok(())
    }

    /// Appends the count, the bytes and their padding: opaque data or a string.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooLong`].
    #[inline]
    pub fn put_opaque(&mut self, bytes: &[u8], bound: u32) -> Result<(), EncodeError> {
        let count = bounded(bytes.len(), bound)?;
        kernels::put_opaque::<R>(&mut self.buffer.storage, count, bytes);
        Ok(())
    }

    /// Returns the buffer, and the position in it at which the message begins: for engines that learn
    /// only at run time what a message consists of.
    #[inline]
    pub fn parts(&mut self) -> (&mut Buffer, usize) {
        (self.buffer, self.start)
    }

    /// Levels of recursive types that may still be entered.
    pub fn depth_left(&self) -> u32 {
        self.depth_left
    }

    /// Enters a value of a recursive type; [`leave`](Self::leave) it afterwards.
    ///
    /// # Errors
    /// [`EncodeErrorKind::TooDeep`] at 128 levels.
    #[inline]
    pub fn enter(&mut self) -> Result<(), EncodeError> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(EncodeError::new(EncodeErrorKind::TooDeep)),
        }
    }

    /// Leaves what was entered.
    #[inline]
    pub fn leave(&mut self) {
        self.depth_left += 1;
    }
}

/// The count of a counted item as it goes on the wire.
#[inline(always)]
fn bounded(length: usize, bound: u32) -> Result<u32, EncodeError> {
    match u32::try_from(length) {
        Ok(count) if count <= bound => Ok(count),
        _ => Err(too_long(length, bound)),
    }
}

#[cold]
#[inline(never)]
fn too_long(length: usize, bound: u32) -> EncodeError {
    EncodeError::new(EncodeErrorKind::TooLong { length, bound })
}
