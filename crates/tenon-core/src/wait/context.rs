//! State that the waiters of one end share.

use super::counters::WaitTally;
use super::spinners::{Looking, Spinners};

/// State that the waiters of one end share.
#[derive(Debug)]
pub struct WaitContext<'w> {
    /// Threads that look now.
    pub spinners: &'w Spinners,
    /// Object that is looked at.
    pub looking: Looking,
    /// Counters of the waits.
    pub tally: &'w WaitTally,
}
