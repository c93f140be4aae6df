//! The fast path of a call over a stream: while no other call is in flight and nothing waits to be sent, its caller
//! sends it itself and receives its reply itself. The lock is taken once before that, to be the sender and the reader,
//! and once behind the reply. Most calls go this way. What stands in its way or turns out otherwise is left to
//! [starting](super::start) and [waiting](super::wait), which know all that there can be.

use std::sync::MutexGuard;

use tenon_core::client::buffers::keep_spare;
use tenon_core::client::{CallId, Input, Outgoing, ReplyPlace, handle_stream};
use tenon_core::error::ConnectionFailure;
use tenon_core::profile::{Probe, Step};
use tenon_core::timer::CallTimer;
use tenon_net::is_deadline;
use tenon_proto::connection::{CallDraft, StartedCall, TransmitBatch};
use tenon_proto::lean::{ByteOrder, PIECE};
use tenon_wire::Buffer;

use super::channel::Channel;
use super::link::{ReadHalf, SenderState};
use super::reader::ReaderRole;
use super::state::{Calls, ChannelState};
use super::waiters::WaiterId;

/// The way in which a call has begun.
enum StartOutcome {
    /// Its caller sends it and receives the reply.
    Direct(StartedCall, WaiterId, Box<ReadHalf>),
    /// It waits to be sent.
    Queued(WaiterId),
}

/// The point at which a call leaves the fast path.
pub(super) enum SlowPath<'c> {
    /// It is not begun.
    Unsent(MutexGuard<'c, ChannelState>),
    /// It is in flight, and something else has come than its reply.
    InFlight(WaiterId),
}

impl Channel {
    /// Makes a call, and returns the reader that has its reply.
    ///
    /// # Errors
    /// The call cannot go this way: then `message` is as it was. Or it is in flight, and to be waited for.
    #[inline(always)]
    pub(super) fn call_directly<'c>(
        &'c self,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
        probe: impl Probe,
    ) -> Result<ReaderRole<'c>, SlowPath<'c>> {
        let mut state = self.lock();
        let (call, waiter, half) = match state.start_directly(message, draft, timer) {
            Some(StartOutcome::Direct(call, waiter, half)) => (call, waiter, half),
            Some(StartOutcome::Queued(waiter)) => return Err(SlowPath::InFlight(waiter)),
            None => return Err(SlowPath::Unsent(state)),
        };
        drop(state);
        let mut reader = ReaderRole::new(self, half);
        let socket = &reader.half().socket;
        probe.at(Step::Sending);
        // A failure shows again when the rest is sent.
        let sent = socket.socket.try_send(message.as_slice()).unwrap_or(0);
        if sent < message.len() {
            self.leave_direct(reader, message, sent, (call, waiter));
            return Err(SlowPath::InFlight(waiter));
        }
        socket.end_direct();
        probe.at(Step::Sent);
        let _ = keep_spare(std::mem::take(message));
        let received = reader.half().receive_lone_reply(&call, waiter, timer);
        probe.at(Step::Received);
        match received {
            Ok(true) => return Ok(reader),
            Ok(false) => {}
            Err(failure) => reader.break_link(&failure),
        }
        self.leave_direct_wait(&mut reader, (call, waiter), timer);
        Err(SlowPath::InFlight(waiter))
    }

    /// Has a call waited for that has got something else than its reply, or nothing.
    #[cold]
    fn leave_direct_wait(
        &self,
        reader: &mut ReaderRole<'_>,
        (call, waiter): (StartedCall, WaiterId),
        timer: &CallTimer,
    ) {
        let half = reader.half();
        let (socket, is_silent) = (std::sync::Arc::clone(&half.socket), half.input.is_empty());
        let mut state = self.lock();
        state.waiters.set_call(waiter, CallId::Stream(call));
        if is_silent
            && state.is_linked(&socket)
            && let Calls::Stream(connection) = &mut state.calls
        {
            connection.note_silence(timer.started());
        }
    }

    /// Leaves what was not sent of a call to the next sender.
    #[cold]
    fn leave_direct(
        &self,
        mut reader: ReaderRole<'_>,
        message: &mut Buffer,
        sent: usize,
        (call, waiter): (StartedCall, WaiterId),
    ) {
        let socket = std::sync::Arc::clone(&reader.half().socket);
        let mut state = self.lock();
        state.waiters.set_call(waiter, CallId::Stream(call));
        if let Some(link) = state.link_over(&socket) {
            let rest = TransmitBatch::of_call(&call, message, sent);
            link.outgoing = Some(Outgoing::Stream(Box::new(rest)));
            link.sending = SenderState::Idle;
        }
        drop(state);
        drop(reader);
    }
}

impl ChannelState {
    /// Puts a call in flight, with its caller as sender and reader, if nothing stands in the way.
    #[inline(always)]
    fn start_directly(
        &mut self,
        message: &mut Buffer,
        draft: &CallDraft<'_>,
        timer: &CallTimer,
    ) -> Option<StartOutcome> {
        let link = self.link.as_mut()?;
        let Calls::Stream(connection) = &mut self.calls else {
            return None;
        };
        let is_free = connection.in_flight() == 0
            && connection.is_send_idle()
            && link.reader.is_some()
            && link.is_send_free()
            && !link.is_stale(timer.started())
            && self.open_batches == 0
            && self.blocked.is_empty()
            && self.unsent.is_empty()
            && message.len() <= PIECE;
        if !is_free || link.has_rest() {
            return None;
        }
        let waiter = self.waiters.take();
        let call = match connection.start_call(draft, message, timer.deadline(), waiter) {
            Ok(call) => call,
            Err(_) => {
                self.waiters.release(waiter);
                return None;
            }
        };
        if !connection.is_send_idle() {
            // The peer is asked for the service first: the call goes behind that.
            connection.push_call(&call, message);
            self.waiters.set_call(waiter, CallId::Stream(call));
            return Some(StartOutcome::Queued(waiter));
        }
        connection.mark_sent(&call);
        link.sending = SenderState::Direct;
        link.socket.begin_direct();
        link.used_at = timer.started();
        let half = link.reader.take()?;
        Some(StartOutcome::Direct(call, waiter, half))
    }
}

impl ReadHalf {
    /// Receives the reply to a call that was sent just now, unless something else comes; returns whether it lies here.
    #[inline(always)]
    fn receive_lone_reply(
        &mut self,
        call: &StartedCall,
        waiter: WaiterId,
        timer: &CallTimer,
    ) -> Result<bool, ConnectionFailure> {
        let Self {
            socket,
            input,
            waiter: wait,
            own,
            answered,
            first_wait,
            ..
        } = self;
        let Input::Stream(receiver) = input else {
            return Ok(false);
        };
        if receiver.is_between_frames() {
            let until = timer.until_from_start(*first_wait);
            let came = socket.receive(wait, receiver.room(), false, until);
            match handle_stream(receiver, came) {
                Ok(()) => {}
                Err(error) if is_deadline(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        let Some(place) = receiver.take_lone_reply(call) else {
            return Ok(false);
        };
        *own = ReplyPlace {
            place,
            order: ByteOrder::NATIVE,
            extensions: None,
        };
        *answered = Some((call.number, waiter));
        Ok(true)
    }
}
