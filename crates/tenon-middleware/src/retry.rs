//! Calls that are made again when they fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon::{CallErrorKind, CallOutcome, CallScope, Middleware, Rejection};

use crate::retry_budget::RetryBudget;

/// Makes the calls of a client again that failed, after a pause that doubles, as long as the call has time: those of
/// procedures that the interface declares `idempotent`, and those that were not carried out.
///
/// What is tried again fails as [`Busy`](CallErrorKind::Busy), [`Stopping`](CallErrorKind::Stopping),
/// [`Unreachable`](CallErrorKind::Unreachable) or [`Disconnected`](CallErrorKind::Disconnected), unless
/// [`kinds`](Self::kinds) says otherwise. A server that says when to come again is obeyed.
///
/// A call with streams is made again if it cannot be opened; one of which the result alone is a stream also if it fails
/// before its first item comes.
///
/// ```
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
/// # use example::{greeter::{GreeterV1Client, Visitor}, start_server};
/// # let (server, address) = start_server();
/// use std::time::Duration;
/// use tenon::Layered;
/// use tenon_middleware::{Retry, Timeout};
///
/// let retry = Retry::new(4).backoff(Duration::from_millis(50), Duration::from_secs(2));
/// let client = GreeterV1Client::connect(&address)?;
/// let greeter = GreeterV1Client(Layered::new(client.0, Timeout::new(Duration::from_secs(5))).with(retry));
/// greeter.greet(&Visitor::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Retry {
    attempts: u32,
    backoff: Backoff,
    kinds: Vec<CallErrorKind>,
    budget: Arc<RetryBudget>,
}

/// The pauses between attempts: each is a random part of a length that grows (full jitter).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Backoff {
    pub first: Duration,
    pub longest: Duration,
    pub factor: f64,
}

impl Backoff {
    const DEFAULT: Self = Self {
        first: Duration::from_millis(50),
        longest: Duration::from_secs(2),
        factor: 2.0,
    };

    /// Returns the longest pause after so many repetitions.
    fn length(&self, repetitions: u32) -> Duration {
        let factor = self.factor.powi(repetitions.min(64) as i32);
        let seconds = self.first.as_secs_f64() * factor;
        let longest = self.longest.as_secs_f64();
        Duration::from_secs_f64(seconds.min(longest).max(0.0))
    }

    /// Returns the pause after so many repetitions.
    fn pause(&self, repetitions: u32) -> Duration {
        self.length(repetitions).mul_f64(fastrand::f64())
    }
}

impl Retry {
    /// At most so many attempts, the first included. Pauses are 50 ms at first and 2 seconds at most, and the budget is
    /// the [default](RetryBudget::default).
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts,
            backoff: Backoff::DEFAULT,
            kinds: vec![
                CallErrorKind::Busy,
                CallErrorKind::Stopping,
                CallErrorKind::Unreachable,
                CallErrorKind::Disconnected,
            ],
            budget: Arc::default(),
        }
    }

    /// Sets how long the first pause is at most, and how long any.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        self.with_backoff(Backoff {
            first,
            longest,
            ..Backoff::DEFAULT
        })
    }

    pub(crate) fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Sets of what calls fail that are made again.
    #[must_use]
    pub fn kinds(self, kinds: impl IntoIterator<Item = CallErrorKind>) -> Self {
        Self {
            kinds: kinds.into_iter().collect(),
            ..self
        }
    }

    /// Sets the budget, which others may share.
    #[must_use]
    pub fn budget(self, budget: Arc<RetryBudget>) -> Self {
        Self { budget, ..self }
    }

    fn is_worth_another(&self, call: &CallScope<'_>, outcome: &CallOutcome<'_>) -> bool {
        let is_named = outcome
            .kind()
            .is_some_and(|kind| self.kinds.contains(&kind));
        is_named && (call.procedure().is_idempotent || !outcome.may_have_executed())
    }
}

impl Middleware for Retry {
    /// The number of repetitions so far.
    type State = u32;

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<u32, Rejection> {
        if !call.is_at_server() {
            self.budget.count_call();
        }
        Ok(0)
    }

    fn repeat_after(
        &self,
        repetitions: &mut u32,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        if outcome.is_success()
            || *repetitions + 1 >= self.attempts
            || !self.is_worth_another(call, outcome)
        {
            return None;
        }
        let pause = outcome
            .retry_after()
            .unwrap_or_else(|| self.backoff.pause(*repetitions));
        let is_in_time = match call.deadline() {
            None => true,
            Some(deadline) => pause < deadline.saturating_duration_since(Instant::now()),
        };
        if !is_in_time || !self.budget.take() {
            return None;
        }
        *repetitions += 1;
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let backoff = Backoff {
            first: Duration::from_millis(10),
            longest: Duration::from_millis(65),
            factor: 2.0,
        };
        let lengths = [0, 1, 2, 3, 4_000_000].map(|repetitions| backoff.length(repetitions));
        let expected = [10, 20, 40, 65, 65].map(Duration::from_millis);
        assert_eq!(lengths, expected);
        assert!((0..100).all(|_| backoff.pause(1) <= expected[1]));
    }
}
