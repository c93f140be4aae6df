//! A client of tasks with middleware around it.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tenon_core::CallTarget;
use tenon_core::error::CallError;
use tenon_core::middleware::{
    CallRun, CallScope, Hedging, Layered, Middleware, Rejection, is_lost, outcome_of,
    outcome_of_error,
};
use tenon_core::options::{CallOptions, FOR_EVER};
use tenon_core::procedure::{ProcedureCall, ProcedureError};
use tokio::time::sleep;

use super::make_calls::MakeAsyncCalls;
use crate::layered::wait_until_released;

/// An attempt of a hedged call.
type Attempt<'a, P, E> = Pin<Box<dyn Future<Output = Result<P, E>> + Send + 'a>>;

impl<C: MakeAsyncCalls + Send, M: Middleware> MakeAsyncCalls for Layered<C, M> {
    type Pending<T, E: ProcedureError> = LayeredCall<C::Pending<T, E>, M>;

    async fn call_with<P: ProcedureCall + Sync>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        loop {
            wait_until_released(&mut run).await.map_err(rejected)?;
            let (hedging, deadline) = (run.scope().hedging(), run.scope().deadline());
            let options = run.scope().options();
            let result = match hedging {
                None => self.inner().call_with(call, options).await,
                Some(hedging) => {
                    let (result, attempts) =
                        hedged(self.inner(), call, options, deadline, hedging).await;
                    run.scope_mut().add_attempts(attempts - 1);
                    result
                }
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
        run.go_at_once().map_err(rejected)?;
        match self.inner().start_with(call, run.scope().options()) {
            Ok(pending) => Ok(LayeredCall {
                pending: Box::pin(pending),
                run: Some(run.detached(Arc::clone(self.middleware()), P::INFO)),
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

/// Makes a call several times, each some time after the one before, and returns the first result and the number of
/// attempts.
async fn hedged<C: MakeAsyncCalls, P: ProcedureCall + Sync>(
    inner: &C,
    call: &P,
    options: CallOptions<'_>,
    deadline: Option<Instant>,
    hedging: Hedging,
) -> (Result<P::Result, P::Error>, u32) {
    let mut waiting: Vec<Attempt<'_, P::Result, P::Error>> = Vec::new();
    let mut made = 0;
    let mut is_due = true;
    loop {
        let may_make = |made| made < hedging.attempts.max(1);
        if is_due && may_make(made) {
            let options = match deadline {
                Some(deadline) if made > 0 => {
                    options.timeout(deadline.saturating_duration_since(Instant::now()))
                }
                _ => options,
            };
            waiting.push(Box::pin(inner.call_with(call, options)));
            made += 1;
        }
        let pause = may_make(made).then_some(hedging.delay);
        match first_of(&mut waiting, pause).await {
            None => is_due = true,
            Some(Err(error)) if (!waiting.is_empty() || pause.is_some()) && is_lost(&error) => {
                is_due = true;
            }
            Some(result) => return (result, made),
        }
    }
}

/// Waits for the first of several attempts and takes it out, but not beyond `pause`.
async fn first_of<T, E>(
    waiting: &mut Vec<Attempt<'_, T, E>>,
    pause: Option<Duration>,
) -> Option<Result<T, E>> {
    let mut pause = pin!(sleep(pause.unwrap_or(FOR_EVER)));
    poll_fn(|cx| {
        for index in 0..waiting.len() {
            if let Poll::Ready(result) = waiting[index].as_mut().poll(cx) {
                drop(waiting.swap_remove(index));
                return Poll::Ready(Some(result));
            }
        }
        pause.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// A call that was started through middleware: a future of its result.
#[must_use = "dropping a pending call gives it up"]
pub struct LayeredCall<F, M: Middleware> {
    pending: Pin<Box<F>>,
    run: Option<CallRun<'static, Arc<M>>>,
}

impl<T, E: ProcedureError, F: Future<Output = Result<T, E>>, M: Middleware> Future
    for LayeredCall<F, M>
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let polled = self.pending.as_mut().poll(cx);
        if let Poll::Ready(result) = &polled
            && let Some(run) = self.run.take()
        {
            run.end(&outcome_of(result));
        }
        polled
    }
}

/// Nothing in it is pinned but what is in the box.
impl<F, M: Middleware> Unpin for LayeredCall<F, M> {}

impl<F: fmt::Debug, M: Middleware> fmt::Debug for LayeredCall<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredCall")
            .field("pending", &self.pending)
            .field("run", &self.run)
            .finish()
    }
}

#[cold]
pub(super) fn rejected<E: ProcedureError>(rejection: Rejection) -> E {
    CallError::Rejected(rejection).into()
}
