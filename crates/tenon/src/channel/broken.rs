//! How a connection ended.

use std::io;
use std::sync::Arc;

use tenon_proto::lean::Refused;
use tenon_proto::onc::message::Violation;

use crate::error::{CallError, Misbehavior};

/// How a connection ended, for everybody whose call was in flight on it.
#[derive(Debug, Clone)]
pub enum Broken {
    /// The socket failed, or the peer closed it.
    Io(Arc<io::Error>),
    /// The peer broke the protocol.
    Misbehaved(Misbehavior),
    /// The peer did not take the connection, and so carried nothing out.
    Refused(Refused),
}

impl Broken {
    /// What it means for a call that was sent.
    pub fn into_error(self) -> CallError {
        match self {
            Self::Io(cause) => CallError::Disconnected {
                cause,
                may_have_executed: true,
            },
            Self::Misbehaved(misbehavior) => CallError::Misbehaved(misbehavior),
            Self::Refused(refused) => CallError::ConnectionRefused(refused),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Self::Misbehaved(Misbehavior::Message(violation))
    }
}
