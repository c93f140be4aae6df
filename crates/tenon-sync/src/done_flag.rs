//! The end of something that one thread does without the lock by which others know that it does.

use crate::sync::{AtomicBool, Ordering};

/// Flag that tells when the thread that does something alone has done it. That thread [begins](Self::begin) under a
/// lock, and [ends](Self::end) without; a thread that has the lock and finds that it [is done](Self::is_done) sees all
/// that the first one did.
#[derive(Debug, Default)]
pub struct DoneFlag(AtomicBool);

impl DoneFlag {
    /// Notes that a thread begins, with the lock that others have when they ask.
    #[inline]
    pub fn begin(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Notes that the thread has done it.
    #[inline]
    pub fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether the thread that has begun last has done it.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
