//! The error of a call over datagrams that ended without an answer.

use std::io;
use std::sync::Arc;

use tenon_proto::endpoint::CallFailure;
use tenon_proto::endpoint::exchange::{Failure, Reason};
use tenon_proto::lean::Status;

use crate::error::{CallError, LeanException, Misbehavior};
use crate::timer::CallTimer;

/// Returns the error of a call over datagrams that ended without an answer. `fault` is why nothing could be sent
/// lately, which says more than that time ran out; its channel sends calls of up to `own_limit` bytes.
#[cold]
pub fn datagram_error(
    failure: CallFailure,
    timer: &CallTimer,
    fault: Option<Arc<io::Error>>,
    own_limit: usize,
) -> CallError {
    match (failure, fault) {
        (CallFailure::Exchange(failure), fault) => exchange_error(failure, timer, fault, own_limit),
        (CallFailure::Expired, None) => timer.error(true),
        (CallFailure::Expired, Some(cause)) => CallError::Disconnected {
            cause,
            may_have_executed: true,
        },
    }
}

fn exchange_error(
    failure: Failure,
    timer: &CallTimer,
    fault: Option<Arc<io::Error>>,
    own_limit: usize,
) -> CallError {
    let may_have_executed = failure.may_have_run;
    let disconnected = |cause| CallError::Disconnected {
        cause,
        may_have_executed,
    };
    let told = |kind| Arc::new(io::Error::new(kind, failure.reason.to_string()));
    match (failure.reason, fault) {
        (Reason::Expired | Reason::Unreachable, Some(fault)) => disconnected(fault),
        (Reason::Expired, None) => timer.error(may_have_executed),
        (Reason::Unreachable, None) => disconnected(told(io::ErrorKind::TimedOut)),
        (Reason::Stopped, _) => disconnected(told(io::ErrorKind::ConnectionAborted)),
        (Reason::Forgotten { .. }, _) => disconnected(told(io::ErrorKind::ConnectionReset)),
        (Reason::Refused(refused), _) => CallError::ConnectionRefused(refused),
        (Reason::TooLarge { size, limit }, _) => CallError::TooLargeForPeer {
            size,
            limit,
            own_limit: Some(own_limit),
        },
        (Reason::Overloaded, _) => exception(Status::OVERLOADED, &failure),
        (Reason::AnswerTooLarge, _) => exception(Status::TOO_LARGE, &failure),
        (Reason::Violation(violation), _) => {
            CallError::Misbehaved(Misbehavior::Exchange { violation })
        }
        _ => disconnected(told(io::ErrorKind::InvalidData)),
    }
}

/// Returns the exception of a failure that the server reports, or this end in its place, without having sent one.
fn exception(status: Status, failure: &Failure) -> CallError {
    CallError::Exception(LeanException::new(status, failure.reason.to_string()))
}
