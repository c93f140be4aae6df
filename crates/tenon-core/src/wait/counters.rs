//! How often was waited, and how.

use std::sync::atomic::{AtomicU64, Ordering};

/// How the threads of one end have waited for their peers so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WaitCounters {
    /// Receives that may have slept.
    pub blocks: u64,
    /// Times that a thread looked again and again and something came. One that is still at it is among them.
    pub spins: u64,
    /// Times that a thread looked again and again, and gave that up before anything came.
    pub misses: u64,
    /// Receives that found nothing and did not sleep. Each is a system call beyond the two of a call.
    pub attempts: u64,
}

/// The counters while they count. Nothing is ordered by them.
#[derive(Debug, Default)]
pub struct WaitTally {
    blocks: AtomicU64,
    spins: AtomicU64,
    misses: AtomicU64,
    attempts: AtomicU64,
}

impl WaitTally {
    /// Somebody sleeps until something comes.
    #[inline]
    pub fn blocks(&self) {
        add(&self.blocks, 1);
    }

    /// Somebody looks again who has looked once. What is counted here need not be when something comes, and
    /// who waits for it is in a hurry.
    pub fn begun(&self) {
        self.found(1);
    }

    /// To one who has [begun](Self::begun) something came at the last of so many attempts.
    #[inline]
    pub fn found_begun(&self, attempts: u64) {
        if attempts > 1 {
            add(&self.attempts, attempts - 1);
        }
    }

    /// One who has [begun](Self::begun) gives up after so many attempts.
    pub fn missed_begun(&self, attempts: u64) {
        self.spins.fetch_sub(1, Ordering::Relaxed);
        self.missed(attempts - 1);
    }

    /// Something came at the last of so many attempts.
    pub fn found(&self, attempts: u64) {
        add(&self.spins, 1);
        add(&self.attempts, attempts);
    }

    /// Nothing came by the last of so many attempts.
    pub fn missed(&self, attempts: u64) {
        add(&self.misses, 1);
        add(&self.attempts, attempts);
    }

    /// Returns what was counted so far.
    pub fn snapshot(&self) -> WaitCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WaitCounters {
            blocks: get(&self.blocks),
            spins: get(&self.spins),
            misses: get(&self.misses),
            attempts: get(&self.attempts),
        }
    }
}

#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
