//! The error of a call with streams that its server has ended: both halves of the call return it.

use std::io;
use std::sync::{Arc, OnceLock};

use super::outcome::{Outcome, Results};
use crate::error::CallError;
use crate::error_kind::CallErrorKind;
use crate::timer::CallTimer;

/// Keeps the error of a call with streams that its server has ended, as it stops: the half of the call that receives the
/// answer, and the one that sends items, return the same.
#[derive(Debug, Default)]
pub struct StoppedStreams(OnceLock<CallError>);

impl StoppedStreams {
    /// Returns the results of a call with streams. `fault` is why nothing could be sent lately.
    ///
    /// # Errors
    /// Why the call has none.
    pub fn results_of(
        &self,
        outcome: Outcome,
        timer: &CallTimer,
        fault: impl FnOnce() -> Option<Arc<io::Error>>,
    ) -> Result<Results, CallError> {
        let results = outcome.into_results(timer, fault);
        results.map_err(|error| {
            let error = of_streams(error);
            if error.kind() == CallErrorKind::Stopping {
                return self.0.get_or_init(|| error).clone();
            }
            error
        })
    }

    /// Returns the error of an item that the peer does not take any more. The call may have this outcome, which was not
    /// taken yet.
    pub fn error_of_item(&self, outcome: Option<&Outcome>) -> CallError {
        if let Some(error) = self.0.get() {
            return error.clone();
        }
        match outcome {
            Some(Outcome::Answered(Err(error))) if error.kind() == CallErrorKind::Stopping => {
                of_streams(CallError::clone(error))
            }
            _ => CallError::StreamClosed,
        }
    }
}

/// Returns the error of a call with streams. A server that stops ends those that it has begun, too.
fn of_streams(error: CallError) -> CallError {
    match error {
        CallError::Exception(mut exception) => {
            exception.has_streams = true;
            CallError::Exception(exception)
        }
        other => other,
    }
}
