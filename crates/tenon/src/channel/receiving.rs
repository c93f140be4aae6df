//! Waiting for a reply: as the reader, who takes in everybody's replies, or asleep until the
//! reader has brought it or has left.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_net::{Until, is_deadline};
use tenon_proto::lean::{ByteOrder, Stamps};
use tenon_proto::onc::client::Timeout;

use super::Channel;
use super::bell::{Bell, Sleeper};
use super::broken::Broken;
use super::buffers::take_spare;
use super::connection::{Connection, Desk, InPlace};
use super::engine::{Engine, Meaning};
use super::flight::{Flight, Locked};
use super::form::Started;
use super::inbox::{fill_messages, take_lean_reply};
use super::sending::GLANCE;
use super::slots::{Outcome, Results, SlotId};
use super::state::State;
use crate::account::{Step as Progress, Watcher};
use crate::error::CallError;
use crate::waiting::{Company, Looking, Spinners};

/// The results of a call, encoded.
pub(crate) enum Reply<'t> {
    /// Where they were received: their owner is the reader.
    InPlace(Reader<'t>),
    /// Where the reader has put them.
    Copied {
        results: Results,
        channel: &'t Channel,
    },
}

impl Reply<'_> {
    #[inline]
    pub(crate) fn results(&self) -> &[u8] {
        match self {
            Self::InPlace(reader) => {
                let desk = reader.desk();
                desk.inbox.results(&desk.own.place)
            }
            Self::Copied { results, .. } => results.bytes.as_slice(),
        }
    }

    /// What the server says of the call's way, if this is where it was received: a copy has a note.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        match self {
            Self::InPlace(reader) => reader.desk().inbox.stamps(),
            Self::Copied { .. } => None,
        }
    }

    /// The order of the bytes of the results.
    #[inline]
    pub(crate) fn order(&self) -> ByteOrder {
        match self {
            Self::InPlace(reader) => reader.desk().own.order,
            Self::Copied { results, .. } => results.order,
        }
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if let Self::Copied { results, channel } = self {
            channel.recycle(std::mem::take(&mut results.bytes));
        }
    }
}

/// The reader's role on a connection. Dropping it puts the desk back and passes the role on.
pub(crate) struct Reader<'t> {
    channel: &'t Channel,
    /// There until the reader is dropped.
    desk: Option<Box<Desk>>,
}

impl Drop for Reader<'_> {
    /// Ends the reader's own call, puts the desk back and wakes the next reader. A caller goes to sleep under
    /// the same lock under which it found the desk taken: so either it is seen here, or it finds the desk.
    fn drop(&mut self) {
        let channel = self.channel;
        let Some(mut desk) = self.desk.take() else {
            return;
        };
        let mut state = channel.lock();
        if let Some((id, slot)) = desk.answered.take() {
            state.end_answered(id, slot);
            channel.hint(&state);
        }
        // That of a connection that has ended closes it, and the lock is not held meanwhile.
        let useless = state.put_desk(desk);
        let next = state.slots.next_reader();
        drop(state);
        drop(useless);
        if let Some(sleeper) = next {
            sleeper.wake();
        }
    }
}

/// Bytes of the longest results that are copied instead of becoming the reader.
const SHORT: usize = 1024;

/// What the owner of a call is to do next.
enum Step<'t> {
    Finish(Outcome),
    Read(Reader<'t>, Instant),
    Sleep(Arc<Bell>, Instant),
}

/// What came of taking in a message.
pub(super) enum Taken {
    /// There was none.
    Nothing,
    /// It was for others, or for the channel.
    Other,
    /// It is the reply for whoever reads.
    Own(Own),
}

/// The reply for whoever reads, which lies on the desk. An error is seldom there and large, and this is moved
/// several times.
pub(super) type Own = Result<(), Box<CallError>>;

