//! Room for items at places that the interface fixes.

use core::marker::PhantomData;

use crate::word::{self, width};
use crate::{Blittable, Representation, Word, Xdr, kernels};

/// Room for items at places that the interface fixes; see [`Encoder::block`](crate::Encoder::block).
/// All methods panic if the block ends before the item does.
#[derive(Debug)]
pub struct BlockMut<'b, R = Xdr> {
    bytes: &'b mut [u8],
    representation: PhantomData<R>,
}

impl<'b, R: Representation> BlockMut<'b, R> {
    #[inline(always)]
    pub(super) fn of(bytes: &'b mut [u8]) -> Self {
        let representation = PhantomData;
        Self {
            bytes,
            representation,
        }
    }

    #[inline(always)]
    fn part(&mut self, offset: usize, bytes: usize) -> &mut [u8] {
        &mut self.bytes[offset..][..bytes]
    }

    /// Writes a value that lies on the wire as in memory.
    #[inline(always)]
    pub fn put<T: Blittable>(&mut self, offset: usize, value: T) {
        self.blit(offset, &value);
    }

    /// Writes a value that lies on the wire as in memory, from where it is.
    #[inline(always)]
    pub fn blit<T: Blittable>(&mut self, offset: usize, value: &T) {
        kernels::put_number::<T, R>(value, self.part(offset, size_of::<T>()));
    }

    /// Writes items that lie on the wire as in memory, one behind another.
    #[inline(always)]
    pub fn put_array<T: Blittable>(&mut self, offset: usize, items: &[T]) {
        kernels::put(items, self.part(offset, size_of_val(items)), R::SWAPPED);
    }

    /// Writes a word.
    #[inline(always)]
    pub fn put_word<T: Word>(&mut self, offset: usize, value: T) {
        word::write::<T, R>(value, self.part(offset, width::<T, R>()));
    }

    /// Writes words, one behind another.
    #[inline(always)]
    pub fn put_words<T: Word>(&mut self, offset: usize, items: &[T]) {
        let width = width::<T, R>();
        let room = self.part(offset, items.len() * width);
        for (to, item) in room.chunks_exact_mut(width).zip(items) {
            word::write::<T, R>(*item, to);
        }
    }

    /// Copies `bytes` and zeroes their padding.
    #[inline(always)]
    pub fn put_bytes(&mut self, offset: usize, bytes: &[u8]) {
        let room = self.part(offset, R::padded(bytes.len()));
        // Zeros first, over the last bytes as well: so many are known to the compiler.
        if R::PADDING > 1
            && let Some(last) = room.len().checked_sub(R::PADDING)
        {
            room[last..].fill(0);
        }
        room[..bytes.len()].copy_from_slice(bytes);
    }

    /// Fills a hole.
    #[inline(always)]
    pub fn zero(&mut self, offset: usize, bytes: usize) {
        self.part(offset, bytes).fill(0);
    }
}
