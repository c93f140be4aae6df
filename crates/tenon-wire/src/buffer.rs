//! A byte buffer that is initialised once and written many times.

use crate::kernels::BufferStorage;

/// Bytes to send. The storage behind the written part stays initialised between uses, so making
/// room costs one comparison and clearing costs nothing.
#[derive(Debug, Default, Clone)]
pub struct Buffer {
    pub(crate) storage: BufferStorage,
}

impl Buffer {
    /// An empty buffer with `bytes` of room.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            storage: BufferStorage::of(bytes),
        }
    }

    /// Bytes written so far.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.storage.used()
    }

    /// Returns whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes the buffer holds without growing.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.storage.size()
    }

    /// Forgets what was written; keeps the storage.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Forgets what was written behind `len`. Does nothing if less is written.
    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        self.storage.truncate(len);
    }

    /// Gives storage above `bytes` back to the allocator, so that one large message does not
    /// pin its memory to an idle connection. What is written stays.
    #[inline]
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.capacity() > bytes {
            self.storage.shrink_to(bytes);
        }
    }

    /// Makes sure that `bytes` more can be appended without memory being taken; returns whether there is memory for them.
    #[must_use]
    pub fn try_reserve(&mut self, bytes: usize) -> bool {
        self.storage.try_grow(bytes)
    }

    /// Appends `bytes` of room and hands it out to be overwritten: it holds old bytes.
    #[inline(always)]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.storage.take(bytes)
    }

    /// All the room that there is behind what is written, `bytes` or more, to be overwritten: it holds
    /// old bytes. Nothing of it is written before [`advance`](Self::advance) says so.
    #[inline(always)]
    pub fn spare(&mut self, bytes: usize) -> &mut [u8] {
        self.storage.spare(bytes)
    }

    /// Says that the first `bytes` of the [`spare`](Self::spare) room are written, or all of it if it has
    /// no more.
    #[inline(always)]
    pub fn advance(&mut self, bytes: usize) {
        self.storage.advance(bytes);
    }

    /// [`advance`](Self::advance) up to `behind`, an address in the spare room or right behind it.
    #[inline(always)]
    pub fn advance_to(&mut self, behind: *const u8) {
        self.storage.advance_to(behind);
    }

    /// Appends `N` bytes of room, as [`room`](Self::room).
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self) -> &mut [u8; N] {
        self.storage.take_chunk()
    }

    /// Appends `bytes`.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Returns the bytes written.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.storage.in_use()
    }

    /// Returns the bytes written, to patch a length or a mark that is known only later.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.storage.in_use_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_not_reserved() {
        let mut buffer = Buffer::with_capacity(300);
        buffer.extend(b"kept");
        assert!(!buffer.try_reserve(usize::MAX));
        assert!(!buffer.try_reserve(isize::MAX as usize));
        assert_eq!(buffer.as_slice(), b"kept");
        assert!(buffer.try_reserve(1000));
        assert!(buffer.capacity() >= 1004);
    }
}
