//! Calls with streams.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};

use tenon_core::ReplyMetadata;
use tenon_core::client::{CallId, Outcome, RepeatableCall, Results, StoppedStreams};
use tenon_core::error::{CallError, LeanException};
use tenon_core::streams::{Readable, ReceivedItems, StreamPipe};
use tenon_core::timer::{CallLimit, CallTimer};
use tenon_proto::connection::{CallDraft, PushError, StreamId};
use tenon_proto::lean::{ByteOrder, ItemDraft, Status};
use tenon_wire::Buffer;
use tokio::task::coop;

use super::channel::{Channel, SharedChannel};
use super::state::{Calls, ChannelState};
use super::ticket::keep_metadata;
use super::waiters::{CallStage, WaiterId};
use crate::streams::{ItemSource, ItemTarget, ReplySource};

/// A call with streams, which the users of both share. It is given up when it is dropped before it is answered.
pub(super) struct StreamingCall {
    started: StartedStreams,
    number: u32,
    timer: CallTimer,
    pipe: Arc<StreamPipe>,
    /// Bytes of the longest item that the peer accepts.
    item_max: usize,
    reply_metadata: Option<Arc<ReplyMetadata>>,
    stopped: StoppedStreams,
}

/// The place of a call with streams among those of its channel, which is free again when this is dropped.
struct StartedStreams {
    channel: Channel,
    waiter: Option<WaiterId>,
}

impl Drop for StartedStreams {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            let shared = self.channel.shared();
            let mut state = shared.lock();
            state.give_up(waiter);
            wake_for(shared, state);
        }
        self.channel.release_room();
    }
}

/// Releases the lock, and wakes the tasks that are to be woken: the driver, too, if something is to be sent.
fn wake_for(shared: &SharedChannel, mut state: MutexGuard<'_, ChannelState>) {
    if state.needs_sender() {
        state.wake_driver();
    }
    shared.wake(state);
}

/// What is known of a call once it is in flight.
struct OpenedStreams {
    number: u32,
    pipe: Arc<StreamPipe>,
    item_max: usize,
}

impl Channel {
    /// Sends a call with streams, within `limit`, and lets it go on for as long as `timeout`.
    pub(super) async fn open(
        &self,
        (mut message, draft): (Buffer, CallDraft<'_>),
        limit: CallLimit,
        timeout: CallLimit,
        reply_metadata: Option<&Arc<ReplyMetadata>>,
    ) -> Result<StreamingCall, CallError> {
        let timer = CallTimer::start(limit);
        self.admit(&timer).await?.forget();
        let mut started = StartedStreams {
            channel: self.clone(),
            waiter: None,
        };
        let shared = self.shared();
        let start = shared.start(&mut message, &draft, &timer, None)?;
        started.waiter = Some(start.waiter);
        if let Some(half) = start.reader {
            shared.leave_reader(half);
        }
        let opened = poll_fn(|cx| shared.poll_opened(start.waiter, cx)).await?;
        let timer = CallTimer::start(timeout);
        shared.set_timer(start.waiter, opened.number, &timer);
        Ok(StreamingCall {
            started,
            number: opened.number,
            timer,
            pipe: opened.pipe,
            item_max: opened.item_max,
            reply_metadata: reply_metadata.cloned(),
            stopped: StoppedStreams::default(),
        })
    }
}

impl SharedChannel {
    /// Returns the streams of a call, once it is in flight, or over. Its task is woken when it is.
    fn poll_opened(
        &self,
        waiter: WaiterId,
        cx: &Context<'_>,
    ) -> Poll<Result<OpenedStreams, CallError>> {
        let mut state = self.lock();
        if let CallStage::Queued(_) = state.waiters.get(waiter).stage {
            state.waiters.set_task(waiter, cx.waker());
            return Poll::Pending;
        }
        if let Some((number, pipe)) = state.pipes.of_reader(waiter) {
            let pipe = Arc::clone(pipe);
            let item_max = match &state.calls {
                Calls::Stream(connection) => connection
                    .peer()
                    .map_or(usize::MAX, |peer| peer.message_max as usize),
                Calls::Datagram(_) => usize::MAX,
            };
            return Poll::Ready(Ok(OpenedStreams {
                number,
                pipe,
                item_max,
            }));
        }
        let timer = state.waiters.get(waiter).timer;
        let outcome = state.waiters.take_outcome(waiter);
        let fault = state.calls.fault();
        drop(state);
        let results = outcome.map(|outcome| outcome.into_results(&timer, || fault));
        Poll::Ready(Err(match results {
            Some(Err(error)) => error,
            Some(Ok(_)) | None => CallError::NoStreams {
                reason: "only connections carry streams",
            },
        }))
    }

