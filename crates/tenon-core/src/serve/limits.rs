//! What a server grants its peers.

use std::time::Duration;

use tenon_net::Listener;

use crate::options::FOR_EVER;

/// Bytes that a peer has to send within [`ServerLimits::receive`], or to read within [`ServerLimits::send`], or all
/// that is left. So what is large may take longer, but a byte now and then does not hold its memory for ever.
pub(super) const STRETCH: usize = 64 << 10;

/// Bounds on what peers can make a server spend. Change what you need and take the rest from
/// [`Default`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections open at the same time; one more is closed as soon as it is accepted.
    pub connections: usize,
    /// Bytes of one request on a stream, all its fragments together; on a lean connection its header,
    /// too, and at least 64 KiB.
    pub record_bytes: usize,
    /// Bytes of memory for requests on streams that have not arrived whole, over all connections.
    /// A connection that needs more when they are taken is closed. The first 16 KiB of each
    /// connection are not counted, so small requests are always taken in. Each port of the packet exchange has
    /// as many of its own, for requests and answers.
    pub receive_bytes: usize,
    /// How long a peer may take to send 64 KiB of a request that needs counted memory, or the rest of it, before its
    /// connection is closed; zero is for ever.
    pub receive: Duration,
    /// Calls of one connection that may wait for a worker or be executed by one; the server reads
    /// no further calls from it until one of them is answered. A lean client is told this number, or
    /// 16 if that is more, and what goes beyond is refused.
    pub connection_calls_in_flight: usize,
    /// The same over all connections. Datagrams that find no room are dropped; their senders
    /// repeat them.
    pub calls_in_flight: usize,
    /// How long a connection may be without a complete request before it is closed; zero is for
    /// ever.
    pub idle: Duration,
    /// How long a peer may take to read 64 KiB of its replies, or the rest of them, before its connection is
    /// closed. The thread that sends them waits too, so while others wait for a thread and there is none, the
    /// connection is closed after a tenth of a second in which it reads nothing.
    pub send: Duration,
    /// Bytes of each of the two rings of a connection in shared memory; what is no power of two from 4 KiB to 64 MiB
    /// is taken for the next one. Messages of any size go through any ring, but in a large one a sender may be further
    /// ahead. A connection takes as much memory as it has used of both.
    pub ring_bytes: usize,
    /// Threads that attend connections and execute inline handlers, started as they are needed.
    /// One more waits for the connections that nobody attends.
    pub threads: usize,
}

impl ServerLimits {
    /// The same with times that a moment can be put off by.
    pub(super) fn computable(self) -> Self {
        Self {
            receive: self.receive.min(FOR_EVER),
            idle: self.idle.min(FOR_EVER),
            send: self.send.min(FOR_EVER),
            ..self
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            record_bytes: 4 << 20,
            receive_bytes: 256 << 20,
            receive: Duration::from_secs(30),
            connection_calls_in_flight: 64,
            calls_in_flight: 1024,
            idle: Duration::from_secs(15 * 60),
            send: Duration::from_secs(10),
            ring_bytes: Listener::RING_USUAL,
            threads: 64,
        }
    }
}
