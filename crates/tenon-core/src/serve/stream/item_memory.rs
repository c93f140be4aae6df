//! The memory that the items of arguments may take which a client sends and handlers have not taken.

use std::sync::Arc;

use tenon_proto::lean::{CONNECTION_WINDOW, STREAM_WINDOW};

use super::waiting_callbacks::ServedConnection;
use crate::serve::memory::{MemoryBudget, MemoryShare};

/// The windows of the streams of a connection, which are paid for before they are granted: the first of all with the first
/// call, and larger ones before they grow.
#[derive(Debug)]
pub(super) struct ItemMemory {
    share: MemoryShare,
    /// Bytes to which the window of a stream may grow, by the limits of the server.
    limit: u32,
    /// Bytes to which it may grow with what was paid.
    allowed: u32,
}

/// Bytes that all streams of a connection may have under way, if the window of each has so many.
fn of_connection(stream_window: u32) -> usize {
    (CONNECTION_WINDOW / STREAM_WINDOW) as usize * stream_window as usize
}

impl ItemMemory {
    /// No memory yet of `budget`, for windows of at most `limit` bytes.
    pub(super) fn new(budget: &Arc<MemoryBudget>, limit: u32) -> Self {
        Self {
            share: MemoryShare::new(budget),
            limit,
            allowed: STREAM_WINDOW,
        }
    }

    /// Pays for the windows that the connection has granted, as a call with a stream of arguments begins; returns whether
    /// there is the memory.
    pub(super) fn reserve(&mut self) -> bool {
        self.share.fit(of_connection(self.allowed))
    }

    /// Lets windows grow as far as they find memory, once they have grown as far as they might before.
    #[inline]
    pub(super) fn let_grow(&mut self, connection: &mut ServedConnection) {
        if self.allowed < self.limit && connection.stream_window() >= self.allowed {
            self.pay_for_growth(connection);
        }
    }

    #[cold]
    fn pay_for_growth(&mut self, connection: &mut ServedConnection) {
        let next = (2 * self.allowed).min(self.limit);
        if self.share.fit(of_connection(next)) {
            self.allowed = next;
            connection.set_stream_window_max(next);
        }
    }

    /// Gives the memory back, as no call with streams is carried out.
    pub(super) fn release(&mut self) {
        self.share.fit(0);
    }
}
