//! How often was waited, and how.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the waits of one end's threads for their peers so far.
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

impl WaitCounters {
    /// Returns what both have counted.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            spins: self.spins + other.spins,
            misses: self.misses + other.misses,
            attempts: self.attempts + other.attempts,
        }
    }
}

/// Live counters behind [`WaitCounters`]. Nothing is ordered by them.
#[derive(Debug, Default)]
pub struct WaitTally {
    blocks: AtomicU64,
    spins: AtomicU64,
    misses: AtomicU64,
    attempts: AtomicU64,
}

impl WaitTally {
    /// Counts a receive that may sleep until something comes.
    #[inline]
    pub fn blocks(&self) {
        add(&self.blocks, 1);
    }

    /// Counts a thread that looks again after it has looked once. This saves the count when something comes, as the
    /// thread that waits for it is in a hurry then.
    pub fn begun(&self) {
        self.found(1);
    }

    /// Counts that something came at the last of so many attempts to a thread that has [begun](Self::begun).
    #[inline]
    pub fn found_begun(&self, attempts: u64) {
        if attempts > 1 {
            add(&self.attempts, attempts - 1);
        }
    }

    /// Counts that a thread that has [begun](Self::begun) gives up after so many attempts.
    pub fn missed_begun(&self, attempts: u64) {
        self.spins.fetch_sub(1, Ordering::Relaxed);
        self.missed(attempts - 1);
    }

    /// Counts that something came at the last of so many attempts.
    pub fn found(&self, attempts: u64) {
        add(&self.spins, 1);
        add(&self.attempts, attempts);
    }

    /// Counts that nothing came by the last of so many attempts.
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
