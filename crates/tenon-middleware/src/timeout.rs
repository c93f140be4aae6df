//! The time that calls have.

use std::time::Duration;

use tenon::{CallScope, Middleware, Rejection};

/// Gives calls no more than so much time, repetitions included. A client's call fails with
/// [`TimedOut`](tenon::CallErrorKind::TimedOut) when it is over. At a server of tasks the future of a handler that takes
/// longer is dropped, and the caller told so; at a server of threads its handler sees the time as the
/// [deadline](tenon::CallInfo::deadline) of the call.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(Duration);

impl Timeout {
    /// A limit of the time of each call.
    pub const fn new(limit: Duration) -> Self {
        Self(limit)
    }
}

impl Middleware for Timeout {
    type State = ();

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        if let Some(deadline) = call.started_at().checked_add(self.0) {
            call.limit_deadline(deadline);
        }
        Ok(())
    }
}
