//! The limits of a connection, with their defaults. Drivers for threads and for tasks take them from here.

use std::time::Duration;

use crate::codec::lean::{ByteOrder, Features, Metadata, Preamble};
use crate::codec::onc::record::FRAGMENT_MAX;

/// The limits that one end of a connection grants, and its choices as a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Bytes of the largest message that this end sends, its header included.
    pub send_max: usize,
    /// Bytes of the largest message that this end accepts, its header included. Lean peers are told, and 64 KiB at
    /// least are accepted of them.
    pub receive_max: usize,
    /// Calls of this end that may wait for their replies.
    pub outgoing_calls_max: usize,
    /// Calls of the peer that may wait for their replies. Lean peers are told, 16 at least.
    pub incoming_calls_max: usize,
    /// Calls of the peer with streams that may wait for their replies, beside those. Lean peers are told; at most
    /// 65,535 are granted.
    pub incoming_streams_max: usize,
    /// Bytes to which the window of a stream grows, if its receiver keeps up and the time on the way asks for it; that
    /// of all streams of the connection together is four times as large.
    pub stream_window_max: u32,
    /// Bytes of metadata that this end accepts with a call; [`Metadata::ACCEPTED`] at least.
    pub metadata_max: usize,
    /// Bytes of the longest fragment that records of ONC RPC are cut into (RFC 5531 section 11). 4 at least: the number
    /// of a call is written into its first fragment when it is [started](crate::connection::Connection::start_call).
    pub fragment_max: usize,
    /// Times at which this end asks its peer whether it is there.
    pub pings: PingConfig,
    /// Optional capabilities of this end.
    pub features: Features,
    /// The order of the bytes of lean messages that this end sends. Only tests choose another than the machine's.
    pub byte_order: ByteOrder,
}

impl ConnectionConfig {
    /// Time that a call has by default.
    pub const CALL_TIMEOUT: Duration = Duration::from_secs(25);

    /// Bytes to which the window of a stream grows by default: what is on its way at 80 MB/s over 50 ms.
    pub const STREAM_WINDOW_MAX: u32 = 4 << 20;

    /// The defaults of an end that begins connections.
    pub fn client() -> Self {
        Self {
            send_max: 64 << 20,
            receive_max: 64 << 20,
            outgoing_calls_max: 4096,
            incoming_calls_max: 0,
            incoming_streams_max: 0,
            stream_window_max: Self::STREAM_WINDOW_MAX,
            metadata_max: Metadata::ACCEPTED,
            fragment_max: FRAGMENT_MAX,
            pings: PingConfig::default(),
            features: Features::all(),
            byte_order: ByteOrder::NATIVE,
        }
    }

    /// The defaults of an end that accepts connections.
    pub fn server() -> Self {
        Self {
            send_max: usize::MAX,
            receive_max: 4 << 20,
            outgoing_calls_max: 4096,
            incoming_calls_max: 1024,
            incoming_streams_max: 128,
            stream_window_max: Self::STREAM_WINDOW_MAX,
            metadata_max: Metadata::ACCEPTED,
            fragment_max: FRAGMENT_MAX,
            pings: PingConfig::default(),
            features: Features::all(),
            byte_order: ByteOrder::NATIVE,
        }
    }

    /// The preamble of an end with these limits.
    pub(crate) fn preamble(&self, role: Role) -> Preamble {
        let clamp = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        let receive_max = clamp(self.receive_max);
        let grants = match role {
            Role::Client => Preamble {
                calls_max: clamp(self.incoming_calls_max),
                ..Preamble::client(receive_max)
            },
            Role::Server => Preamble::server(receive_max, clamp(self.incoming_calls_max)),
        };
        Preamble {
            features: self.features,
            order: self.byte_order,
            streams_max: u16::try_from(self.incoming_streams_max).unwrap_or(u16::MAX),
            ..grants
        }
    }
}

/// Times after which the end that has begun a connection asks its peer whether it is there, and gives a silent one up.
/// Whatever the peer sends shows that it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingConfig {
    /// Silence after which a peer by the lean protocol is asked that calls wait for; it is never asked if this is not set.
    /// Up to twice as much passes where nothing else gives cause to look at the clock.
    pub lean_interval: Option<Duration>,
    /// The same of a peer by ONC RPC, which is asked by a call of procedure 0.
    pub onc_interval: Option<Duration>,
    /// Time for which nothing is received behind a ping before the peer is given up. It is given up, too, when the time
    /// of three calls in a row has run out, of the first so long ago or longer, and nothing was received since; unless a
    /// call waits that is older.
    pub timeout: Duration,
    /// True if a peer is asked even while no call waits for it.
    pub when_idle: bool,
}

impl Default for PingConfig {
    /// By ONC RPC peers are not asked: servers with a single thread answer nothing while they carry a call out.
    fn default() -> Self {
        Self {
            lean_interval: Some(Duration::from_secs(10)),
            onc_interval: None,
            timeout: Duration::from_secs(20),
            when_idle: false,
        }
    }
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has begun the connection.
    Client,
    /// It has accepted the connection.
    Server,
}
