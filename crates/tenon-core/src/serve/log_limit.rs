//! Rate limit of the log: keeps what may happen at every call of a hostile or unlucky peer from filling the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two messages of the same kind.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lets one message of a kind into the log each second.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<LogState>);

#[derive(Debug, Default)]
struct LogState {
    last: Option<Instant>,
    /// Times that something has happened since.
    unlogged: u64,
}

impl LogLimit {
    /// Notes that something has happened; returns how often it has since it was logged last, if it is to be logged now.
    #[cold]
    pub fn note(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.unlogged += 1;
        let is_due = |last| now.saturating_duration_since(last) >= INTERVAL;
        if !state.last.is_none_or(is_due) {
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_within_a_second_is_logged_and_the_next_says_how_many_there_were() {
        let limit = LogLimit::default();
        let begin = Instant::now();
        assert_eq!(limit.note(begin), Some(1));
        assert_eq!(limit.note(begin), None);
        assert_eq!(limit.note(begin + INTERVAL / 2), None);
        assert_eq!(limit.note(begin + INTERVAL), Some(3));
        assert_eq!(limit.note(begin + INTERVAL), None);
    }
}
