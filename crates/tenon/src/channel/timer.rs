//! The time that a call has.

use std::time::{Duration, Instant};

use tenon_net::{Ticks, Until};

use crate::error::CallError;
use crate::options::FOR_EVER;

/// The time that a call has.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    pub(super) started: Instant,
    limit: Duration,
    pub(super) deadline: Instant,
    /// When the clock was looked at last, as long as nobody has waited since.
    pub(super) seen: Instant,
}

impl Timer {
    /// From how much on a tick of the clock more does not matter.
    pub(super) const SECONDS: Duration = Duration::from_secs(1);

    /// The time of a call that begins now and has as long as `limit`.
    #[inline]
    pub fn start(limit: Duration) -> Self {
        let started = Instant::now();
        Self {
            started,
            limit,
            deadline: started + limit.min(FOR_EVER),
            seen: started,
        }
    }

    /// The same of a call that [has seconds](Self::SECONDS) and began at the last tick of the clock: its deadline is later by a tick at most, and
    /// not earlier.
    #[inline]
    pub(super) fn start_at(ticks: &Ticks, tick: u64, limit: Duration) -> Self {
        let started = ticks.time_of(tick);
        Self {
            started,
            limit,
            deadline: started + (limit.min(FOR_EVER) + ticks.tick()),
            seen: started,
        }
    }

    /// Until when to wait, as of the last look at the clock.
    #[inline]
    pub(super) fn until(&self) -> Until {
        Until::seen(self.deadline, self.seen)
    }

    /// The same right behind the begin.
    #[inline]
    pub(super) fn until_from_start(&self) -> Until {
        Until {
            deadline: self.deadline,
            left: self.limit,
        }
    }

    /// Looks at the clock again, after a wait.
    #[inline]
    pub(super) fn look(&mut self) {
        self.seen = Instant::now();
    }

    /// When it began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// When it is over.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How much is left.
    pub fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.min(self.limit)
    }

    /// What the call is told whose time has run out.
    pub fn error(&self, may_have_executed: bool) -> CallError {
        CallError::TimedOut {
            limit: self.limit,
            may_have_executed,
        }
    }
}
