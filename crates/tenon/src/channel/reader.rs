//! The reader of a connection, who takes in everybody's replies: its own where it was received, those of others
//! into their slots.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tenon_net::{Until, is_deadline};
use tenon_proto::lean::ByteOrder;

use super::Channel;
use super::broken::Broken;
use super::connection::{Desk, InPlace};
use super::engine::Meaning;
use super::flight::Flight;
use super::form::Started;
use super::inbox::{fill_messages, take_lean_reply};
use super::receiving::Reply;
use super::slots::{Outcome, Results, SlotId};
use crate::account::{Step, Watcher};
use crate::error::CallError;

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

impl<'t> Reader<'t> {
    /// Whoever has taken the `desk` of `channel`.
    #[inline]
    pub(super) fn at(desk: Box<Desk>, channel: &'t Channel) -> Self {
        let desk = Some(desk);
        Self { channel, desk }
    }

    #[inline]
    pub(super) fn desk(&self) -> &Desk {
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
    pub(super) fn read(
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
            watcher.at(Step::Received);
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
        watcher.at(Step::Received);
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
        let backlog = match state.has_packets() {
            true => state.flush_packets(),
            false => None,
        };
        drop(channel.send_backlog_unlocked(state, backlog));
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
                let backlog = match state.has_packets() {
                    true => state.flush_packets(),
                    false => None,
                };
                if own == Some(answer.slot) {
                    let (place, order) = (answer.place, answer.order);
                    let own = answer.outcome.map(|_| ());
                    state.release(answer.slot);
                    drop(channel.send_backlog_unlocked(state, backlog));
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
                if let Some(backlog) = backlog {
                    channel.send_backlog(backlog);
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
                    let backlog = channel.flush(&mut state);
                    drop(channel.send_backlog_unlocked(state, backlog));
                }
                Ok(taken)
            }
        }
    }
}
