//! Counting the connections of which a part of a request has come.

use std::sync::Arc;

use super::counters::ServerTally;

/// Flag of a connection that waits for the rest of a request; its server counts such connections.
#[derive(Debug)]
pub struct HalfReceived {
    tally: Arc<ServerTally>,
    is_counted: bool,
}

impl HalfReceived {
    /// The flag of a connection that waits for no rest.
    pub fn new(tally: &Arc<ServerTally>) -> Self {
        let tally = Arc::clone(tally);
        let is_counted = false;
        Self { tally, is_counted }
    }

    /// Returns whether the connection was counted last.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Notes whether the connection waits for the rest of a request.
    #[cold]
    pub fn set(&mut self, waits: bool) {
        match (self.is_counted, waits) {
            (false, true) => self.tally.requests_half_received.up(),
            (true, false) => self.tally.requests_half_received.down(),
            _ => {}
        }
        self.is_counted = waits;
    }
}

impl Drop for HalfReceived {
    fn drop(&mut self) {
        self.set(false);
    }
}
