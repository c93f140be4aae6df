//! The reader of a link, which takes in everything that has come: of all replies the channel hears together, and each
//! caller that waits for one of them is woken once. The reader's own reply stays where it was received, if nothing has
//! come behind it.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_core::client::{Answered, Input, NextMessage, Outcome, ReplyExtensions, ReplyPlace};
use tenon_core::error::{ConnectionFailure, port_closed};
use tenon_core::profile::{Probe, Step};
use tenon_net::{Until, is_deadline};

use super::callback_pool::CallbackPool;
use super::channel::Channel;
use super::link::{CallbackJob, ConnectionSocket, ReadHalf};
use super::state::{Calls, ChannelState};
use super::wait_handle::WakeHandle;
use super::waiters::WaiterId;

/// The reader's role on a link. Dropping it passes the role on.
pub(super) struct ReaderRole<'c> {
    channel: &'c Channel,
    /// There until the reader is dropped.
    half: Option<Box<ReadHalf>>,
}

/// The owner of the reply that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryOutcome {
    /// Nothing has come whole.
    Nothing,
    /// Not the reader's own.
    Others,
    /// The reader's own, which lies where it was received.
    Own,
    /// The reader's own, as an outcome that is left for its waiter.
    OwnOutcome,
}

impl Drop for ReaderRole<'_> {
    /// Ends the reader's own call, puts back what it works with and wakes the next reader. A caller goes to sleep
    /// under the same lock under which it found that another one reads: so either it is seen here, or it becomes the
    /// reader itself.
    #[inline]
    fn drop(&mut self) {
        let Some(mut half) = self.half.take() else {
            return;
        };
        let mut state = self.channel.lock();
        if let Some((number, waiter)) = half.answered.take() {
            state.end_answered(number, waiter);
        }
        // That of a connection that has ended closes it, and the lock is not held meanwhile.
        let useless = state.put_read_half(half);
        let next = state.waiters.wake_next();
        drop(state);
        drop(useless);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl<'c> ReaderRole<'c> {
    #[inline]
    pub(super) fn new(channel: &'c Channel, half: Box<ReadHalf>) -> Self {
        let half = Some(half);
        Self { channel, half }
    }

    #[inline]
    pub(super) fn half(&mut self) -> &mut ReadHalf {
        match &mut self.half {
            Some(half) => half,
            None => unreachable!("it is there until the reader is dropped"),
        }
    }

    /// Returns what the server says in the reply beside the results.
    #[inline]
    pub(super) fn extensions(&mut self) -> Option<&ReplyExtensions> {
        self.half().own.extensions.as_deref()
    }

    /// Reads until the reply for `waiter` has come; returns whether it lies here. It does not if it was left for the
    /// waiter, at `until`, and when the connection has failed, of which all calls have been told.
    pub(super) fn read(&mut self, waiter: WaiterId, mut until: Until, probe: impl Probe) -> bool {
        let mut has_received = false;
        loop {
            let delivered = if self.half().input.is_empty() {
                Ok(DeliveryOutcome::Nothing)
            } else {
                self.deliver(Some(waiter))
            };
            let failure = match delivered {
                Ok(DeliveryOutcome::Own) => return true,
                Ok(DeliveryOutcome::OwnOutcome) => return false,
                Err(failure) => failure,
                Ok(DeliveryOutcome::Nothing | DeliveryOutcome::Others) => {
                    if has_received {
                        until = until.deadline().into();
                    }
                    // A peer that never pauses would be read for ever.
                    if has_received && until.is_over() {
                        return false;
                    }
                    let received = self.receive(until);
                    probe.at(Step::Received);
                    match received {
                        Ok(true) => {
                            has_received = true;
                            continue;
                        }
                        Ok(false) => return false,
                        Err(failure) => failure,
                    }
                }
            };
            self.break_link(&failure);
            return false;
        }
    }

    /// Receives once, waiting until `until`, and hands out what has come.
    pub(super) fn read_once(&mut self, until: Instant) {
        if let Err(failure) = self.try_read_once(until) {
            self.break_link(&failure);
        }
    }

    fn try_read_once(&mut self, until: Instant) -> Result<(), ConnectionFailure> {
        if self.deliver(None)? == DeliveryOutcome::Nothing && self.receive(until.into())? {
            self.deliver(None)?;
        }
        Ok(())
    }

    /// Hands out what has come, without waiting; returns whether something was received.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn receive_now(&mut self) -> Result<bool, ConnectionFailure> {
        self.deliver(None)?;
        let has_received = self.receive(Instant::now().into())?;
        if has_received {
            self.deliver(None)?;
        }
        Ok(has_received)
    }

    #[cold]
    pub(super) fn break_link(&mut self, failure: &ConnectionFailure) {
        let socket = Arc::clone(&self.half().socket);
        self.channel.lock().break_link(&socket, failure);
    }

    /// Receives once; returns whether something came before the deadline.
    fn receive(&mut self, until: Until) -> Result<bool, ConnectionFailure> {
        match self.half().receive(until) {
            Ok(()) => Ok(true),
            Err(error) if is_deadline(&error) => Ok(false),
            Err(error) => self.handle_failed(error).map(|()| false),
        }
    }

    /// The packet exchange outlives its server: what was sent to a closed port ends calls, not the link.
    #[cold]
    fn handle_failed(&mut self, error: io::Error) -> Result<(), ConnectionFailure> {
        let socket = Arc::clone(&self.half().socket);
        let mut state = self.channel.lock();
        if error.kind() == io::ErrorKind::ConnectionRefused && state.is_linked(&socket) {
            let error = port_closed(&state.located, error);
            return state.handle_refusal(error);
        }
        Err(error.into())
    }

    /// Hands everything out that has come whole.
    fn deliver(&mut self, own: Option<WaiterId>) -> Result<DeliveryOutcome, ConnectionFailure> {
        let channel = self.channel;
        let half = self.half();
        let mut state = channel.lock();
        // What came over a connection that is given up says nothing of the one that follows it.
        if !state.is_linked(&half.socket) {
            return Ok(DeliveryOutcome::Nothing);
        }
        let ReadHalf {
            socket,
            input,
            own: place,
            wakes,
            jobs,
            has_heard,
            ..
        } = half;
        if std::mem::take(has_heard) {
            state.calls.note_heard();
        }
        let mut delivery = ReplyDelivery {
            own,
            place,
            wakes,
            jobs,
            delivered: DeliveryOutcome::Nothing,
        };
        let taken = delivery.take_all(&mut state, socket, input);
        let delivered = delivery.delivered;
        if state.needs_sender() {
            // Without waiting: what finds no room is left to a caller that waits.
            state = channel.transmit(state, Instant::now());
        }
        drop(state);
        WakeHandle::wake_all(wakes);
        if !jobs.is_empty() {
            channel.run_callbacks(jobs);
        }
        taken.map(|()| delivered)
    }
}

