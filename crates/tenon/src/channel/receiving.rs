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
use super::connection::{Connection, Desk};
use super::engine::Meaning;
use super::sending::{GLANCE, Locked, Ticket};
use super::slots::{Outcome, Results, SlotId};
use super::state::State;
use crate::account::{Step as Progress, Watcher};
use crate::error::CallError;
use crate::waiting::{Company, Looking, Spinners};

/// The results of a call, encoded.
pub(crate) enum Reply<'t> {
    /// Where they were received: their owner is the reader.
    InPlace { reader: Reader<'t>, own: InPlace },
    /// Where the reader has put them.
    Copied {
        results: Results,
        channel: &'t Channel,
    },
}

/// The results of a call where they were received.
pub(crate) struct InPlace {
    place: Range<usize>,
    order: ByteOrder,
}

impl Reply<'_> {
    pub(crate) fn results(&self) -> &[u8] {
        match self {
            Self::InPlace { reader, own } => {
                let message = reader.desk.inbox.message();
                message.get(own.place.clone()).unwrap_or_default()
            }
            Self::Copied { results, .. } => results.bytes.as_slice(),
        }
    }

    /// What the server says of the call's way, if this is where it was received: a copy has a note.
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        match self {
            Self::InPlace { reader, .. } => reader.desk.inbox.stamps(),
            Self::Copied { .. } => None,
        }
    }

    /// The order of the bytes of the results.
    pub(crate) fn order(&self) -> ByteOrder {
        match self {
            Self::InPlace { own, .. } => own.order,
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

/// The reader's role on a connection. Dropping it frees the desk and passes the role on, in
/// this order, which is the order of the fields.
pub(crate) struct Reader<'t> {
    desk: MutexGuard<'t, Desk>,
    succession: Succession<'t>,
    connection: &'t Connection,
}

struct Succession<'t>(&'t Channel);

impl Drop for Succession<'_> {
    /// Wakes the next reader. A caller goes to sleep under the lock, after it found the desk
    /// taken: so either it is seen here, or it found the desk free.
    fn drop(&mut self) {
        let next = self.0.lock().slots.next_reader();
        if let Some(sleeper) = next {
            sleeper.wake();
        }
    }
}

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

/// The reply for whoever reads. An error is seldom there and large, and this is moved several times.
pub(super) type Own = Result<InPlace, Box<CallError>>;

impl Channel {
    /// Waits for the reply to the call of `ticket`, until `until` or the call's own deadline. None
    /// if it has not come by `until`.
    pub(crate) fn receive<'t>(
        &'t self,
        locked: Locked<'_>,
        ticket: &'t Ticket,
        until: Until,
        watcher: impl Watcher,
    ) -> Result<Option<Reply<'t>>, CallError> {
        let Until {
            deadline: until,
            mut seen,
        } = until;
        let Locked(mut state) = locked;
        loop {
            // The peer may lack this very call.
            if state.has_front() {
                state = self.send_front(state, until);
            }
            if state.has_packets() {
                state.flush_packets();
            }
            let next_timeout = match self.next_step(state, ticket) {
                Step::Finish(outcome) => return self.finish(ticket, outcome).map(Some),
                Step::Read(reader, next_timeout) => {
                    let until = Until {
                        deadline: until.min(next_timeout),
                        seen,
                    };
                    if let Some(reply) = reader.read(ticket, until, watcher)? {
                        return Ok(Some(reply));
                    }
                    next_timeout
                }
                Step::Sleep(bell, next_timeout) => {
                    bell.wait(&self.listeners(), until.min(next_timeout));
                    watcher.at(Progress::Received);
                    next_timeout
                }
            };
            let now = Instant::now();
            seen = now;
            if now >= next_timeout.min(until) {
                // The reader's role may have been offered to this caller while it slept. If the
                // caller leaves now, the offer is for the next one.
                let _succession = Succession(self);
                if now >= next_timeout {
                    self.handle_timeout(ticket, now)?;
                }
                if now >= until {
                    let outcome = self.lock().slots.fetch(ticket.slot);
                    return outcome
                        .map(|outcome| self.finish(ticket, outcome))
                        .transpose();
                }
            }
            state = self.lock();
        }
    }

    /// Becomes the reader of `connection`, if nobody is.
    pub(super) fn read_on<'t>(&'t self, connection: &'t Connection) -> Option<Reader<'t>> {
        let mut desk = connection.try_read()?;
        desk.inbox.shrink();
        Some(Reader {
            desk,
            succession: Succession(self),
            connection,
        })
    }

    fn next_step<'t>(&'t self, mut state: MutexGuard<'_, State>, ticket: &'t Ticket) -> Step<'t> {
        if let Some(outcome) = state.slots.fetch(ticket.slot) {
            return Step::Finish(outcome);
        }
        let deadline = ticket.timer.deadline;
        let reader = self.read_on(&ticket.connection);
        let next_timeout = match &reader {
            Some(_) => state.engine.next_timeout_of_reader(ticket.xid),
            None => state.engine.next_timeout(ticket.xid),
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
                let bell = state.slots.fall_asleep(ticket.slot);
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
    fn finish(&self, ticket: &Ticket, outcome: Outcome) -> Result<Reply<'_>, CallError> {
        match outcome {
            Outcome::Answered(Ok(results)) => Ok(Reply::Copied {
                results,
                channel: self,
            }),
            Outcome::Answered(Err(error)) => Err(ticket.answered(error)),
            Outcome::Broken(broken) => Err(broken.into_error()),
        }
    }

    /// Sends the call again or gives it up, as its timers say.
    #[cold]
    fn handle_timeout(&self, ticket: &Ticket, now: Instant) -> Result<(), CallError> {
        let mut state = self.lock();
        let timeout = state.engine.handle_timeout(ticket.xid, now);
        state.end_failed(None);
        self.flush(&mut state);
        drop(state);
        match timeout {
            Some(Timeout::Expired(_)) => return Err(ticket.timer.error(true)),
            Some(Timeout::Retransmit(_)) => self.retransmit(ticket),
            Some(Timeout::Wait(_)) | None => {}
        }
        Ok(())
    }
}

