//! The task of a connection: it receives, carries calls out, and sends the replies that are there together.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use tenon_core::serve::{
    AgeStep, CALLS_PER_TURN, CallToServe, Discarded, EndReason, HalfClose, HostShare, Sending,
    ServedStream,
};
use tenon_core::service::CancelFlag;
use tenon_core::streams::{ServedStreams, StreamPort};
use tenon_core::wait::{LOOKS, Looking, Polled, WaitContext, Waiter};
use tenon_net::Stream;
use tenon_proto::connection::framing::ReceiveMemory;
use tenon_proto::connection::{ReceivedCall, TransmitBatch};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;
use tokio::time::{Sleep, sleep_until, timeout_at};

use super::call::CallMessage;
use super::call_room::CallPermit;
use super::dispatch::{HandlerClock, InlineOutcome, OffloadedCall};
use super::mailbox::{CallbackNews, ReplyMailbox, ReplyTarget};
use super::running::CallHandler;
use super::state::ServerState;
use crate::watch::{AsyncSocket, LOOK_MAX, SILENCE_MAX, is_for_now, yield_to_others};

/// Receives at a time; then other tasks have their turn.
const RECEIVES_MAX: usize = 16;

thread_local! {
    /// Memory that connections without a message that has begun receive into.
    static MEMORY: RefCell<ReceiveMemory> = RefCell::default();
}

/// Room among the calls that are carried out elsewhere, once there is some.
type AwaitedPermit = Pin<Box<dyn Future<Output = Option<CallPermit>> + Send>>;

/// The task of a connection.
pub(super) struct ConnectionTask {
    state: Arc<ServerState>,
    mailbox: Arc<ReplyMailbox>,
    socket: AsyncSocket<Stream>,
    served: ServedStream,
    reply: Buffer,
    /// Answers that were carried out elsewhere, in memory that is used again.
    answers: Vec<(ReplyTarget, Buffer)>,
    waiter: Waiter,
    /// The number of the last poll of a connection of this server, if that was of this one.
    last_poll: usize,
    /// Since when the task waits for a call for which it has looked in vain.
    slept_since: Option<Instant>,
    /// Room that a call waits for.
    awaited_room: Option<AwaitedPermit>,
    /// Room for the call that has waited for it.
    room: Option<CallPermit>,
    alarm: Pin<Box<Sleep>>,
    is_set_for: Option<Instant>,
    /// The reason for which the connection ends once everything is answered.
    ends: Option<EndReason>,
    /// Goes with the connection.
    _host: HostShare,
}

impl ConnectionTask {
    pub(super) fn new(
        state: Arc<ServerState>,
        mailbox: Arc<ReplyMailbox>,
        socket: AsyncSocket<Stream>,
        host: HostShare,
    ) -> Self {
        let now = Instant::now();
        Self {
            served: ServedStream::new(&state.shared, mailbox.id, now),
            waiter: Waiter::new(state.waiting),
            state,
            mailbox,
            socket,
            reply: Buffer::default(),
            answers: Vec::new(),
            last_poll: 0,
            slept_since: None,
            awaited_room: None,
            room: None,
            alarm: Box::pin(sleep_until(now.into())),
            is_set_for: None,
            ends: None,
            _host: host,
        }
    }

