//! The options of a channel, and of single calls.

use std::sync::Arc;
use std::time::Duration;

use tenon_net::Liveness;
use tenon_proto::config::{ConnectionConfig, PingConfig};
use tenon_proto::endpoint::Retransmission;
use tenon_proto::lean::Metadata;
use tenon_proto::onc::record::FRAGMENT_MAX;

use crate::reply_metadata::ReplyMetadata;
use crate::resolve::Resolver;
use crate::wait::Waiting;

/// Shortest time after which a call is sent again: a client that waits for no time at all floods its server.
const RESEND_MIN: Duration = Duration::from_millis(1);

/// Shortest silence after which a peer is asked whether it is there, and shortest time that it has to answer.
const PING_MIN: Duration = Duration::from_millis(10);

/// Smallest fragment that calls are cut into, so that every header stays in one piece.
const FRAGMENT_MIN: usize = 1024;

/// Longest time: far enough away to be never, near enough to be computed with.
pub const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The limits of a channel. The defaults suit most programs.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Greeting, Visitor}, start_server};
/// use std::time::Duration;
/// use tenon::ChannelOptions;
///
/// let options = ChannelOptions::default()
///     .connect_lazily(true)
///     .wait_for_ready(true)
///     .send_max(1 << 20)
///     .keep_alive(Some(Duration::from_secs(10)));
/// // No server is there yet: calls will wait for it, each for as long as it has time.
/// let greeter = GreeterV1Client::connect_with("lean+tcp://127.0.0.1:4711", options)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChannelOptions {
    #[doc(hidden)]
    pub connect_timeout: Duration,
    #[doc(hidden)]
    pub wait_for_ready: bool,
    #[doc(hidden)]
    pub connect_lazily: bool,
    #[doc(hidden)]
    pub liveness: Liveness,
    #[doc(hidden)]
    pub pings: PingConfig,
    #[doc(hidden)]
    pub send_max: usize,
    #[doc(hidden)]
    pub receive_max: usize,
    #[doc(hidden)]
    pub calls_max: usize,
    #[doc(hidden)]
    pub fragment_max: usize,
    #[doc(hidden)]
    pub retransmission: Retransmission,
    #[doc(hidden)]
    pub waiting: Waiting,
    #[doc(hidden)]
    pub resolver: Option<Arc<dyn Resolver>>,
    #[doc(hidden)]
    pub allow_insecure: bool,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        let defaults = ConnectionConfig::client();
        Self {
            connect_timeout: ConnectionConfig::CALL_TIMEOUT,
            wait_for_ready: false,
            connect_lazily: false,
            liveness: Liveness::default(),
            pings: defaults.pings,
            send_max: defaults.send_max,
            receive_max: defaults.receive_max,
            calls_max: defaults.outgoing_calls_max,
            fragment_max: defaults.fragment_max,
            retransmission: Retransmission::default(),
            waiting: Waiting::default(),
            resolver: None,
            allow_insecure: false,
        }
    }
}

