//! Why connections end: each reason is logged with its weight and counted.

use std::io;

use tenon_proto::onc::message::Violation;
use tenon_proto::onc::record::RecordError;
use tenon_proto::sniff::Stranger;
use tenon_proto::{lean, lean::Refused};

use super::counters::Tally;
use super::line::Line;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("the peer closed it")]
    PeerClosed,
    #[error("the peer closed it in the middle of a record")]
    CutOff,
    #[error("the stream makes no sense: {0}")]
    Record(RecordError),
    #[error("{0}")]
    Stranger(Stranger),
    #[error("the connection was refused: {0}")]
    Refused(Refused),
    #[error("the lean protocol is broken: {0}")]
    Lean(lean::Violation),
    #[error("half-received requests take all of ServerLimits::receive_bytes")]
    Memory,
    #[error("a message cannot be answered: {0}")]
    Message(Violation),
    #[error("the peer does not read its replies")]
    SlowReader,
    #[error("no request came for too long")]
    Idle,
    #[error("the server stops")]
    Stopping,
    #[error("the socket failed: {0}")]
    Socket(io::Error),
}

impl Reason {
    /// Why sending failed.
    pub(super) fn of_sending(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::SlowReader,
            _ => Self::Socket(error),
        }
    }

    /// Logs and counts the end of a connection. The peer's faults are warnings.
    pub(super) fn report(&self, line: &Line, tally: &Tally) {
        let id = line.id;
        let peer = line.stream.peer();
        match self {
            Self::CutOff
            | Self::Record(_)
            | Self::Message(_)
            | Self::Stranger(_)
            | Self::Refused(_)
            | Self::Lean(_) => {
                tally.broken_connections.up();
                tracing::warn!(id, ?peer, reason = %self, "closing a connection");
            }
            Self::Memory => {
                tally.memory_exhausted.up();
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
}