    /// Serves the connection until it ends.
    pub(super) async fn run(mut self) {
        let reason = poll_fn(|cx| self.poll(cx)).await;
        if self.end(&reason) {
            // The peer need not end its side in time.
            wait_for_end(&self.socket).await;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<EndReason> {
        if self.mailbox.is_abandoned() {
            return Poll::Ready(EndReason::Stopping);
        }
        self.take_answers(cx);
        if self.mailbox.take_end_of_streams() {
            self.served.end_streaming_calls();
        }
        let served = MEMORY.with_borrow_mut(|memory| {
            self.served.lend(memory);
            let served = self.serve(cx, memory);
            self.served.reclaim(memory);
            served
        });
        (self.mailbox.tally).publish(&self.served.counters());
        self.served.take_writers().wake();
        match served {
            Ok(ConnectionProgress::More) => {
                yield_to_others(cx);
                Poll::Pending
            }
            Ok(ConnectionProgress::Waits) => match self.park(cx) {
                Ok(()) => Poll::Pending,
                Err(reason) => Poll::Ready(reason),
            },
            Ok(ConnectionProgress::Over(reason)) | Err(reason) => Poll::Ready(reason),
        }
    }

    /// Takes the answers to calls that were carried out elsewhere.
    fn take_answers(&mut self, cx: &Context<'_>) {
        let has_callbacks = (self.mailbox).take_answers(cx.waker(), &mut self.answers);
        for (to, mut reply) in self.answers.drain(..) {
            match to {
                ReplyTarget::Stream(id) => self.served.answer_deferred(id, &mut reply),
                ReplyTarget::Items(number) => self.served.push_items(number, reply),
                ReplyTarget::ItemsTaken(number, bytes) => self.served.give_back(number, bytes),
                ReplyTarget::ItemsUnwanted(number) => self.served.stop_receiving(number),
                ReplyTarget::Datagram(_) => {}
            }
        }
        if has_callbacks {
            self.take_callbacks();
        }
    }

    /// Takes what handlers have left of calls back.
    #[cold]
    fn take_callbacks(&mut self) {
        for news in self.mailbox.take_callbacks() {
            match news {
                CallbackNews::Start(call, pending) => self.served.start_callback(call, pending),
                CallbackNews::Cancel(pending) => self.served.cancel_callback(&pending),
            }
        }
    }

    /// Serves what has come, up to a limit.
    fn serve(
        &mut self,
        cx: &mut Context<'_>,
        memory: &mut ReceiveMemory,
    ) -> Result<ConnectionProgress, EndReason> {
        let is_lone = self.is_lone();
        for _ in 0..RECEIVES_MAX {
            // A peer that does not read its replies is carried out no further calls.
            if self.served.has_many_replies() && self.transmit(cx)? == Sending::Blocked {
                return Ok(ConnectionProgress::Waits);
            }
            self.carry_out(cx)?;
            // A peer with streams may be unable to read before its own items are taken.
            if self.transmit(cx)? == Sending::Blocked && !self.served.has_streams() {
                return Ok(ConnectionProgress::Waits);
            }
            if self.served.has_unread() && !self.served.is_held() {
                continue;
            }
            if let Some(reason) = self.end_if_done() {
                return Ok(ConnectionProgress::Over(reason));
            }
            let is_aged = matches!(self.ends, Some(EndReason::Aged));
            let receives_streams = is_aged && self.served.has_streams();
            if self.served.is_held() || self.ends.is_some() && !receives_streams {
                return Ok(ConnectionProgress::Waits);
            }
            self.served.lend(memory);
            match self.receive(cx, is_lone)? {
                ReceiveOutcome::Something => {}
                ReceiveOutcome::Nothing => return Ok(ConnectionProgress::Waits),
                ReceiveOutcome::LooksOn => return Ok(ConnectionProgress::More),
            }
        }
        Ok(ConnectionProgress::More)
    }

    /// Returns whether this is the only connection of the server that says something.
    fn is_lone(&mut self) -> bool {
        let last = self.state.polls.fetch_add(1, Ordering::Relaxed);
        let is_lone = last == self.last_poll;
        self.last_poll = last.wrapping_add(1);
        is_lone
    }

    // ---- Calls ----

    /// Carries the calls out that have come whole, up to a limit of them and of their replies.
    fn carry_out(&mut self, cx: &mut Context<'_>) -> Result<(), EndReason> {
        let mut clock = HandlerClock::default();
        for _ in 0..CALLS_PER_TURN {
            if self.served.is_held() && !self.may_go_on(cx) {
                return Ok(());
            }
            let Some(mut received) = self.served.next_call(&self.state.shared)? else {
                return Ok(());
            };
            let call = CallToServe::received(&received);
            if call.procedure != 0 && self.state.is_slow(&call) {
                self.served.compact(&mut received);
            }
            let registry = &self.state.shared.registry;
            // Those with streams are not waited for: what they wait for may be behind this call.
            let deferred = self.served.deferred();
            let unstreamed = deferred - self.served.streaming();
            let waits = unstreamed > 0 && registry.keeps_order(call.service)
                || deferred > 0 && !self.served.may_defer(&call);
            let bytes = received.message.capacity();
            if received.streams.any() && call.procedure != 0 && !waits {
                self.begin_streaming(call, received);
                continue;
            }
            if waits || !self.has_room_for(&call, bytes, unstreamed) {
                self.served.hold(received);
                if waits {
                    return Ok(());
                }
                self.state.shared.tally.calls_held_back.up();
                if !self.may_go_on(cx) {
                    return Ok(());
                }
                continue;
            }
            self.begin(call, received, &mut clock);
            if self.served.has_many_replies() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether a call may be carried out that may have to be so elsewhere. Room for it is taken.
    #[inline]
    fn has_room_for(&mut self, call: &CallToServe, bytes: usize, unstreamed: usize) -> bool {
        let state = &self.state;
        let is_quick =
            matches!(state.handlers[call.service], CallHandler::Sync) && !state.is_slow(call);
        if is_quick || call.procedure == 0 {
            return true;
        }
        let limits = &state.shared.limits;
        if unstreamed >= limits.connection_calls.max(1)
            || !self.served.has_memory_for(bytes, limits)
        {
            return false;
        }
        let counted = self.served.counted_bytes(bytes);
        if (self.room.as_ref()).is_none_or(|room| !room.suffices_for(counted)) {
            // What was taken for a shorter call goes first.
            self.room = None;
            self.room = state.room_now(counted);
        }
        self.room.is_some()
    }

    /// Returns whether the call that waits may be carried out by now; otherwise the task is woken when it may.
    #[cold]
    fn may_go_on(&mut self, cx: &mut Context<'_>) -> bool {
        let (limits, bytes) = (&self.state.shared.limits, self.served.held_bytes());
        if self.served.deferred() - self.served.streaming() >= limits.connection_calls.max(1)
            || !self.served.has_memory_for(bytes, limits)
        {
            // Each answer wakes the task.
            return false;
        }
        let counted = self.served.counted_bytes(bytes);
        if (self.room.as_ref()).is_some_and(|room| room.suffices_for(counted)) {
            return true;
        }
        self.room = None;
        let state = &self.state;
        let room =
            (self.awaited_room).get_or_insert_with(|| Box::pin(Arc::clone(state).room(counted)));
        match room.as_mut().poll(cx) {
            Poll::Ready(room) => {
                (self.room, self.awaited_room) = (room, None);
                true
            }
            Poll::Pending => false,
        }
    }

    /// Carries a call out, here or elsewhere.
    #[inline]
    fn begin(&mut self, call: CallToServe, received: ReceivedCall, clock: &mut HandlerClock) {
        let origin = self.mailbox.origin;
        let bytes = received.message.capacity();
        let message = CallMessage::Stream(received);
        if call.procedure != 0 && self.state.is_slow(&call) {
            if let Some(elsewhere) = self.elsewhere(call, bytes) {
                elsewhere.carry_out(message);
            }
            return;
        }
        match (self.state).try_call(
            call,
            (&self.mailbox, origin),
            message,
            &mut self.reply,
            clock,
        ) {
            InlineOutcome::Finished(mut finished) => {
                match finished.message {
                    Some(message) => self.served.finish_call(message, &mut finished.reply),
                    None => self.served.push_reply(&mut finished.reply),
                }
                self.reply = finished.reply;
                self.reply.clear();
                if let Some(room) = &mut self.room {
                    // The place is kept for the next call, and no memory.
                    room.shrink_to(0);
                }
            }
            InlineOutcome::Waits(future) => {
                if let Some(elsewhere) = self.elsewhere(call, bytes) {
                    elsewhere.carry_on(future);
                }
            }
        }
    }

    /// Has a call with streams carried out elsewhere, if there is room. It does not wait for that: behind it are the items
    /// and the credit that other calls with streams need to end.
    #[cold]
    fn begin_streaming(&mut self, call: CallToServe, mut received: ReceivedCall) {
        self.served.compact(&mut received);
        let (bytes, streams) = (received.message.capacity(), received.streams);
        let limits = &self.state.shared.limits;
        let mut reply = Buffer::default();
        if self.state.is_stopping() {
            call.refuse(Status::STOPPING, "the server stops", &mut reply);
            return self.served.refuse_streaming(&call, &mut reply);
        }
        let has_memory = self.served.has_memory_for(bytes, limits)
            && self.served.reserve_items(received.streams);
        let counted = self.served.counted_bytes(bytes);
        let room = (self.room.take()).filter(|room| room.suffices_for(counted));
        self.room = room.or_else(|| self.state.room_now(counted));
        let has_room =
            (self.room.as_mut()).is_some_and(|room| self.state.room.note_streaming(room));
        let elsewhere = if has_memory && has_room {
            self.elsewhere(call, bytes)
        } else {
            None
        };
        let Some(elsewhere) = elsewhere else {
            self.room = None;
            let text = "the server has no room for further calls with streams";
            call.refuse(Status::OVERLOADED, text, &mut reply);
            return self.served.refuse_streaming(&call, &mut reply);
        };
        let ReplyTarget::Stream(id) = elsewhere.to() else {
            return;
        };
        let number = id.number();
        let port: Arc<dyn StreamPort> = Arc::<ReplyMailbox>::clone(&self.mailbox);
        self.mailbox.note_streams();
        let streams = ServedStreams::new(
            self.served.open_streams(&call),
            port,
            (number, streams),
            self.state.shared.limits.message_bytes,
            call.deadline,
        );
        elsewhere.carry_out_streaming(CallMessage::Stream(received), streams);
    }

    /// Notes that a call is carried out elsewhere, for which there is room.
    fn elsewhere(&mut self, call: CallToServe, bytes: usize) -> Option<OffloadedCall> {
        let counted = self.served.counted_bytes(bytes);
        let room = self.room.take().or_else(|| self.state.room_now(counted));
        let mut room = room?;
        room.shrink_to(counted);
        let (id, cancelled): (_, CancelFlag) = self.served.defer(&call, bytes)?;
        let (to, origin) = (ReplyTarget::Stream(id), self.mailbox.origin);
        let elsewhere = OffloadedCall::new(
            &self.state,
            (&self.mailbox, to),
            (call, origin),
            cancelled,
            room,
        );
        Some(elsewhere)
    }

    // ---- Sending and receiving ----

    /// Sends the replies that are there. If there is no room the task is woken when there is.
    fn transmit(&mut self, cx: &mut Context<'_>) -> Result<Sending, EndReason> {
        if !self.served.has_transmit() {
            return Ok(Sending::Done);
        }
        // Mostly there is room, and the run time need not be asked.
        let mut sending = transmit_over(&self.socket, &self.mailbox, &mut self.served)?;
        while sending == Sending::Blocked {
            let Poll::Ready(ready) = self.socket.poll_write_ready(cx) else {
                return Ok(Sending::Blocked);
            };
            let mut ready = ready.map_err(EndReason::Socket)?;
            sending = transmit_over(&self.socket, &self.mailbox, &mut self.served)?;
            if sending == Sending::Blocked {
                ready.clear_ready();
            }
        }
        Ok(Sending::Done)
    }

    /// Receives what is there, and looks a moment for more if this is a `lone` connection. If nothing has come the task
    /// is woken when something does.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        is_lone: bool,
    ) -> Result<ReceiveOutcome, EndReason> {
        if self.state.is_stopping() && !self.served.has_streams() {
            return self.receive_last();
        }
        if is_lone {
            match self.look()? {
                ReceivePoll::Received(bytes) => {
                    self.slept_since = None;
                    return self.handle_received(bytes);
                }
                ReceivePoll::Yields => return Ok(ReceiveOutcome::LooksOn),
                ReceivePoll::Sleeps => {}
            }
        }
        loop {
            let Poll::Ready(ready) = self.socket.poll_read_ready(cx) else {
                let since = self.slept_since.take().filter(|_| is_lone);
                self.slept_since = since.or_else(|| is_lone.then(Instant::now));
                return Ok(ReceiveOutcome::Nothing);
            };
            let mut ready = ready.map_err(EndReason::Socket)?;
            let room = self.served.room()?;
            let length = room.len();
            match self.socket.get_ref().try_recv(room) {
                Ok(bytes) => {
                    let transport = self.mailbox.origin.transport;
                    if !tenon_core::client::may_have_more(transport, bytes, length) {
                        ready.clear_ready();
                    }
                    if let Some(since) = self.slept_since.take() {
                        self.waiter.note_slept(since.elapsed());
                    }
                    return self.handle_received(bytes);
                }
                Err(error) if is_for_now(&error) => ready.clear_ready(),
                Err(error) => return Err(EndReason::Socket(error)),
            }
        }
    }

    /// Receives what is there though the server stops, if the peer cannot be told which calls were not begun.
    #[cold]
    fn receive_last(&mut self) -> Result<ReceiveOutcome, EndReason> {
        if !self.served.receives_last() {
            return Ok(ReceiveOutcome::Nothing);
        }
        let stream = self.socket.get_ref();
        if !stream.transport().resets() {
            // What is sent from now on fails at the client, which knows then that it was not begun.
            let _ = stream.shutdown_recv();
        }
        let room = self.served.room()?;
        let came = stream.try_recv(room);
        self.served.note_last_receive(matches!(came, Ok(1..)));
        match came {
            // This server's own doing.
            Ok(0) => Ok(ReceiveOutcome::Something),
            Ok(bytes) => self.handle_received(bytes),
            Err(error) if is_for_now(&error) => Ok(ReceiveOutcome::Something),
            Err(error) => Err(EndReason::Socket(error)),
        }
    }

    /// Looks for what the peer says next, not longer than was learned.
    fn look(&mut self) -> Result<ReceivePoll, EndReason> {
        if self.waiter.always_sleeps() {
            return Ok(ReceivePoll::Sleeps);
        }
        let stream = self.socket.get_ref();
        let context = WaitContext {
            spinners: &self.state.spinners,
            looking: Looking::at(stream.transport()),
            tally: &self.state.shared.tally.waits,
        };
        let room = self.served.room()?;
        let mut looks = 0;
        let look = || {
            stream.look(looks);
            looks = LOOKS;
            stream.try_recv(room)
        };
        match (self.waiter).look_within_poll(&context, LOOK_MAX, SILENCE_MAX, look) {
            Polled::Ready(Ok(bytes)) => Ok(ReceivePoll::Received(bytes)),
            Polled::Ready(Err(error)) if !is_for_now(&error) => Err(EndReason::Socket(error)),
            Polled::Yields => Ok(ReceivePoll::Yields),
            Polled::Ready(Err(_)) | Polled::Sleep => Ok(ReceivePoll::Sleeps),
        }
    }

    fn handle_received(&mut self, bytes: usize) -> Result<ReceiveOutcome, EndReason> {
        if bytes == 0 {
            let reason = self.served.end_of_stream();
            let (policy, stream) = (
                self.state.shared.limits.end_of_stream,
                self.socket.get_ref(),
            );
            let is_gone = || self.served.is_peer_gone(policy, || stream.is_hung_up());
            if self.served.deferred() > 0 && is_gone() {
                return Err(reason);
            }
            self.ends = Some(reason);
        } else {
            self.served.handle_received(bytes)?;
        }
        Ok(ReceiveOutcome::Something)
    }

    // ---- The end ----

    /// Returns whether items wait for credit of a connection that ends by itself, and of which every handler has returned.
    fn has_last_items(&self) -> bool {
        let ends_by_itself = match &self.ends {
            None => self.state.is_stopping(),
            Some(reason) => reason.is_orderly(),
        };
        ends_by_itself && self.served.has_streams()
    }

    /// Returns why the connection ends, if everything is answered and it is to end.
    fn end_if_done(&mut self) -> Option<EndReason> {
        if self.served.deferred() > 0 || self.served.is_held() || self.has_last_items() {
            return None;
        }
        if self.state.is_stopping() && self.ends.is_none() {
            if self.served.receives_last() {
                return None;
            }
            return Some(EndReason::Stopping);
        }
        self.ends.take()
    }

    /// Has the task woken when time runs out.
    fn park(&mut self, cx: &mut Context<'_>) -> Result<(), EndReason> {
        let (limits, now) = (&self.state.shared.limits, Instant::now());
        self.served.park(limits, now);
        let idle = limits.idle_timeout.map(|limit| now + limit);
        let next = [self.served.deadline(), idle].into_iter().flatten().min();
        let is_set = (self.is_set_for).is_some_and(|set| next.is_none_or(|next| set <= next));
        if !is_set && let Some(next) = next {
            self.is_set_for = Some(next);
            self.alarm.as_mut().reset(next.into());
        } else if self.is_set_for.is_none_or(|at| at > now) {
            // It wakes the task when it goes off, and asking it takes longer than a look at the clock.
            return Ok(());
        }
        while self.is_set_for.is_some() && self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if let Some(reason) = self.served.overdue(limits, now) {
                return Err(reason);
            }
            if self.ends.is_none() {
                let step = self.served.look_at_age(limits, now);
                if step == AgeStep::Ends {
                    self.ends = Some(EndReason::Aged);
                }
                if step != AgeStep::Nothing {
                    cx.waker().wake_by_ref();
                }
            } else if self.served.end_aged_streams(now) {
                cx.waker().wake_by_ref();
            }
            if self.served.trim(now) {
                self.reply = Buffer::default();
                self.answers.shrink_to(0);
            }
            // Something has come since it was set.
            let idle = limits.idle_timeout.map(|limit| now + limit / 4);
            self.is_set_for = [self.served.deadline(), idle].into_iter().flatten().min();
            if let Some(next) = self.is_set_for {
                self.alarm.as_mut().reset(next.into());
            }
        }
        Ok(())
    }

    /// Says what can be said to the peer, and closes the connection, or this side of it alone; returns whether it is to
    /// be waited for the other.
    fn end(&mut self, reason: &EndReason) -> bool {
        if !matches!(reason, EndReason::Socket(_) | EndReason::Protocol(_)) {
            self.served.close(reason.close_reason());
        }
        let is_orderly = reason.is_orderly() && self.served.deferred() == 0;
        if is_orderly {
            self.served.push_close_notice();
        }
        let stream = self.socket.get_ref();
        // A peer that has gone need not be told.
        let _ = self.served.transmit(|batch| send(stream, batch));
        let is_half_closed = is_orderly
            && self.mailbox.origin.transport.resets()
            && self.served.was_called_lately(Instant::now())
            && stream.shutdown_send().is_ok();
        self.served.cancel_all(&self.state.shared);
        if !is_half_closed {
            let _ = stream.shutdown();
        }
        (self.mailbox.tally).publish(&self.served.counters());
        let (id, peer) = (self.mailbox.id, self.mailbox.origin.peer);
        reason.report(id, peer, &self.state.shared.tally);
        is_half_closed
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        // Handlers on threads of their own wait for their streams even if the run time ends.
        self.served.cancel_all(&self.state.shared);
        self.mailbox.end();
        self.state.remove_connection(self.mailbox.id);
    }
}

/// The result of a look.
enum ReceivePoll {
    /// So many bytes.
    Received(usize),
    /// Nothing yet: it goes on once other tasks have had their turn.
    Yields,
    /// Nothing.
    Sleeps,
}

/// The result of a receive.
enum ReceiveOutcome {
    Something,
    /// Nothing, and the task is woken when something comes.
    Nothing,
    /// Nothing, and the task goes on looking in its next poll.
    LooksOn,
}

/// The next step for a connection.
enum ConnectionProgress {
    /// There is more to do, once other tasks have had their turn.
    More,
    /// Something has to happen first.
    Waits,
    /// Nothing: it is over.
    Over(EndReason),
}

/// Waits until the peer has ended its side of a connection that is half-closed, or is silent for a moment.
async fn wait_for_end(socket: &AsyncSocket<Stream>) {
    let mut half_close = HalfClose::new(Instant::now());
    while Instant::now() < half_close.deadline() {
        let deadline = half_close.deadline();
        let discarded = poll_fn(|cx| match socket.poll_read_ready(cx) {
            Poll::Ready(Ok(mut ready)) => {
                let discarded = half_close.discard_received(socket.get_ref(), Instant::now());
                if discarded == Discarded::All {
                    ready.clear_ready();
                }
                Poll::Ready(discarded)
            }
            Poll::Ready(Err(_)) => Poll::Ready(Discarded::Over),
            Poll::Pending => Poll::Pending,
        });
        if let Ok(Discarded::Over) | Err(_) = timeout_at(deadline.into(), discarded).await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn transmit_over(
    socket: &AsyncSocket<Stream>,
    mailbox: &ReplyMailbox,
    served: &mut ServedStream,
) -> Result<Sending, EndReason> {
    mailbox.tally.publish(&served.counters());
    served.transmit(|batch| send(socket.get_ref(), batch))
}

fn send(stream: &Stream, batch: &TransmitBatch) -> io::Result<usize> {
    match batch.single_slice() {
        Some(bytes) => stream.try_send(bytes),
        None => stream.try_send_pieces(&batch.slices().map(IoSlice::new)),
    }
}
