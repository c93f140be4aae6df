//! The connections and ports of a server.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenon_core::serve::{ServerCounters, ServerTally};

use super::lock;
use super::slot::{SlotSocket, SocketSlot};

/// The connections and ports that are open, by their numbers.
#[derive(Debug)]
pub(super) struct SlotTable {
    open: Mutex<HashMap<usize, Arc<SocketSlot>, BuildHasherDefault<IdHasher>>>,
    next_id: AtomicUsize,
    tally: Arc<ServerTally>,
}

/// Spreads the numbers of slots, which are given one after the other, so that no peer can choose them.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    #[inline]
    fn write_usize(&mut self, id: usize) {
        // The golden ratio: the table takes its place from the lowest bits, and tells apart by the highest.
        self.0 = (self.0 ^ id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl SlotTable {
    /// Makes a table with numbers from `first_id`.
    pub(super) fn new(first_id: usize, tally: &Arc<ServerTally>) -> Self {
        Self {
            open: Mutex::default(),
            next_id: AtomicUsize::new(first_id),
            tally: Arc::clone(tally),
        }
    }

    /// Adds a connection or port; the socket comes back if `limit` are open already.
    pub(super) fn add(
        &self,
        socket: SlotSocket,
        limit: usize,
    ) -> Result<Arc<SocketSlot>, SlotSocket> {
        let mut open = lock(&self.open);
        if self.tally.connections_open.get() >= limit as u64 {
            return Err(socket);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if matches!(socket, SlotSocket::Stream(_)) {
            self.tally.connections_open.up();
        }
        let slot = Arc::new(SocketSlot::new(id, socket));
        open.insert(id, Arc::clone(&slot));
        Ok(slot)
    }

    /// Returns the slots of these numbers, as far as they are open.
    pub(super) fn get_all<T>(
        &self,
        events: impl Iterator<Item = (usize, T)>,
        mut found: impl FnMut(&Arc<SocketSlot>, T),
    ) {
        let open = lock(&self.open);
        for (id, event) in events {
            if let Some(slot) = open.get(&id) {
                found(slot, event);
            }
        }
    }

    /// Returns the slot of this number, if it is open.
    pub(super) fn get(&self, id: usize) -> Option<Arc<SocketSlot>> {
        lock(&self.open).get(&id).cloned()
    }

    /// Forgets a connection or port that has ended.
    pub(super) fn remove(&self, id: usize) {
        let mut open = lock(&self.open);
        let removed = open.remove(&id);
        if let Some(slot) = &removed {
            // Under the lock, so that what it has counted is counted once.
            self.tally.absorb(&slot.tally);
            if slot.stream().is_some() {
                self.tally.connections_open.down();
            }
        }
        drop(open);
        // Its socket may close now, with the table unlocked.
        drop(removed);
    }

    /// Returns everything that is open.
    pub(super) fn all(&self) -> Vec<Arc<SocketSlot>> {
        lock(&self.open).values().cloned().collect()
    }

    /// Returns what has been counted so far, of all that is open or was, and beside.
    pub(super) fn counters(&self) -> ServerCounters {
        let open = lock(&self.open);
        let slots = open.values();
        slots.fold(self.tally.snapshot(), |counters, slot| {
            counters.with_connection(&slot.tally)
        })
    }
}
