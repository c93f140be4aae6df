//! Until when to wait, for those who have just seen the clock.

use std::time::{Duration, Instant};

/// A deadline, and a moment before now: who knows one that has just passed spares a look at the clock.
/// A wait may end later than at the deadline by as much as that moment is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// When the wait is over.
    pub deadline: Instant,
    /// When somebody looked at the clock.
    pub seen: Instant,
}

impl From<Instant> for Until {
    fn from(deadline: Instant) -> Self {
        Self {
            deadline,
            seen: Instant::now(),
        }
    }
}

impl Until {
    /// What was left when somebody looked.
    #[inline]
    pub(crate) fn left(self) -> Duration {
        self.deadline.saturating_duration_since(self.seen)
    }
}