    /// Gives a call that is in flight the time of its streams.
    fn set_timer(&self, waiter: WaiterId, number: u32, timer: &CallTimer) {
        let mut state = self.lock();
        state.waiters.get(waiter).timer = *timer;
        if let Calls::Stream(connection) = &mut state.calls {
            connection.set_call_deadline(number, timer.deadline());
        }
        if state.expect(timer.deadline()) {
            state.wake_driver();
        }
        self.wake(state);
    }
}

impl ChannelState {
    /// Notes that a call with streams is in flight.
    #[cold]
    pub(super) fn open_streams(&mut self, waiter: WaiterId, call: &CallId) {
        if let CallId::Stream(call) = call {
            self.pipes.open(call.number, waiter);
            let task = self.waiters.wake(waiter);
            self.woken.extend(task);
        }
    }

    /// Has the users of the streams of a call woken, as it is over, and the peer send as much of other streams.
    #[cold]
    pub(super) fn end_streams(&mut self, waiter: WaiterId) {
        let Some((number, pipe)) = self.pipes.of_reader(waiter) else {
            return;
        };
        let unreturned = pipe.take_unreturned();
        if let Some(writer) = self.pipes.writer(number) {
            let task = self.waiters.wake(writer);
            self.woken.extend(task);
        }
        if let Calls::Stream(connection) = &mut self.calls
            && unreturned > 0
        {
            connection.give_back(StreamId::own(number), unreturned);
        }
    }

    /// Forgets the streams of a call that is given up.
    #[cold]
    pub(super) fn close_streams(&mut self, waiter: WaiterId) {
        self.end_streams(waiter);
        if let Some((number, _)) = self.pipes.of_reader(waiter) {
            self.pipes.close(number);
        }
    }

    /// Returns whether a call has streams that are open: it cannot be made again, as items may be lost.
    pub(super) fn has_open_streams(&self, waiter: WaiterId) -> bool {
        !self.pipes.is_empty() && self.pipes.of_reader(waiter).is_some()
    }

    /// Ends a call with streams that the peer has not begun.
    #[cold]
    pub(super) fn end_unbegun_streams(&mut self, waiter: WaiterId) {
        let lost = io::Error::from(io::ErrorKind::ConnectionAborted).into();
        self.end(waiter, Outcome::Lost(lost, false));
    }

    /// Wakes the tasks that have waited for room for items, and for which there is some now.
    #[cold]
    pub(super) fn wake_writers(&mut self) {
        let Calls::Stream(connection) = &mut self.calls else {
            return;
        };
        while let Some(id) = connection.poll_writable() {
            if let Some(writer) = self.pipes.writer(id.number) {
                self.woken.extend(self.waiters.wake(writer));
            }
        }
    }

    /// Notes that items of so many bytes of credit were taken.
    fn give_back(&mut self, call: &StreamingCall, bytes: u64) {
        let returned = match bytes {
            0 => 0,
            _ => call.pipe.note_returned(bytes),
        };
        if let Calls::Stream(connection) = &mut self.calls
            && returned > 0
        {
            connection.give_back(call.id(), returned);
        }
    }

