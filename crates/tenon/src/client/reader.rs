//! The reader of a link, which takes in everything that has come: of all replies the channel hears together, and each
//! caller that waits for one of them is woken once. The reader's own reply stays where it was received, if nothing has
//! come behind it.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_core::error::{CallError, ConnectionFailure};
use tenon_core::profile::{Note, Probe, Step};
use tenon_net::{Until, is_deadline};
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{Answer, Connection, Event, PeerClosing, ServiceTable};
use tenon_proto::lean::{CloseReason, Stamps};

use super::channel::Channel;
use super::datagram_input::DatagramInput;
use super::link::{Input, LinkSocket, OwnReply, ReadHalf};
use super::state::{Calls, ChannelState, DatagramCalls};
use super::wait_handle::WakeHandle;
use super::waiters::{CallId, Outcome, ResultBytes, Results, WaiterId};

/// Bytes of the longest results that are copied for their caller. Of longer ones the whole message is taken out of what
/// was received.
const COPIED_MAX: usize = 16 << 10;

/// The reader's role on a link. Dropping it passes the role on.
pub(super) struct Reader<'c> {
    channel: &'c Channel,
    /// There until the reader is dropped.
    half: Option<Box<ReadHalf>>,
}

/// Whose reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivered {
    /// Nothing has come whole.
    Nothing,
    /// Not the reader's own.
    Others,
    /// The reader's own, which lies where it was received.
    Own,
    /// The reader's own, as an outcome that is left for its waiter.
    OwnOutcome,
}

impl Drop for Reader<'_> {
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

impl<'c> Reader<'c> {
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

    /// What the server says of the call's way.
    pub(super) fn stamps(&mut self) -> Option<Stamps> {
        self.half().own.stamps
    }

    /// Reads until the reply for `waiter` has come; returns whether it lies here. It does not if it was left for the
    /// waiter, at `until`, and when the connection has failed, of which all calls have been told.
    pub(super) fn read(&mut self, waiter: WaiterId, mut until: Until, probe: impl Probe) -> bool {
        let mut has_received = false;
        loop {
            let delivered = if self.half().is_empty() {
                Ok(Delivered::Nothing)
            } else {
                self.deliver(Some(waiter))
            };
            let failure = match delivered {
                Ok(Delivered::Own) => return true,
                Ok(Delivered::OwnOutcome) => return false,
                Err(failure) => failure,
                Ok(Delivered::Nothing | Delivered::Others) => {
                    if has_received {
                        until = until.deadline.into();
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
        if self.deliver(None)? == Delivered::Nothing && self.receive(until.into())? {
            self.deliver(None)?;
        }
        Ok(())
    }

    /// Hands out what has come, without waiting.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn receive_now(&mut self) -> Result<(), ConnectionFailure> {
        self.deliver(None)?;
        if self.receive(Instant::now().into())? {
            self.deliver(None)?;
        }
        Ok(())
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
            return state.handle_refusal(error);
        }
        Err(error.into())
    }

    /// Hands everything out that has come whole.
    fn deliver(&mut self, own: Option<WaiterId>) -> Result<Delivered, ConnectionFailure> {
        let channel = self.channel;
        let half = self.half();
        let mut state = channel.lock();
        // What came over a connection that is given up says nothing of the one that follows it.
        if !state.is_linked(&half.socket) {
            return Ok(Delivered::Nothing);
        }
        let ReadHalf {
            socket,
            input,
            own: place,
            wakes,
            ..
        } = half;
        let mut delivery = Delivery {
            own,
            place,
            wakes,
            delivered: Delivered::Nothing,
        };
        let taken = match input {
            Input::Stream(receiver) => delivery.take_stream(&mut state, receiver),
            Input::Datagram(input) => {
                delivery.take_datagrams(&mut state, socket, input);
                Ok(())
            }
        };
        let delivered = delivery.delivered;
        if state.needs_sender() {
            // Without waiting: what finds no room is left to a caller that waits.
            state = channel.transmit(state, Instant::now());
        }
        state.has_woken_several |= wakes.len() > 1;
        drop(state);
        for wake in wakes.drain(..) {
            wake.wake();
        }
        taken.map(|()| delivered)
    }
}

/// What a reader does with what has come.
struct Delivery<'d> {
    /// For which the reader reads.
    own: Option<WaiterId>,
    /// Where its reply is noted.
    place: &'d mut OwnReply,
    /// Callers that are to be woken.
    wakes: &'d mut Vec<WakeHandle>,
    delivered: Delivered,
}

/// What was found out of an answer before its message was touched again.
struct Found {
    waiter: WaiterId,
    /// Bytes of the results, or what the answer is instead.
    outcome: Result<usize, CallError>,
    reply: OwnReply,
}

impl Delivery<'_> {
    /// Takes in all messages that have come whole over a stream.
    fn take_stream(
        &mut self,
        state: &mut ChannelState,
        receiver: &mut Receiver,
    ) -> Result<(), ConnectionFailure> {
        let services = ServiceTable::default();
        let mut has_progress = false;
        loop {
            let Calls::Stream(connection) = &mut state.calls else {
                return Ok(());
            };
            let Some(event) = next_event(connection, receiver, &services)? else {
                break;
            };
            has_progress = true;
            match event {
                StreamEvent::Answered(found) => self.hand_out(state, receiver, found),
                StreamEvent::Closing(cause, unbegun) => {
                    let error = CallError::Disconnected {
                        cause: Arc::new(cause),
                        may_have_executed: false,
                    };
                    for waiter in unbegun {
                        let outcome = Outcome::Answered(Err(error.clone()));
                        self.leave(state, waiter, outcome);
                    }
                }
                StreamEvent::Other => {}
            }
        }
        if has_progress {
            self.note_others();
            state.handle_progress();
        }
        Ok(())
    }

