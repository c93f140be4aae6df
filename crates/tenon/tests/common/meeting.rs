//! A place where handlers meet: each of them stays until so many are there at the same time.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How long a handler waits for the others, so that nothing hangs when a test has failed.
const LONGEST: Duration = Duration::from_secs(20);

/// A place where handlers meet, again and again.
#[derive(Default)]
pub struct Meeting {
    state: Mutex<State>,
    complete: Condvar,
}

#[derive(Default)]
struct State {
    inside: usize,
    /// Meetings that were complete.
    complete: usize,
}

impl Meeting {
    /// Waits until `count` are here; returns whether they came.
    pub fn join(&self, count: usize) -> bool {
        let mut state = self.state.lock().unwrap();
        let meeting = state.complete;
        state.inside += 1;
        if state.inside == count {
            state.inside = 0;
            state.complete += 1;
            self.complete.notify_all();
            return true;
        }
        let is_waiting = |state: &mut State| state.complete == meeting;
        let waited = self.complete.wait_timeout_while(state, LONGEST, is_waiting);
        !waited.unwrap().1.timed_out()
    }

    /// How often so many were here.
    pub fn complete(&self) -> usize {
        self.state.lock().unwrap().complete
    }
}
