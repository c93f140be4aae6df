//! Deadlines of waits, for callers that have just read the clock.

use std::time::{Duration, Instant};

/// A deadline, and how much time was left at a moment before now: a caller that knows one that has just passed spares a
/// look at the clock. A wait may end later than at the deadline by as much as that moment is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// When the wait is over.
    pub deadline: Instant,
    /// Time that was left when the clock was read.
    pub left: Duration,
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
            deadline,
            left: deadline.saturating_duration_since(seen),
        }
    }

    /// Returns the earlier of this deadline and `other`.
    #[inline]
    pub fn or_earlier(self, other: Instant) -> Self {
        match other < self.deadline {
            true => Self {
                deadline: other,
                left: self.left.saturating_sub(self.deadline - other),
            },
            false => self,
        }
    }

    /// Returns whether nothing was left.
    #[inline]
    pub fn is_over(self) -> bool {
        self.left.is_zero()
    }
}
