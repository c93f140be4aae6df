//! The counters of a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenon_proto::connection::IncomingCounters;
use tenon_proto::endpoint::EndpointCounters;

use crate::wait::{WaitCounters, WaitTally};

/// Declares every counter once: as a field of the snapshot and as an atomic of the tally.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Snapshot of the counters of a server since it started.
        ///
        /// ```
        /// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
        /// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
        /// # let (server, address) = start_server();
        /// let greeter = GreeterV1Client::connect(&address)?;
        /// greeter.ping()?;
        /// greeter.greet(&Visitor::default())?;
        ///
        /// let counters = server.counters();
        /// assert_eq!((counters.pings, counters.calls, counters.connections_open), (1, 1, 1));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct ServerCounters {
            $($(#[$doc])+ pub $name: u64,)+
            /// Calls that handlers carry out now. A call that is answered after [`ServerLimits::handler_timeout`]
            /// counts until its handler returns.
            ///
            /// [`ServerLimits::handler_timeout`]: super::ServerLimits::handler_timeout
            pub calls_running: u64,
            /// Age of the oldest of those calls, to a millisecond; zero if none runs.
            pub oldest_call: Duration,
            /// Calls that wait for a thread now.
            pub calls_queued: u64,
            /// Threads that carry out a call which takes long, or that was handed to them. At a server of threads at
            /// most [`ServerLimits::threads`]; at one of tasks those of the run time for what blocks.
            ///
            /// [`ServerLimits::threads`]: super::ServerLimits::threads
            pub threads_busy: u64,
            /// Waits of the threads that serve.
            pub waits: WaitCounters,
        }

        /// Live counters behind [`ServerCounters`].
        #[derive(Debug, Default)]
        pub struct ServerTally {
            $($(#[$doc])+ pub $name: RelaxedCounter,)+
            /// Waits of the threads that serve.
            pub waits: WaitTally,
        }

        impl ServerTally {
            /// Returns what has been counted so far. Figures that are found out only on demand are still zero.
            pub fn snapshot(&self) -> ServerCounters {
                ServerCounters {
                    $($name: self.$name.get(),)+
                    waits: self.waits.snapshot(),
                    ..ServerCounters::default()
                }
            }
        }
    };
}

counters! {
    /// Connections that are open now.
    connections_open,
    /// Connections of which a part of a request has come, and the rest is waited for, now.
    requests_half_received,
    /// Connections that were accepted and kept.
    connections_accepted,
    /// Connections that were closed at once because there were too many.
    connections_refused,
    /// Connections that were closed at once because there were too many of their host.
    hosts_refused,
    /// Connections that were closed at once because no descriptor was left for them.
    descriptors_exhausted,
    /// Times that accepting failed, for want of memory for example, and the connection still waited.
    accept_failures,
    /// Connections closed because the peer broke record marking, a limit or the protocol.
    broken_connections,
    /// Connections closed because requests that have not arrived whole take all the memory there
    /// may be for them.
    memory_exhausted,
    /// Connections closed because the peer sent a large request too slowly.
    slow_senders,
    /// Connections closed because their first request did not come in time.
    late_first_requests,
    /// Connections closed because no request came for too long.
    idle_connections,
    /// Connections closed because they had reached their age.
    aged_connections,
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
    /// Calls that ended in a panic of their handler.
    panics,
    /// Replies replaced by SYSTEM_ERR because they do not fit into a datagram.
    replies_too_large,
    /// Repeated calls that were answered from the duplicate request cache.
    duplicates_answered,
    /// Replies that the duplicate request cache gave up for want of memory when they were younger than
    /// [`DuplicateLimits::protected_age`](tenon_proto::endpoint::DuplicateLimits::protected_age). A client that repeats
    /// such a call has it executed again.
    replies_evicted,
    /// Of those, replies that the cache is to keep: the newest
    /// [`DuplicateLimits::protected_calls`](tenon_proto::endpoint::DuplicateLimits::protected_calls) of a client, and
    /// those for which there was no room at all. If they become more,
    /// [`DuplicateLimits::bytes`](tenon_proto::endpoint::DuplicateLimits::bytes) are too few for so many clients.
    replies_evicted_early,
    /// Datagrams dropped: duplicates of calls in progress, calls over a limit, replies without
    /// room.
    datagrams_dropped,
    /// Calls handed to another thread, as their procedures take long.
    calls_handed_over,
    /// Of those, calls that had to wait as all threads were busy.
    calls_waited,
    /// Calls that waited in their connections, as those that are carried out were as many, or took as much memory, as
    /// there may be.
    calls_held_back,
    /// Of those, calls that were answered as not begun, as no thread was free for them in time.
    calls_shed,
    /// Calls with handlers that took longer than they may.
    handler_timeouts,
    /// Times that a handler took so long that another thread took its connection or port over.
    takeovers,
}

/// Counter that threads share. Nothing is ordered by it.
#[derive(Debug, Default)]
pub struct RelaxedCounter(AtomicU64);

impl RelaxedCounter {
    /// Adds one.
    pub fn up(&self) {
        self.add(1);
    }

    /// Subtracts one.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the count.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds `more`.
    #[inline]
    pub fn add(&self, more: u64) {
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Sets the count, where one thread at a time counts.
    #[inline]
    fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }
}

/// Counters of the calls of one connection or port, which one thread at a time serves: so a count is a plain store.
#[derive(Debug, Default)]
pub struct CallTally {
    calls: RelaxedCounter,
    pings: RelaxedCounter,
    refusals: RelaxedCounter,
    violations: RelaxedCounter,
    duplicates_answered: RelaxedCounter,
    datagrams_dropped: RelaxedCounter,
    replies_too_large: RelaxedCounter,
    replies_evicted: RelaxedCounter,
    replies_evicted_early: RelaxedCounter,
}

impl CallTally {
    /// Publishes the counters of the connection.
    #[inline]
    pub fn publish(&self, counters: &IncomingCounters) {
        self.calls.set(counters.calls);
        self.pings.set(counters.pings);
        self.refusals.set(counters.refusals);
        self.violations.set(counters.violations);
    }

    /// Publishes the counters of the port.
    pub fn publish_endpoint(&self, counters: &EndpointCounters) {
        self.publish(&counters.calls);
        self.duplicates_answered.set(counters.duplicates_answered);
        self.datagrams_dropped.set(counters.dropped);
        self.replies_too_large.set(counters.replies_too_large);
        self.replies_evicted.set(counters.replies_evicted);
        self.replies_evicted_early
            .set(counters.replies_evicted_early);
    }
}

impl ServerTally {
    /// Adds the counters of a connection that is gone.
    pub fn absorb(&self, connection: &CallTally) {
        self.calls.add(connection.calls.get());
        self.pings.add(connection.pings.get());
        self.refusals.add(connection.refusals.get());
        self.violations.add(connection.violations.get());
        self.duplicates_answered
            .add(connection.duplicates_answered.get());
        self.datagrams_dropped
            .add(connection.datagrams_dropped.get());
        self.replies_too_large
            .add(connection.replies_too_large.get());
        self.replies_evicted.add(connection.replies_evicted.get());
        self.replies_evicted_early
            .add(connection.replies_evicted_early.get());
    }
}

impl ServerCounters {
    /// Returns the same with so many more calls that run, the oldest of which has run for `oldest`.
    #[must_use]
    pub fn with_running(self, calls: usize, oldest: Duration) -> Self {
        Self {
            calls_running: self.calls_running + calls as u64,
            oldest_call: self.oldest_call.max(oldest),
            ..self
        }
    }

    /// Returns the same with the counters of a connection added.
    #[must_use]
    pub fn with_connection(self, connection: &CallTally) -> Self {
        Self {
            calls: self.calls + connection.calls.get(),
            pings: self.pings + connection.pings.get(),
            refusals: self.refusals + connection.refusals.get(),
            violations: self.violations + connection.violations.get(),
            duplicates_answered: self.duplicates_answered + connection.duplicates_answered.get(),
            datagrams_dropped: self.datagrams_dropped + connection.datagrams_dropped.get(),
            replies_too_large: self.replies_too_large + connection.replies_too_large.get(),
            replies_evicted: self.replies_evicted + connection.replies_evicted.get(),
            replies_evicted_early: self.replies_evicted_early
                + connection.replies_evicted_early.get(),
            ..self
        }
    }
}
