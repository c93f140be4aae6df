//! The time that a call has.

use std::time::{Duration, Instant};

use tenon_net::{Ticks, Until};

use crate::error::CallError;
use crate::options::{ChannelOptions, FOR_EVER};

/// Bounds of the wait of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimit {
    /// The time that it has.
    pub timeout: Duration,
    /// True if it waits for a peer that cannot be reached; if it is not said, the channel decides.
    pub wait_for_ready: Option<bool>,
}

impl From<Duration> for CallLimit {
    fn from(timeout: Duration) -> Self {
        Self {
            timeout,
            wait_for_ready: None,
        }
    }
}

/// The clock by which the calls of a channel begin.
#[derive(Debug, Clone, Copy)]
pub struct CallClock {
    /// The coarse one, where the system has one and no exact time is asked for.
    ticks: Option<&'static Ticks>,
}

impl CallClock {
    /// From this limit on, a tick of the coarse clock more does not matter.
    const COARSE_FROM: Duration = Duration::from_secs(1);

    /// The clock of a channel. Over datagrams it is exact, as their round trips are measured.
    pub fn new(is_datagram: bool) -> Self {
        Self {
            ticks: if is_datagram { None } else { Ticks::get() },
        }
    }

    /// The time of a call that begins now and has as long as `limit`.
    #[inline(always)]
    pub fn start(&self, limit: CallLimit) -> CallTimer {
        match self.ticks {
            Some(ticks) if limit.timeout >= Self::COARSE_FROM => {
                CallTimer::start_at(ticks, ticks.last(), limit)
            }
            _ => CallTimer::start(limit),
        }
    }
}

/// Timer of a call: its begin, and its deadline.
#[derive(Debug, Clone, Copy)]
pub struct CallTimer {
    started: Instant,
    limit: Duration,
    wait_for_ready: Option<bool>,
    deadline: Instant,
    /// Time at which the clock was read last, as long as the call has not waited since.
    seen: Instant,
}

impl CallTimer {
    /// The time of a call that begins now and has as long as `limit`.
    #[inline]
    pub fn start(limit: impl Into<CallLimit>) -> Self {
        let started = Instant::now();
        let CallLimit {
            timeout: limit,
            wait_for_ready,
        } = limit.into();
        Self {
            started,
            limit,
            wait_for_ready,
            deadline: started + limit.min(FOR_EVER),
            seen: started,
        }
    }

    /// The time of a call that began at the last tick of the coarse clock: its deadline is later by a tick at most, and
    /// not earlier.
    #[inline]
    fn start_at(ticks: &Ticks, tick: u64, limit: CallLimit) -> Self {
        let started = ticks.time_of(tick);
        let CallLimit {
            timeout: limit,
            wait_for_ready,
        } = limit;
        Self {
            started,
            limit,
            wait_for_ready,
            deadline: started + (limit.min(FOR_EVER) + ticks.tick()),
            seen: started,
        }
    }

    /// Returns until when to wait, as of the last look at the clock.
    #[inline]
    pub fn until(&self) -> Until {
        Until::seen(self.deadline, self.seen)
    }

    /// Returns the same right behind the begin, and for `most` at most.
    #[inline]
    pub fn until_from_start(&self, most: Duration) -> Until {
        Until::after(self.started, self.limit.min(most))
    }

    /// Reads the clock again, after a wait.
    #[inline]
    pub fn look(&mut self) {
        self.seen = Instant::now();
    }

    /// Returns when it began.
    #[inline]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns when it is over.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether the call waits for a peer that cannot be reached, over a channel with these options.
    pub fn waits_for_ready(&self, options: &ChannelOptions) -> bool {
        self.waits_for_ready_or(options.wait_for_ready)
    }

    /// Returns the same; if nothing was said of the call, `default` is.
    pub fn waits_for_ready_or(&self, default: bool) -> bool {
        self.wait_for_ready.unwrap_or(default)
    }

    /// Returns how much is left.
    pub fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.min(self.limit)
    }

    /// Returns whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Returns the error of a call that has run out of time.
    pub fn error(&self, may_have_executed: bool) -> CallError {
        CallError::TimedOut {
            limit: self.limit,
            may_have_executed,
            calls_max: None,
        }
    }

    /// Returns the error of a call that was not sent when its time ran out. If it is said how many calls may be in
    /// flight, it has waited for room among these.
    #[cold]
    pub fn unsent_error(&self, calls_max: Option<usize>) -> CallError {
        CallError::TimedOut {
            limit: self.limit,
            may_have_executed: false,
            calls_max,
        }
    }
}
