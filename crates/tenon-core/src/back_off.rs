//! Back-off of reconnecting: when a lost connection is made again, which calls wait for that, and what the others are
//! told.

use std::io;
use std::time::{Duration, Instant};

use crate::error::{CallError, ConnectError};

/// Keeps a peer that is down from being asked all the time.
///
/// A call fails at once with what an attempt to connect reports, unless it waits for its peer to be ready
/// ([`CallOptions::wait_for_ready`](crate::options::CallOptions::wait_for_ready)). Calls that wait leave growing pauses
/// between their attempts; calls that fail do not wait for those, but share what an attempt has just reported.
#[derive(Debug)]
pub struct BackOff {
    pause: Duration,
    not_before: Option<Instant>,
    /// Error of the last attempt.
    failure: Option<ConnectError>,
    /// Time until which calls that do not wait are told so without another attempt.
    fresh_until: Option<Instant>,
}

/// Next action of a call that has no connection.
#[derive(Debug)]
pub enum NextAttempt {
    /// It connects.
    Now,
    /// It waits, and asks again then.
    At(Instant),
    /// It fails.
    Fail(CallError),
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            pause: Self::FIRST,
            not_before: None,
            failure: None,
            fresh_until: None,
        }
    }
}

impl BackOff {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);

    /// Time for which calls that do not wait share a failure: a loop around a call asks a dead peer a hundred times a
    /// second at most, and no call is told of a failure that is older.
    const FRESH: Duration = Duration::from_millis(10);

    /// Returns the next action of a call at `now` that needs a connection, and `waits_for_ready` or not.
    pub fn next_attempt(&self, now: Instant, waits_for_ready: bool) -> NextAttempt {
        if waits_for_ready {
            return match self.not_before {
                Some(at) if at > now => NextAttempt::At(at),
                _ => NextAttempt::Now,
            };
        }
        let is_fresh = self.fresh_until.is_some_and(|until| now < until);
        match self.error() {
            Some(error) if is_fresh => NextAttempt::Fail(error),
            _ => NextAttempt::Now,
        }
    }

    /// Notes that an attempt has ended: calls that wait make the next one later, and later each time.
    pub fn attempt(&mut self, now: Instant) {
        self.not_before = Some(now + self.pause);
        self.pause = (self.pause * 2).min(Self::LONGEST);
    }

    /// Notes that an attempt has led to a connection. Whether it answers is not known yet.
    pub fn succeeded(&mut self) {
        self.failure = None;
        self.fresh_until = None;
    }

    /// Notes that the peer answers: the next attempt may be made at once.
    #[inline]
    pub fn reset(&mut self) {
        if self.not_before.is_some() {
            *self = Self::default();
        }
    }

    /// Notes that an attempt has failed at `now`; returns whether trying again cannot help.
    pub fn failed(&mut self, now: Instant, error: ConnectError) -> bool {
        let is_hopeless = is_hopeless(&error);
        // That time ran out says less than why the attempt before failed. It is the time of one call, too, and says
        // nothing to others.
        let is_late = is_late(&error);
        if !is_late || self.failure.is_none() {
            self.failure = Some(error);
        }
        self.fresh_until = if is_late {
            None
        } else {
            Some(now + Self::FRESH)
        };
        is_hopeless
    }

    /// Returns the error of a call that gives up waiting for a connection; `None` if no attempt has failed.
    pub fn error(&self) -> Option<CallError> {
        self.failure.clone().map(CallError::from)
    }
}

/// Returns whether trying again cannot help. A program that is not registered yet may be, later.
fn is_hopeless(error: &ConnectError) -> bool {
    match error {
        ConnectError::Unreachable { cause, .. } => matches!(
            cause.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
        ),
        ConnectError::Unresolved { .. } | ConnectError::NotRegistered { .. } => false,
        ConnectError::Address(_)
        | ConnectError::Callbacks { .. }
        | ConnectError::NoPort(_)
        | ConnectError::NotReconnected { .. } => true,
    }
}

/// Returns whether an attempt took longer than it had time.
fn is_late(error: &ConnectError) -> bool {
    match error {
        ConnectError::Unreachable { cause, .. } => cause.kind() == io::ErrorKind::TimedOut,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn unreachable(kind: io::ErrorKind) -> ConnectError {
        ConnectError::unreachable(&"tcp://127.0.0.1:1".parse().unwrap(), kind.into())
    }

    #[test]
    fn a_call_that_does_not_wait_is_never_held() {
        let mut back_off = BackOff::default();
        let mut now = Instant::now();
        for _ in 0..10 {
            back_off.attempt(now);
            back_off.failed(now, unreachable(io::ErrorKind::ConnectionRefused));
            let next = back_off.next_attempt(now, false);
            assert!(matches!(next, NextAttempt::Fail(_)), "{next:?}");
            let next = back_off.next_attempt(now, true);
            assert!(matches!(next, NextAttempt::At(_)), "{next:?}");
            now += BackOff::FRESH;
            let next = back_off.next_attempt(now, false);
            assert!(matches!(next, NextAttempt::Now), "{next:?}");
        }
        back_off.reset();
        let next = back_off.next_attempt(now, true);
        assert!(matches!(next, NextAttempt::Now), "{next:?}");
    }

    #[test]
    fn the_time_of_one_call_is_no_failure_of_others() {
        let mut back_off = BackOff::default();
        let now = Instant::now();
        back_off.attempt(now);
        back_off.failed(now, unreachable(io::ErrorKind::TimedOut));
        let next = back_off.next_attempt(now, false);
        assert!(matches!(next, NextAttempt::Now), "{next:?}");
    }
}