    /// Hands out an answer: the reader's own stays where it is, if nothing has come behind it.
    fn hand_out(&mut self, state: &mut ChannelState, receiver: &mut Receiver, found: Found) {
        let Found {
            waiter,
            outcome,
            reply,
        } = found;
        let length = match outcome {
            Ok(length) => length,
            Err(error) => return self.leave(state, waiter, Outcome::Answered(Err(error))),
        };
        if self.own == Some(waiter) && receiver.is_between_frames() {
            *self.place = reply;
            self.delivered = Delivered::Own;
            return state.release(waiter);
        }
        let bytes = if length <= COPIED_MAX {
            state.copy(&receiver.last_content()[reply.place])
        } else {
            match receiver.detach() {
                Some(message) => ResultBytes::Detached(Box::new(message), length),
                None => return,
            }
        };
        let results = Results {
            bytes,
            order: reply.order,
            note: reply.stamps.map(Note::now),
        };
        self.leave(state, waiter, Outcome::Answered(Ok(results)));
    }

    /// Takes in all datagrams that have come.
    fn take_datagrams(
        &mut self,
        state: &mut ChannelState,
        socket: &LinkSocket,
        input: &mut DatagramInput,
    ) {
        let now = Instant::now();
        let own_call = self.own.and_then(|own| state.waiters.call(own));
        while input.advance() {
            self.note_others();
            if let Some(size) = input.likely_train() {
                socket.socket.expect_train(size);
            }
            let Calls::Datagram(calls) = &mut state.calls else {
                return;
            };
            let Some(found) = next_answer(calls, input, (self.own, own_call), now) else {
                continue;
            };
            let Found {
                waiter,
                outcome,
                reply,
            } = found;
            let outcome = match outcome {
                Err(error) => Err(error),
                Ok(_) if self.own == Some(waiter) && !input.has_next() => {
                    *self.place = reply;
                    self.delivered = Delivered::Own;
                    state.release(waiter);
                    continue;
                }
                Ok(_) => Ok(Results {
                    bytes: state.copy(&input.message()[reply.place]),
                    order: reply.order,
                    note: reply.stamps.map(Note::now),
                }),
            };
            self.leave(state, waiter, Outcome::Answered(outcome));
        }
        while let Some((waiter, failure)) = state.poll_failure() {
            self.leave(state, waiter, Outcome::Failed(failure));
        }
        state.handle_progress();
    }

    /// Something was taken in.
    fn note_others(&mut self) {
        if self.delivered == Delivered::Nothing {
            self.delivered = Delivered::Others;
        }
    }

    /// Leaves an outcome for a waiter.
    fn leave(&mut self, state: &mut ChannelState, waiter: WaiterId, outcome: Outcome) {
        if self.own == Some(waiter) {
            self.delivered = Delivered::OwnOutcome;
        }
        self.wakes.extend(state.waiters.deliver(waiter, outcome));
    }
}

/// What a message meant for the channel.
enum StreamEvent {
    Answered(Found),
    /// The peer begins nothing any more, and has not begun the calls of these waiters.
    Closing(io::Error, Vec<WaiterId>),
    Other,
}

/// Takes the next message in that has come whole.
#[inline]
fn next_event(
    connection: &mut Connection<WaiterId>,
    receiver: &mut Receiver,
    services: &ServiceTable,
) -> Result<Option<StreamEvent>, ConnectionFailure> {
    let frame = receiver.next_frame();
    let Some(frame) = frame.map_err(tenon_proto::connection::ConnectionError::from)? else {
        return Ok(None);
    };
    Ok(Some(match connection.handle_frame(frame, services)? {
        Event::Answered(answer) => {
            let length = answer.outcome.as_ref().map_or(0, |results| results.len());
            let mut found = Found::of(answer, 0..length);
            // The results end the message.
            let end = receiver.last_content().len();
            found.reply.place = end - length..end;
            StreamEvent::Answered(found)
        }
        Event::PeerClosing(closing) => closing_event(closing)?,
        _ => StreamEvent::Other,
    }))
}

