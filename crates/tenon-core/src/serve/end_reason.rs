//! Why connections end: each reason is logged with its weight and counted.

use std::io;
use std::net::SocketAddr;

use tenon_proto::connection::ConnectionError;
use tenon_proto::lean::CloseReason;

use super::counters::ServerTally;

/// Reason why a connection of a server ends.
#[derive(Debug, thiserror::Error)]
pub enum EndReason {
    /// The peer closed it.
    #[error("the peer closed it")]
    PeerClosed,
    /// The peer closed it in the middle of a message.
    #[error("the peer closed it in the middle of a message")]
    CutOff,
    /// The peer broke a protocol or a limit, or was refused.
    #[error("{0}")]
    Protocol(ConnectionError),
    /// Half-received requests take all the memory there may be.
    #[error("half-received requests take all of ServerLimits::receive_bytes")]
    Memory,
    /// The peer sends a large request too slowly.
    #[error("the peer sends a large request too slowly")]
    SlowSender,
    /// The first request did not come in time.
    #[error("its first request did not come within ServerLimits::first_request_timeout")]
    LateFirstRequest,
    /// The peer does not read its replies.
    #[error("the peer does not read its replies")]
    SlowReader,
    /// No request came for too long.
    #[error("no request came for too long")]
    Idle,
    /// It is as old as it may be.
    #[error("it is as old as ServerLimits::connection_age")]
    Aged,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Socket(io::Error),
}

impl EndReason {
    /// Returns the reason that a lean peer is told.
    pub fn close_reason(&self) -> CloseReason {
        match self {
            Self::Idle | Self::LateFirstRequest => CloseReason::IDLE,
            Self::Stopping => CloseReason::STOPPING,
            Self::Aged => CloseReason::DONE,
            Self::Protocol(_) => CloseReason::VIOLATION,
            _ => CloseReason::LIMITS,
        }
    }

    /// Returns whether the server ends the connection by itself, in order: every call that it has taken is answered, and
    /// open streams may come to their end first.
    pub fn is_orderly(&self) -> bool {
        matches!(self, Self::Stopping | Self::Aged)
    }

    /// Logs and counts the end of a connection. The peer's faults are warnings.
    pub fn report(&self, id: usize, peer: Option<SocketAddr>, tally: &ServerTally) {
        let counter = match self {
            Self::CutOff | Self::Protocol(_) => Some(&tally.broken_connections),
            // In shared memory, or in the handshake in front of it.
            Self::Socket(error) if error.kind() == io::ErrorKind::InvalidData => {
                Some(&tally.broken_connections)
            }
            Self::Memory => Some(&tally.memory_exhausted),
            Self::SlowSender => Some(&tally.slow_senders),
            Self::LateFirstRequest => Some(&tally.late_first_requests),
            Self::SlowReader => Some(&tally.slow_readers),
            Self::Idle => Some(&tally.idle_connections),
            Self::Aged => Some(&tally.aged_connections),
            Self::PeerClosed | Self::Stopping | Self::Socket(_) => None,
        };
        if let Some(counter) = counter {
            counter.up();
        }
        match self {
            Self::Idle
            | Self::LateFirstRequest
            | Self::PeerClosed
            | Self::Aged
            | Self::Stopping => {
                tracing::debug!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::Socket(_) if counter.is_none() => {
                tracing::debug!(id, ?peer, reason = %self, "closing a connection");
            }
            _ => tracing::warn!(id, ?peer, reason = %self, "closing a connection"),
        }
    }
}

impl<E: Into<ConnectionError>> From<E> for EndReason {
    fn from(error: E) -> Self {
        Self::Protocol(error.into())
    }
}