impl ChannelOptions {
    /// Time for the first connection; later ones have the time of the call that needs them.
    /// 25 seconds by default.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            ..self
        }
    }

    /// Sets whether calls wait for a peer that cannot be reached, for as long as they have time: the connection is
    /// tried again and again, after pauses of 10 ms to a second. By default such a call fails at once, with
    /// [`ConnectError::Unreachable`](crate::error::ConnectError::Unreachable) and what the system reports, such as
    /// "Connection refused". [`CallOptions::wait_for_ready`] decides for single calls.
    #[must_use]
    pub fn wait_for_ready(self, wait_for_ready: bool) -> Self {
        Self {
            wait_for_ready,
            ..self
        }
    }

    /// Sets whether the first connection is made by the first call, within that call's time, and not when the channel
    /// is made: a program can then start before its server. By default the channel is connected when it is made, or is
    /// not made.
    #[must_use]
    pub fn connect_lazily(self, connect_lazily: bool) -> Self {
        Self {
            connect_lazily,
            ..self
        }
    }

    /// Silence after which the kernel asks a peer over TCP whether it is still there, again after each third of it, and
    /// gives it up when three questions stay unanswered; whole seconds. 30 seconds by default; `None` never asks.
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: Option<Duration>) -> Self {
        self.liveness.keep_alive = keep_alive;
        self
    }

    /// Time for which a peer over TCP may acknowledge or take nothing of what it was sent before the connection is given
    /// up, and made again by the next call (`TCP_USER_TIMEOUT`). A minute by default; with `None` the kernel decides,
    /// after a quarter of an hour mostly.
    #[must_use]
    pub fn peer_timeout(mut self, peer_timeout: Option<Duration>) -> Self {
        self.liveness.peer_timeout = peer_timeout;
        self
    }

    /// Silence after which a peer that calls wait for is asked over a stream whether it is there: by a ping of the lean
    /// protocol, or a call of procedure 0 by ONC RPC; at least 10 ms. Whatever the peer sends is an answer. It may be asked
    /// after twice as long only. Between threads the callers that wait do it, and the channel has no thread for it.
    ///
    /// By default a peer is asked after 10 seconds by the lean protocol, and not by ONC RPC: there a server with a single
    /// thread answers nothing while it carries a call out, and may be busy for long. `None` never asks.
    #[must_use]
    pub fn ping_interval(mut self, ping_interval: Option<Duration>) -> Self {
        let interval = ping_interval.map(|interval| interval.clamp(PING_MIN, FOR_EVER));
        (self.pings.lean_interval, self.pings.onc_interval) = (interval, interval);
        self
    }

    /// Time that a peer has to answer a ping, 20 seconds by default, and 10 ms at least. If nothing is received within it
    /// the connection is given up: its calls end with [`CallError::Disconnected`](crate::error::CallError::Disconnected)
    /// and "no reply to a ping", and the next call connects again.
    ///
    /// Where peers are not asked, a connection is given up, too, over which the time of three calls in a row has run out,
    /// of the first so long ago or longer, and nothing was received since; unless an older call waits.
    #[must_use]
    pub fn ping_timeout(mut self, ping_timeout: Duration) -> Self {
        self.pings.timeout = ping_timeout.clamp(PING_MIN, FOR_EVER);
        self
    }

    /// Sets whether a channel of tasks asks its peer, too, while no call waits. Not by default: the kernel asks idle
    /// peers over TCP ([`keep_alive`](Self::keep_alive)), and a server may close connections that are idle. Between
    /// threads there is none that could ask then.
    #[must_use]
    pub fn ping_when_idle(mut self, ping_when_idle: bool) -> Self {
        self.pings.when_idle = ping_when_idle;
        self
    }

    /// Largest call that is sent over a stream, in bytes with its header. 64 MiB by default.
    #[must_use]
    pub fn send_max(self, send_max: usize) -> Self {
        Self { send_max, ..self }
    }

    /// Largest reply that is accepted from a stream, in bytes with its header. 64 MiB by default;
    /// memory is taken as it arrives.
    #[must_use]
    pub fn receive_max(self, receive_max: usize) -> Self {
        Self {
            receive_max,
            ..self
        }
    }

    /// Most calls that may wait for their replies. 4096 by default.
    #[must_use]
    pub fn calls_max(self, calls_max: usize) -> Self {
        Self { calls_max, ..self }
    }

    /// Longest fragment that a record is cut into, in bytes; at least 1024. One fragment per
    /// record by default (RFC 5531 section 11).
    #[must_use]
    pub fn fragment_max(self, fragment_max: usize) -> Self {
        Self {
            fragment_max: fragment_max.clamp(FRAGMENT_MIN, FRAGMENT_MAX),
            ..self
        }
    }

    /// When a call over UDP is sent again: after `first`, then after twice as long each time, up
    /// to `longest`, and after a millisecond at least. Half a second and 8 seconds by default.
    #[must_use]
    pub fn retransmission(self, first: Duration, longest: Duration) -> Self {
        let [first, longest] = [first, longest].map(|pause| pause.clamp(RESEND_MIN, FOR_EVER));
        Self {
            retransmission: Retransmission { first, longest },
            ..self
        }
    }

    /// Resolver that finds the port of a program if its address lacks one; by default the rpcbind of its host.
    #[must_use]
    pub fn resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            resolver: Some(resolver),
            ..self
        }
    }

    /// Sets whether calls may carry a token, metadata of the key `authorization`, over TCP, UDP or AF_XDP without
    /// encryption, where all who can read along can use the token. By default such a call fails with
    /// [`CallError::InsecureToken`](crate::error::CallError::InsecureToken). Unix sockets and shared memory do not leave
    /// the machine, and are not concerned.
    #[must_use]
    pub fn allow_insecure(self, allow_insecure: bool) -> Self {
        Self {
            allow_insecure,
            ..self
        }
    }

    /// Returns the limits of the connections of such a channel.
    #[doc(hidden)]
    pub fn connection_config(&self) -> ConnectionConfig {
        ConnectionConfig {
            send_max: self.send_max,
            receive_max: self.receive_max,
            outgoing_calls_max: self.calls_max,
            fragment_max: self.fragment_max,
            pings: self.pings,
            ..ConnectionConfig::client()
        }
    }

    /// Wait policy of callers for replies. [`Waiting::Adaptive`] by default. It means nothing where tasks
    /// wait instead of threads.
    #[must_use]
    pub fn waiting(self, waiting: Waiting) -> Self {
        Self { waiting, ..self }
    }
}

