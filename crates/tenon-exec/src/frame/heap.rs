//! Memory of C's heap for values that a program in C holds: what was taken is freed again unless the value is whole.

use std::cell::Cell;
use std::ptr::NonNull;

/// Most pieces of memory that a thread keeps the list of for its next value.
const KEPT: usize = 4096;

/// Content of memory that was just taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryContent {
    /// Zeros: items that do not write all of it.
    Zeros,
    /// Anything: all of it is written before it is read.
    Any,
}

/// Pieces of memory that were taken for one value.
#[derive(Debug)]
pub(crate) struct CHeap {
    taken: Vec<NonNull<u8>>,
}

thread_local! {
    /// The list of the last value, so that the next one takes no memory for it.
    static LIST: Cell<Vec<NonNull<u8>>> = const { Cell::new(Vec::new()) };
}

impl CHeap {
    /// Nothing is taken yet.
    #[inline]
    pub fn new() -> Self {
        Self { taken: LIST.take() }
    }

    /// Takes so many bytes, aligned to 8; at least one byte. `None` if there is no memory.
    #[inline]
    pub fn take(&mut self, bytes: usize, content: MemoryContent) -> Option<NonNull<u8>> {
        if self.taken.len() == self.taken.capacity() {
            self.taken.try_reserve(16).ok()?;
        }
        let bytes = bytes.max(1);
        // SAFETY: neither has any conditions.
        let memory = unsafe {
            match content {
                MemoryContent::Zeros => libc::calloc(1, bytes),
                MemoryContent::Any => libc::malloc(bytes),
            }
        };
        let memory = NonNull::new(memory.cast::<u8>())?;
        self.taken.push(memory);
        Some(memory)
    }

    /// Frees all that was taken.
    #[inline]
    pub fn free_all(&mut self) {
        for memory in self.taken.drain(..) {
            // SAFETY: it was taken here, and nothing has freed it: what is kept is no longer in the list.
            unsafe { free(memory.as_ptr()) };
        }
    }

    /// Leaves all that was taken to the value.
    #[inline]
    pub fn keep(mut self) {
        self.taken.clear();
    }
}

impl Drop for CHeap {
    #[inline]
    fn drop(&mut self) {
        self.free_all();
        if self.taken.capacity() <= KEPT {
            LIST.set(std::mem::take(&mut self.taken));
        }
    }
}

/// Frees memory of C's heap.
///
/// # Safety
/// It is null or was taken by malloc, and nothing uses it.
pub(super) unsafe fn free(memory: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory.cast()) };
}
