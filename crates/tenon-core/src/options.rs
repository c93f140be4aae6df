//! What a channel allows.

use std::time::Duration;

use tenon_proto::endpoint::Retransmission;
use tenon_proto::onc::record::FRAGMENT_MAX;

use crate::wait::Waiting;

/// Shortest time after which a call is sent again: whoever waits for no time at all floods its server.
const RESEND_MIN: Duration = Duration::from_millis(1);

/// Smallest fragment that calls are cut into, so that every header stays in one piece.
const FRAGMENT_MIN: usize = 1024;

/// Far enough away to be never, near enough to be computed with.
pub const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The limits of a [`Channel`](crate::Channel). The defaults suit most programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelOptions {
    pub connect_timeout: Duration,
    pub send_max: usize,
    pub receive_max: usize,
    pub calls_max: usize,
    pub fragment_max: usize,
    pub retransmission: Retransmission,
    pub waiting: Waiting,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(25),
            send_max: 64 << 20,
            receive_max: 64 << 20,
            calls_max: 4096,
            fragment_max: FRAGMENT_MAX,
            retransmission: Retransmission::default(),
            waiting: Waiting::default(),
        }
    }
}

impl ChannelOptions {
    /// Time for the first connection; later ones have the time of the call that needs them.
    /// 25 seconds if not said.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            ..self
        }
    }

    /// Largest call that is sent over a stream, in bytes with its header. 64 MiB if not said.
    #[must_use]
    pub fn send_max(self, send_max: usize) -> Self {
        Self { send_max, ..self }
    }

    /// Largest reply that is accepted from a stream, in bytes with its header. 64 MiB if not said;
    /// memory is taken as it arrives.
    #[must_use]
    pub fn receive_max(self, receive_max: usize) -> Self {
        Self {
            receive_max,
            ..self
        }
    }

    /// Most calls that may wait for their replies. 4096 if not said.
    #[must_use]
    pub fn calls_max(self, calls_max: usize) -> Self {
        Self { calls_max, ..self }
    }

    /// Longest fragment that a record is cut into, in bytes; at least 1024. One fragment per
    /// record if not said (RFC 5531 section 11).
    #[must_use]
    pub fn fragment_max(self, fragment_max: usize) -> Self {
        Self {
            fragment_max: fragment_max.clamp(FRAGMENT_MIN, FRAGMENT_MAX),
            ..self
        }
    }

    /// When a call over UDP is sent again: after `first`, then after twice as long each time, up
    /// to `longest`, and after a millisecond at least. Half a second and 8 seconds if not said.
    #[must_use]
    pub fn retransmission(self, first: Duration, longest: Duration) -> Self {
        let [first, longest] = [first, longest].map(|pause| pause.clamp(RESEND_MIN, FOR_EVER));
        Self {
            retransmission: Retransmission { first, longest },
            ..self
        }
    }

    /// How callers wait for replies. [`Waiting::Adaptive`] if not said. It means nothing where tasks
    /// wait instead of threads.
    #[must_use]
    pub fn waiting(self, waiting: Waiting) -> Self {
        Self { waiting, ..self }
    }
}
