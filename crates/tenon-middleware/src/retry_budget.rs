//! The budget of repeated calls: what keeps retries from multiplying the load of a server that is overloaded.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Thousandths of a repetition.
const REPETITION: i64 = 1000;

/// Time for which repetitions are saved up.
const SAVED_FOR: Duration = Duration::from_secs(10);

/// Returns a number of repetitions in thousandths.
fn thousandths(repetitions: f64) -> i64 {
    (repetitions.clamp(0.0, 1000.0) * REPETITION as f64) as i64
}

/// A budget of repetitions: a part of the calls that are made, and a few a second beside, so that clients with few calls
/// can repeat some, too. Several middlewares may share one.
///
/// ```
/// use std::sync::Arc;
/// use tenon_middleware::{Retry, RetryBudget};
///
/// // One repetition for ten calls, and one a second.
/// let budget = Arc::new(RetryBudget::new(0.1, 1));
/// let retry = Retry::new(3).budget(budget);
/// # drop(retry);
/// ```
#[derive(Debug)]
pub struct RetryBudget {
    /// Thousandths that a call adds.
    per_call: i64,
    /// Thousandths that a second adds.
    per_second: i64,
    /// Most thousandths that are saved up.
    highest: i64,
    balance: Mutex<Balance>,
}

#[derive(Debug)]
struct Balance {
    thousandths: i64,
    counted_at: Instant,
}

impl Default for RetryBudget {
    /// One repetition for five calls, and ten a second.
    fn default() -> Self {
        Self::new(0.2, 10)
    }
}

impl RetryBudget {
    /// So many repetitions for each call, and so many a second.
    pub fn new(per_call: f64, per_second: u32) -> Self {
        let per_second = i64::from(per_second) * REPETITION;
        let per_call = thousandths(per_call);
        let saved = per_second * SAVED_FOR.as_secs() as i64;
        Self {
            per_call,
            per_second,
            highest: saved.max(100 * per_call).max(REPETITION),
            balance: Mutex::new(Balance {
                thousandths: per_second,
                counted_at: Instant::now(),
            }),
        }
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many repetitions that are saved up, and there at the begin, and a part of one for each call.
    #[cfg(feature = "policy")]
    pub(crate) fn saving(highest: f64, per_call: f64) -> Self {
        let highest = thousandths(highest);
        let mut budget = Self::new(per_call, 0);
        budget.highest = highest;
        budget.balance().thousandths = highest;
        budget
    }

    /// Counts a call that is made for the first time.
    pub fn count_call(&self) {
        let mut balance = self.balance();
        balance.thousandths = (balance.thousandths + self.per_call).min(self.highest);
    }

    /// Adds what the time has brought.
    fn count_time(&self, balance: &mut Balance, now: Instant) {
        let passed = now
            .saturating_duration_since(balance.counted_at)
            .min(SAVED_FOR);
        let brought = self.per_second * passed.as_millis() as i64 / 1000;
        if brought > 0 {
            balance.thousandths = (balance.thousandths + brought).min(self.highest);
            balance.counted_at = now;
        }
    }

    /// Takes a repetition out; returns false if there is none.
    pub fn take(&self) -> bool {
        let mut balance = self.balance();
        self.count_time(&mut balance, Instant::now());
        let has_some = balance.thousandths >= REPETITION;
        if has_some {
            balance.thousandths -= REPETITION;
        }
        has_some
    }

    /// Returns whether there is a repetition.
    pub(crate) fn has_some(&self) -> bool {
        let mut balance = self.balance();
        self.count_time(&mut balance, Instant::now());
        balance.thousandths >= REPETITION
    }

    /// Takes out repetitions that were made already.
    pub(crate) fn charge(&self, repetitions: u32) {
        self.balance().thousandths -= i64::from(repetitions) * REPETITION;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_a_part_of_the_calls() {
        let budget = RetryBudget::new(0.1, 0);
        assert!(!budget.take());
        for _ in 0..1000 {
            budget.count_call();
        }
        // No more than a hundred calls are saved up for.
        let taken = (0..1000).filter(|_| budget.take()).count();
        assert_eq!(taken, 10);
    }

    #[test]
    fn time_brings_some_too() {
        let budget = RetryBudget::new(0.0, 5);
        let taken = (0..100).filter(|_| budget.take()).count();
        assert_eq!(taken, 5);
        budget.balance().counted_at -= Duration::from_secs(1000);
        let taken = (0..100).filter(|_| budget.take()).count();
        assert_eq!(taken, 50);
        budget.charge(1);
        assert!(!budget.has_some());
    }
}
