//! Awaiting calls of a server of tasks to one of its clients.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tenon_core::CallTarget;
use tenon_core::callbacks::{CallbackClient, StartedCallback};
use tenon_core::caller::{DecodeBy, Decoding};
use tenon_core::client::Results;
use tenon_core::error::CallError;
use tenon_core::options::CallOptions;
use tenon_core::procedure::{ProcedureCall, ProcedureError};
use tokio::time::{Sleep, sleep_until};

use super::make_calls::MakeAsyncCalls;

impl MakeAsyncCalls for CallbackClient {
    type Pending<T, E: ProcedureError> = CallbackFuture<T, E>;

    async fn call_with<P: ProcedureCall + Sync>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<P::Result, P::Error> {
        let started = self.start_call(call, options);
        let results = AwaitedResults::of(started?).await?;
        self.caller()
            .read::<P>(results.bytes.as_slice(), results.order)
    }

    fn start_with<P: ProcedureCall>(
        &self,
        call: &P,
        options: CallOptions<'_>,
    ) -> Result<CallbackFuture<P::Result, P::Error>, P::Error> {
        let started = self.start_call(call, options)?;
        Ok(CallbackFuture {
            results: AwaitedResults::of(started),
            decoding: self.caller().decoding(),
            decode: self.caller().decode_by::<P>(),
            error: PhantomData,
        })
    }

    fn target(&self) -> CallTarget<'_> {
        self.caller().target(self.channel().address())
    }
}

/// A call of a [`CallbackClient`] that was started: a future of its result. It is given up when it is dropped.
#[must_use = "dropping a pending call gives it up"]
pub struct CallbackFuture<T, E = CallError> {
    results: AwaitedResults,
    decoding: Decoding,
    decode: DecodeBy<T>,
    error: PhantomData<fn() -> E>,
}

impl<T, E: From<CallError>> Future for CallbackFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let results = ready!(Pin::new(&mut self.results).poll(cx))?;
        let bytes = results.bytes.as_slice();
        Poll::Ready((self.decode).decode(bytes, results.order, self.decoding))
    }
}

/// The results of a call that was started, once they are there.
#[derive(Debug)]
struct AwaitedResults {
    started: StartedCallback,
    deadline: Pin<Box<Sleep>>,
}

impl AwaitedResults {
    fn of(started: StartedCallback) -> Self {
        Self {
            deadline: Box::pin(sleep_until(started.deadline().into())),
            started,
        }
    }
}

impl Future for AwaitedResults {
    type Output = Result<Results, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(results) = self.started.poll(cx) {
            return Poll::Ready(results);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(self.started.timed_out()))
    }
}

impl<T, E> fmt::Debug for CallbackFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackFuture")
            .field("results", &self.results)
            .finish_non_exhaustive()
    }
}