    fn is_in_flight(&mut self, waiter: WaiterId) -> bool {
        matches!(self.waiters.get(waiter).stage, CallStage::InFlight(_))
    }
}

impl StreamingCall {
    fn shared(&self) -> &SharedChannel {
        self.started.channel.shared()
    }

    fn waiter(&self) -> WaiterId {
        // It was set before the call was opened.
        self.started.waiter.unwrap_or_default()
    }

    fn id(&self) -> StreamId {
        StreamId::own(self.number)
    }

    /// Returns the reply, if it is there; otherwise the task is woken when it is.
    fn poll_outcome(
        &self,
        state: &mut ChannelState,
        cx: &Context<'_>,
    ) -> Poll<Result<Results, CallError>> {
        let waiter = self.waiter();
        if self.is_waited_for(state) {
            state.waiters.set_task(waiter, cx.waker());
            return Poll::Pending;
        }
        let outcome = state.waiters.take_outcome(waiter);
        let outcome = outcome.ok_or(CallError::StreamClosed)?;
        let fault = || state.calls.fault();
        let results = self.stopped.results_of(outcome, &self.timer, fault);
        if let Some(place) = &self.reply_metadata {
            keep_metadata(&results, place);
        }
        Poll::Ready(results)
    }

    fn is_waited_for(&self, state: &mut ChannelState) -> bool {
        state.is_in_flight(self.waiter())
    }

    /// Gives the call up, of which one half was dropped: the other is told.
    fn cancel(&self) {
        let mut state = self.shared().lock();
        let waiter = self.waiter();
        let CallStage::InFlight(call) = state.waiters.get(waiter).stage else {
            return;
        };
        state.calls.cancel(call);
        let text = "the receiver or the sender of its items was dropped";
        let error = CallError::Exception(LeanException::local(Status::CANCELLED, text));
        state.end(waiter, Outcome::Answered(Err(Box::new(error))));
        wake_for(self.shared(), state);
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
    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Results, CallError>> {
        let mut state = self.0.shared().lock();
        self.0.poll_outcome(&mut state, cx)
    }
}

/// The items of the result of a call.
pub(super) struct ResultSource {
    channel: Channel,
    /// `None` while it is made again.
    call: Option<Arc<StreamingCall>>,
    /// True once the reply was fetched.
    is_over: bool,
    /// The call as it is made again, until its first items have come.
    again: Option<Arc<RepeatableCall>>,
    /// It is being made again.
    opening: Option<Opening>,
}

/// A call that is being made again.
type Opening = Pin<Box<dyn Future<Output = Result<StreamingCall, CallError>> + Send>>;

impl ResultSource {
    pub(super) fn new(call: &Arc<StreamingCall>, again: Option<RepeatableCall>) -> Self {
        Self {
            channel: call.started.channel.clone(),
            call: Some(Arc::clone(call)),
            is_over: false,
            again: again.map(Arc::new),
            opening: None,
        }
    }

    /// Begins to make the call again, in the place of the one that has failed.
    fn open_again(&mut self) -> Result<Opening, CallError> {
        let again = self.again.clone().ok_or(CallError::StreamClosed)?;
        let channel = self.channel.clone();
        self.call = None;
        Ok(Box::pin(async move {
            let (limit, timeout) = again.limits();
            let place = again.reply_metadata();
            channel.open(again.written(), limit, timeout, place).await
        }))
    }
}

impl ItemSource for ResultSource {
    fn poll_items(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReceivedItems,
        taken: u64,
    ) -> Poll<Result<bool, CallError>> {
        let call = self.call.as_deref().ok_or(CallError::StreamClosed)?;
        let mut state = call.shared().lock();
        state.give_back(call, taken);
        // A peer that is as quick as this end must not keep other tasks waiting for ever.
        let coop = match coop::poll_proceed(cx) {
            Poll::Ready(coop) => coop,
            Poll::Pending => {
                wake_for(call.shared(), state);
                return Poll::Pending;
            }
        };
        let polled = match call.pipe.take(into) {
            Readable::Items => {
                self.again = None;
                Poll::Ready(Ok(true))
            }
            _ => call
                .poll_outcome(&mut state, cx)
                .map(|results| results.map(|_| false)),
        };
        wake_for(call.shared(), state);
        if let Poll::Ready(result) = &polled {
            coop.made_progress();
            self.is_over = !matches!(result, Ok(true));
        }
        polled
    }

