//! Why connections end: each reason is logged with its weight and counted.

use std::io;
use std::net::SocketAddr;

use tenon_proto::lean::Reason as Farewell;
use tenon_proto::onc::message::Violation;
use tenon_proto::onc::record::RecordError;
use tenon_proto::sniff::UnknownPeer;
use tenon_proto::{lean, lean::Refused};

use super::counters::Tally;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The peer closed it.
    #[error("the peer closed it")]
    PeerClosed,
    /// The peer closed it in the middle of a record.
    #[error("the peer closed it in the middle of a record")]
    CutOff,
    /// The peer broke record marking, or a limit.
    #[error("the stream makes no sense: {0}")]
    Record(RecordError),
    /// The peer speaks neither protocol.
    #[error("{0}")]
    Stranger(UnknownPeer),
    /// The peer was refused, and told so.
    #[error("the connection was refused: {0}")]
    Refused(Refused),
    /// The peer broke the lean protocol.
    #[error("the lean protocol is broken: {0}")]
    Lean(lean::Violation),
    /// Half-received requests have taken all the memory there may be.
    #[error("half-received requests take all of ServerLimits::receive_bytes")]
    Memory,
    /// A message cannot be answered.
    #[error("a message cannot be answered: {0}")]
    Message(Violation),
    /// The peer sends a large request too slowly.
    #[error("the peer sends a large request too slowly")]
    SlowSender,
    /// The peer does not read its replies.
    #[error("the peer does not read its replies")]
    SlowReader,
    /// No request came for too long.
    #[error("no request came for too long")]
    Idle,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Socket(io::Error),
}

impl Reason {
    /// Why sending failed.
    pub fn of_sending(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::SlowReader,
            _ => Self::Socket(error),
        }
    }

    /// What a peer that can be told is told.
    pub fn farewell(&self) -> Farewell {
        match self {
            Self::Idle => Farewell::IDLE,
            Self::Stopping => Farewell::STOPPING,
            _ => Farewell::LIMITS,
        }
    }

    /// Logs and counts the end of a connection. The peer's faults are warnings.
    pub fn report(&self, id: usize, peer: Option<SocketAddr>, tally: &Tally) {
        match self {
            Self::CutOff
            | Self::Record(_)
            | Self::Message(_)
            | Self::Stranger(_)
            | Self::Refused(_)
            | Self::Lean(_) => self.blame(id, peer, tally),
            // In shared memory, or in the hello in front of it.
            Self::Socket(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.blame(id, peer, tally);
            }
            Self::Memory => {
                tally.memory_exhausted.up();
                tracing::warn!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::SlowSender => {
                tally.slow_senders.up();
                tracing::warn!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::SlowReader => {
                tally.slow_readers.up();
                tracing::warn!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::Idle => {
                tally.idle_connections.up();
                tracing::debug!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::PeerClosed | Self::Stopping | Self::Socket(_) => {
                tracing::debug!(id, ?peer, reason = %self, "closing a connection");
            }
        }
    }

    fn blame(&self, id: usize, peer: Option<SocketAddr>, tally: &Tally) {
        tally.broken_connections.up();
        tracing::warn!(id, ?peer, reason = %self, "closing a connection");
    }
}
