//! The steps of a call through middleware, for the drivers: when it is made, how long it is held back, and when it is
//! over.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::thread;
use std::time::Instant;

use super::hold::CallHold;
use super::{CallOutcome, CallScope, Middleware, Rejection};
use crate::procedure::ProcedureInfo;

/// What a driver is to do next.
pub enum RunStep {
    /// Make the call, or carry it out.
    Go,
    /// Wait until then, and ask again.
    WaitUntil(Instant),
    /// Wait for this, but not longer than the call has time, and ask again.
    WaitFor(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// A call on its way through middleware, which is held by an `H`. If it is dropped before its [end](Self::end), the
/// middleware is told.
pub struct CallRun<'a, H>
where
    H: Deref<Target: Middleware + Sized>,
{
    middleware: H,
    scope: CallScope<'a>,
    state: Option<<H::Target as Middleware>::State>,
}

impl<'a, H> CallRun<'a, H>
where
    H: Deref<Target: Middleware + Sized>,
{
    /// Begins a call.
    ///
    /// # Errors
    /// It is not to go on.
    #[inline]
    pub fn begin(middleware: H, mut scope: CallScope<'a>) -> Result<Self, Rejection> {
        let state = middleware.begin(&mut scope)?;
        Ok(Self {
            middleware,
            scope,
            state: Some(state),
        })
    }

    /// Returns what is to be done next.
    ///
    /// # Errors
    /// The call is not to go on, or its time is over. It has ended then.
    #[inline]
    pub fn step(&mut self) -> Result<RunStep, Rejection> {
        if !self.scope.is_held() {
            self.scope.add_attempts(1);
            return Ok(RunStep::Go);
        }
        self.step_held()
    }

    /// Lets a call go that cannot wait.
    ///
    /// # Errors
    /// The call is not to go on, or is held back.
    pub fn go_at_once(&mut self) -> Result<(), Rejection> {
        match self.step()? {
            RunStep::Go => Ok(()),
            RunStep::WaitUntil(_) | RunStep::WaitFor(_) => Err(self.reject(Rejection::busy(
                "a middleware holds the call back, and a call that is started cannot wait; await one that is made",
            ))),
        }
    }

    #[cold]
    fn step_held(&mut self) -> Result<RunStep, Rejection> {
        let now = Instant::now();
        let deadline = self.scope.deadline();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(self.reject(Rejection::timed_out("it was held back for too long")));
        }
        match std::mem::replace(&mut self.scope.hold, CallHold::None) {
            CallHold::Until(at) if at > now => {
                self.scope.hold_until(at);
                let at = deadline.map_or(at, |deadline| at.min(deadline));
                Ok(RunStep::WaitUntil(at))
            }
            CallHold::For(released) => {
                // The next step is after it.
                self.scope.hold_until(now);
                Ok(RunStep::WaitFor(released))
            }
            CallHold::None | CallHold::Until(_) => self.resume(),
        }
    }

    fn resume(&mut self) -> Result<RunStep, Rejection> {
        let Some(state) = &mut self.state else {
            return Ok(RunStep::Go);
        };
        match self.middleware.resume(state, &mut self.scope) {
            Ok(()) => self.step(),
            Err(rejection) => Err(self.reject(rejection)),
        }
    }

    fn reject(&mut self, rejection: Rejection) -> Rejection {
        self.tell_end(&CallOutcome::Rejected(&rejection));
        rejection
    }

    /// Returns the call.
    #[inline]
    pub fn scope(&self) -> &CallScope<'a> {
        &self.scope
    }

    /// Returns the call, to take from it what is done.
    #[inline]
    pub fn scope_mut(&mut self) -> &mut CallScope<'a> {
        &mut self.scope
    }

    /// Goes on without what stands in the message of the call, which its handler takes over, or with its caller.
    pub fn detached<G>(mut self, middleware: G, procedure: ProcedureInfo<'_>) -> CallRun<'_, G>
    where
        G: Deref<Target = H::Target>,
    {
        CallRun {
            middleware,
            scope: self.scope.detached(procedure),
            // Without a state, nothing is left to be told when this is dropped.
            state: self.state.take(),
        }
    }

    /// Tells the outcome of an attempt of a call that can be made again. Returns true if it is to be: the next
    /// [step](Self::step) says when.
    #[inline]
    pub fn end_attempt(&mut self, outcome: &CallOutcome<'_>) -> bool {
        if let Some(state) = &mut self.state
            && let Some(pause) = self.middleware.repeat_after(state, &self.scope, outcome)
        {
            self.scope.repeat_after(pause);
            return true;
        }
        self.tell_end(outcome);
        false
    }

    /// Tells the outcome of the call.
    #[inline]
    pub fn end(mut self, outcome: &CallOutcome<'_>) {
        self.tell_end(outcome);
    }

    #[inline]
    fn tell_end(&mut self, outcome: &CallOutcome<'_>) {
        if let Some(state) = self.state.take() {
            self.middleware.end(state, &self.scope, outcome);
        }
    }
}

impl<H> Drop for CallRun<'_, H>
where
    H: Deref<Target: Middleware + Sized>,
{
    #[inline]
    fn drop(&mut self) {
        if self.state.is_some() {
            self.tell_end(&match thread::panicking() {
                true => CallOutcome::Panicked,
                false => CallOutcome::Abandoned,
            });
        }
    }
}

impl<H> fmt::Debug for CallRun<'_, H>
where
    H: Deref<Target: Middleware + Sized>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRun")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
