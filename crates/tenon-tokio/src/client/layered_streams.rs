//! Calls with streams through middleware: its hooks begin before the call is opened, and end when its reply has come. A
//! call that fails before its first item has gone or come may be made again.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tenon_core::client::Results;
use tenon_core::error::CallError;
use tenon_core::middleware::{
    CallRun, CallScope, Layered, Middleware, Rejection, outcome_of, outcome_of_error,
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

/// Opens a call by `open` in the middle of the middleware, which may have that repeated; returns what was opened and the
/// run, which ends with the call.
macro_rules! opened {
    ($layered:expr, $procedure:ty, $options:expr, |$inner:ident, $given:ident| $open:expr) => {{
        let ($inner, middleware) = ($layered.inner(), $layered.middleware());
        let scope =
            CallScope::at_client_with_streams(<$procedure>::INFO, $inner.target(), $options);
        let mut run = CallRun::begin(&**middleware, scope).map_err(rejected)?;
        loop {
            wait_until_released(&mut run).await.map_err(rejected)?;
            let $given = run.scope().options();
            match $open.await {
                Ok(opened) => {
                    break (
                        opened,
                        run.detached(Arc::clone(middleware), <$procedure>::INFO),
                    );
                }
                Err(error) if run.end_attempt(&outcome_of_error(&error)) => {}
                Err(error) => return Err(error),
            }
        }
    }};
}

impl<C: MakeAsyncCalls + OpenAsyncStreams + Send, M: Middleware> OpenAsyncStreams
    for Layered<C, M>
{
    async fn open_result<P: ProcedureCall<Result = ()> + Sync, T>(
        &self,
        call: &P,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemStream<T, P::Error>, P::Error> {
        let (items, run) = opened!(self, P, options, |inner, options| {
            inner.open_result(call, decode, options.repeatable())
        });
        Ok(items.map_source(|source| LayeredSource::boxed(source, run)))
    }

    async fn open_argument<P: ProcedureCall + Sync, T>(
        &self,
        call: &P,
        encode: EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentSink<T, P::Result, P::Error>, P::Error> {
        let (items, run) = opened!(self, P, options, |inner, options| {
            inner.open_argument(call, encode, options)
        });
        let run = Some(run);
        Ok(items.map_reply(|reply| Box::new(LayeredReply { reply, run })))
    }

    async fn open_both<P: ProcedureCall<Result = ()> + Sync, A, T>(
        &self,
        call: &P,
        encode: EncodeItem<A>,
        decode: DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<(ItemSink<A, P::Error>, ItemStream<T, P::Error>), P::Error> {
        let ((sink, items), run) = opened!(self, P, options, |inner, options| {
            inner.open_both(call, encode, decode, options)
        });
        let items = items.map_source(|source| LayeredSource::boxed(source, run));
        Ok((sink, items))
    }
}

/// The items of a result, which end the run of their call.
struct LayeredSource<M: Middleware> {
    source: Box<dyn ItemSource>,
    run: OpenRun<M>,
    repetition: Repetition<M>,
}

/// How far a call is that is made again.
enum Repetition<M: Middleware> {
    /// It is not.
    None,
    /// The middleware holds it back.
    Held(HeldRun<M>),
    /// It is being sent.
    Opening,
}

/// The run of a call that the middleware holds back, and whether it is to go on.
type HeldRun<M> =
    Pin<Box<dyn Future<Output = (CallRun<'static, Arc<M>>, Result<(), Rejection>)> + Send>>;

impl<M: Middleware> LayeredSource<M> {
    fn boxed(source: Box<dyn ItemSource>, run: CallRun<'static, Arc<M>>) -> Box<dyn ItemSource> {
        Box::new(Self {
            source,
            run: Some(run),
            repetition: Repetition::None,
        })
    }

    /// Ends an attempt, which has failed before an item has come; returns whether the call is to be made again.
    fn end_attempt(&mut self, error: &CallError) -> bool {
        let may_reopen = self.source.can_reopen();
        let Some(mut run) = self.run.take_if(|_| may_reopen) else {
            return false;
        };
        if !run.end_attempt(&outcome_of_error(error)) {
            return false;
        }
        self.repetition = Repetition::Held(Box::pin(async move {
            let released = wait_until_released(&mut run).await;
            (run, released)
        }));
        true
    }

    /// Makes the call again, if it is to be, as soon as the middleware lets it go.
    fn poll_reopened(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        if let Repetition::Held(held) = &mut self.repetition {
            let (run, released) = ready!(held.as_mut().poll(cx));
            self.run = Some(run);
            self.repetition = Repetition::None;
            released.map_err(CallError::Rejected)?;
            self.repetition = Repetition::Opening;
        }
        if let Repetition::Opening = self.repetition {
            let opened = ready!(self.source.poll_reopened(cx));
            self.repetition = Repetition::None;
            opened?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<M: Middleware> ItemSource for LayeredSource<M> {
    fn poll_items(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReceivedItems,
        taken: u64,
    ) -> Poll<Result<bool, CallError>> {
        let mut taken = taken;
        loop {
            let polled = match ready!(self.poll_reopened(cx)) {
                Ok(()) => ready!(self.source.poll_items(cx, into, mem::take(&mut taken))),
                Err(error) => Err(error),
            };
            match &polled {
                Ok(true) => {}
                Err(error) if self.end_attempt(error) => continue,
                Ok(false) | Err(_) => {
                    if let Some(run) = self.run.take() {
                        run.end(&outcome_of(&polled));
                    }
                }
            }
            return Poll::Ready(polled);
        }
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