/// The delivery of received replies to their callers.
struct ReplyDelivery<'d> {
    /// For which the reader reads.
    own: Option<WaiterId>,
    /// The note of its reply.
    place: &'d mut ReplyPlace,
    /// Callers that are to be woken.
    wakes: &'d mut Vec<WakeHandle>,
    /// Calls of the server that are to be carried out.
    jobs: &'d mut Vec<CallbackJob>,
    delivered: DeliveryOutcome,
}

impl ReplyDelivery<'_> {
    /// Takes in all messages that have come whole.
    fn take_all(
        &mut self,
        state: &mut ChannelState,
        socket: &Arc<ConnectionSocket>,
        input: &mut Input,
    ) -> Result<(), ConnectionFailure> {
        let own = self
            .own
            .and_then(|own| Some((own, state.waiters.call(own)?)));
        let mut has_progress = false;
        loop {
            let services = || CallbackPool::table(state.services.as_ref());
            let taken = input.take_next(&mut state.calls, &state.pipes, services, own)?;
            if let Some(size) = input.likely_train() {
                socket.socket.expect_train(size);
            }
            match taken {
                NextMessage::Nothing => break,
                NextMessage::Answered(answered) => self.hand_out(state, input, answered),
                NextMessage::Closing(error, unbegun) => {
                    for waiter in unbegun {
                        let error = Box::new(error.clone());
                        self.leave(state, waiter, Outcome::Answered(Err(error)));
                    }
                }
                NextMessage::Unbegun(unsent, waiter) => state.unsent.push_back((*unsent, waiter)),
                NextMessage::Item(waiter) => self.wakes.extend(state.waiters.wake(waiter)),
                NextMessage::Called(call) => {
                    self.jobs.extend(state.begin_callback(*call, socket));
                }
                NextMessage::Cancelled(id) => state.callbacks.note_cancelled(id),
                NextMessage::Other => {}
            }
            has_progress = true;
        }
        while let Some((waiter, outcome)) = state.calls.poll_failure() {
            self.leave(state, waiter, outcome);
        }
        if has_progress {
            self.note_others();
            state.handle_progress();
        }
        Ok(())
    }

    /// Hands out an answer: the reader's own stays where it is, if nothing has come behind it.
    #[inline]
    fn hand_out(
        &mut self,
        state: &mut ChannelState,
        input: &mut Input,
        answered: Answered<WaiterId>,
    ) {
        let Answered { waiter, outcome } = answered;
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => return self.leave(state, waiter, Outcome::Answered(Err(error))),
        };
        if self.own == Some(waiter) && input.is_empty() {
            *self.place = reply;
            self.delivered = DeliveryOutcome::Own;
            return state.release(waiter);
        }
        let outcome = Outcome::of_reply(input, &reply, || state.buffers.take());
        self.leave(state, waiter, outcome);
    }

    /// Something was taken in.
    fn note_others(&mut self) {
        if self.delivered == DeliveryOutcome::Nothing {
            self.delivered = DeliveryOutcome::Others;
        }
    }

    /// Leaves an outcome for a waiter.
    fn leave(&mut self, state: &mut ChannelState, waiter: WaiterId, outcome: Outcome) {
        if self.own == Some(waiter) {
            self.delivered = DeliveryOutcome::OwnOutcome;
        }
        self.wakes.extend(state.waiters.deliver(waiter, outcome));
    }
}

