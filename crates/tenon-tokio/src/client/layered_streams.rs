//! Calls with streams through middleware: its hooks begin before the call is opened, and end when its reply has come.

use std::sync::Arc;
use std::task::{Context, Poll};

use tenon_core::client::Results;
use tenon_core::error::CallError;
use tenon_core::middleware::{
    CallOutcome, CallRun, CallScope, Layered, Middleware, outcome_of, outcome_of_error,
};
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;
use tenon_core::streams::ReceivedItems;

use super::layered::rejected;
use super::make_calls::MakeAsyncCalls;
use crate::layered::wait_until_released;
use crate::streams::{
    ArgumentSink, DecodeItem, EncodeItem, ItemSink, ItemSource, ItemStream, OpenAsyncStreams,
    ReplySource,
};

/// The run of a call through middleware, until it ends.
type OpenRun<M> = Option<CallRun<'static, Arc<M>>>;

impl<C: MakeAsyncCalls + OpenAsyncStreams + Send, M: Middleware> OpenAsyncStreams
    for Layered<C, M>
{
    async fn open_result<P: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &P,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemStream<T, P::Error>, P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        wait_until_released(&mut run).await.map_err(rejected)?;
        let options = run.scope().options();
        match self.inner().open_result(call, decode, options).await {
            Ok(items) => {
                let run = run.detached(Arc::clone(self.middleware()), P::INFO);
                Ok(items.map_source(|source| LayeredSource::boxed(source, run)))
            }
            Err(error) => {
                run.end(&outcome_of_error(&error));
                Err(error)
            }
        }
    }

    async fn open_argument<P: ProcedureCall + Sync, T>(
        &self,
        call: &P,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentSink<T, P::Result, P::Error>, P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        wait_until_released(&mut run).await.map_err(rejected)?;
        let options = run.scope().options();
        match self.inner().open_argument(call, encode, options).await {
            Ok(items) => {
                let run = run.detached(Arc::clone(self.middleware()), P::INFO);
                let run = Some(run);
                Ok(items.map_reply(|reply| Box::new(LayeredReply { reply, run })))
            }
            Err(error) => {
                run.end(&outcome_of_error(&error));
                Err(error)
            }
        }
    }

    async fn open_both<P: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &P,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<(ItemSink<A, P::Error>, ItemStream<T, P::Error>), P::Error> {
        let scope = CallScope::at_client(P::INFO, self.inner().target(), options);
        let mut run = CallRun::begin(&**self.middleware(), scope).map_err(rejected)?;
        wait_until_released(&mut run).await.map_err(rejected)?;
        let options = run.scope().options();
        match (self.inner().open_both(call, encode, decode, options)).await {
            Ok((sink, items)) => {
                let run = run.detached(Arc::clone(self.middleware()), P::INFO);
                let items = items.map_source(|source| LayeredSource::boxed(source, run));
                Ok((sink, items))
            }
            Err(error) => {
                run.end(&outcome_of_error(&error));
                Err(error)
            }
        }
    }
}

/// The items of a result, which end the run of their call.
struct LayeredSource<M: Middleware> {
    source: Box<dyn ItemSource>,
    run: OpenRun<M>,
}

impl<M: Middleware> LayeredSource<M> {
    fn boxed(source: Box<dyn ItemSource>, run: CallRun<'static, Arc<M>>) -> Box<dyn ItemSource> {
        let run = Some(run);
        Box::new(Self { source, run })
    }
}

impl<M: Middleware> ItemSource for LayeredSource<M> {
    fn poll_items(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReceivedItems,
        taken: u64,
    ) -> Poll<Result<bool, CallError>> {
        let polled = self.source.poll_items(cx, into, taken);
        let outcome = match &polled {
            Poll::Pending | Poll::Ready(Ok(true)) => return polled,
            Poll::Ready(Ok(false)) => CallOutcome::Success,
            Poll::Ready(Err(error)) => outcome_of_error(error),
        };
        if let Some(run) = self.run.take() {
            run.end(&outcome);
        }
        polled
    }

    fn give_back(&mut self, bytes: u64) {
        self.source.give_back(bytes);
    }

    fn item_max(&self) -> usize {
        self.source.item_max()
    }
}

/// The reply to a call of which the argument is a stream, which ends the run of the call.
struct LayeredReply<M: Middleware> {
    reply: Box<dyn ReplySource>,
    run: OpenRun<M>,
}

impl<M: Middleware> ReplySource for LayeredReply<M> {
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Results, CallError>> {
        let polled = self.reply.poll_reply(cx);
        if let Poll::Ready(result) = &polled
            && let Some(run) = self.run.take()
        {
            run.end(&outcome_of(result));
        }
        polled
    }
}
