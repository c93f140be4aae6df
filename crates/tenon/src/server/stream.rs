//! A turn at a connection: receive, carry calls out, send.
//!
//! In the steady state a call costs two system calls, one receive and one send, and no allocation; calls that arrived
//! together are answered together. The thread gives the connection's state away while it runs a handler, and goes on
//! with it afterwards if no other thread has claimed it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::serve::{
    CALLS_PER_TURN, CallContext, CallToServe, EndOfStream, EndReason, Sending,
};
use tenon_core::service::Cancellation;
use tenon_core::wait::{LOOKS, Looking, Spun, Waiter};
use tenon_net::Stream;
use tenon_proto::ROOM_FIRST;
use tenon_proto::connection::ReceivedCall;

use super::late_answers::{look_for_room, push_close_notice, send, take_answers};
use super::slot::{
    ANSWERS, END_STREAMS, ENDED, LateAnswer, READY, ROOM, SlotState, SocketSlot, TIME, stream_of,
};
use super::slot_callbacks::SlotCallbacks;
use super::state::ServerState;
use super::stream_state::StreamState;
use super::thread::{LINGER, ThreadContext};
use super::turn_end::TurnEnd;

/// What keeps a call from being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// Other calls of its connection, whose answers make room.
    OwnCalls,
    /// Those of all connections.
    Room,
}

/// A connection that a thread has.
pub(super) struct StreamTurn<'t> {
    pub(super) server: &'t Arc<ServerState>,
    pub(super) slot: &'t Arc<SocketSlot>,
    pub(super) thread: &'t mut ThreadContext,
}