/// Options of some calls beside those of their client, which decides what is not said here.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tenon::{CallOptions, Metadata, ReplyMetadata};
///
/// let greeter = GreeterV1Client::connect(&format!("lean+{address}"))?;
/// let mut metadata = Metadata::new();
/// metadata.append("request-id", "7f3a")?;
/// let trailing = Arc::new(ReplyMetadata::new());
/// let options = CallOptions::new()
///     .timeout(Duration::from_secs(2))
///     .metadata(&metadata)
///     .reply_metadata(&trailing);
/// greeter.with_options(options).greet(&Visitor::default())?;
/// println!("the server says {:?}", trailing.get());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions<'a> {
    timeout: Option<Duration>,
    wait_for_ready: Option<bool>,
    metadata: Option<&'a Metadata>,
    reply_metadata: Option<&'a Arc<ReplyMetadata>>,
    is_repeatable: bool,
}

impl<'a> CallOptions<'a> {
    /// Options that leave everything to the client.
    pub const fn new() -> Self {
        Self {
            timeout: None,
            wait_for_ready: None,
            metadata: None,
            reply_metadata: None,
            is_repeatable: false,
        }
    }

    /// Gives a call so much time, connecting again included. A lean call tells the server how much of it is left.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// Says whether a call waits for a peer that cannot be reached, for as long as it has time, or fails at once. If it
    /// is not said, [`ChannelOptions::wait_for_ready`] decides.
    #[must_use]
    pub const fn wait_for_ready(self, wait_for_ready: bool) -> Self {
        Self {
            wait_for_ready: Some(wait_for_ready),
            ..self
        }
    }

    /// Has a call carry `metadata`, in front of that which its client puts on every call: of a key that both have, a
    /// handler finds the value of the call first. By ONC RPC a call cannot carry
    /// any, and fails with [`CallError::OncMetadata`](crate::error::CallError::OncMetadata).
    #[must_use]
    pub const fn metadata(self, metadata: &'a Metadata) -> Self {
        Self {
            metadata: Some(metadata),
            ..self
        }
    }

    /// Has the metadata of the reply, or of the exception in its place, put into `reply_metadata` when the call is over.
    /// A reply by ONC RPC has none.
    #[must_use]
    pub const fn reply_metadata(self, reply_metadata: &'a Arc<ReplyMetadata>) -> Self {
        Self {
            reply_metadata: Some(reply_metadata),
            ..self
        }
    }

    /// Has what a call with streams is made of kept until its first item has come, so that it can be made again.
    #[doc(hidden)]
    #[must_use]
    pub const fn repeatable(self) -> Self {
        Self {
            is_repeatable: true,
            ..self
        }
    }

    /// Returns whether a call with streams is to be repeatable.
    #[doc(hidden)]
    pub fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Returns these options, and those of `others` where these say nothing.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn or(self, others: Self) -> Self {
        Self {
            timeout: self.timeout.or(others.timeout),
            wait_for_ready: self.wait_for_ready.or(others.wait_for_ready),
            metadata: self.metadata.or(others.metadata),
            reply_metadata: self.reply_metadata.or(others.reply_metadata),
            is_repeatable: self.is_repeatable || others.is_repeatable,
        }
    }

    /// Returns the time of a call, if it is said.
    #[doc(hidden)]
    #[inline]
    pub fn get_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns whether a call waits for a peer that cannot be reached, if it is said.
    #[doc(hidden)]
    #[inline]
    pub fn get_wait_for_ready(&self) -> Option<bool> {
        self.wait_for_ready
    }

    /// Returns the metadata of a call, if it has some of its own.
    #[doc(hidden)]
    #[inline]
    pub fn get_metadata(&self) -> Option<&'a Metadata> {
        self.metadata
    }

    /// Returns where the metadata of the reply is wanted, if it is.
    #[doc(hidden)]
    #[inline]
    pub fn get_reply_metadata(&self) -> Option<&'a Arc<ReplyMetadata>> {
        self.reply_metadata
    }
}