impl Channel {
    /// The reply to the call of `flight`, if it has been received already, is the next, and of the commonest form.
    /// Of several calls that were started together most are answered when they are waited for: then nobody has to
    /// become the reader, look at the clock, or lock the bookkeeping once more to leave. Otherwise it stays locked.
    #[inline]
    pub(super) fn take_received<'t>(
        &'t self,
        locked: Locked<'t>,
        flight: &Flight,
    ) -> Result<Reply<'t>, Locked<'t>> {
        let Locked(mut state) = locked;
        let State { line, buffers, .. } = &mut *state;
        let desk = line.as_mut().map(|line| &mut line.desk);
        let Some(kept @ Some(_)) = desk else {
            return Err(Locked(state));
        };
        let taken = kept.as_mut().and_then(|desk| {
            let (place, order) = match desk.inbox.is_empty() {
                true => None,
                false => desk.inbox.take_reply(&flight.started),
            }?;
            Some((desk, place, order))
        });
        let Some((desk, place, order)) = taken else {
            return Err(Locked(state));
        };
        flight.is_over.store(true, Ordering::Relaxed);
        let (id, slot) = (flight.started.id, flight.slot);
        Ok(match place.len() <= SHORT {
            true => {
                let mut bytes = take_spare().unwrap_or_else(|| buffers.take());
                bytes.extend(desk.inbox.message().get(place).unwrap_or_default());
                state.end_answered(id, slot);
                self.hint(&state);
                let note = None;
                let results = Results { bytes, order, note };
                Reply::Copied {
                    results,
                    channel: self,
                }
            }
            false => {
                desk.own = InPlace { place, order };
                desk.answered = Some((id, slot));
                Reply::InPlace(Reader {
                    channel: self,
                    desk: kept.take(),
                })
            }
        })
    }

    /// Waits for the reply to the call of `flight`, until `until` or the call's own deadline. None
    /// if it has not come by `until`.
    pub(super) fn receive<'t>(
        &'t self,
        locked: Locked<'_>,
        flight: &Flight,
        until: Until,
        watcher: impl Watcher,
    ) -> Result<Option<Reply<'t>>, CallError> {
        let mut until = until;
        let Locked(mut state) = locked;
        loop {
            // The peer may lack this very call.
            if state.has_front() {
                state = self.send_front(state, until.deadline);
            }
            if state.has_packets() {
                state.flush_packets();
            }
            let next_timeout = match self.next_step(state, flight) {
                Step::Finish(outcome) => return self.finish(flight, outcome).map(Some),
                Step::Read(reader, next_timeout) => {
                    let earlier = until.or_earlier(next_timeout);
                    if let Some(reply) = reader.read(flight, earlier, watcher)? {
                        return Ok(Some(reply));
                    }
                    next_timeout
                }
                Step::Sleep(bell, next_timeout) => {
                    bell.wait(&self.listeners(), until.deadline.min(next_timeout));
                    watcher.at(Progress::Received);
                    next_timeout
                }
            };
            let now = Instant::now();
            until = Until::seen(until.deadline, now);
            if now >= next_timeout.min(until.deadline) {
                // The reader's role may have been offered to this caller while it slept. If the
                // caller leaves now, the offer is for the next one.
                let _offer = Offer(self);
                if now >= next_timeout {
                    self.handle_timeout(flight, now)?;
                }
                if until.is_over() {
                    let outcome = self.lock().slots.fetch(flight.slot);
                    return outcome
                        .map(|outcome| self.finish(flight, outcome))
                        .transpose();
                }
            }
            state = self.lock();
        }
    }

    /// Becomes the reader of `connection`, if nobody is and calls are sent over it.
    pub(super) fn read_on(
        &self,
        state: &mut State,
        connection: &Arc<Connection>,
    ) -> Option<Reader<'_>> {
        match state.is_line(connection) {
            true => self.read(state),
            false => None,
        }
    }

    /// Becomes the reader of the line, if nobody is.
    #[inline]
    pub(super) fn read(&self, state: &mut State) -> Option<Reader<'_>> {
        Some(Reader {
            desk: Some(state.take_desk()?),
            channel: self,
        })
    }

    #[inline]
    fn next_step(&self, mut state: MutexGuard<'_, State>, flight: &Flight) -> Step<'_> {
        if let Some(outcome) = state.slots.fetch(flight.slot) {
            return Step::Finish(outcome);
        }
        let deadline = flight.timer.deadline;
        // Whose call has come to nothing has been told so: this one is in flight over the line.
        let reader = self.read(&mut state);
        let next_timeout = match &reader {
            Some(_) => state.engine.next_timeout_of_reader(flight.started.id),
            None => state.engine.next_timeout(flight.started.id),
        };
        let next_timeout = next_timeout.unwrap_or(deadline);
        let next_timeout = match state.has_front() {
            // Somebody else sends now, and may leave that for later.
            true => next_timeout.min(Instant::now() + GLANCE),
            false => next_timeout,
        };
        match reader {
            Some(reader) => Step::Read(reader, next_timeout),
            None => {
                let bell = state.slots.fall_asleep(flight.slot);
                Step::Sleep(bell, next_timeout)
            }
        }
    }

    /// Those whom somebody else reads for.
    fn listeners(&self) -> Company<'_> {
        Company {
            spinners: Spinners::of_callers(),
            looking: Looking::AtBell,
            tally: &self.shared.listening,
        }
    }

    /// Turns what somebody else has left into the reply.
    fn finish(&self, flight: &Flight, outcome: Outcome) -> Result<Reply<'_>, CallError> {
        match outcome {
            Outcome::Answered(Ok(results)) => Ok(Reply::Copied {
                results,
                channel: self,
            }),
            Outcome::Answered(Err(error)) => Err(flight.answered(error)),
            Outcome::Broken(broken) => Err(broken.into_error()),
        }
    }

    /// Sends the call again or gives it up, as its timers say.
    #[cold]
    fn handle_timeout(&self, flight: &Flight, now: Instant) -> Result<(), CallError> {
        let mut state = self.lock();
        let timeout = state.engine.handle_timeout(flight.started.id, now);
        state.end_failed(None);
        self.flush(&mut state);
        drop(state);
        match timeout {
            Some(Timeout::Expired(_)) => return Err(flight.timer.error(true)),
            Some(Timeout::Retransmit(_)) => self.retransmit(flight),
            Some(Timeout::Wait(_)) | None => {}
        }
        Ok(())
    }
}

