//! A number of bytes that threads take from.

use crate::sync::{AtomicUsize, Ordering};

/// A number of bytes, of which some are taken: never more than there are.
#[derive(Debug)]
pub struct Budget {
    taken: AtomicUsize,
    limit: usize,
}

impl Budget {
    /// A budget of `limit` bytes, all free.
    pub fn new(limit: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            limit,
        }
    }

    /// Takes `more` bytes; returns false, and takes none, if that is over the limit.
    pub fn take(&self, more: usize) -> bool {
        let grown = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= self.limit);
        // Only the number is shared, and nothing that is seen by it.
        let order = Ordering::Relaxed;
        self.taken.fetch_update(order, order, grown).is_ok()
    }

    /// Returns whether so many bytes could be taken now.
    pub fn has(&self, more: usize) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        taken.checked_add(more).is_some_and(|sum| sum <= self.limit)
    }

    /// Gives back what was taken.
    pub fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}
