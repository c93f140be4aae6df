//! The memory that half-received requests may take over all connections. What a connection needs
//! for small requests is not counted, so whoever sends these is served even when others have taken
//! everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenon_proto::ROOM_FIRST;

/// What there is and what is taken.
#[derive(Debug)]
pub struct Memory {
    taken: AtomicUsize,
    limit: usize,
}

impl Memory {
    /// Memory of `limit` bytes, all free.
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

/// What one connection has taken. Dropping it gives that back.
#[derive(Debug)]
pub struct Share {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Share {
    /// No share yet of `memory`.
    pub fn new(memory: &Arc<Memory>) -> Self {
        let memory = Arc::clone(memory);
        Self { memory, bytes: 0 }
    }

    /// Makes this the share of a reader with `capacity` bytes of storage; says whether there are so
    /// many. Nothing has changed if not.
    #[inline]
    pub fn fit(&mut self, capacity: usize) -> bool {
        let bytes = capacity.saturating_sub(ROOM_FIRST);
        if bytes > self.bytes && !self.memory.take(bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.memory.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Gives all of it back.
    pub fn clear(&mut self) {
        self.memory.give_back(self.bytes);
        self.bytes = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}
