//! What one thread runs, and whether others have cancelled that.

use crate::sync::{AtomicU64, AtomicUsize, Ordering, fence};

/// The runs of one thread, one after the other, each known to others by an owner and a key; and whether the present one
/// is cancelled. Only the thread itself begins and ends runs, so that both are plain stores; nothing is reset when a
/// run was cancelled, as each run has a number of its own.
///
/// A thread that [cancels](Self::cancel) reads owner and key between two looks at the number of the run: what it has
/// read belongs to that run if both looks find the same.
#[derive(Debug, Default)]
pub struct RunState {
    /// Odd while something runs, and another number for each run.
    number: AtomicU64,
    owner: AtomicUsize,
    key: AtomicU64,
    /// The number of the latest run that was cancelled.
    cancelled: AtomicU64,
}

impl RunState {
    /// Makes the runs that begin from now on those of this owner. None runs.
    #[inline]
    pub fn set_owner(&self, owner: usize) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Returns the owner of the present run, or of the last one.
    pub fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    /// Begins a run, which others know by this key.
    #[inline]
    pub fn begin(&self, key: u64) {
        self.key.store(key, Ordering::Relaxed);
        let number = self.number.load(Ordering::Relaxed);
        self.number.store(number + 1, Ordering::Release);
    }

    /// Ends the present run.
    #[inline]
    pub fn end(&self) {
        let number = self.number.load(Ordering::Relaxed);
        self.number.store(number + 1, Ordering::Relaxed);
        // A thread that reads the next owner or key finds this run ended.
        fence(Ordering::Release);
    }

    /// Returns whether the present run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let number = self.number.load(Ordering::Relaxed);
        self.cancelled.load(Ordering::Acquire) == number && is_running(number)
    }

    /// Cancels the present run, if it is one of this owner, and known by this key unless that is `None`.
    pub fn cancel(&self, owner: usize, key: Option<u64>) {
        let number = self.number.load(Ordering::Acquire);
        let is_of_owner = self.owner.load(Ordering::Relaxed) == owner;
        let is_of_key = key.is_none_or(|key| self.key.load(Ordering::Relaxed) == key);
        fence(Ordering::Acquire);
        let is_same = self.number.load(Ordering::Relaxed) == number;
        if is_running(number) && is_of_owner && is_of_key && is_same {
            // A thread that is late must not take back what was said of a later run.
            self.cancelled.fetch_max(number, Ordering::AcqRel);
        }
    }
}

fn is_running(number: u64) -> bool {
    !number.is_multiple_of(2)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_run_that_is_meant_is_cancelled() {
        let runs = RunState::default();
        runs.set_owner(7);
        runs.cancel(7, None);
        runs.begin(1);
        assert!(!runs.is_cancelled(), "nothing ran when it was cancelled");
        runs.cancel(7, Some(2));
        runs.cancel(8, Some(1));
        runs.cancel(8, None);
        assert!(!runs.is_cancelled());
        runs.cancel(7, Some(1));
        assert!(runs.is_cancelled());
        runs.end();
        runs.begin(1);
        assert!(!runs.is_cancelled(), "the run before was");
        runs.cancel(7, None);
        assert!(runs.is_cancelled());
        runs.end();
        assert!(!runs.is_cancelled());
    }
}
