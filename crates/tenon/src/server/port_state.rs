//! What one thread at a time has of a port for datagrams.

use std::time::Instant;

use tenon_core::serve::{ServedPort, ServerShared};
use tenon_core::wait::{Looking, Waiter, Waiting};
use tenon_net::{Transport, Watch};
use tenon_proto::endpoint::duplicates::DuplicateLimits;

/// What only one thread at a time has of a port.
#[derive(Debug)]
pub(super) struct PortState {
    pub(super) served: ServedPort,
    pub(super) waiter: Waiter,
    pub(super) looking: Looking,
    pub(super) watch: Watch,
    /// What has happened while no thread had the port.
    pub(super) signals: u8,
    /// Calls that are carried out while another thread may have the port.
    pub(super) running: usize,
}

impl PortState {
    /// The state of a port that was just opened.
    pub(super) fn new(
        shared: &ServerShared,
        waiting: Waiting,
        transport: Transport,
        duplicates: DuplicateLimits,
    ) -> Self {
        Self {
            served: ServedPort::new(shared, transport, duplicates, Instant::now()),
            waiter: Waiter::new(waiting),
            looking: Looking::at(transport),
            watch: Watch::Receive,
            signals: 0,
            running: 0,
        }
    }

    /// As [`StreamState::change_watch`](super::stream_state::StreamState::change_watch).
    pub(super) fn change_watch(&mut self, watch: Watch) -> Option<Watch> {
        Some(std::mem::replace(&mut self.watch, watch)).filter(|before| *before != watch)
    }
}
