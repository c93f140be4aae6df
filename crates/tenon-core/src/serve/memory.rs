//! The memory that requests may take over all connections: those that have arrived in part, and those that are carried
//! out. What a connection needs for small requests is not counted, so peers that send these are served even when others
//! have taken everything.

use std::sync::Arc;

use tenon_proto::ROOM_FIRST;
use tenon_sync::Budget;

/// The memory that a server grants.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: Budget,
    limit: usize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes, all free.
    pub fn new(limit: usize) -> Arc<Self> {
        let limit = limit.max(1);
        Arc::new(Self {
            bytes: Budget::new(limit),
            limit,
        })
    }

    /// Takes `bytes` for a call that is carried out; `None` if others have taken too many. A call of any size takes no
    /// more than there is: it is carried out when no others are.
    pub fn take_for_call(self: &Arc<Self>, bytes: usize) -> Option<CallMemory> {
        let bytes = bytes.min(self.limit);
        let is_taken = bytes == 0 || self.bytes.take(bytes);
        is_taken.then(|| CallMemory {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Returns whether a call may [take](Self::take_for_call) so many bytes.
    pub fn has_for_call(&self, bytes: usize) -> bool {
        self.bytes.has(bytes.min(self.limit))
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
        if bytes > self.bytes && !self.budget.bytes.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.budget.bytes.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Returns whether the share is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.bytes.give_back(self.bytes);
    }
}

/// The part of a budget that a call takes until it is answered. Dropping it gives that back.
#[derive(Debug)]
pub struct CallMemory {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for CallMemory {
    fn drop(&mut self) {
        self.budget.bytes.give_back(self.bytes);
    }
}
