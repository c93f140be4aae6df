//! The outcome of a call, as a middleware sees it.

use std::fmt;
use std::time::Duration;

use tenon_proto::lean::Metadata;

use super::Rejection;
use crate::error::{CallError, CallErrorKind};
use crate::refusal::Refusal;

/// The outcome of a call, at a client or at a server.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CallOutcome<'a> {
    /// It has a result.
    Success,
    /// At a client: it has none, and this is why.
    Failed(&'a CallError),
    /// At a client: the procedure raised an error that its interface declares.
    Raised,
    /// At a server: the service refused it.
    Refused(&'a Refusal),
    /// At a server: the handler panicked.
    Panicked,
    /// A middleware that stands further in did not let it go on.
    Rejected(&'a Rejection),
    /// Its future was dropped before there was an outcome.
    Abandoned,
}

impl CallOutcome<'_> {
    /// Returns whether there is a result.
    #[inline]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success)
    }

    /// Returns what the call failed of, alike for both sides and protocols; `None` if it has a result.
    pub fn kind(&self) -> Option<CallErrorKind> {
        match self {
            Self::Success => None,
            Self::Failed(error) => Some(error.kind()),
            Self::Raised => Some(CallErrorKind::Raised),
            Self::Refused(refusal) => Some(refusal.kind()),
            Self::Panicked => Some(CallErrorKind::Failed),
            Self::Rejected(rejection) => Some(rejection.kind()),
            Self::Abandoned => Some(CallErrorKind::Cancelled),
        }
    }

    /// Returns whether the call may have been carried out, in part at least.
    pub fn may_have_executed(&self) -> bool {
        match self {
            Self::Failed(error) => error.may_have_executed(),
            Self::Rejected(_) => false,
            _ => true,
        }
    }

    /// Returns how long the server, or a middleware, asks the caller to wait before it tries again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failed(error) => {
                let metadata = &error.exception()?.metadata;
                let milliseconds = metadata.get(Metadata::RETRY_AFTER)?.parse().ok()?;
                Some(Duration::from_millis(milliseconds))
            }
            Self::Rejected(rejection) => rejection.get_retry_after(),
            _ => None,
        }
    }
}

impl fmt::Display for CallOutcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Failed(error) => error.fmt(f),
            Self::Raised => f.write_str("the procedure raised an error of its interface"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Panicked => f.write_str("the handler panicked"),
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Abandoned => f.write_str("the call was given up"),
        }
    }
}