impl<'t> Reader<'t> {
    /// Reads until the reply to the call of `ticket` has come. None at `until`, or when the
    /// connection is broken: the call has been told so then.
    fn read(
        mut self,
        ticket: &Ticket,
        mut until: Until,
        watcher: impl Watcher,
    ) -> Result<Option<Reply<'t>>, CallError> {
        let mut has_received = false;
        loop {
            let step = match self.route(Some(ticket.slot)) {
                Ok(Some(own)) => {
                    ticket.is_over.store(true, Ordering::Relaxed);
                    let own = own.map_err(|error| ticket.answered(*error))?;
                    return Ok(Some(Reply::InPlace { reader: self, own }));
                }
                Ok(None) => {
                    if has_received {
                        until.seen = Instant::now();
                    }
                    // A peer that never pauses would be read for ever.
                    match has_received && until.seen >= until.deadline {
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
                    let channel = self.succession.0;
                    channel.lock().break_line(&ticket.connection, &broken);
                    return Ok(None);
                }
            }
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
        match self.connection.receive(&mut self.desk, until) {
            Ok(()) => Ok(true),
            Err(error) if is_deadline(&error) => Ok(false),
            Err(error) => self.failed(error).map(|()| false),
        }
    }

    /// The packet exchange outlives its server. What was sent to a closed port ends calls, not the line.
    #[cold]
    fn failed(&self, error: io::Error) -> Result<(), Broken> {
        let channel = self.succession.0;
        if !channel.is_exchange() || error.kind() != io::ErrorKind::ConnectionRefused {
            return Err(error.into());
        }
        let mut state = channel.lock();
        if state.is_line(self.connection) {
            state.refused(error);
        }
        Ok(())
    }

    /// Brings every message that has come to its owner. Stops at the reply for `own`, if it comes
    /// by; the slot is released then.
    fn route(&mut self, own: Option<SlotId>) -> Result<Option<Own>, Broken> {
        if self.desk.inbox.is_empty() {
            return Ok(None);
        }
        if let Some(own) = own.and_then(|own| self.take_own(own)) {
            return Ok(Some(Ok(own)));
        }
        loop {
            match self.take_next(own)? {
                Taken::Nothing => return Ok(None),
                Taken::Other => {}
                Taken::Own(reply) => return Ok(Some(reply)),
            }
        }
    }

    /// Takes the next message that has come, if it is of the commonest form and the reply for `own`, whose slot
    /// is released then: what most callers wait for shows without a look at all that could have come.
    #[inline]
    fn take_own(&mut self, own: SlotId) -> Option<InPlace> {
        let common = self.desk.inbox.find_common()?;
        let channel = self.succession.0;
        let mut state = channel.lock();
        if !state.is_line(self.connection) || !state.engine.handle_common(&common, own) {
            return None;
        }
        state.back_off.reset();
        channel.hint(&state);
        state.release(own);
        drop(state);
        let (place, order) = self.desk.inbox.take_common(common);
        Some(InPlace { place, order })
    }

    /// Brings the next message that has come to its owner.
    #[inline]
    fn take_next(&mut self, own: Option<SlotId>) -> Result<Taken, Broken> {
        let Some(received) = self.desk.inbox.next_received()? else {
            return Ok(Taken::Nothing);
        };
        if let Some(size) = received.train() {
            self.connection.expect_train(size);
        }
        let channel = self.succession.0;
        let mut state = channel.lock();
        // What came over a connection that is given up says nothing of the one that follows it.
        if !state.is_line(self.connection) {
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
                    let own = answer.outcome.map(|_| InPlace { place, order });
                    state.release(answer.slot);
                    return Ok(Taken::Own(own));
                }
                let slot = answer.slot;
                let copied = state.copy(answer.outcome, answer.order);
                let copied = copied.map(|results| match answer.is_noted {
                    true => Results {
                        note: self.desk.inbox.note(),
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
                if !self.desk.inbox.has_more_packets() {
                    channel.flush(&mut state);
                }
                Ok(taken)
            }
        }
    }
}

impl State {
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
