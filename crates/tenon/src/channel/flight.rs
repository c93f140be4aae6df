//! A call in flight, as whoever waits for its reply has it, and what becomes of it if nobody does.

use std::sync::MutexGuard;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tenon_wire::Buffer;

use super::engine::is_late;
use super::form::Started;
use super::slots::{Results, SlotId};
use super::state::State;
use super::{Channel, Reply, Timer};
use crate::account::Watcher;
use crate::error::CallError;

/// A call in flight, as whoever waits for its reply knows it.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) started: Started,
    pub(super) slot: SlotId,
    pub(super) timer: Timer,
    /// The call itself, as long as it may have to be sent again.
    pub(super) message: Option<Buffer>,
    /// Whether the call is over, and its slot released or about to be; or is not sent yet.
    pub(super) is_over: AtomicBool,
}

/// A call in flight whose reply is fetched some time, by whomever. Dropping it gives the call up.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) channel: Channel,
    pub(super) flight: Flight,
}

/// A call in flight that is waited for at once. Dropping it gives the call up.
pub(super) struct Call<'c> {
    pub(super) channel: &'c Channel,
    pub(super) flight: Flight,
}

/// The bookkeeping, still locked after a call was sent: a caller that waits at once goes on with it.
pub(super) struct Locked<'c>(pub(super) MutexGuard<'c, State>);

impl Flight {
    /// A call that is not sent yet.
    #[inline(always)]
    pub(super) fn of(timer: Timer) -> Self {
        Self {
            started: Started::default(),
            slot: SlotId::new(0),
            timer,
            message: None,
            is_over: AtomicBool::new(true),
        }
    }

    /// The call is in flight.
    #[inline]
    pub(super) fn begin(&mut self, started: Started, slot: SlotId, message: Option<Buffer>) {
        self.started = started;
        self.slot = slot;
        self.message = message;
        *self.is_over.get_mut() = false;
    }

    /// What it means for the call that the peer answered so: if the time that it was told ran out
    /// there first, it would have run out here.
    #[cold]
    pub(super) fn answered(&self, error: CallError) -> CallError {
        match is_late(&error) {
            true => self.timer.error(true),
            false => error,
        }
    }

    /// Ends it on `channel`: a call that is not over is given up.
    #[inline]
    fn end(&mut self, channel: &Channel) {
        if !*self.is_over.get_mut() || self.message.is_some() {
            self.give_up(channel);
        }
    }

    fn give_up(&mut self, channel: &Channel) {
        let mut state = channel.lock();
        let mut backlog = None;
        if !*self.is_over.get_mut() {
            state.engine.cancel(self.started.id);
            backlog = channel.flush(&mut state);
            state.release(self.slot);
        }
        if let Some(message) = self.message.take() {
            state.buffers.keep(message);
        }
        drop(channel.send_backlog_unlocked(state, backlog));
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        self.flight.end(self.channel);
    }
}

impl Ticket {
    /// Waits for the reply.
    pub(crate) fn wait<W: Watcher>(&self, watcher: W) -> Result<Reply<'_>, CallError> {
        let locked = Locked(self.channel.lock());
        let taken = match W::ASKS {
            true => Err(locked),
            false => self.channel.take_received(locked, &self.flight),
        };
        match taken {
            Ok(reply) => Ok(reply),
            Err(locked) => {
                let until = self.flight.timer.deadline.into();
                self.channel.wait(locked, &self.flight, until, watcher)
            }
        }
    }

    /// Waits for the reply, but not for longer than `limit`, and returns a copy of its results.
    pub(crate) fn wait_for(
        &self,
        limit: Duration,
        watcher: impl Watcher,
    ) -> Result<Option<Results>, CallError> {
        let until = Timer::start(limit).until();
        let locked = Locked(self.channel.lock());
        let Some(reply) = (self.channel).receive(locked, &self.flight, until, watcher)? else {
            return Ok(None);
        };
        watcher.found(&reply);
        let mut bytes = self.channel.buffer();
        bytes.extend(reply.results());
        let order = reply.order();
        Ok(Some(Results {
            bytes,
            order,
            note: None,
        }))
    }

    /// Gives a copy back.
    pub(crate) fn recycle(&self, copy: Buffer) {
        self.channel.recycle(copy);
    }
}

impl Drop for Ticket {
    #[inline]
    fn drop(&mut self) {
        self.flight.end(&self.channel);
    }
}
