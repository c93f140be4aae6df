//! Waiting for a reply: as the reader, who takes in everybody's replies, or asleep until the
//! reader has brought it or has left.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_net::Until;
use tenon_proto::lean::{ByteOrder, Stamps};
use tenon_proto::onc::client::Timeout;

use super::Channel;
use super::bell::Bell;
use super::buffers::take_spare;
use super::connection::{Connection, InPlace};
use super::flight::{Flight, Locked};
use super::reader::Reader;
use super::slots::{Outcome, Results};
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

/// Bytes of the longest results that are copied instead of becoming the reader.
const SHORT: usize = 1024;

/// What the owner of a call is to do next.
enum Step<'t> {
    Finish(Outcome),
    Read(Reader<'t>, Instant),
    Sleep(Arc<Bell>, Instant),
}

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
                match kept.take() {
                    Some(desk) => Reply::InPlace(Reader::at(desk, self)),
                    None => unreachable!("a reply was found on it"),
                }
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
                state = self.flush_packets(state);
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
        Some(Reader::at(state.take_desk()?, self))
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
        let next_timeout = state.next_glance(next_timeout);
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
        let backlog = self.flush(&mut state);
        drop(self.send_backlog_unlocked(state, backlog));
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
