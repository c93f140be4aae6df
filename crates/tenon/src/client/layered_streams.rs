//! Calls with streams through middleware: its hooks begin before the call is opened, and end when its reply has come.

use std::sync::Arc;

use tenon_core::MakeCalls;
use tenon_core::client::Results;
use tenon_core::error::CallError;
use tenon_core::middleware::{
    CallOutcome, CallRun, CallScope, Layered, Middleware, Rejection, outcome_of, outcome_of_error,
    wait_until_released,
};
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;
use tenon_core::streams::ReceivedItems;

use crate::streams::{
    ArgumentWriter, DecodeItem, EncodeItem, ItemReader, ItemSource, OpenStreams, ReplySource,
    StreamPair,
};

/// The run of a call through middleware, until it ends.
type OpenRun<M> = Option<CallRun<'static, Arc<M>>>;

fn rejected<E: From<CallError>>(rejection: Rejection) -> E {
    CallError::Rejected(rejection).into()
}

impl<C: MakeCalls + OpenStreams, M: Middleware> OpenStreams for Layered<C, M> {
    fn open_result<P: ProcedureCall<Result = ()>, T>(
        &self,
        call: &P,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ItemReader<T, P::Error>, P::Error> {
        let (items, run) = opened::<_, _, P, _>(self, options, |options| {
            self.inner().open_result(call, decode, options)
        })?;
        Ok(items.map_source(|source| LayeredSource::boxed(source, run)))
    }

    fn open_argument<P: ProcedureCall, T>(
        &self,
        call: &P,
        encode: impl EncodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<ArgumentWriter<T, P::Result, P::Error>, P::Error>
    where
        P::Result: 'static,
    {
        let (items, run) = opened::<_, _, P, _>(self, options, |options| {
            self.inner().open_argument(call, encode, options)
        })?;
        let run = Some(run);
        Ok(items.map_reply(|reply| Box::new(LayeredReply { reply, run })))
    }

    fn open_both<P: ProcedureCall<Result = ()>, A, T>(
        &self,
        call: &P,
        encode: impl EncodeItem<A>,
        decode: impl DecodeItem<T>,
        options: CallOptions<'_>,
    ) -> Result<StreamPair<A, T, P::Error>, P::Error> {
        let ((writer, items), run) = opened::<_, _, P, _>(self, options, |options| {
            self.inner().open_both(call, encode, decode, options)
        })?;
        let items = items.map_source(|source| LayeredSource::boxed(source, run));
        Ok((writer, items))
    }
}

/// Opens a call by `open` in the middle of the middleware, and returns the run, which ends with the call.
fn opened<C: MakeCalls, M: Middleware, P: ProcedureCall, O>(
    layered: &Layered<C, M>,
    options: CallOptions<'_>,
    open: impl FnOnce(CallOptions<'_>) -> Result<O, P::Error>,
) -> Result<(O, CallRun<'static, Arc<M>>), P::Error> {
    let middleware = layered.middleware();
    let scope = CallScope::at_client(P::INFO, layered.inner().target(), options);
    let mut run = CallRun::begin(&**middleware, scope).map_err(rejected)?;
    wait_until_released(&mut run).map_err(rejected)?;
    match open(run.scope().options()) {
        Ok(opened) => Ok((opened, run.detached(Arc::clone(middleware), P::INFO))),
        Err(error) => {
            run.end(&outcome_of_error(&error));
            Err(error)
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
    fn wait(&mut self, into: &mut ReceivedItems, taken: u64) -> Result<bool, CallError> {
        let waited = self.source.wait(into, taken);
        let outcome = match &waited {
            Ok(true) => return waited,
            Ok(false) => CallOutcome::Success,
            Err(error) => outcome_of_error(error),
        };
        if let Some(run) = self.run.take() {
            run.end(&outcome);
        }
        waited
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
    fn wait(&mut self) -> Result<Results, CallError> {
        let result = self.reply.wait();
        if let Some(run) = self.run.take() {
            run.end(&outcome_of(&result));
        }
        result
    }
}
