//! Why a middleware does not let a call go on.

use std::fmt;
use std::time::Duration;

use crate::error_kind::CallErrorKind;

/// Why a middleware does not let a call go on. The call is not carried out: at a client it fails with
/// [`CallError::Rejected`](crate::error::CallError::Rejected), at a server the caller is told what the kind says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    kind: CallErrorKind,
    reason: String,
    retry_after: Option<Duration>,
}

impl Rejection {
    /// A rejection of this kind. A caller learns the reason, unless the kind is [`CallErrorKind::Failed`]: then the
    /// server logs it.
    pub fn new(kind: CallErrorKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            retry_after: None,
        }
    }

    /// There are too many calls; another time there may be room.
    pub fn busy(reason: impl Into<String>) -> Self {
        Self::new(CallErrorKind::Busy, reason)
    }

    /// The caller has not shown who it is.
    pub fn unauthenticated(reason: impl Into<String>) -> Self {
        Self::new(CallErrorKind::Unauthenticated, reason)
    }

    /// The caller may not.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::new(CallErrorKind::Denied, reason)
    }

    /// The time of the call is over.
    pub fn timed_out(reason: impl Into<String>) -> Self {
        Self::new(CallErrorKind::TimedOut, reason)
    }

    /// Asks the caller to wait so long before it tries again. A server tells lean clients, as the metadata
    /// [`retry-after-ms`](tenon_proto::lean::Metadata::RETRY_AFTER), rounded up to milliseconds.
    #[must_use]
    pub fn retry_after(self, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..self
        }
    }

    /// Returns what the call fails of.
    pub fn kind(&self) -> CallErrorKind {
        self.kind
    }

    /// Returns the reason in words.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns how long the caller is asked to wait.
    pub fn get_retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.reason)
    }
}
