//! Memory that lives and is freed together with the frame that it belongs to.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Every address is a multiple of a word's size, the largest alignment in a frame.
type Word = MaybeUninit<u64>;

/// Words of the first chunk. The more there are the larger is the next, up to [`MOST`].
const FIRST: usize = 64;
const MOST: usize = 8 << 10;

/// Chunks of words, filled from the front.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Most frames need no further one.
    first: Option<NonNull<[Word]>>,
    further: Vec<NonNull<[Word]>>,
    at: NonNull<Word>,
    left: usize,
}

// SAFETY: an arena owns its chunks alone, and they hold plain words.
unsafe impl Send for Arena {}
// SAFETY: a shared arena gives nothing away.
unsafe impl Sync for Arena {}

impl Arena {
    pub fn new() -> Self {
        Self {
            first: None,
            further: Vec::new(),
            at: NonNull::dangling(),
            left: 0,
        }
    }

    /// Room for `bytes` whose contents are not defined; valid until the arena is dropped.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> NonNull<u8> {
        let words = bytes.div_ceil(size_of::<Word>());
        if words > self.left {
            return self.take_from_new(words);
        }
        let taken = self.at;
        // SAFETY: so many words are left in the chunk.
        self.at = unsafe { taken.add(words) };
        self.left -= words;
        taken.cast()
    }

    /// Large items get a chunk of their own, so that the present one stays in use.
    #[cold]
    fn take_from_new(&mut self, words: usize) -> NonNull<u8> {
        let usual = (FIRST << self.further.len().min(16)).min(MOST);
        let length = words.max(usual);
        let chunk = NonNull::from(Box::leak(Box::<[u64]>::new_uninit_slice(length)));
        match self.first {
            None => self.first = Some(chunk),
            Some(_) => self.further.push(chunk),
        }
        if length - words > self.left {
            // SAFETY: the chunk is at least so long.
            self.at = unsafe { chunk.cast::<Word>().add(words) };
            self.left = length - words;
        }
        chunk.cast()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for chunk in self.first.iter().chain(&self.further) {
            // SAFETY: it was leaked from such a box, and nobody else frees it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}
