//! The check of a call before its service sees it.

use std::time::Duration;

use super::exception::{Exception, Status};
use super::extension::Extension;
use super::message::Parts;

/// The reason for which a call is not handed to a service.
#[derive(Debug, Clone)]
pub(crate) enum CallRefusal {
    Unbound,
    Extension,
    Deadline,
    Stopping,
    /// It has streams, and as many such calls are in flight as are granted.
    TooManyStreams,
    /// Its metadata breaks this rule.
    Metadata(String),
    /// The user that its caller claims to be is none, for this reason.
    Credential(String),
}

impl CallRefusal {
    pub(crate) fn exception(&self) -> Exception<'_> {
        match self {
            Self::Unbound => Exception::new(Status::UNBOUND, ""),
            Self::Extension => Exception::new(Status::EXTENSION, ""),
            Self::Deadline => Exception::new(Status::DEADLINE, "it had run out when the call came"),
            Self::Stopping => Exception::new(Status::STOPPING, ""),
            Self::TooManyStreams => {
                Exception::new(Status::OVERLOADED, "too many calls with streams")
            }
            Self::Metadata(rule) => Exception::new(Status::METADATA, rule),
            Self::Credential(reason) => Exception::new(Status::FORBIDDEN, reason),
        }
    }
}

/// Returns whether the call of a service, if it is bound, is to be refused; it may have so many bytes of metadata.
#[inline]
pub(crate) fn refusal(
    service: Option<usize>,
    parts: &Parts<'_>,
    metadata_max: usize,
) -> Option<CallRefusal> {
    match (service, parts.unknown_extension, parts.time_left) {
        (None, _, _) => Some(CallRefusal::Unbound),
        (Some(_), Some(_), _) => Some(CallRefusal::Extension),
        (Some(_), None, Some(Duration::ZERO)) => Some(CallRefusal::Deadline),
        (Some(_), None, _) if parts.extensions.is_empty() => None,
        (Some(_), None, _) => refusal_of_extensions(parts, metadata_max),
    }
}

fn refusal_of_extensions(parts: &Parts<'_>, metadata_max: usize) -> Option<CallRefusal> {
    if let Err(error) = parts.extensions.check_metadata(metadata_max) {
        return Some(CallRefusal::Metadata(error.to_string()));
    }
    if parts.extensions.repeats(Extension::CREDENTIAL) {
        let reason = "the call has two credentials".to_owned();
        return Some(CallRefusal::Credential(reason));
    }
    let claim = parts.extensions.check_credential();
    let error = claim.err()?;
    Some(CallRefusal::Credential(format!(
        "the credential cannot be decoded: {error}"
    )))
}
