//! What a server counts.

use std::sync::atomic::{AtomicU64, Ordering};

use tenon_proto::lean::server::ServerCounters as LeanCounters;
use tenon_proto::onc::server::ServerCounters as EngineCounters;

use crate::wait::{WaitCounters, WaitTally};

/// Declares every counter once: as a field of the snapshot and as an atomic of the tally.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// A snapshot of what a server has seen since it started.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct ServerCounters {
            $($(#[$doc])+ pub $name: u64,)+
            /// How the threads that attend connections and ports have waited.
            pub waits: WaitCounters,
        }

        /// The counters while they count.
        #[derive(Debug, Default)]
        pub struct Tally {
            $($(#[$doc])+ pub $name: Tick,)+
            pub(super) waits: WaitTally,
        }

        impl Tally {
            /// What has been counted so far.
            pub fn snapshot(&self) -> ServerCounters {
                ServerCounters {
                    $($name: self.$name.get(),)+
                    waits: self.waits.snapshot(),
                }
            }
        }
    };
}

counters! {
    /// Connections that are open now.
    connections_open,
    /// Connections that were accepted and kept.
    connections_accepted,
    /// Connections that were closed at once because there were too many.
    connections_refused,
    /// Times that accepting failed, for want of descriptors for example.
    accept_failures,
    /// Connections closed because the peer broke record marking, a limit or the protocol.
    broken_connections,
    /// Connections closed because requests that have not arrived whole take all the memory there
    /// may be for them.
    memory_exhausted,
    /// Connections closed because the peer sent a large request too slowly.
    slow_senders,
    /// Connections closed because no request came for too long.
    idle_connections,
    /// Connections closed because the peer did not read its replies.
    slow_readers,
    /// Calls handed to a service.
    calls,
    /// Calls of procedure 0, which the server answers itself.
    pings,
    /// Calls refused before a service saw them.
    refusals,
    /// Messages that could not be answered.
    violations,
    /// Calls that a service refused.
    service_refusals,
    /// Calls whose handler panicked.
    panics,
    /// Replies replaced by SYSTEM_ERR because they do not fit into a datagram.
    replies_too_large,
    /// Repeated calls that were answered from the duplicate request cache.
    duplicates_answered,
    /// Datagrams dropped: duplicates of calls in progress, calls over a limit, replies without
    /// room.
    datagrams_dropped,
}

/// One counter. Nothing is ordered by it.
#[derive(Debug, Default)]
pub struct Tick(AtomicU64);

impl Tick {
    /// One more.
    pub fn up(&self) {
        self.add(1);
    }

    /// One more, where nobody else counts at the same time.
    #[inline]
    pub(super) fn up_alone(&self) {
        let next = self.get().wrapping_add(1);
        self.0.store(next, Ordering::Relaxed);
    }

    /// One less.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, more: u64) {
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// What is counted of one connection by the thread that attends it, which is one at a time: so a count is a plain
/// store, and none that other processors have to hear of at once.
#[derive(Debug, Default)]
pub(super) struct LineTally {
    /// As [`Tally::calls`].
    pub(super) calls: Tick,
    /// As [`Tally::pings`].
    pub(super) pings: Tick,
}

impl Tally {
    /// Adds what was counted of a connection that is gone.
    pub(super) fn add_line(&self, line: &LineTally) {
        self.calls.add(line.calls.get());
        self.pings.add(line.pings.get());
    }
}

impl ServerCounters {
    /// The same with what was counted of a connection.
    pub(super) fn with_line(self, line: &LineTally) -> Self {
        Self {
            calls: self.calls + line.calls.get(),
            pings: self.pings + line.pings.get(),
            ..self
        }
    }
}

impl Tally {
    /// Adds what the protocol engine counted.
    pub fn add(&self, seen: EngineCounters) {
        self.calls.add(seen.calls);
        self.pings.add(seen.pings);
        self.refusals.add(seen.refusals);
        self.violations.add(seen.violations);
    }

    /// Adds what the engine of a lean connection has counted since it was asked last.
    #[inline]
    pub fn add_lean(&self, before: LeanCounters, now: LeanCounters) {
        if before == now {
            return;
        }
        self.calls.add(now.calls - before.calls);
        self.pings.add(now.pings - before.pings);
        let refusals = |seen: LeanCounters| seen.refusals + seen.bind_refusals;
        self.refusals.add(refusals(now) - refusals(before));
    }
}
