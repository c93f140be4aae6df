//! The memory that half-received requests may take over all connections. What a connection needs for small requests
//! is not counted, so peers that send these are served even when others have taken everything.

use std::sync::Arc;

use tenon_proto::ROOM_FIRST;
use tenon_sync::Budget;

/// The memory that a server grants.
#[derive(Debug)]
pub struct MemoryBudget(Budget);

impl MemoryBudget {
    /// A budget of `limit` bytes, all free.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self(Budget::new(limit)))
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
        if bytes > self.bytes && !self.budget.0.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.budget.0.give_back(self.bytes - bytes);
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
        self.budget.0.give_back(self.bytes);
    }
}
