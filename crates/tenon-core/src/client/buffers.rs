//! Buffers that are used again.

use std::cell::Cell;

use tenon_wire::Buffer;

thread_local! {
    /// Buffer of this thread's last call: most threads have one call at a time, and take no lock for its buffer.
    static SPARE: Cell<Option<Buffer>> = const { Cell::new(None) };
}

/// Takes this thread's spare buffer, if it has one.
#[inline]
pub fn take_spare() -> Option<Buffer> {
    SPARE.try_with(Cell::take).ok().flatten()
}

/// Keeps a buffer for this thread's next call, and returns the one that the thread had, if it had one.
#[inline(always)]
pub fn keep_spare(mut buffer: Buffer) -> Option<Buffer> {
    buffer.clear();
    buffer.shrink_to(Buffers::SIZE_MAX);
    // A thread that ends keeps nothing.
    let replaced = SPARE.try_with(|spare| spare.replace(Some(buffer)));
    replaced.ok().flatten()
}

/// Buffers of a channel, for any thread.
#[derive(Debug, Default)]
pub struct Buffers(Vec<Buffer>);

impl Buffers {
    /// Most buffers kept.
    const COUNT_MAX: usize = 64;
    /// Most bytes that a buffer keeps.
    const SIZE_MAX: usize = 1 << 20;

    /// Keeps a buffer: for this thread if it has none, or for all.
    #[inline]
    pub fn keep(&mut self, buffer: Buffer) {
        if let Some(buffer) = keep_spare(buffer) {
            self.put(buffer);
        }
    }

    /// Returns an empty buffer.
    #[inline]
    pub fn take(&mut self) -> Buffer {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a buffer for any thread, if there are not many.
    pub fn put(&mut self, mut buffer: Buffer) {
        if self.0.len() < Self::COUNT_MAX {
            buffer.clear();
            buffer.shrink_to(Self::SIZE_MAX);
            self.0.push(buffer);
        }
    }
}
