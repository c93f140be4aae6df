//! Waiting for a reply: as the reader, who takes in everybody's replies, or asleep until the
//! reader has brought it or has left.

use std::sync::MutexGuard;
use std::thread::{self, Thread};
use std::time::Instant;

use tenon_net::is_deadline;
use tenon_proto::onc::client::{ReplyError, Timeout};
use tenon_wire::Buffer;

use super::Channel;
use super::connection::{Broken, Connection, Inbox};
use super::sending::Ticket;
use super::slots::{Outcome, SlotId};
use super::state::State;
use crate::error::CallError;

/// The results of a call, encoded.
pub(crate) enum Reply<'t> {
    /// Where they were received: their owner is the reader.
    InPlace { reader: Reader<'t>, start: usize },
    /// Where the reader has put them.
    Copied {
        results: Buffer,
        channel: &'t Channel,
    },
}

impl Reply<'_> {
    pub(crate) fn results(&self) -> &[u8] {
        match self {
            Self::InPlace { reader, start } => &reader.inbox.message()[*start..],
            Self::Copied { results, .. } => results.as_slice(),
        }
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if let Self::Copied { results, channel } = self {
            channel.recycle(std::mem::take(results));
        }
    }
}

/// The reader's role on a connection. Dropping it frees the inbox and passes the role on, in
/// this order, which is the order of the fields.
pub(crate) struct Reader<'t> {
    inbox: MutexGuard<'t, Inbox>,
    succession: Succession<'t>,
    connection: &'t Connection,
}

struct Succession<'t>(&'t Channel);

impl Drop for Succession<'_> {
    /// Wakes the next reader. A caller goes to sleep under the lock, after it found the inbox
    /// taken: so either it is seen here, or it found the inbox free.
    fn drop(&mut self) {
        let next = self.0.lock().slots.next_reader();
        if let Some(sleeper) = next {
            sleeper.unpark();
        }
    }
}

/// What the owner of a call is to do next.
enum Step<'t> {
    Finish(Outcome),
    Read(Reader<'t>, Instant),
    Sleep(Instant),
}

impl Channel {
    /// Waits for the reply to the call of `ticket`, until `until` or the call's own deadline. None
    /// if it has not come by `until`.
    pub(crate) fn receive<'t>(
        &'t self,
        ticket: &'t Ticket,
        until: Instant,
    ) -> Result<Option<Reply<'t>>, CallError> {
        loop {
            let next_timeout = match self.next_step(ticket) {
                Step::Finish(outcome) => return self.finish(outcome).map(Some),
                Step::Read(reader, next_timeout) => {
                    if let Some(reply) = reader.read(ticket, until.min(next_timeout))? {
                        return Ok(Some(reply));
                    }
                    next_timeout
                }
                Step::Sleep(next_timeout) => {
                    sleep_until(until.min(next_timeout));
                    next_timeout
                }
            };
            let now = Instant::now();
            if now >= next_timeout.min(until) {
                // The reader's role may have been offered to this caller while it slept. If the
                // caller leaves now, the offer is for the next one.
                let _succession = Succession(self);
                if now >= next_timeout {
                    self.handle_timeout(ticket, now)?;
                }
                if now >= until {
                    let outcome = self.lock().slots.fetch(ticket.slot);
                    return outcome.map(|outcome| self.finish(outcome)).transpose();
                }
            }
        }
    }

    /// Becomes the reader of `connection`, if nobody is.
    pub(super) fn read_on<'t>(&'t self, connection: &'t Connection) -> Option<Reader<'t>> {
        let mut inbox = connection.try_read()?;
        inbox.shrink();
        Some(Reader {
            inbox,
            succession: Succession(self),
            connection,
        })
    }

    fn next_step<'t>(&'t self, ticket: &'t Ticket) -> Step<'t> {
        let mut state = self.lock();
        if let Some(outcome) = state.slots.fetch(ticket.slot) {
            return Step::Finish(outcome);
        }
        let deadline = ticket.timer.deadline;
        let next_timeout = state.engine.next_timeout(ticket.xid).unwrap_or(deadline);
        match self.read_on(&ticket.connection) {
            Some(reader) => Step::Read(reader, next_timeout),
            None => {
                state.slots.fall_asleep(ticket.slot);
                Step::Sleep(next_timeout)
            }
        }
    }

    /// Turns what somebody else has left into the reply.
    fn finish(&self, outcome: Outcome) -> Result<Reply<'_>, CallError> {
        match outcome {
            Outcome::Answered(Ok(results)) => Ok(Reply::Copied {
                results,
                channel: self,
            }),
            Outcome::Answered(Err(error)) => Err(error.into()),
            Outcome::Broken(broken) => Err(broken.into_error()),
        }
    }

    /// Sends the call again or gives it up, as its timers say.
    #[cold]
    fn handle_timeout(&self, ticket: &Ticket, now: Instant) -> Result<(), CallError> {
        let timeout = self.lock().engine.handle_timeout(ticket.xid, now);
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
    fn read(mut self, ticket: &Ticket, until: Instant) -> Result<Option<Reply<'t>>, CallError> {
        let mut has_received = false;
        loop {
            let step = match self.route(Some(ticket.slot)) {
                Ok(Some(own)) => {
                    let start = own?;
                    return Ok(Some(Reply::InPlace {
                        reader: self,
                        start,
                    }));
                }
                // A peer that never pauses would be read for ever.
                Ok(None) if has_received && Instant::now() >= until => Ok(false),
                Ok(None) => self.receive(until),
                Err(broken) => Err(broken),
            };
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
        if self.receive(Instant::now())? {
            self.route(None)?;
        }
        Ok(())
    }

    /// Receives once; says whether something came before `until`.
    fn receive(&mut self, until: Instant) -> Result<bool, Broken> {
        match self.connection.receive(&mut self.inbox, until) {
            Ok(()) => Ok(true),
            Err(error) if is_deadline(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings every message that has come to its owner. Stops at the reply for `own`, if it comes
    /// by: its results begin at the offset returned.
    fn route(&mut self, own: Option<SlotId>) -> Result<Option<Result<usize, ReplyError>>, Broken> {
        while let Some(message) = self.inbox.next()? {
            let mut state = self.succession.0.lock();
            let Some(answer) = state.engine.handle_reply(message)? else {
                continue;
            };
            state.back_off.reset();
            if own == Some(answer.waiter) {
                let length = message.len();
                return Ok(Some(answer.outcome.map(|results| length - results.len())));
            }
            let sleeper = state.deliver(answer.waiter, answer.outcome);
            drop(state);
            if let Some(sleeper) = sleeper {
                sleeper.unpark();
            }
        }
        Ok(None)
    }
}

impl State {
    /// Copies a reply for its owner, who is to be woken if it sleeps.
    fn deliver(&mut self, slot: SlotId, outcome: Result<&[u8], ReplyError>) -> Option<Thread> {
        let copied = outcome.map(|results| {
            let mut copy = self.buffers.take();
            copy.extend(results);
            copy
        });
        self.slots.deliver(slot, Outcome::Answered(copied))
    }
}

/// Sleeps until `until` or until somebody wakes this thread; both may be for nothing.
fn sleep_until(until: Instant) {
    thread::park_timeout(until.saturating_duration_since(Instant::now()));
}
