//! Calls with streams.

use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_core::ReplyMetadata;
use tenon_core::client::{CallId, Outcome, RepeatableCall, Results, StoppedStreams, seal};
use tenon_core::error::{CallError, LeanException};
use tenon_core::profile::NoProbe;
use tenon_core::streams::{Readable, ReceivedItems, StreamPipe};
use tenon_core::timer::{CallLimit, CallTimer};
use tenon_proto::connection::{CallDraft, PushError, StreamId};
use tenon_proto::lean::{ByteOrder, ItemDraft, Status};
use tenon_wire::Buffer;

use super::call::{BlockingCall, InFlightCall};
use super::channel::Channel;
use super::state::{Calls, ChannelState};
use super::wait_handle::WakeHandle;
use super::waiters::WaiterId;
use crate::streams::{ItemSink, ItemSource, ReplySource};

/// A call with streams, which the users of both share. It is given up when it is dropped before it is answered.
pub(super) struct StreamingCall {
    channel: Channel,
    number: u32,
    waiter: WaiterId,
    timer: CallTimer,
    pipe: Arc<StreamPipe>,
    reply_metadata: Option<Arc<ReplyMetadata>>,
    stopped: StoppedStreams,
}

impl Channel {
    /// Sends a call with streams, within `limit`, and lets it go on for as long as `timeout`.
    pub(super) fn open(
        &self,
        mut message: Buffer,
        draft: &CallDraft<'_>,
        limit: CallLimit,
        timeout: CallLimit,
        reply_metadata: Option<&Arc<ReplyMetadata>>,
    ) -> Result<StreamingCall, CallError> {
        let timer = self.timer(limit);
        seal(&mut message, draft, self.address(), self.options())?;
        let mut call = BlockingCall {
            channel: self,
            flight: InFlightCall::new(timer),
        };
        let state = self.lock();
        let mut state = self.start_and_send(state, &mut call.flight, message, draft, NoProbe)?;
        let timer = CallTimer::start(timeout);
        let waiter = call.flight.waiter;
        let started = waiter.and_then(|waiter| state.waiters.call(waiter));
        let (Some(waiter), Some(CallId::Stream(started))) = (waiter, started) else {
            let reason = "only connections carry streams";
            return Err(CallError::NoStreams { reason });
        };
        if let Calls::Stream(connection) = &mut state.calls {
            connection.set_call_deadline(started.number, timer.deadline());
        }
        let pipe = state.pipes.pipe(started.number).cloned();
        drop(state);
        call.flight.waiter = None;
        Ok(StreamingCall {
            channel: self.clone(),
            number: started.number,
            waiter,
            timer,
            pipe: pipe.unwrap_or_default(),
            reply_metadata: reply_metadata.cloned(),
            stopped: StoppedStreams::default(),
        })
    }
}

impl StreamingCall {
    /// Waits for the reply; its results are copied.
    pub(super) fn wait(&self) -> Result<Results, CallError> {
        let mut state = self.channel.lock();
        while !state.waiters.has_outcome(self.waiter) {
            state = self.wait_once(state, self.waiter)?;
        }
        self.fetch(state)
    }

    fn fetch(&self, mut state: MutexGuard<'_, ChannelState>) -> Result<Results, CallError> {
        let outcome = state.waiters.fetch(self.waiter);
        let fault = state.calls.fault();
        drop(state);
        let outcome = outcome.ok_or(CallError::StreamClosed)?;
        let results = self.stopped.results_of(outcome, &self.timer, || fault);
        if let Some(place) = &self.reply_metadata {
            place.set_of(match &results {
                Ok(results) => Ok(results.extensions.as_deref()),
                Err(error) => Err(error),
            });
        }
        results
    }

    /// Waits once for something that may have been waited for.
    fn wait_once<'s>(
        &'s self,
        mut state: MutexGuard<'s, ChannelState>,
        waiter: WaiterId,
    ) -> Result<MutexGuard<'s, ChannelState>, CallError> {
        if self.timer.is_over() {
            state.end_call(self, &self.timer.error(true));
            return Err(self.timer.error(true));
        }
        Ok((self.channel).wait_once(state, waiter, self.timer.deadline()))
    }

    /// Gives the call up, of which one half was dropped: the other is told.
    pub(super) fn cancel(&self) {
        let mut state = self.channel.lock();
        if state.waiters.has_outcome(self.waiter) {
            return;
        }
        let text = "the call was given up by its reader or its writer";
        let exception = LeanException::local(Status::CANCELLED, text);
        state.end_call(self, &CallError::Exception(exception));
        self.transmit_now(state);
    }

    /// Sends what waits, as far as there is room.
    fn transmit_now(&self, state: MutexGuard<'_, ChannelState>) {
        if state.needs_sender() {
            drop(self.channel.transmit(state, Instant::now()));
        }
    }

    fn id(&self) -> StreamId {
        StreamId::own(self.number)
    }
}

impl ChannelState {
    /// Ends a call with streams with an error; its other half is woken.
    #[cold]
    fn end_call(&mut self, call: &StreamingCall, error: &CallError) {
        let Some(id) = self.waiters.call(call.waiter) else {
            return;
        };
        self.calls.cancel(id);
        self.return_credit(call);
        let outcome = Outcome::Answered(Err(Box::new(error.clone())));
        self.end(call.waiter, outcome);
        if let Some(writer) = self.pipes.writer(call.number) {
            self.waiters.wake(writer).inspect(WakeHandle::wake);
        }
    }

