//! Memory that lives and is freed together with the frame that it belongs to.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// Bytes of a word. Every address is a multiple of it, the largest alignment in a frame.
const WORD: usize = size_of::<u64>();

/// Bytes of the first chunk. The more there are the larger is the next, up to [`MOST`].
const FIRST: usize = 512;
const MOST: usize = 16 << 10;

/// Chunks of memory, filled from the front. As small as can be: frames are moved.
#[derive(Debug)]
pub(crate) struct Arena {
    /// The latest chunk, which leads to the one before; null if there is none.
    chunks: *mut Chunk,
    /// Where the next item goes, and how many bytes are left there.
    at: NonNull<u8>,
    left: usize,
}

/// What a chunk begins with.
#[derive(Debug)]
struct Chunk {
    before: *mut Chunk,
    /// Bytes of all of it.
    bytes: usize,
}

// SAFETY: an arena owns its chunks alone, and they hold plain words.
unsafe impl Send for Arena {}
// SAFETY: a shared arena gives nothing away.
unsafe impl Sync for Arena {}

impl Arena {
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            chunks: ptr::null_mut(),
            at: NonNull::<u64>::dangling().cast(),
            left: 0,
        }
    }

    /// Room for `bytes` whose contents are not defined; valid until the arena is dropped.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> NonNull<u8> {
        self.take_before(bytes, 0)
    }

    /// [`take`](Self::take), where about `more` bytes are going to be taken next.
    #[inline]
    pub fn take_before(&mut self, bytes: usize, more: usize) -> NonNull<u8> {
        let Some(bytes) = bytes.checked_next_multiple_of(WORD) else {
            unreachable!("so much memory was not paid for")
        };
        if bytes > self.left {
            return self.take_from_new(bytes, more);
        }
        let taken = self.at;
        // SAFETY: so many bytes are left in the chunk.
        self.at = unsafe { taken.add(bytes) };
        self.left -= bytes;
        taken
    }

    /// Large items get a chunk of their own, so that the present one stays in use.
    #[cold]
    #[inline(never)]
    fn take_from_new(&mut self, bytes: usize, more: usize) -> NonNull<u8> {
        let usual = match self.chunks.is_null() {
            true => FIRST,
            // SAFETY: the chunk is alive as long as the arena.
            false => (unsafe { (*self.chunks).bytes } * 2).min(MOST),
        };
        let head = size_of::<Chunk>();
        let Some(room) = bytes.checked_add(more + head) else {
            unreachable!("so much memory was not paid for")
        };
        let room = room.max(usual);
        let layout = chunk_of(room);
        // SAFETY: a chunk is not empty.
        let chunk = unsafe { alloc(layout) }.cast::<Chunk>();
        let Some(first) = NonNull::new(chunk) else {
            handle_alloc_error(layout)
        };
        let before = self.chunks;
        // SAFETY: there is room for the head and what follows.
        let taken = unsafe {
            let bytes = room;
            first.write(Chunk { before, bytes });
            first.add(1).cast::<u8>()
        };
        self.chunks = chunk;
        let left = room - head - bytes;
        if left > self.left {
            // SAFETY: the chunk is at least so long.
            self.at = unsafe { taken.add(bytes) };
            self.left = left;
        }
        taken
    }
}

/// The memory of a chunk of so many bytes, which no caller makes larger than there is memory.
fn chunk_of(bytes: usize) -> Layout {
    match Layout::from_size_align(bytes, WORD) {
        Ok(layout) => layout,
        Err(_) => unreachable!("so much memory was not paid for"),
    }
}

impl Drop for Arena {
    #[inline]
    fn drop(&mut self) {
        let mut chunk = self.chunks;
        while !chunk.is_null() {
            // SAFETY: it was allocated so, is alive, and nobody else frees it.
            unsafe {
                let Chunk { before, bytes } = chunk.read();
                dealloc(chunk.cast(), chunk_of(bytes));
                chunk = before;
            }
        }
    }
}