impl StreamTurn<'_> {
    /// Serves what has come, up to a limit. The state is `None` afterwards if another thread has it.
    pub(super) fn run(&mut self, state: &mut Option<Box<SlotState>>) -> TurnEnd {
        let Some(stream) = self.slot.stream() else {
            return TurnEnd::Idle;
        };
        let end = match self.turn(stream, state) {
            Ok(end) => end,
            Err(reason) => self.end(state, reason),
        };
        if let Some(state) = stream_of(state)
            && std::mem::take(&mut state.is_next)
        {
            self.server.scheduler.note_decided(self.server, self.slot);
        }
        end
    }

    fn turn(
        &mut self,
        stream: &Stream,
        place: &mut Option<Box<SlotState>>,
    ) -> Result<TurnEnd, EndReason> {
        let Some(state) = stream_of(place) else {
            return Ok(TurnEnd::Taken);
        };
        if let Some(reason) = state.overdue.take() {
            return Err(reason);
        }
        let signals = std::mem::take(&mut state.signals) | self.slot.take_signals();
        state.is_readable |= signals & READY != 0;
        if signals & ENDED != 0 {
            state.has_ended = true;
            // Memory does not show by itself that a peer was killed.
            stream.refresh();
        }
        if signals & ANSWERS != 0 {
            self.take_answers(state);
        }
        if signals & TIME != 0 {
            state.check_age(&self.server.shared.limits, Instant::now());
        }
        if signals & END_STREAMS != 0 {
            state.served.end_streaming_calls();
        }
        if signals & ROOM != 0 {
            (state.awaits_room, state.is_next) = (false, true);
        }
        if self.transmit(stream, state)? == Sending::Blocked && !state.served.has_streams() {
            return Ok(TurnEnd::Idle);
        }
        if let Some(reason) = state.ends.take_if(|_| stream.is_hung_up()) {
            return Err(reason);
        }
        let is_over = state.ends.is_some() && !state.ends_behind_streams();
        let obstacle = self.obstacle(state);
        if is_over || obstacle.is_some() {
            self.check_end(stream, state)?;
            if obstacle == Some(Obstacle::Room) {
                self.await_room(state);
            }
            return self.at_rest(state);
        }
        if state.is_readable && !state.served.has_unread() {
            self.receive(stream, state)?;
        }
        self.carry_out(place)?;
        let Some(state) = stream_of(place) else {
            return Ok(TurnEnd::Taken);
        };
        if self.transmit(stream, state)? == Sending::Blocked {
            return Ok(TurnEnd::Idle);
        }
        if (state.is_readable || state.served.has_unread()) && !state.served.is_held() {
            return Ok(TurnEnd::More);
        }
        self.at_rest(state)
    }

    /// Decides how to go on with a connection of which everything that has come is done.
    fn at_rest(&mut self, state: &mut StreamState) -> Result<TurnEnd, EndReason> {
        // The end of what is received may be this server's own doing: a lean peer is told which calls were begun.
        if self.server.is_stopping() && !matches!(state.ends, Some(EndReason::Stopping)) {
            if self.receives_last(state) {
                state.is_readable = true;
                return Ok(TurnEnd::More);
            }
            state.ends = Some(EndReason::Stopping);
            state.served.close(EndReason::Stopping.close_reason());
            // What was left alone as the last receive was over is needed by streams.
            state.is_readable = true;
            return Ok(TurnEnd::More);
        }
        match state.ends.take() {
            // Calls that other threads are at are still answered.
            Some(reason) if state.has_running_calls() || self.has_last_items(state, &reason) => {
                state.ends = Some(reason);
                Ok(TurnEnd::Idle)
            }
            Some(reason) if self.lingers(state, &reason) => {
                state.ends = Some(reason);
                Ok(TurnEnd::Idle)
            }
            Some(reason) => Ok(TurnEnd::Over(reason)),
            None => Ok(TurnEnd::Idle),
        }
    }

    /// Returns whether items wait for credit of a connection that ends by itself, and of which every handler has returned.
    fn has_last_items(&self, state: &StreamState, reason: &EndReason) -> bool {
        reason.is_orderly() && !state.has_ended && state.served.has_streams()
    }

    /// Returns whether a connection that has reached its age, and of which every call is answered, waits for its peer to
    /// close it. A socket of TCP that is closed before that is reset if the peer sends more, and the last replies may be
    /// lost.
    #[cold]
    fn lingers(&self, state: &mut StreamState, reason: &EndReason) -> bool {
        let has_aged = matches!(reason, EndReason::Aged);
        if has_aged && !state.lingers && !state.has_ended {
            push_close_notice(self.slot, state);
            if self.slot.half_close() {
                state.lingers = true;
                state.served.linger(Instant::now());
            }
        }
        has_aged && state.lingers
    }

    /// Takes in that nothing more is received. Calls that other threads are at are still answered, unless the peer is
    /// gone.
    #[cold]
    fn handle_end(&self, stream: &Stream, state: &mut StreamState) -> Result<(), EndReason> {
        if self.server.is_stopping() && !stream.is_hung_up() {
            // The server may have ended the direction itself, to wake the thread.
            return Ok(());
        }
        let reason = state.served.end_of_stream();
        if state.has_running_calls() && self.is_peer_gone(stream, state) {
            return Err(reason);
        }
        state.ends = Some(reason);
        Ok(())
    }

    /// Checks that the peer of a connection that is not received from is not gone, which an event has said that it may
    /// be.
    fn check_end(&self, stream: &Stream, state: &mut StreamState) -> Result<(), EndReason> {
        if !state.has_ended || state.ends.is_some() {
            return Ok(());
        }
        if self.is_peer_gone(stream, state) {
            return Err(EndReason::PeerClosed);
        }
        Ok(())
    }

    /// Returns whether the peer of a connection of which nothing more is received is gone, so that no answer reaches
    /// it. A server that stops may have ended that direction itself.
    fn is_peer_gone(&self, stream: &Stream, state: &StreamState) -> bool {
        let policy = if self.server.is_stopping() {
            EndOfStream::HalfClosed
        } else {
            self.server.shared.limits.end_of_stream
        };
        state.served.is_peer_gone(policy, || stream.is_hung_up())
    }

    /// Receives once what is there.
    fn receive(&mut self, stream: &Stream, state: &mut StreamState) -> Result<(), EndReason> {
        state.is_readable = false;
        let is_last = self.server.is_stopping() && !state.ends_behind_streams();
        if is_last && !self.receives_last(state) {
            return Ok(());
        }
        state.served.lend(&mut self.thread.memory);
        let room = state.served.room()?;
        let length = room.len();
        let came = stream.try_recv(room);
        if is_last {
            state.served.note_last_receive(matches!(came, Ok(1..)));
        }
        match came {
            Ok(0) => self.handle_end(stream, state),
            Ok(bytes) => {
                // What has filled the room may not be all, and behind the last bytes is the end.
                state.is_readable = bytes == length || state.has_ended;
                state.served.handle_received(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(EndReason::Socket(error)),
        }
    }

    /// Returns whether the connection is still received from though the server stops.
    pub(super) fn receives_last(&self, state: &StreamState) -> bool {
        let is_open = state.ends.is_none() && !state.served.is_held();
        is_open && !self.server.scheduler.is_stepped() && state.served.receives_last()
    }

    /// Returns what still keeps the call that waits in the connection, if one does, from being carried out.
    #[inline]
    fn obstacle(&self, state: &StreamState) -> Option<Obstacle> {
        if !state.served.is_held() {
            return None;
        }
        let bytes = state.served.held_bytes();
        if !self.is_below_limits(state, bytes) {
            return Some(Obstacle::OwnCalls);
        }
        (!self.has_room(state, bytes)).then_some(Obstacle::Room)
    }

    /// Returns whether the connection may have one call more, with so many bytes of memory.
    pub(super) fn is_below_limits(&self, state: &StreamState, bytes: usize) -> bool {
        let limits = &self.server.shared.limits;
        // Those count, too, that run on the thread that received them and take long.
        let running = state.served.running() - state.served.streaming();
        running < limits.connection_calls.max(1) && state.served.has_memory_for(bytes, limits)
    }

    /// Returns whether all connections together may.
    fn has_room(&self, state: &StreamState, bytes: usize) -> bool {
        let counted = state.served.counted_bytes(bytes);
        self.server.scheduler.room.has(counted, state.is_next)
    }

    /// Carries out the calls that have come whole, up to a limit. The state is gone if another thread has taken it.
    #[inline(always)]
    fn carry_out(&mut self, place: &mut Option<Box<SlotState>>) -> Result<(), EndReason> {
        for _ in 0..CALLS_PER_TURN {
            let Some(state) = stream_of(place) else {
                return Ok(());
            };
            // Replies that wait to be sent take memory: a peer that does not read them is carried out no further calls.
            if state.served.has_many_replies() {
                return Ok(());
            }
            let Some(received) = state.served.next_call(&self.server.shared)? else {
                return Ok(());
            };
            if !self.carry_out_one(place, received) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Carries a call out, or has another thread do so; returns whether others may follow.
    #[inline(never)]
    fn carry_out_one(
        &mut self,
        place: &mut Option<Box<SlotState>>,
        received: ReceivedCall,
    ) -> bool {
        let Some(state) = stream_of(place) else {
            return false;
        };
        let call = CallToServe::received(&received);
        let times = &self.server.shared.times;
        let is_slow = times.is_slow(call.service, call.procedure) || received.streams.any();
        if is_slow || self.waits_for_order(state, &received) || self.server.scheduler.is_busy() {
            return self.hand_over(state, call, received);
        }
        let bytes = received.message.capacity();
        let mut memory = None;
        if bytes > ROOM_FIRST {
            memory = self.charge_large(state, bytes);
            if memory.is_none() {
                return self.hold_back(state, received, true);
            }
        }
        self.execute(place, call, received);
        if let Some(memory) = memory {
            self.release_large(place, memory, bytes);
        }
        !self.thread.activity.is_replaced()
    }

    /// Returns whether a call has to wait for those before it, as its service keeps order. Calls with streams neither wait
    /// nor are waited for: what they need comes behind.
    #[inline]
    pub(super) fn waits_for_order(&self, state: &StreamState, received: &ReceivedCall) -> bool {
        state.served.deferred() > state.served.streaming()
            && self.server.shared.registry.keeps_order(received.service)
            && !received.streams.any()
    }

    /// Leaves an answer to the thread that has the connection; takes it if none has.
    #[cold]
    pub(super) fn leave_answer(&mut self, place: &mut Option<Box<SlotState>>, answer: LateAnswer) {
        *place = self.slot.leave_answer(answer);
        if let Some(state) = stream_of(place) {
            self.take_answers(state);
        }
    }

    /// Runs a handler with the state given away, and takes it back if no other thread has claimed it.
    #[inline]
    fn execute(
        &mut self,
        place: &mut Option<Box<SlotState>>,
        call: CallToServe,
        received: ReceivedCall,
    ) {
        let shared = &self.server.shared;
        let keeps_order = shared.registry.keeps_order(call.service);
        // A thread that takes the state from here on may be told that the call is cancelled.
        self.thread.activity.runs.begin(call.caller.number().into());
        if !keeps_order && let Some(mut state) = place.take() {
            if let SlotState::Stream(stream) = &mut *state {
                stream.served.begin_inline();
            }
            self.slot.lend(state);
        }
        let callbacks = SlotCallbacks::new(self.server, self.slot, &call);
        let context = CallContext {
            attachments: received.attachments(),
            origin: self.slot.origin(),
            cancellation: Cancellation::Run(&self.thread.activity.runs),
            streams: None,
            callbacks: Some(&callbacks),
        };
        let arguments = received.arguments();
        let reply = &mut self.thread.reply;
        self.thread.activity.begin_handler(&call);
        self.server.watchdog.note_handler();
        let (registry, tally) = (&shared.registry, &shared.tally);
        registry.execute(&call, context, arguments, tally, reply);
        self.thread.activity.end_handler();
        self.thread.activity.runs.end();
        if !keeps_order {
            *place = self.slot.claim();
        }
        match stream_of(place) {
            Some(state) => {
                if !keeps_order {
                    state.served.end_inline();
                }
                state.served.finish_call(received.message, reply);
            }
            None => {
                let answer = LateAnswer::Inline(std::mem::take(reply));
                self.leave_answer(place, answer);
            }
        }
    }

    /// Takes the answers that other threads have left.
    #[cold]
    fn take_answers(&self, state: &mut StreamState) {
        take_answers(self.slot, state);
    }

    /// Sends what waits, as far as there is room.
    #[inline]
    fn transmit(&self, stream: &Stream, state: &mut StreamState) -> Result<Sending, EndReason> {
        if !state.served.has_transmit() {
            return Ok(Sending::Done);
        }
        self.slot.tally.publish(&state.served.counters());
        state.served.transmit(|batch| send(stream, batch))
    }

    /// Ends a connection that is broken: what can be said is said, once.
    #[cold]
    pub(super) fn end(&mut self, place: &mut Option<Box<SlotState>>, reason: EndReason) -> TurnEnd {
        if let (Some(state), Some(stream)) = (stream_of(place), self.slot.stream()) {
            self.slot.tally.publish(&state.served.counters());
            if !matches!(reason, EndReason::Socket(_) | EndReason::Protocol(_)) {
                state.served.close(reason.close_reason());
            }
            // A peer that has gone need not be told.
            let _ = state.served.transmit(|batch| send(stream, batch));
            state.served.cancel_all(&self.server.shared);
        }
        TurnEnd::Over(reason)
    }

    /// Stays with a connection that is the only one which has something to say: waits for what it says next as the
    /// server's threads wait, and serves that, until it is silent for a while or others need the thread.
    pub(super) fn stay(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        let Some(stream) = self.slot.stream() else {
            return TurnEnd::Idle;
        };
        loop {
            match self.stay_once(stream, place) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(reason) => return self.end(place, reason),
            }
        }
    }

    /// Waits for what the connection says next, and serves it. `None` if the thread may stay.
    #[inline]
    fn stay_once(
        &mut self,
        stream: &Stream,
        place: &mut Option<Box<SlotState>>,
    ) -> Result<Option<TurnEnd>, EndReason> {
        let Some(state) = stream_of(place) else {
            return Ok(Some(TurnEnd::Taken));
        };
        if !self.wait_for_more(stream, state)? {
            return Ok(Some(TurnEnd::Idle));
        }
        self.carry_out(place)?;
        let Some(state) = stream_of(place) else {
            return Ok(Some(TurnEnd::Taken));
        };
        if self.transmit(stream, state)? == Sending::Blocked
            && !look_for_room(self.server, stream, state, || false)?
        {
            return Ok(Some(TurnEnd::Idle));
        }
        if state.served.has_begun() {
            if state.served.has_unread() && !state.served.is_held() {
                return Ok(Some(TurnEnd::More));
            }
            self.check_time(state)?;
        }
        if self.slot.has_signals() {
            return Ok(Some(TurnEnd::More));
        }
        // A value that is made to be dropped would cost each call its drop.
        match self.may_stay_with(state) {
            true => Ok(None),
            false => Ok(Some(TurnEnd::Idle)),
        }
    }

    /// Checks that the peer does not take too long for a large request while the thread stays with it.
    #[cold]
    fn check_time(&self, state: &mut StreamState) -> Result<(), EndReason> {
        let limits = &self.server.shared.limits;
        let now = Instant::now();
        state.served.park(limits, now);
        state.served.overdue(limits, now).map_or(Ok(()), Err)
    }

    /// Returns whether the thread may wait for this connection alone.
    pub(super) fn may_stay(&self, place: &mut Option<Box<SlotState>>) -> bool {
        stream_of(place).is_some_and(|state| !state.is_blocked() && self.may_stay_with(state))
    }

    /// Returns the same of one of which nothing waits to be sent.
    #[inline]
    fn may_stay_with(&self, state: &StreamState) -> bool {
        !self.thread.activity.is_replaced()
            && self.server.scheduler.may_stay()
            && !self.server.is_stopping()
            && !state.has_running_calls()
            && !state.served.is_held()
            && state.ends.is_none()
    }

    /// Waits until something comes; returns whether it has.
    #[inline]
    fn wait_for_more(
        &mut self,
        stream: &Stream,
        state: &mut StreamState,
    ) -> Result<bool, EndReason> {
        state.served.lend(&mut self.thread.memory);
        let has_begun = state.served.has_begun();
        let room = state.served.room()?;
        let received = if self.server.sleeps_at_once(&state.waiter, has_begun) {
            stream.recv_within(room, LINGER)
        } else {
            let mut looks = 0;
            let receive = |limit| match limit {
                None => {
                    stream.look(looks);
                    looks = LOOKS;
                    stream.try_recv(room)
                }
                Some(limit) => stream.recv_within(room, limit),
            };
            (self.server).linger(&mut state.waiter, state.looking, has_begun, LINGER, receive)
        };
        match received {
            Ok(0) => self.handle_end(stream, state).map(|()| false),
            Ok(bytes) => {
                state.served.handle_received(bytes)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(EndReason::Socket(error)),
        }
    }
}

impl ServerState {
    /// Returns whether a thread waits for what comes next by no more than one receive that may sleep, which is counted.
    #[inline]
    pub(super) fn sleeps_at_once(&self, waiter: &Waiter, has_begun: bool) -> bool {
        let sleeps = waiter.always_sleeps() && !has_begun && self.may_wait();
        if sleeps {
            self.shared.tally.waits.blocks();
        }
        sleeps
    }

    /// Returns whether a thread may wait for one connection or port alone.
    #[inline]
    fn may_wait(&self) -> bool {
        self.scheduler.may_stay() && !self.is_stopping()
    }

    /// Waits, in the way of this server and for as long as `limit`, until `receive` succeeds, which is
    /// told for how long it may sleep, or not to sleep at all. Of what is received a part `has_begun` to come.
    ///
    /// # Errors
    /// `WouldBlock` when nothing came; what `receive` reports.
    pub(super) fn linger<T>(
        &self,
        waiter: &mut Waiter,
        looking: Looking,
        has_begun: bool,
        limit: Duration,
        mut receive: impl FnMut(Option<Duration>) -> io::Result<T>,
    ) -> io::Result<T> {
        let may_wait = || self.may_wait();
        if !may_wait() {
            return receive(None);
        }
        if self.sleeps_at_once(waiter, has_begun) {
            return receive(Some(limit));
        }
        let context = self.wait_context(looking);
        if has_begun && let Some(came) = waiter.look_for_rest(&context, || receive(None)) {
            return came;
        }
        let end = |begin| begin + limit;
        match waiter.look(&context, end, may_wait, || receive(None)) {
            Spun::Ready(received) => received,
            Spun::Late => Err(io::ErrorKind::WouldBlock.into()),
            Spun::Sleep if may_wait() => waiter.sleep(&context, || receive(Some(limit))),
            Spun::Sleep => receive(None),
        }
    }
}
