//! Memory that lives and is freed together with the frame that it belongs to.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// Bytes of a word. Every address is a multiple of it, the largest alignment in a frame.
const WORD: usize = size_of::<u64>();

/// Bytes of the first chunk and of the second. The more there are the larger is the next, up to
/// [`MOST`]. Common allocators are fastest for sizes as small as these two.
const FIRST: usize = 512;
const SECOND: usize = 1016;
const MOST: usize = 16 << 10;

/// More bytes than any memory has, and few enough to be added to each other.
const MOST_BYTES: usize = usize::MAX >> 8;

/// Address of items that take no memory, if there is none.
const NOWHERE: NonNull<u8> = NonNull::<u64>::dangling().cast();

/// Chunks of memory, filled from the front.
#[derive(Debug)]
pub(crate) struct FrameArena {
    /// Address of the next item, and the bytes that are left there: none if there is no chunk.
    at: NonNull<u8>,
    left: usize,
    /// The first chunk, null if there is none, and its bytes. It has no head: the memory of a
    /// frame with one array is just that array's.
    pub(crate) first: *mut u8,
    first_bytes: usize,
    /// The latest of the other chunks, which leads to the one before; null if there is none.
    further: *mut ChunkHeader,
}

/// Header of every chunk but the first.
#[derive(Debug)]
struct ChunkHeader {
    before: *mut ChunkHeader,
    /// Bytes of all of it.
    bytes: usize,
}

// SAFETY: an arena owns its chunks alone, and they hold plain words.
unsafe impl Send for FrameArena {}
// SAFETY: a shared arena gives nothing away.
unsafe impl Sync for FrameArena {}

impl FrameArena {
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            at: NOWHERE,
            left: 0,
            first: ptr::null_mut(),
            first_bytes: 0,
            further: ptr::null_mut(),
        }
    }

    /// Allocates `bytes` of uninitialised memory, which are valid until the arena is dropped or emptied.
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> NonNull<u8> {
        if bytes > self.left {
            return self.take_from_new(bytes);
        }
        // The rest of a chunk is a number of whole words.
        let bytes = whole_words(bytes);
        let taken = self.at;
        // SAFETY: so many bytes are left in the chunk.
        self.at = unsafe { taken.add(bytes) };
        self.left -= bytes;
        taken
    }

    /// Forgets all that was taken, and takes `bytes` as [`take`](Self::take) does: all that is taken before
    /// the next time that everything is forgotten.
    #[inline(always)]
    pub fn take_only(&mut self, bytes: usize) -> NonNull<u8> {
        let Some(first) = NonNull::new(self.first) else {
            return self.take_first_only(bytes);
        };
        match self.further.is_null() && bytes <= self.first_bytes {
            true => first,
            false => self.rewind_and_take(bytes),
        }
    }

    #[inline(always)]
    fn take_first_only(&mut self, bytes: usize) -> NonNull<u8> {
        if bytes == 0 {
            return NOWHERE;
        }
        if bytes > MOST_BYTES {
            not_paid_for()
        }
        // `left` stays zero, as it is not used before the next rewind.
        self.first_bytes = whole_words(bytes).max(FIRST);
        let taken = allocate(self.first_bytes);
        self.first = taken.as_ptr();
        taken
    }

    #[cold]
    #[inline(never)]
    fn rewind_and_take(&mut self, bytes: usize) -> NonNull<u8> {
        self.rewind();
        self.take(bytes)
    }

    /// Forgets all that was taken. The memory stays here for what is taken next, as much of it in
    /// one piece as there was.
    #[inline(always)]
    pub fn rewind(&mut self) {
        if !self.rewind_one() {
            self.join();
            self.rewind_one();
        }
    }

    /// [`rewind`](Self::rewind) if all memory is one piece; returns whether it is.
    #[inline(always)]
    pub fn rewind_one(&mut self) -> bool {
        if !self.further.is_null() {
            return false;
        }
        if let Some(first) = NonNull::new(self.first) {
            (self.at, self.left) = (first, self.first_bytes);
        }
        true
    }

    /// Forgets all that was taken, and frees the memory.
    #[inline(always)]
    pub fn clear(&mut self) {
        if !self.first.is_null() {
            self.free_all();
            (self.first, self.left) = (ptr::null_mut(), 0);
        }
    }

    #[inline(always)]
    fn take_from_new(&mut self, bytes: usize) -> NonNull<u8> {
        if bytes > MOST_BYTES {
            not_paid_for()
        }
        let bytes = whole_words(bytes);
        match self.first.is_null() {
            true => self.take_first(bytes),
            false => self.take_further(bytes),
        }
    }

    #[inline(always)]
    fn take_first(&mut self, bytes: usize) -> NonNull<u8> {
        let room = bytes.max(FIRST);
        let taken = allocate(room);
        (self.first, self.first_bytes) = (taken.as_ptr(), room);
        // SAFETY: the chunk is at least so long.
        self.at = unsafe { taken.add(bytes) };
        self.left = room - bytes;
        taken
    }

    /// Large items get a chunk of their own, so that the present one stays in use.
    #[inline(never)]
    fn take_further(&mut self, bytes: usize) -> NonNull<u8> {
        let before = self.further;
        let usual = match before.is_null() {
            true => SECOND,
            // SAFETY: the chunk is alive as long as the arena.
            false => (unsafe { (*before).bytes } * 2).min(MOST),
        };
        let head = size_of::<ChunkHeader>();
        let room = (bytes + head).max(usual);
        let chunk = allocate(room).cast::<ChunkHeader>();
        // SAFETY: there is room for the head and what follows.
        let taken = unsafe {
            let bytes = room;
            chunk.write(ChunkHeader { before, bytes });
            chunk.add(1).cast::<u8>()
        };
        self.further = chunk.as_ptr();
        let left = room - head - bytes;
        if left > self.left {
            // SAFETY: the chunk is at least so long.
            self.at = unsafe { taken.add(bytes) };
            self.left = left;
        }
        taken
    }

    /// Makes one chunk of all.
    #[cold]
    #[inline(never)]
    fn join(&mut self) {
        let mut all = self.first_bytes;
        let mut chunk = self.further;
        while !chunk.is_null() {
            // SAFETY: the chunk is alive as long as the arena.
            let ChunkHeader { before, bytes } = unsafe { chunk.read() };
            all += bytes;
            chunk = before;
        }
        self.clear();
        self.take_first(all);
    }

    /// Frees all chunks. The arena must not be used again before `first` is reset.
    #[inline(always)]
    fn free_all(&mut self) {
        if self.first.is_null() {
            return;
        }
        if !self.further.is_null() {
            self.free_further();
        }
        // SAFETY: it was allocated with this size, is alive, and is freed only here.
        unsafe { free(self.first, self.first_bytes) };
    }

    /// A function of its own, so that a frame with one chunk, as most are, has no registers to save for the loop.
    #[cold]
    #[inline(never)]
    fn free_further(&mut self) {
        while !self.further.is_null() {
            // SAFETY: it was allocated with this size, is alive, and is freed only here.
            unsafe {
                let ChunkHeader { before, bytes } = self.further.read();
                free(self.further.cast(), bytes);
                self.further = before;
            }
        }
    }
}