    fn give_back(&mut self, bytes: u64) {
        if let Some(call) = &self.call {
            let mut state = call.shared().lock();
            state.give_back(call, bytes);
            wake_for(call.shared(), state);
        }
    }

    fn item_max(&self) -> usize {
        self.channel.shared().options.receive_max
    }

    fn can_reopen(&self) -> bool {
        self.again.is_some()
    }

    fn poll_reopened(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let mut opening = match self.opening.take() {
            Some(opening) => opening,
            None => self.open_again()?,
        };
        let Poll::Ready(opened) = opening.as_mut().poll(cx) else {
            self.opening = Some(opening);
            return Poll::Pending;
        };
        self.call = Some(Arc::new(opened?));
        self.is_over = false;
        Poll::Ready(Ok(()))
    }
}

impl Drop for ResultSource {
    fn drop(&mut self) {
        if let Some(call) = &self.call
            && !self.is_over
        {
            call.cancel();
        }
    }
}

/// The items of an argument of a call.
pub(super) struct ArgumentTarget {
    call: Arc<StreamingCall>,
    /// The waiter of the sender, once it had to wait.
    waiter: Option<WaiterId>,
    has_ended: bool,
}

impl ArgumentTarget {
    pub(super) fn new(call: &Arc<StreamingCall>) -> Self {
        Self {
            call: Arc::clone(call),
            waiter: None,
            has_ended: false,
        }
    }

    fn closed(&self, state: &mut ChannelState) -> CallError {
        if self.call.timer.is_over() {
            return self.call.timer.error(true);
        }
        let outcome = match &state.waiters.get(self.call.waiter()).stage {
            CallStage::Over(outcome) => Some(outcome),
            _ => None,
        };
        self.call.stopped.error_of_item(outcome)
    }
}

impl ItemTarget for ArgumentTarget {
    fn draft(&self) -> ItemDraft {
        ItemDraft::new(ByteOrder::NATIVE, self.call.number, false)
    }

    fn item_max(&self) -> usize {
        self.call.item_max
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        messages: &mut Buffer,
    ) -> Poll<Result<(), CallError>> {
        let coop = ready!(coop::poll_proceed(cx));
        let call = &*self.call;
        let mut state = call.shared().lock();
        let pushed = match (call.is_waited_for(&mut state), &mut state.calls) {
            (true, Calls::Stream(connection)) => connection.push_item(call.id(), messages),
            _ => Err(PushError::Over),
        };
        match pushed {
            Ok(()) => {
                coop.made_progress();
                wake_for(call.shared(), state);
                Poll::Ready(Ok(()))
            }
            Err(PushError::Over) => Poll::Ready(Err(self.closed(&mut state))),
            Err(PushError::Full) => {
                let take = || state.waiters.take(call.timer);
                let waiter = *self.waiter.get_or_insert_with(take);
                state.pipes.set_writer(call.number, Some(waiter));
                state.waiters.set_task(waiter, cx.waker());
                Poll::Pending
            }
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut state = self.call.shared().lock();
        if let Calls::Stream(connection) = &mut state.calls {
            connection.end_stream(self.call.id());
        }
        wake_for(self.call.shared(), state);
    }
}

impl Drop for ArgumentTarget {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            let mut state = self.call.shared().lock();
            state.pipes.set_writer(self.call.number, None);
            state.waiters.release(waiter);
        }
        if !self.has_ended {
            self.call.cancel();
        }
    }
}
