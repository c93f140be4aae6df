//! The time at which a task has something to do even if nothing happens.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Calls a task in time.
pub(super) struct Alarm {
    timer: Pin<Box<Sleep>>,
    is_set_for: Option<Instant>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self {
            timer: Box::pin(sleep_until(tokio::time::Instant::now())),
            is_set_for: None,
        }
    }

    /// Has the task called when it is time for what is `wanted`; says whether a time has come that was.
    pub(super) fn poll(&mut self, wanted: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let is_early = match (wanted, self.is_set_for) {
            (Some(wanted), Some(set)) => set <= wanted,
            (None, _) => true,
            (Some(_), None) => false,
        };
        // A timer that goes off too early is set anew then: so a busy task need not.
        if let (false, Some(wanted)) = (is_early, wanted) {
            self.timer.as_mut().reset(wanted.into());
            self.is_set_for = Some(wanted);
        }
        if self.is_set_for.is_none() || self.timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.is_set_for = None;
        Poll::Ready(())
    }
}
