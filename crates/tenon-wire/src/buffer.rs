//! A byte buffer that is initialised once and written many times.

use alloc::vec::Vec;

/// Bytes to send. The storage behind the written part stays initialised between uses, so making
/// room costs one comparison and clearing costs nothing.
#[derive(Debug, Default, Clone)]
pub struct Buffer {
    storage: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// An empty buffer with `bytes` of room.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            storage: alloc::vec![0; bytes],
            len: 0,
        }
    }

    /// Bytes written so far.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes the buffer holds without growing.
    pub fn capacity(&self) -> usize {
        self.storage.len()
    }

    /// Forgets what was written; keeps the storage.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets what was written behind `len`. Does nothing if less is written.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives storage above `bytes` back to the allocator, so that one large message does not
    /// pin its memory to an idle connection. What is written stays.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.storage.len() > bytes {
            self.storage.truncate(bytes.max(self.len));
            self.storage.shrink_to_fit();
        }
    }

    /// Appends `bytes` of room and hands it out to be overwritten: it holds old bytes.
    #[inline(always)]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.len;
        if self.storage.len() - start < bytes {
            return self.room_behind_growth(bytes);
        }
        self.len = start + bytes;
        &mut self.storage[start..][..bytes]
    }

    /// Appends `N` bytes of room, as [`room`](Self::room).
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self) -> &mut [u8; N] {
        let start = self.len;
        let room = match self.storage.len() - start < N {
            true => self.room_behind_growth(N).first_chunk_mut(),
            false => {
                self.len = start + N;
                self.storage[start..].first_chunk_mut()
            }
        };
        match room {
            Some(chunk) => chunk,
            None => unreachable!("there is room for N bytes"),
        }
    }

    /// [`room`](Self::room) in a larger storage. It hands the room out itself, so that where there
    /// was enough the compiler knows it.
    #[cold]
    #[inline(never)]
    fn room_behind_growth(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.len;
        let needed = start.saturating_add(bytes);
        let target = needed.max(self.storage.len() * 2).max(256);
        self.storage.resize(target, 0);
        self.len = needed;
        &mut self.storage[start..needed]
    }

    /// Appends `bytes`.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// What is written.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.storage[..self.len]
    }

    /// What is written, to patch a length or a mark that is known only later.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[..self.len]
    }
}