#[cold]
fn closing_event(closing: PeerClosing<'_, WaiterId>) -> Result<StreamEvent, ConnectionFailure> {
    let cause = io::Error::new(
        io::ErrorKind::ConnectionAborted,
        format!("the peer closed the connection: {}", closing.close),
    );
    // What the peer takes for a violation ends everything.
    if closing.close.reason == CloseReason::VIOLATION {
        return Err(cause.into());
    }
    let unbegun = closing.unbegun.into_iter().map(|call| call.waiter);
    Ok(StreamEvent::Closing(cause, unbegun.collect()))
}

/// Takes in the datagram that was handed out last; returns the answer, if that makes one whole.
fn next_answer(
    calls: &mut DatagramCalls,
    input: &mut DatagramInput,
    own: (Option<WaiterId>, Option<CallId>),
    now: Instant,
) -> Option<Found> {
    calls.fault = None;
    let (datagram, whole) = input.last_datagram();
    if let (Some(waiter), Some(CallId::Datagram(id))) = own
        && let Some(place) = calls.endpoint.take_common(now, datagram, id)
    {
        return Some(Found {
            waiter,
            outcome: Ok(place.len()),
            reply: OwnReply {
                place,
                ..OwnReply::default()
            },
        });
    }
    let datagram_start = datagram.as_ptr() as usize;
    let answer = calls.endpoint.handle_datagram(now, datagram, whole)?;
    let results = answer.outcome.as_ref().map_or(&[][..], |results| results);
    let (start, length) = (results.as_ptr() as usize, results.len());
    let mut found = Found::of(answer, 0..length);
    let message = input.message();
    // What was joined lies elsewhere than the datagram.
    let begin = match message.as_ptr() as usize {
        joined if joined != datagram_start && length > 0 => start - joined,
        _ if length > 0 => start - datagram_start,
        _ => 0,
    };
    found.reply.place = begin..begin + length;
    Some(found)
}

impl Found {
    #[inline]
    fn of(answer: Answer<'_, WaiterId>, place: std::ops::Range<usize>) -> Self {
        let stamps = match answer.extensions.is_empty() {
            true => None,
            false => Stamps::find(answer.extensions),
        };
        Self {
            waiter: answer.waiter,
            outcome: match answer.outcome {
                Ok(results) => Ok(results.len()),
                Err(error) => Err(error.into()),
            },
            reply: OwnReply {
                place,
                order: answer.order,
                stamps,
            },
        }
    }
}

impl Channel {
    /// Becomes the reader of the link, unless another caller is.
    #[inline]
    pub(super) fn read(&self, state: &mut ChannelState) -> Option<Reader<'_>> {
        Some(Reader::new(self, state.take_read_half()?))
    }

    /// The same of the link over `socket`.
    pub(super) fn read_over(
        &self,
        state: &mut MutexGuard<'_, ChannelState>,
        socket: &Arc<LinkSocket>,
    ) -> Option<Reader<'_>> {
        match state.is_linked(socket) {
            true => self.read(state),
            false => None,
        }
    }
}

impl ChannelState {
    /// Ends a call whose reply its caller has found itself. The call may have been told that the connection failed.
    #[inline]
    pub(super) fn end_answered(&mut self, number: u32, waiter: WaiterId) {
        if let Calls::Stream(connection) = &mut self.calls
            && connection.finish_call(number, |of| *of == waiter)
        {
            self.back_off.reset();
        }
        self.release(waiter);
        if !self.blocked.is_empty() {
            self.wake_blocked();
        }
    }

    /// Copies results for the caller that waits for them.
    #[inline]
    fn copy(&mut self, results: &[u8]) -> ResultBytes {
        let mut copy = self.buffers.take();
        copy.extend(results);
        ResultBytes::Copied(copy)
    }

    /// The peer has said something, so that calls may begin which could not.
    #[inline]
    fn handle_progress(&mut self) {
        self.back_off.reset();
        if !self.unsent.is_empty() {
            self.start_unsent();
        }
        if !self.blocked.is_empty() {
            self.wake_blocked();
        }
    }

    /// Nothing listens at the peer's port.
    #[cold]
    fn handle_refusal(&mut self, error: io::Error) -> Result<(), ConnectionFailure> {
        let Calls::Datagram(calls) = &mut self.calls else {
            return Err(error.into());
        };
        if !calls.endpoint.is_exchange() {
            return Err(error.into());
        }
        calls.fault = Some(Arc::new(error));
        calls.endpoint.handle_refusal(Instant::now());
        while let Some((waiter, failure)) = self.poll_failure() {
            self.end(waiter, Outcome::Failed(failure));
        }
        self.wake_blocked();
        Ok(())
    }
}
