//! Deadlines of waits, for callers that have just read the clock.

use std::time::{Duration, Instant};

/// A deadline, and how much time was left at a moment before now: a caller that knows one that has just passed spares a
/// look at the clock. A wait may end later than at the deadline by as much as that moment is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// When the clock was read.
    seen: Instant,
    /// Time that was left then.
    pub left: Duration,
    /// True if the wait may be late by some milliseconds: it ends for something that is done in between.
    may_be_late: bool,
}

impl From<Instant> for Until {
    fn from(deadline: Instant) -> Self {
        Self::seen(deadline, Instant::now())
    }
}

impl Until {
    /// Waits until `deadline`, if the clock was `seen` last.
    #[inline]
    pub fn seen(deadline: Instant, seen: Instant) -> Self {
        Self {
            seen,
            left: deadline.saturating_duration_since(seen),
            may_be_late: false,
        }
    }

    /// Waits for so long from when the clock was `seen` last.
    #[inline]
    pub fn after(seen: Instant, left: Duration) -> Self {
        Self {
            seen,
            left,
            may_be_late: false,
        }
    }

    /// Returns the same, as of now.
    #[must_use]
    pub fn seen_now(self) -> Self {
        Self {
            may_be_late: self.may_be_late,
            ..Self::seen(self.deadline(), Instant::now())
        }
    }

    /// Returns when the wait is over.
    #[inline]
    pub fn deadline(self) -> Instant {
        self.seen + self.left
    }

    /// Returns the earlier of this deadline and `other`, at which something is done that may be late by some milliseconds.
    #[inline]
    pub fn or_earlier(self, other: Instant) -> Self {
        match other < self.deadline() {
            true => Self {
                may_be_late: true,
                ..Self::seen(other, self.seen)
            },
            false => self,
        }
    }

    /// Returns whether the wait may be late by some milliseconds.
    #[inline]
    pub fn may_be_late(self) -> bool {
        self.may_be_late
    }

    /// Returns whether nothing was left.
    #[inline]
    pub fn is_over(self) -> bool {
        self.left.is_zero()
    }
}