    /// Notes that the reader of a call has taken items of so many bytes of credit.
    fn give_back(&mut self, call: &StreamingCall, bytes: u64) {
        let returned = call.pipe.note_returned(bytes);
        if let Calls::Stream(connection) = &mut self.calls
            && returned > 0
        {
            connection.give_back(call.id(), returned);
        }
    }

    /// Gives the credit of items back that are not taken any more.
    fn return_credit(&mut self, call: &StreamingCall) {
        let unreturned = call.pipe.take_unreturned();
        if let Calls::Stream(connection) = &mut self.calls
            && unreturned > 0
        {
            connection.give_back(call.id(), unreturned);
        }
    }

    fn push_item(&mut self, id: StreamId, messages: &mut Buffer) -> Result<(), PushError> {
        match &mut self.calls {
            Calls::Stream(connection) => connection.push_item(id, messages),
            Calls::Datagram(_) => Err(PushError::Over),
        }
    }
}

impl Drop for StreamingCall {
    fn drop(&mut self) {
        self.channel.lock().return_credit(self);
        self.channel.give_up(self.waiter);
    }
}

impl fmt::Debug for StreamingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingCall")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The reply to a call of which the argument is a stream.
pub(super) struct StreamedReply(pub(super) Arc<StreamingCall>);

impl ReplySource for StreamedReply {
    fn wait(&mut self) -> Result<Results, CallError> {
        self.0.wait()
    }
}

/// The items of the result of a call.
pub(super) struct ResultSource {
    call: Arc<StreamingCall>,
    /// True once the reply was fetched.
    is_over: bool,
    /// The call as it is made again, until its first items have come.
    again: Option<Box<RepeatableCall>>,
}

impl ResultSource {
    pub(super) fn new(call: &Arc<StreamingCall>, again: Option<RepeatableCall>) -> Self {
        Self {
            call: Arc::clone(call),
            is_over: false,
            again: again.map(Box::new),
        }
    }
}

impl ItemSource for ResultSource {
    fn wait(&mut self, into: &mut ReceivedItems, taken: u64) -> Result<bool, CallError> {
        let call = &*self.call;
        let mut state = call.channel.lock();
        state.give_back(call, taken);
        loop {
            if call.pipe.take(into) == Readable::Items {
                call.transmit_now(state);
                self.again = None;
                return Ok(true);
            }
            if state.waiters.has_outcome(call.waiter) {
                self.is_over = true;
                return call.fetch(state).map(|_| false);
            }
            state = call.wait_once(state, call.waiter)?;
        }
    }

    fn give_back(&mut self, bytes: u64) {
        let mut state = self.call.channel.lock();
        state.give_back(&self.call, bytes);
        self.call.transmit_now(state);
    }

    fn item_max(&self) -> usize {
        self.call.channel.options().receive_max
    }

    fn can_reopen(&self) -> bool {
        self.again.is_some()
    }

    fn reopen(&mut self) -> Result<(), CallError> {
        let again = self.again.as_ref().ok_or(CallError::StreamClosed)?;
        let (message, draft) = again.written();
        let (limit, timeout) = again.limits();
        let channel = self.call.channel.clone();
        let call = channel.open(message, &draft, limit, timeout, again.reply_metadata())?;
        self.call = Arc::new(call);
        self.is_over = false;
        Ok(())
    }
}

impl Drop for ResultSource {
    fn drop(&mut self) {
        if !self.is_over {
            self.call.cancel();
        }
    }
}

/// The items of an argument of a call.
pub(super) struct ArgumentSink {
    call: Arc<StreamingCall>,
    /// The waiter of the writer, once it had to wait.
    waiter: Option<WaiterId>,
    has_ended: bool,
}

impl ArgumentSink {
    pub(super) fn new(call: &Arc<StreamingCall>) -> Self {
        Self {
            call: Arc::clone(call),
            waiter: None,
            has_ended: false,
        }
    }
}

impl ItemSink for ArgumentSink {
    fn draft(&self) -> ItemDraft {
        ItemDraft::new(ByteOrder::NATIVE, self.call.number, false)
    }

    fn item_max(&self) -> usize {
        match &self.call.channel.lock().calls {
            Calls::Stream(connection) => connection
                .peer()
                .map_or(usize::MAX, |peer| peer.message_max as usize),
            Calls::Datagram(_) => usize::MAX,
        }
    }

    fn send(&mut self, messages: &mut Buffer) -> Result<(), CallError> {
        let call = &*self.call;
        let mut state = call.channel.lock();
        loop {
            match state.push_item(call.id(), messages) {
                Ok(()) => break,
                Err(PushError::Over) => {
                    let outcome = state.waiters.outcome(call.waiter);
                    return Err(call.stopped.error_of_item(outcome));
                }
                Err(PushError::Full) => {}
            }
            let waiter = *self.waiter.get_or_insert_with(|| state.waiters.take());
            state.pipes.set_writer(call.number, Some(waiter));
            state = call.wait_once(state, waiter)?;
        }
        if state.needs_sender() {
            drop(call.channel.transmit(state, call.timer.deadline()));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), CallError> {
        self.has_ended = true;
        let mut state = self.call.channel.lock();
        if let Calls::Stream(connection) = &mut state.calls {
            connection.end_stream(self.call.id());
        }
        self.call.transmit_now(state);
        Ok(())
    }
}

impl Drop for ArgumentSink {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            let mut state = self.call.channel.lock();
            state.pipes.set_writer(self.call.number, None);
            state.release(waiter);
        }
        if !self.has_ended {
            self.call.cancel();
        }
    }
}