/// The offer to be the next reader, which is for somebody else.
struct Offer<'t>(&'t Channel);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // Whoever reads now passes the role on.
        let next = match state.has_desk() {
            true => state.slots.next_reader(),
            false => None,
        };
        drop(state);
        if let Some(sleeper) = next {
            sleeper.wake();
        }
    }
}

impl<'t> Reader<'t> {
    #[inline]
    fn desk(&self) -> &Desk {
        match &self.desk {
            Some(desk) => desk,
            None => unreachable!("it is there until the reader is dropped"),
        }
    }

    #[inline]
    fn desk_mut(&mut self) -> &mut Desk {
        match &mut self.desk {
            Some(desk) => desk,
            None => unreachable!("it is there until the reader is dropped"),
        }
    }

    /// Reads until the reply to the call of `flight` has come. None at `until`, or when the
    /// connection is broken: the call has been told so then.
    fn read(
        mut self,
        flight: &Flight,
        mut until: Until,
        watcher: impl Watcher,
    ) -> Result<Option<Reply<'t>>, CallError> {
        let mut has_received = false;
        loop {
            let step = match self.route_to(flight) {
                Ok(Some(own)) => {
                    flight.is_over.store(true, Ordering::Relaxed);
                    own.map_err(|error| flight.answered(*error))?;
                    return Ok(Some(Reply::InPlace(self)));
                }
                Ok(None) => {
                    if has_received {
                        until = until.deadline.into();
                    }
                    // A peer that never pauses would be read for ever.
                    match has_received && until.is_over() {
                        true => Ok(false),
                        false => self.receive(until),
                    }
                }
                Err(broken) => Err(broken),
            };
            watcher.at(Progress::Received);
            match step {
                Ok(true) => has_received = true,
                Ok(false) => return Ok(None),
                Err(broken) => {
                    let channel = self.channel;
                    channel.lock().break_line(&self.desk().connection, &broken);
                    return Ok(None);
                }
            }
        }
    }

    /// Reads the reply to a call that was sent just now, if nothing else comes before it, and says whether
    /// it is on the desk. If the connection broke, all calls have been told.
    #[inline(always)]
    pub(super) fn read_alone(
        &mut self,
        call: &Started,
        slot: SlotId,
        until: Until,
        watcher: impl Watcher,
    ) -> bool {
        let Desk {
            connection,
            inbox,
            waiter,
            own,
            answered,
        } = self.desk_mut();
        let Some(messages) = inbox.messages() else {
            return false;
        };
        if messages.is_between_messages() {
            let came = connection.wait_for_bytes(waiter, messages.room(), false, until);
            if let Err(error) = fill_messages(messages, came.map(|came| came.length)) {
                self.not_received(error);
                return false;
            }
        }
        watcher.at(Progress::Received);
        let Some(place) = take_lean_reply(messages, call) else {
            return false;
        };
        *own = InPlace {
            place,
            order: ByteOrder::NATIVE,
        };
        *answered = Some((call.id, slot));
        true
    }

    #[cold]
    fn not_received(&self, error: io::Error) {
        if !is_deadline(&error) {
            let connection = &self.desk().connection;
            self.channel.lock().break_line(connection, &error.into());
        }
    }

    /// Takes in what is there and waits for nothing.
    pub(super) fn take_in(&mut self) -> Result<(), Broken> {
        // What came behind somebody's own reply may fill all the room there is.
        self.route(None)?;
        if self.receive(Instant::now().into())? {
            self.route(None)?;
        }
        Ok(())
    }

    /// Takes in what has come for others, or waits for it until `until`.
    pub(super) fn take_in_by(&mut self, until: Instant) -> Result<(), Broken> {
        let mut has_taken = false;
        while let Taken::Other = self.take_next(None)? {
            has_taken = true;
        }
        if !has_taken && self.receive(until.into())? {
            self.route(None)?;
        }
        Ok(())
    }

    /// Receives once; says whether something came before the deadline.
    fn receive(&mut self, until: Until) -> Result<bool, Broken> {
        match self.desk_mut().receive(until) {
            Ok(()) => Ok(true),
            Err(error) if is_deadline(&error) => Ok(false),
            Err(error) => self.failed(error).map(|()| false),
        }
    }

    /// The packet exchange outlives its server. What was sent to a closed port ends calls, not the line.
    #[cold]
    fn failed(&self, error: io::Error) -> Result<(), Broken> {
        let channel = self.channel;
        if !channel.is_exchange() || error.kind() != io::ErrorKind::ConnectionRefused {
            return Err(error.into());
        }
        let mut state = channel.lock();
        if state.is_line(&self.desk().connection) {
            state.refused(error);
        }
        Ok(())
    }

    /// Brings every message that has come to its owner. Stops at the reply to the call of `flight`, if it
    /// comes by: that call is over, and its slot released, at the latest when this reader is dropped.
    #[inline]
    fn route_to(&mut self, flight: &Flight) -> Result<Option<Own>, Broken> {
        if self.desk().inbox.is_empty() {
            return Ok(None);
        }
        match self.take_own(&flight.started, flight.slot) {
            true => Ok(Some(Ok(()))),
            false => self.route(Some(flight.slot)),
        }
    }

    /// The same for the owner of a slot, if it reads for one.
    fn route(&mut self, own: Option<SlotId>) -> Result<Option<Own>, Broken> {
        loop {
            match self.take_next(own)? {
                Taken::Nothing => return Ok(None),
                Taken::Other => {}
                Taken::Own(reply) => return Ok(Some(reply)),
            }
        }
    }

    /// Takes the next message that has come, if it is of the commonest form and the reply to the reader's own
    /// `call`, and says whether it is: what most callers wait for shows without a look at all that could have
    /// come. The bookkeeping hears of it when the reader leaves, and takes the lock in any case.
    #[inline]
    fn take_own(&mut self, call: &Started, slot: SlotId) -> bool {
        if self.desk().inbox.single_packet().is_some() {
            return self.take_own_packet(slot);
        }
        let desk = self.desk_mut();
        let Some((place, order)) = desk.inbox.take_reply(call) else {
            return false;
        };
        desk.own = InPlace { place, order };
        desk.answered = Some((call.id, slot));
        true
    }

    /// The same of the packet exchange, where only the bookkeeping knows what a packet is.
    #[inline]
    fn take_own_packet(&mut self, slot: SlotId) -> bool {
        let channel = self.channel;
        let desk = self.desk_mut();
        let mut state = channel.lock();
        let Some(place) = state.take_common(desk, slot) else {
            return false;
        };
        channel.hint(&state);
        if state.has_packets() {
            state.flush_packets();
        }
        drop(state);
        desk.inbox.take_single_packet();
        let order = ByteOrder::NATIVE;
        desk.own = InPlace { place, order };
        true
    }

    /// Brings the next message that has come to its owner.
    #[inline]
    fn take_next(&mut self, own: Option<SlotId>) -> Result<Taken, Broken> {
        let channel = self.channel;
        let Some(desk) = &mut self.desk else {
            unreachable!("it is there until the reader is dropped");
        };
        let Desk {
            inbox,
            connection,
            own: results,
            ..
        } = &mut **desk;
        let Some(received) = inbox.next_received()? else {
            return Ok(Taken::Nothing);
        };
        if let Some(size) = received.train() {
            connection.expect_train(size);
        }
        let mut state = channel.lock();
        // What came over a connection that is given up says nothing of the one that follows it.
        if !state.is_line(connection) {
            return Ok(Taken::Other);
        }
        match state.engine.take_in(received)? {
            Meaning::Answer(answer) => {
                state.back_off.reset();
                channel.hint(&state);
                if state.has_packets() {
                    state.flush_packets();
                }
                if own == Some(answer.slot) {
                    let (place, order) = (answer.place, answer.order);
                    let own = answer.outcome.map(|_| ());
                    state.release(answer.slot);
                    *results = InPlace { place, order };
                    return Ok(Taken::Own(own));
                }
                let slot = answer.slot;
                let copied = state.copy(answer.outcome, answer.order);
                let copied = copied.map(|results| match answer.is_noted {
                    true => Results {
                        note: inbox.note(),
                        ..results
                    },
                    false => results,
                });
                let sleeper = state.slots.deliver(slot, Outcome::Answered(copied));
                drop(state);
                if let Some(sleeper) = sleeper {
                    sleeper.wake();
                }
                Ok(Taken::Other)
            }
            Meaning::Goodbye { cause, unbegun } => {
                channel.hint_all(&state);
                Ok(state.give_back(cause, &unbegun, own))
            }
            Meaning::Handled => {
                let taken = state.end_failed(own);
                channel.hint_all(&state);
                // What more there is to say goes out with it.
                if !inbox.has_more_packets() {
                    channel.flush(&mut state);
                }
                Ok(taken)
            }
        }
    }
}

