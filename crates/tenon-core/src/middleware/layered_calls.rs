//! A client of threads with middleware around it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::wait::wait_until_released;
use super::{CallOutcome, CallRun, CallScope, Layered, Middleware, Rejection};
use crate::error::{CallError, CallErrorKind};
use crate::make_calls::{CallTarget, MakeCalls, PendingReply};
use crate::options::{CallOptions, FOR_EVER};
use crate::procedure::{ProcedureCall, ProcedureError};

/// Pause between looks at several attempts of a hedged call, of which a thread can only wait for one.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

impl<C: MakeCalls, M: Middleware> MakeCalls for Layered<C, M> {
    type Pending<T, E: ProcedureError> = LayeredPending<C::Pending<T, E>, M>;

    #[inline]
    fn call_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        loop {
            wait_until_released(&mut run).map_err(rejected)?;
            let result = match run.scope().hedging() {
                None => self.inner().call_with(call, run.scope().options()),
                Some(_) => self.hedged(call, &mut run),
            };
            if !run.end_attempt(&outcome_of(&result)) {
                return result;
            }
        }
    }

    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<Self::Pending<P::Result, P::Error>, P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        wait_until_released(&mut run).map_err(rejected)?;
        match self.inner().start_with(call, run.scope().options()) {
            Ok(pending) => Ok(LayeredPending {
                pending,
                run: run.detached(Arc::clone(self.middleware()), P::INFO),
            }),
            Err(error) => {
                run.end(&outcome_of_error(&error));
                Err(error)
            }
        }
    }

    #[inline]
    fn target(&self) -> CallTarget<'_> {
        self.inner().target()
    }
}

impl<C: MakeCalls, M: Middleware> Layered<C, M> {
    /// Makes a call several times, each some time after the one before, and returns the first result.
    #[cold]
    fn hedged<P: ProcedureCall>(
        &self,
        call: &P,
        run: &mut CallRun<'_, &M>,
    ) -> Result<P::Result, P::Error> {
        let hedging = run.scope().hedging().unwrap_or_default();
        let mut waiting = Vec::new();
        let mut made = 0;
        let mut next = Instant::now();
        loop {
            let until_next = next.saturating_duration_since(Instant::now());
            let may_make = made < hedging.attempts.max(1);
            if may_make && until_next.is_zero() {
                if made > 0 {
                    run.scope_mut().add_attempts(1);
                }
                made += 1;
                next = Instant::now() + hedging.delay.min(FOR_EVER);
                match self.inner().start_with(call, run.scope().options()) {
                    Ok(pending) => waiting.push(pending),
                    Err(error) if waiting.is_empty() => return Err(error),
                    // Those that are under way still may have a result.
                    Err(_) => made = hedging.attempts,
                }
                continue;
            }
            let look = match (waiting.len(), may_make) {
                (1, false) => FOR_EVER,
                (1, true) => until_next,
                _ => LOOK_INTERVAL,
            };
            let Some(at) = first_ready(&mut waiting, look) else {
                continue;
            };
            let result = waiting.swap_remove(at).wait();
            let may_go_on = !waiting.is_empty() || may_make;
            match &result {
                Err(error) if may_go_on && is_lost(error) => next = Instant::now(),
                _ => return result,
            }
        }
    }
}

/// Waits for the first of several calls for as long as `look` says, and returns which of all are ready then.
fn first_ready<T, E, P: PendingReply<T, E>>(waiting: &mut [P], look: Duration) -> Option<usize> {
    let mut limits = std::iter::once(look).chain(std::iter::repeat(Duration::ZERO));
    waiting
        .iter_mut()
        .position(|pending| pending.wait_for(limits.next().unwrap_or_default()))
}

/// Returns whether an attempt of a hedged call says nothing of the others.
#[doc(hidden)]
pub fn is_lost(error: &impl ProcedureError) -> bool {
    error.call_error().is_some_and(|error| {
        matches!(
            error.kind(),
            CallErrorKind::Busy
                | CallErrorKind::Stopping
                | CallErrorKind::Unreachable
                | CallErrorKind::Disconnected
        )
    })
}

/// A call that was started through middleware.
#[must_use = "dropping a pending call gives it up"]
pub struct LayeredPending<P, M: Middleware> {
    pending: P,
    run: CallRun<'static, Arc<M>>,
}

impl<P, M: Middleware> LayeredPending<P, M> {
    /// Waits for the reply until the call's deadline and returns its result.
    ///
    /// # Errors
    /// By blame; see [`CallError`].
    pub fn wait<T, E: ProcedureError>(self) -> Result<T, E>
    where
        P: PendingReply<T, E>,
    {
        let result = self.pending.wait();
        self.run.end(&outcome_of(&result));
        result
    }

    /// Waits no longer than `limit`, and says whether [`wait`](Self::wait) would return at once.
    pub fn wait_for<T, E: ProcedureError>(&mut self, limit: Duration) -> bool
    where
        P: PendingReply<T, E>,
    {
        self.pending.wait_for(limit)
    }
}

impl<T, E: ProcedureError, P: PendingReply<T, E>, M: Middleware> PendingReply<T, E>
    for LayeredPending<P, M>
{
    fn wait(self) -> Result<T, E> {
        Self::wait(self)
    }

    fn wait_for(&mut self, limit: Duration) -> bool {
        Self::wait_for(self, limit)
    }
}

impl<P: fmt::Debug, M: Middleware> fmt::Debug for LayeredPending<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredPending")
            .field("pending", &self.pending)
            .field("run", &self.run)
            .finish()
    }
}

/// Returns the outcome of a client's call.
#[doc(hidden)]
#[inline]
pub fn outcome_of<T, E: ProcedureError>(result: &Result<T, E>) -> CallOutcome<'_> {
    match result {
        Ok(_) => CallOutcome::Success,
        Err(error) => outcome_of_error(error),
    }
}

#[doc(hidden)]
pub fn outcome_of_error(error: &impl ProcedureError) -> CallOutcome<'_> {
    match error.call_error() {
        Some(CallError::Rejected(rejection)) => CallOutcome::Rejected(rejection),
        Some(error) => CallOutcome::Failed(error),
        None => CallOutcome::Raised,
    }
}

#[cold]
fn rejected<E: ProcedureError>(rejection: Rejection) -> E {
    CallError::Rejected(rejection).into()
}
