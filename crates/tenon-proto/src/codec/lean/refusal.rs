//! The check of a call before its service sees it.

use std::time::Duration;

use super::exception::{Exception, Status};
use super::message::Parts;

/// The reason for which a call is not handed to a service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallRefusal {
    Unbound,
    Extension,
    Deadline,
    Stopping,
}

impl CallRefusal {
    pub(crate) fn exception(self) -> Exception<'static> {
        match self {
            Self::Unbound => Exception::new(Status::UNBOUND, ""),
            Self::Extension => Exception::new(Status::EXTENSION, ""),
            Self::Deadline => Exception::new(Status::DEADLINE, "it had run out when the call came"),
            Self::Stopping => Exception::new(Status::STOPPING, ""),
        }
    }
}

/// Returns whether the call of a service, if it is bound, is to be refused.
#[inline]
pub(crate) fn refusal(service: Option<usize>, parts: &Parts<'_>) -> Option<CallRefusal> {
    match (service, parts.unknown_extension, parts.time_left) {
        (None, _, _) => Some(CallRefusal::Unbound),
        (Some(_), Some(_), _) => Some(CallRefusal::Extension),
        (Some(_), None, Some(Duration::ZERO)) => Some(CallRefusal::Deadline),
        (Some(_), None, _) => None,
    }
}