impl Drop for FrameArena {
    #[inline(always)]
    fn drop(&mut self) {
        self.free_all();
    }
}

/// Memory for so many bytes, a word or more, to be given back to [`free`].
#[inline(always)]
pub(super) fn allocate(bytes: usize) -> NonNull<u8> {
    if !(WORD..=MOST_BYTES + WORD).contains(&bytes) {
        not_paid_for()
    }
    // SAFETY: so many bytes, rounded up, do not overflow.
    let layout = unsafe { Layout::from_size_align_unchecked(bytes, WORD) };
    // SAFETY: the layout is not empty.
    match NonNull::new(unsafe { alloc(layout) }) {
        Some(memory) => memory,
        None => handle_alloc_error(layout),
    }
}

/// Frees memory.
///
/// # Safety
/// It was [allocated](allocate) with this size, and is not used any more.
#[inline(always)]
pub(super) unsafe fn free(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise: there is such a layout, and it was allocated so.
    unsafe {
        let layout = Layout::from_size_align_unchecked(bytes, WORD);
        dealloc(memory, layout);
    }
}

/// Words for so many bytes, no more than [`MOST_BYTES`].
#[inline(always)]
fn whole_words(bytes: usize) -> usize {
    (bytes + (WORD - 1)) & !(WORD - 1)
}

/// No caller asks for more memory than there is.
#[cold]
#[inline(never)]
fn not_paid_for() -> ! {
    unreachable!("so much memory was not paid for")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills so many bytes, to be found by Miri if they are not the arena's.
    fn fill(arena: &mut FrameArena, bytes: usize) -> NonNull<u8> {
        let taken = arena.take(bytes);
        // SAFETY: there is room for so many.
        unsafe { taken.write_bytes(7, bytes) };
        taken
    }

    #[test]
    fn rewound_memory_is_one_piece() {
        let sizes = [100, 0, 1, 300, 1000, 5000, 40_000, 7];
        let mut arena = FrameArena::new();
        for bytes in sizes {
            fill(&mut arena, bytes);
        }
        assert!(!arena.further.is_null());
        for _ in 0..2 {
            arena.rewind();
            for bytes in sizes {
                fill(&mut arena, bytes);
            }
            assert!(arena.further.is_null(), "there was room for all");
        }
    }

    #[test]
    fn a_cleared_arena_has_nothing_and_can_be_filled_again() {
        let mut arena = FrameArena::new();
        for _ in 0..2 {
            arena.clear();
            assert!(arena.first.is_null() && arena.further.is_null());
            fill(&mut arena, 10);
            fill(&mut arena, 2000);
        }
    }

    #[test]
    fn what_is_taken_alone_is_taken_from_the_same_memory() {
        let mut arena = FrameArena::new();
        for bytes in [0, 10, 700, 300, 700, 0, 5000] {
            let taken = arena.take_only(bytes);
            // SAFETY: there is room for so many.
            unsafe { taken.write_bytes(7, bytes) };
        }
        arena.rewind();
        fill(&mut arena, 10);
        fill(&mut arena, 10_000);
        arena.take_only(20);
        assert!(arena.further.is_null(), "all was joined");
        arena.clear();
        assert!(arena.take_only(0).addr() == NOWHERE.addr());
    }

    #[test]
    fn an_array_takes_its_own_bytes_and_no_more() {
        let mut arena = FrameArena::new();
        fill(&mut arena, 1024);
        assert_eq!((arena.first_bytes, arena.left), (1024, 0));
    }
}
