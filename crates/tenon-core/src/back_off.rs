//! When the next attempt to connect is made, and what is said of those that failed.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_net::Address;

use crate::error::{CallError, ConnectError};

/// Keeps a peer that is down from being asked all the time.
#[derive(Debug)]
pub struct BackOff {
    pause: Duration,
    not_before: Option<Instant>,
    /// Why the last attempt failed.
    failure: Option<Arc<io::Error>>,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            pause: Self::FIRST,
            not_before: None,
            failure: None,
        }
    }
}

impl BackOff {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);

    /// Time until the next attempt may be made.
    pub fn left(&self, now: Instant) -> Duration {
        self.not_before
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// An attempt is made: the next one comes later, and later each time.
    pub fn attempt(&mut self, now: Instant) {
        self.not_before = Some(now + self.pause);
        self.pause = (self.pause * 2).min(Self::LONGEST);
    }

    /// The peer answers: the next attempt may be made at once.
    #[inline]
    pub fn reset(&mut self) {
        if self.not_before.is_some() {
            *self = Self::default();
        }
    }

    /// An attempt has failed; says whether trying again cannot help.
    pub fn failed(&mut self, error: io::Error) -> bool {
        let is_hopeless = is_hopeless(&error);
        // That time ran out says less than why the attempt before failed.
        if error.kind() != io::ErrorKind::TimedOut || self.failure.is_none() {
            self.failure = Some(Arc::new(error));
        }
        is_hopeless
    }

    /// What a call is told that gives up waiting for a connection; none if no attempt has failed.
    pub fn error(&self, address: &Address) -> Option<CallError> {
        let cause = Arc::clone(self.failure.as_ref()?);
        let address = address.clone();
        Some(ConnectError::Unreachable { address, cause }.into())
    }
}

/// Whether trying again cannot help.
fn is_hopeless(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied
    )
}
