//! The limits that a server sets for its peers.

use std::io;
use std::time::Duration;

use tenon_net::Listener;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::lean::Metadata;

use crate::options::FOR_EVER;

/// Bytes that a peer has to send within [`ServerLimits::receive_timeout`], or to read within
/// [`ServerLimits::send_timeout`], or all that is left. So what is large may take longer, but a byte now and then does
/// not hold its memory for ever.
pub const PROGRESS_BYTES: usize = 64 << 10;

/// Meaning of the end of a peer's stream for its calls that are still carried out. A connection that was reset, or a
/// Unix socket of which the other end is closed, is always that of a peer that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EndOfStream {
    /// A peer that speaks the lean protocol is gone; one of ONC RPC may have ended its sending side alone, and is still
    /// answered.
    #[default]
    ByProtocol,
    /// The peer is gone, whatever it speaks.
    Gone,
    /// The peer may have ended its sending side alone, and is still answered.
    HalfClosed,
}

/// Bounds on what peers can make a server spend. Change what you need and take the rest from
/// [`Default`].
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{Host, greeter::GreeterV1Service};
/// use std::time::Duration;
/// use tenon::{Server, ServerLimits};
///
/// let limits = ServerLimits {
///     connections: 200,
///     message_bytes: 64 << 10,
///     idle_timeout: Some(Duration::from_secs(60)),
///     threads: 32,
///     ..ServerLimits::default()
/// };
/// let builder = Server::builder().limits(limits).listen("tcp://127.0.0.1:0")?;
/// let server = builder.service(GreeterV1Service(Host)).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections open at the same time; one more is closed as soon as it is accepted. A lean client is told why.
    pub connections: usize,
    /// Connections of one host that are open at the same time, by its address; of IPv6 by the first 64 bits, and through
    /// Unix sockets and shared memory by the user of the peer's process. One more is closed as soon as it is accepted; a
    /// lean client is told why.
    pub connections_of_host: usize,
    /// Bytes of one request on a stream, all its fragments together; on a lean connection its header,
    /// too, and at least 64 KiB.
    pub message_bytes: usize,
    /// Bytes of metadata of one call, from [`Metadata::ACCEPTED`], 8 KiB, which is the default, to
    /// [`Metadata::BYTES_MAX`]. A lean client is refused more by `Status::METADATA`.
    pub metadata_bytes: usize,
    /// Bytes of memory for requests on streams that have not arrived whole, or wait until they are carried out, over
    /// all connections.
    /// A connection that needs more when they are taken is closed. The first 16 KiB of each
    /// connection are not counted, so small requests are always taken in. Items of calls with streams that handlers have
    /// not taken count, too, by the windows of their connection: 256 KiB with its first stream of arguments, and more as
    /// they grow. Without memory such a call is refused by `Status::OVERLOADED`, and windows do not grow. Each port of the
    /// packet exchange has as many of its own, for requests and answers.
    pub receive_bytes: usize,
    /// Time for which a connection may be open before its first request is complete. The preamble of the lean protocol
    /// counts as one. A larger request has the time of [`receive_timeout`](Self::receive_timeout).
    pub first_request_timeout: Option<Duration>,
    /// Time that a peer may take to send 64 KiB of a request that needs counted memory, or the rest of it, before its
    /// connection is closed.
    pub receive_timeout: Option<Duration>,
    /// Time that a peer may take to read 64 KiB of its replies, or the rest of them, before its connection is
    /// closed. No thread waits for it meanwhile, and no further calls are received from it.
    pub send_timeout: Option<Duration>,
    /// Time for which a connection may be without a complete request before it is closed.
    pub idle_timeout: Option<Duration>,
    /// Age at which a connection ends, so that clients are spread anew over servers that have joined: a tenth more or less,
    /// so that connections which were made together do not end together. A lean client is asked to go away, and makes
    /// further calls over a new connection; no call is lost by that. By ONC RPC a client cannot be asked: its connection
    /// ends in the first second without a call behind its age, and lives on until then. None by default.
    pub connection_age: Option<Duration>,
    /// Time that the calls of a connection have behind its [age](Self::connection_age); those that still run are cancelled
    /// then, and their clients see that the connection is lost, or of calls with streams that the server stops. None, which
    /// is the default, waits for them.
    pub connection_grace: Option<Duration>,
    /// Meaning of the end of a peer's stream for its calls that are still carried out. Where it means that the peer is
    /// gone, the connection is let go at once, and its calls are cancelled: the future of a handler is dropped, and
    /// [`CallInfo::is_cancelled`](crate::service::CallInfo::is_cancelled) says so to one that may block.
    pub end_of_stream: EndOfStream,
    /// Calls of one connection that may be carried out by other threads or tasks than the one that received them;
    /// further calls wait in the connection then, in their order. A lean client is told this number, or 16 if that is
    /// more, and sends no further calls.
    pub connection_calls: usize,
    /// Calls with streams of one connection that are carried out at the same time, each by a thread or task of its own;
    /// they count among the [calls](Self::connection_calls), too. A lean client is told this number, and sends no
    /// further ones. At most 65,535.
    pub connection_streams: usize,
    /// Calls of all connections and ports together that may be carried out by other threads or tasks. Calls in
    /// datagrams that find no room are dropped; their senders repeat them.
    pub calls: usize,
    /// Bytes of memory of the calls of one connection that are carried out elsewhere than where they were received, or
    /// by handlers that take long, and are not answered. Further calls wait in the connection, which is not read
    /// meanwhile. One call of a connection is always carried out, whatever its size.
    pub connection_call_bytes: usize,
    /// The same over all connections and ports; a call that would take more waits until others are answered, in the
    /// order in which the calls came. The first 16 KiB of each connection are not counted, so small calls of one that
    /// has no others are always carried out. Calls in datagrams that find no room are dropped.
    pub call_bytes: usize,
    /// Time for which a call may wait for a thread once it was received and handed over. It is answered then as one
    /// that the server has no room for, and was not begun: `Status::OVERLOADED` in the lean protocol, `SYSTEM_ERR` in
    /// ONC RPC. So a server says so if all of its threads hang. A call that has passed its deadline while it waited is
    /// not begun either.
    pub queue_timeout: Option<Duration>,
    /// Time that a handler may take. The call is answered then, by `Status::DEADLINE` in the lean protocol and
    /// `SYSTEM_ERR` in ONC RPC, and cancelled: its future is dropped, and
    /// [`CallInfo::is_cancelled`](crate::service::CallInfo::is_cancelled) says so to a handler that may block. What that
    /// returns later goes nowhere; until then it keeps its thread, which nothing can take away from it. A call of a
    /// service that keeps order is cancelled, and answered when its handler has returned. None by default.
    ///
    /// While there is a limit every call is carried out by another thread, or a task of its own, as one that runs where
    /// it was received cannot be given up: so a quick call takes some microseconds longer. A server that steps has no
    /// such threads, and knows no limit.
    pub handler_timeout: Option<Duration>,
    /// Bytes of each of the two rings of a connection in shared memory; what is no power of two from 4 KiB to 64 MiB
    /// is rounded up to one. Messages of any size go through any ring, but in a large one a sender may be further
    /// ahead. A connection takes as much memory as it has used of both.
    pub ring_bytes: usize,
    /// Conversations of the packet exchange (`lean+udp://`, `xdp://`) that a port knows at once. Clients close theirs;
    /// a conversation with a client that went without a word is known for a minute, or until its room is wanted: the
    /// one that was not heard of for longest, for a second at least and without a call that is carried out, is
    /// forgotten then.
    pub conversations: usize,
    /// The same of one host, by its address; of IPv6 by the first 64 bits.
    pub conversations_of_host: usize,
    /// Threads for handlers that take long, started as they are needed. Calls that find all of them busy wait, in
    /// their order. Some threads more, two for each processor and one, receive, send, and run handlers that are quick.
    pub threads: usize,
}

