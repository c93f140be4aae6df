//! By a lock and a condition variable for each thread, on systems without Linux's futex, and where orders are tried
//! (loom, Miri).

use std::array;
use std::time::Duration;

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, lock};

/// Most threads that wait for a word. Loom tries two of a word, and others of another.
pub(crate) const WAITERS_MAX: u32 = if cfg!(loom) { 2 } else { u32::BITS };

/// A word that threads wait for.
#[derive(Debug)]
pub(crate) struct FutexWord {
    value: AtomicU32,
    /// Held between a look at the word and the wait, and before threads are notified.
    gate: Mutex<()>,
    /// By bit.
    notices: [Condvar; WAITERS_MAX as usize],
}

impl Default for FutexWord {
    fn default() -> Self {
        Self {
            value: AtomicU32::new(0),
            gate: Mutex::new(()),
            notices: array::from_fn(|_| Condvar::new()),
        }
    }
}

impl FutexWord {
    /// Returns the word.
    #[inline]
    pub(crate) fn value(&self) -> &AtomicU32 {
        &self.value
    }

    /// Waits until `bit` is [woken](Self::wake), for `limit`, or for nothing. Does not wait if the word is not what
    /// was `seen` any more.
    pub(crate) fn wait(&self, seen: u32, bit: u32, limit: Duration) {
        let guard = lock(&self.gate);
        if self.value.load(Ordering::Relaxed) == seen {
            let notice = &self.notices[bit.trailing_zeros() as usize];
            #[cfg(not(loom))]
            drop(notice.wait_timeout(guard, limit));
            // Loom has no time: what sleeps for ever it reports.
            #[cfg(loom)]
            drop((notice.wait(guard), limit));
        }
    }

    /// Wakes the threads that wait for these bits. The word is not what they have seen.
    pub(crate) fn wake(&self, bits: u32) {
        // A thread that has looked before that waits by now.
        drop(lock(&self.gate));
        for (at, notice) in self.notices.iter().enumerate() {
            if bits >> at & 1 != 0 {
                notice.notify_one();
            }
        }
    }
}
