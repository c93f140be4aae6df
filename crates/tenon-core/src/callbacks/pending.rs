//! A call back that is not answered, between the connection and the thread or task that waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::client::Outcome;

/// A call back that was handed to its connection. A thread or a task waits for its outcome.
#[derive(Debug, Default)]
pub struct PendingCallback {
    state: Mutex<PendingState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct PendingState {
    /// The number of the call, once it is in flight.
    number: Option<u32>,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl PendingCallback {
    fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- The side of the connection ----

    /// Notes that the call is in flight, with this number.
    pub fn set_number(&self, number: u32) {
        self.lock().number = Some(number);
    }

    /// Returns the number of the call, once it is in flight.
    pub fn number(&self) -> Option<u32> {
        self.lock().number
    }

    /// Ends the call, and wakes the one that waits for it. The first outcome counts.
    pub fn finish(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        let waker = state.waker.take();
        drop(state);
        self.ended.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    // ---- The side of the caller ----

    /// Waits for the outcome; `None` at `until`.
    pub fn wait(&self, until: Instant) -> Option<Outcome> {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.outcome.take() {
                return Some(outcome);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.ended.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.lock().outcome.is_some()
    }

    /// Waits until it has ended, or `until`; returns whether it has.
    pub fn wait_for_end(&self, until: Instant) -> bool {
        let state = self.lock();
        let left = until.saturating_duration_since(Instant::now());
        let waited = self
            .ended
            .wait_timeout_while(state, left, |state| state.outcome.is_none());
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.outcome.is_some()
    }

    /// Returns the outcome to a task, which is woken when it is there.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<Outcome> {
        let mut state = self.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
