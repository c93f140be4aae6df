//! Two middlewares, one around the other.

use std::time::Duration;

use super::{CallOutcome, CallScope, Middleware, Rejection};

/// The first stands further out: it sees a call before the second, and its outcome behind it.
impl<A: Middleware, B: Middleware> Middleware for (A, B) {
    /// The state of the inner one is there from its begin to its end.
    type State = (A::State, Option<B::State>);

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<Self::State, Rejection> {
        let mut state = (self.0.begin(call)?, None);
        match begin_inner(self, &mut state, call) {
            Ok(()) => Ok(state),
            Err(rejection) => {
                self.0
                    .end(state.0, call, &CallOutcome::Rejected(&rejection));
                Err(rejection)
            }
        }
    }

    #[inline]
    fn repeat_after(
        &self,
        (outer, inner): &mut Self::State,
        call: &CallScope<'_>,
        outcome: &CallOutcome<'_>,
    ) -> Option<Duration> {
        if let Some(state) = inner {
            let pause = self.1.repeat_after(state, call, outcome);
            if pause.is_some() {
                return pause;
            }
        }
        let pause = self.0.repeat_after(outer, call, outcome);
        // What stands further in is over before the next attempt begins.
        if pause.is_some()
            && let Some(state) = inner.take()
        {
            self.1.end(state, call, outcome);
        }
        pause
    }

    #[inline]
    fn end(&self, (outer, inner): Self::State, call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        if let Some(state) = inner {
            self.1.end(state, call, outcome);
        }
        self.0.end(outer, call, outcome);
    }

    fn resume(&self, state: &mut Self::State, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        let Some(inner) = &mut state.1 else {
            self.0.resume(&mut state.0, call)?;
            return begin_inner(self, state, call);
        };
        match self.1.resume(inner, call) {
            Ok(()) => Ok(()),
            Err(rejection) => {
                if let Some(inner) = state.1.take() {
                    self.1.end(inner, call, &CallOutcome::Rejected(&rejection));
                }
                rejected(&self.0, &mut state.0, call, rejection)
            }
        }
    }
}

/// Begins the inner one, unless the outer one holds the call back.
#[inline]
fn begin_inner<A: Middleware, B: Middleware>(
    pair: &(A, B),
    state: &mut <(A, B) as Middleware>::State,
    call: &mut CallScope<'_>,
) -> Result<(), Rejection> {
    if call.is_held() {
        return Ok(());
    }
    match pair.1.begin(call) {
        Ok(inner) => {
            state.1 = Some(inner);
            Ok(())
        }
        Err(rejection) => rejected(&pair.0, &mut state.0, call, rejection),
    }
}

/// Asks the outer one whether a call that the inner one has rejected is to be tried again.
#[cold]
fn rejected<A: Middleware>(
    outer: &A,
    state: &mut A::State,
    call: &mut CallScope<'_>,
    rejection: Rejection,
) -> Result<(), Rejection> {
    match outer.repeat_after(state, call, &CallOutcome::Rejected(&rejection)) {
        Some(pause) if !call.is_at_server() => {
            call.repeat_after(pause);
            Ok(())
        }
        _ => Err(rejection),
    }
}
