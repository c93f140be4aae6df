//! Calls that wait for their peer to be ready.

use std::time::Duration;

use crate::error::{CallError, CallErrorKind};
use crate::procedure::ProcedureError;
use crate::timer::{CallLimit, CallTimer};

/// The first pause, which doubles up to the longest.
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// The pauses between attempts of a call that waits for its peer to be ready: one that the peer did not carry out, as it
/// is not there or stops, is made again for as long as it has time.
#[derive(Debug)]
pub struct ReadyPauses {
    timer: CallTimer,
    next: Duration,
}

impl ReadyPauses {
    /// A call that begins now and has as long as `limit`.
    pub fn begin(limit: CallLimit) -> Self {
        Self {
            timer: CallTimer::start(limit),
            next: FIRST,
        }
    }

    /// Returns for how long to pause before the next attempt of a call that has failed; `None` if it is not made again.
    pub fn after<E: ProcedureError>(&mut self, error: &E) -> Option<Duration> {
        let error = error.call_error()?;
        let is_not_ready = match error {
            // The channel has waited itself for as long as that may help, and has sent a call that was cut off twice.
            CallError::Connect(_) | CallError::CutOff { .. } => false,
            _ => matches!(
                error.kind(),
                CallErrorKind::Unreachable | CallErrorKind::Stopping | CallErrorKind::Disconnected
            ),
        };
        let pause = self.next;
        let may_repeat = is_not_ready && !error.may_have_executed() && pause < self.left();
        self.next = (2 * pause).min(LONGEST);
        may_repeat.then_some(pause)
    }

    /// Returns the time that the call still has.
    pub fn left(&self) -> Duration {
        self.timer.left()
    }
}