impl State {
    /// Ends the call of `slot` if the packet that has come next is its answer and of the commonest form; where
    /// its results are.
    #[inline]
    fn take_common(&mut self, desk: &Desk, slot: SlotId) -> Option<Range<usize>> {
        // What came over a connection that is given up says nothing of the one that follows it.
        if !self.is_line(&desk.connection) {
            return None;
        }
        let Engine::Exchange(engine) = &mut self.engine else {
            return None;
        };
        let place = engine.take_common(desk.inbox.single_packet()?, slot)?;
        self.back_off.reset();
        self.release(slot);
        Some(place)
    }

    /// Ends a call whose owner has its reply, which may have been told that the connection broke meanwhile.
    #[inline(always)]
    fn end_answered(&mut self, id: u32, slot: SlotId) {
        if self.engine.handle_success(id, slot) {
            self.back_off.reset();
        }
        self.release(slot);
    }

    /// Copies a reply for its owner.
    fn copy(
        &mut self,
        outcome: Result<&[u8], Box<CallError>>,
        order: ByteOrder,
    ) -> Result<Results, CallError> {
        let results = outcome.map_err(|error| *error)?;
        let mut bytes = self.buffers.take();
        bytes.extend(results);
        Ok(Results {
            bytes,
            order,
            note: None,
        })
    }

    /// Tells the owners of calls that the peer has not begun them.
    #[cold]
    fn give_back(&mut self, cause: io::Error, unbegun: &[SlotId], own: Option<SlotId>) -> Taken {
        let error = CallError::Disconnected {
            cause: Arc::new(cause),
            may_have_executed: false,
        };
        let mut taken = Taken::Other;
        for slot in unbegun {
            self.fail(*slot, error.clone(), own, &mut taken);
        }
        taken
    }

    /// Tells the owners of calls that came to nothing without an answer.
    #[inline]
    pub(super) fn end_failed(&mut self, own: Option<SlotId>) -> Taken {
        let mut taken = Taken::Other;
        while let Some((slot, error)) = self.engine.poll_failure() {
            self.fail(slot, error, own, &mut taken);
        }
        taken
    }

    #[cold]
    fn fail(&mut self, slot: SlotId, error: CallError, own: Option<SlotId>, taken: &mut Taken) {
        match own == Some(slot) {
            true => {
                self.release(slot);
                *taken = Taken::Own(Err(Box::new(error)));
            }
            false => {
                let outcome = Outcome::Answered(Err(error));
                self.slots.deliver(slot, outcome).inspect(Sleeper::wake);
            }
        }
    }
}