impl ServerLimits {
    /// Returns the same with times that can be added to a moment.
    #[must_use]
    pub fn computable(self) -> Self {
        let bounded = |time: Option<Duration>| time.map(|time| time.min(FOR_EVER));
        Self {
            first_request_timeout: bounded(self.first_request_timeout),
            receive_timeout: bounded(self.receive_timeout),
            send_timeout: bounded(self.send_timeout),
            idle_timeout: bounded(self.idle_timeout),
            connection_age: bounded(self.connection_age),
            connection_grace: bounded(self.connection_grace),
            queue_timeout: bounded(self.queue_timeout),
            handler_timeout: bounded(self.handler_timeout),
            ..self
        }
    }

    /// Returns the bytes of metadata that are accepted with a call.
    pub(super) fn metadata_max(&self) -> usize {
        self.metadata_bytes.max(Metadata::ACCEPTED)
    }

    /// Returns the configuration of each connection.
    pub fn connection_config(&self, fragment_max: usize) -> ConnectionConfig {
        ConnectionConfig {
            receive_max: self.message_bytes,
            metadata_max: self.metadata_max(),
            incoming_calls_max: self.connection_calls.max(1),
            incoming_streams_max: self.connection_streams,
            fragment_max,
            ..ConnectionConfig::server()
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        let connection = ConnectionConfig::server();
        Self {
            connections: 10_000,
            connections_of_host: 5_000,
            message_bytes: connection.receive_max,
            metadata_bytes: connection.metadata_max,
            receive_bytes: 256 << 20,
            first_request_timeout: Some(Duration::from_secs(10)),
            receive_timeout: Some(Duration::from_secs(30)),
            send_timeout: Some(Duration::from_secs(10)),
            idle_timeout: Some(Duration::from_secs(15 * 60)),
            connection_age: None,
            connection_grace: None,
            end_of_stream: EndOfStream::default(),
            connection_calls: connection.incoming_calls_max,
            connection_streams: connection.incoming_streams_max,
            calls: 16 * 1024,
            connection_call_bytes: 64 << 20,
            call_bytes: 256 << 20,
            queue_timeout: Some(Duration::from_secs(10)),
            handler_timeout: None,
            ring_bytes: Listener::RING_USUAL,
            conversations: 4096,
            conversations_of_host: 512,
            threads: 256,
        }
    }
}

/// The error of a connection beyond those that a server may have.
pub fn too_many_connections(limits: &ServerLimits) -> io::Error {
    let limit = limits.connections;
    let message = format!(
        "{limit} connections are open already, or too many of this host; raise ServerLimits::connections or \
         connections_of_host"
    );
    io::Error::new(io::ErrorKind::ResourceBusy, message)
}
