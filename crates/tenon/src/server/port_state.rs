//! The state of a port for datagrams, which one thread at a time has.

use std::net::SocketAddr;
use std::time::Instant;

use tenon_core::serve::{PacketFollower, RunningHandlers, ServedPort, ServerShared};
use tenon_core::service::CancelFlag;
use tenon_core::wait::{Looking, Waiter, Waiting};
use tenon_net::{Carrier, Watch};
use tenon_proto::endpoint::DatagramCallKey;
use tenon_proto::endpoint::duplicates::DuplicateLimits;

/// The state of a port, which one thread at a time has.
#[derive(Debug)]
pub(super) struct PortState {
    pub(super) served: ServedPort,
    pub(super) waiter: Waiter,
    pub(super) looking: Looking,
    pub(super) watch: Watch,
    /// The signals that came while no thread had the port.
    pub(super) signals: u8,
    /// Calls that are carried out while another thread may have the port.
    running: Vec<RunningPortCall>,
    /// Calls that were carried out where they were received; their numbers are what their handlers are known by.
    inline: u64,
    /// Set while clients ask when the kernel had packets.
    pub(super) follower: Option<Box<PacketFollower>>,
}

/// A call that is carried out while another thread may have the port.
#[derive(Debug)]
struct RunningPortCall {
    key: DatagramCallKey<SocketAddr>,
    told_by: CancelSignal,
}

/// The way to tell a handler that its caller has stopped waiting.
#[derive(Debug)]
enum CancelSignal {
    /// By a flag of the call, which was handed over.
    Flag(CancelFlag),
    /// By the [handlers that run](RunningHandlers), as the call of this number at its port.
    Number(u64),
}

impl PortState {
    /// The state of the port of `carrier`, which was just opened.
    pub(super) fn new(
        shared: &ServerShared,
        waiting: Waiting,
        carrier: &Carrier,
        duplicates: DuplicateLimits,
    ) -> Self {
        Self {
            served: ServedPort::new(shared, carrier, duplicates, Instant::now()),
            waiter: Waiter::new(waiting),
            looking: Looking::at(carrier.transport()),
            watch: Watch::Receive,
            signals: 0,
            running: Vec::new(),
            inline: 0,
            follower: None,
        }
    }

    /// Returns whether calls are carried out that are not answered.
    pub(super) fn has_running_calls(&self) -> bool {
        !self.running.is_empty()
    }

    /// Notes that a call is carried out where it was received; returns the number that its handler is known by.
    pub(super) fn begin_inline(&mut self, key: DatagramCallKey<SocketAddr>) -> u64 {
        self.inline += 1;
        let told_by = CancelSignal::Number(self.inline);
        self.running.push(RunningPortCall { key, told_by });
        self.inline
    }

    /// Notes that a call is handed over; returns what says whether it is cancelled.
    pub(super) fn hand_over(&mut self, key: DatagramCallKey<SocketAddr>) -> CancelFlag {
        let flag = CancelFlag::default();
        let told_by = CancelSignal::Flag(flag.clone());
        self.running.push(RunningPortCall { key, told_by });
        flag
    }

    /// Notes that a call is answered.
    pub(super) fn end(&mut self, key: DatagramCallKey<SocketAddr>) {
        self.running.retain(|call| call.key != key);
    }

    /// Tells those handlers of this port, which has the number `id`, of which the callers have stopped waiting.
    pub(super) fn cancel(&mut self, id: usize, handlers: &RunningHandlers) {
        while let Some(key) = self.served.poll_cancelled() {
            let call = self.running.iter().find(|call| call.key == key);
            match call.map(|call| &call.told_by) {
                Some(CancelSignal::Flag(flag)) => flag.set(),
                Some(CancelSignal::Number(number)) => handlers.cancel(id, *number),
                None => {}
            }
        }
    }

    /// As [`StreamState::change_watch`](super::stream_state::StreamState::change_watch).
    pub(super) fn change_watch(&mut self, watch: Watch) -> Option<Watch> {
        Some(std::mem::replace(&mut self.watch, watch)).filter(|before| *before != watch)
    }
}
