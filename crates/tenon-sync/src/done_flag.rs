//! The end of something that one thread does without the lock by which others know that it does.

use crate::sync::{AtomicBool, Ordering};

/// Whether the thread that does something alone has done it. It [begins](Self::begin) under a lock, and
/// [ends](Self::end) without; a thread that has the lock and finds that it [is done](Self::is_done) sees all that it
/// did.
#[derive(Debug, Default)]
pub struct DoneFlag(AtomicBool);

impl DoneFlag {
    /// A thread begins, with the lock that others have when they ask.
    #[inline]
    pub fn begin(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The thread has done it.
    #[inline]
    pub fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the thread that has begun last has done it.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
