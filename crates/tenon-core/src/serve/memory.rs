//! The memory that half-received requests may take over all connections. What a connection needs for small requests
//! is not counted, so peers that send these are served even when others have taken everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_proto::ROOM_FIRST;

/// A number of bytes, of which some are taken.
#[derive(Debug)]
pub struct MemoryBudget {
    taken: AtomicUsize,
    limit: usize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes, all free.
    pub fn new(limit: usize) -> Arc<Self> {
        let taken = AtomicUsize::new(0);
        Arc::new(Self { taken, limit })
    }

    /// Takes `more` bytes unless that is over the limit.
    fn take(&self, more: usize) -> bool {
        let grown = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= self.limit);
        let order = Ordering::Relaxed;
        self.taken.fetch_update(order, order, grown).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The part of a budget that one connection has taken. Dropping it gives that back.
#[derive(Debug)]
pub struct MemoryShare {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryShare {
    /// No share yet of `budget`.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        let budget = Arc::clone(budget);
        Self { budget, bytes: 0 }
    }

    /// Makes this the share of a receiver with `capacity` bytes of memory; returns whether there are so many.
    /// Nothing has changed if not.
    #[inline]
    pub fn fit(&mut self, capacity: usize) -> bool {
        let bytes = capacity.saturating_sub(ROOM_FIRST);
        if bytes > self.bytes && !self.budget.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Whether it is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
