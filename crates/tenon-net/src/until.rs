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
        }
    }

    /// Waits for so long from when the clock was `seen` last.
    #[inline]
    pub fn after(seen: Instant, left: Duration) -> Self {
        Self { seen, left }
    }

    /// Returns when the wait is over.
    #[inline]
    pub fn deadline(self) -> Instant {
        self.seen + self.left
    }

    /// Returns the earlier of this deadline and `other`.
    #[inline]
    pub fn or_earlier(self, other: Instant) -> Self {
        match other < self.deadline() {
            true => Self::seen(other, self.seen),
            false => self,
        }
    }

    /// Returns whether nothing was left.
    #[inline]
    pub fn is_over(self) -> bool {
        self.left.is_zero()
    }
}
