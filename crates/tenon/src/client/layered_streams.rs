//! Calls with streams through middleware: its hooks begin before the call is opened, and end when its reply has come. A
//! call that fails before its first item has gone or come may be made again.

use std::sync::Arc;

use tenon_core::client::Results;
use tenon_core::error::CallError;
use tenon_core::middleware::{
    CallRun, CallScope, Layered, Middleware, Rejection, outcome_of, outcome_of_error,
    wait_until_released,
};
use tenon_core::options::CallOptions;
use tenon_core::procedure::ProcedureCall;
use tenon_core::streams::ReceivedItems;
use tenon_core::{LeanInput, MakeCalls};
use tenon_wire::{Encoder, Lean};

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
        let decode = Arc::new(decode);
        let (items, run) = opened::<_, _, P, _>(self, options, |options| {
            let decode = Arc::clone(&decode);
            let decode = move |input: &mut LeanInput<'_>| decode(input);
            self.inner().open_result(call, decode, options.repeatable())
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
        let encode = Arc::new(encode);
        let (items, run) = opened::<_, _, P, _>(self, options, |options| {
            let encode = Arc::clone(&encode);
            let encode = move |item: &T, out: &mut Encoder<'_, Lean>| encode(item, out);
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
        let (encode, decode) = (Arc::new(encode), Arc::new(decode));
        let ((writer, items), run) = opened::<_, _, P, _>(self, options, |options| {
            let (encode, decode) = (Arc::clone(&encode), Arc::clone(&decode));
            let encode = move |item: &A, out: &mut Encoder<'_, Lean>| encode(item, out);
            let decode = move |input: &mut LeanInput<'_>| decode(input);
            self.inner().open_both(call, encode, decode, options)
        })?;
        let items = items.map_source(|source| LayeredSource::boxed(source, run));
        Ok((writer, items))
    }
}

/// Opens a call by `open` in the middle of the middleware, which may have that repeated, and returns the run, which ends
/// with the call.
fn opened<C: MakeCalls, M: Middleware, P: ProcedureCall, O>(
    layered: &Layered<C, M>,
    options: CallOptions<'_>,
    open: impl Fn(CallOptions<'_>) -> Result<O, P::Error>,
) -> Result<(O, CallRun<'static, Arc<M>>), P::Error> {
    let middleware = layered.middleware();
    let scope = CallScope::at_client_with_streams(P::INFO, layered.inner().target(), options);
    let mut run = CallRun::begin(&**middleware, scope).map_err(rejected)?;
    loop {
        wait_until_released(&mut run).map_err(rejected)?;
        match open(run.scope().options()) {
            Ok(opened) => return Ok((opened, run.detached(Arc::clone(middleware), P::INFO))),
            Err(error) if run.end_attempt(&outcome_of_error(&error)) => {}
            Err(error) => return Err(error),
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
        Box::new(Self {
            source,
            run: Some(run),
        })
    }

    /// Ends an attempt, which has failed before an item has come; returns whether the call is to be made again.
    fn end_attempt(&mut self, error: &CallError) -> bool {
        let may_reopen = self.source.can_reopen();
        let run = self.run.as_mut().filter(|_| may_reopen);
        run.is_some_and(|run| run.end_attempt(&outcome_of_error(error)))
    }

    /// Makes the call again, as soon as the middleware lets it go.
    fn reopen(&mut self) -> Result<(), CallError> {
        if let Some(run) = &mut self.run {
            wait_until_released(run).map_err(CallError::Rejected)?;
        }
        self.source.reopen()
    }
}

impl<M: Middleware> ItemSource for LayeredSource<M> {
    fn wait(&mut self, into: &mut ReceivedItems, taken: u64) -> Result<bool, CallError> {
        let mut waited = self.source.wait(into, taken);
        while let Err(error) = &waited
            && self.end_attempt(error)
        {
            waited = match self.reopen() {
                Ok(()) => self.source.wait(into, 0),
                Err(error) => Err(error),
            };
        }
        if !matches!(waited, Ok(true))
            && let Some(run) = self.run.take()
        {
            run.end(&outcome_of(&waited));
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
