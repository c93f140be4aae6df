//! Calls that end without an answer.

use super::exchange::Failure;

/// A call that ended without an answer.
#[derive(Debug)]
pub struct FailedCall<W> {
    /// The waiter that was handed in with it.
    pub waiter: W,
    /// The reason for the failure.
    pub failure: CallFailure,
}

/// The reason for which a call ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// Its time ran out, and it may have been carried out.
    Expired,
    /// The packet exchange gave it up.
    Exchange(Failure),
}