impl Channel {
    /// Becomes the reader of the link, unless another caller is.
    #[inline]
    pub(super) fn read(&self, state: &mut ChannelState) -> Option<ReaderRole<'_>> {
        Some(ReaderRole::new(self, state.take_read_half()?))
    }

    /// The same of the link over `socket`.
    pub(super) fn read_over(
        &self,
        state: &mut MutexGuard<'_, ChannelState>,
        socket: &Arc<ConnectionSocket>,
    ) -> Option<ReaderRole<'_>> {
        match state.is_linked(socket) {
            true => self.read(state),
            false => None,
        }
    }
}

impl ChannelState {
    /// Ends a call after its caller has found the reply itself. The call may have been told that the connection failed.
    #[inline]
    pub(super) fn end_answered(&mut self, number: u32, waiter: WaiterId) {
        if let Calls::Stream(connection) = &mut self.calls
            && connection.finish_call(number, |of| *of == waiter)
        {
            self.back_off.reset();
        }
        self.release(waiter);
        if !self.blocked.is_empty() || !self.awaiting_streams.is_empty() {
            self.wake_blocked();
        }
    }

    /// The peer has said something, so that calls may begin which could not.
    #[inline]
    fn handle_progress(&mut self) {
        self.back_off.reset();
        if !self.unsent.is_empty() {
            self.start_unsent();
        }
        if !self.blocked.is_empty() || !self.awaiting_streams.is_empty() {
            self.wake_blocked();
        }
    }

    /// Nothing listens at the peer's port.
    ///
    /// # Errors
    /// The link has failed, or is to end as the peer is to be looked for anew.
    #[cold]
    fn handle_refusal(&mut self, error: io::Error) -> Result<(), ConnectionFailure> {
        self.calls.handle_refusal(error, Instant::now())?;
        while let Some((waiter, outcome)) = self.calls.poll_failure() {
            self.end(waiter, outcome);
        }
        self.wake_blocked();
        self.calls.check_peer()
    }
}
