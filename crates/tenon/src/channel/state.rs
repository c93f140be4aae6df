//! The bookkeeping of a channel, under its one lock.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;

use tenon_net::{Address, Ticks};
use tenon_wire::Buffer;

use super::back_off::BackOff;
use super::bell::Sleeper;
use super::broken::Broken;
use super::buffers::Buffers;
use super::connection::{Connection, Desk};
use super::engine::Engine;
use super::sending::REST;
use super::slots::{Outcome, SlotId, Slots};
use crate::options::ChannelOptions;
use crate::trains::Trains;

pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) slots: Slots,
    pub(super) buffers: Buffers,
    /// Where packets are gathered, one for each that sends at the same time.
    pub(super) trains: Vec<Trains<()>>,
    pub(super) line: Option<Line>,
    /// Whether somebody makes a connection now.
    pub(super) is_connecting: bool,
    pub(super) back_off: BackOff,
    /// Callers that wait for `Shared::turn`.
    pub(super) waiting_to_send: usize,
    /// Callers that wait for `Shared::peer`.
    pub(super) waiting_for_peer: usize,
    pub(super) connections: u64,
    /// Batches that are open.
    pub(super) batches: usize,
}

/// The number of a channel's first call: a client that was started again does not repeat those of
/// its former life.
pub fn seed() -> u32 {
    RandomState::new().hash_one(Instant::now()) as u32
}

/// The connection that calls are sent over.
pub(super) struct Line {
    pub(super) connection: Arc<Connection>,
    /// Where its reader works; none while somebody reads.
    pub(super) desk: Option<Box<Desk>>,
    /// Whether somebody sends a call now; calls must not mix.
    pub(super) is_sending: bool,
    /// Those who wait for room in the socket with packets of the exchange.
    pub(super) backlogs: usize,
    /// What the engine itself has to say and what is to go in front of the next call: perhaps the
    /// rest of something that is sent in part.
    pub(super) front: Buffer,
    pub(super) used_at: Instant,
    /// The last tick of the clock when a call that was alone was sent over it last; 0 before.
    pub(super) used_at_tick: u64,
    /// Until when it surely has not rested: later than this is looked at `used_at`.
    rests_after: Instant,
}

impl Line {
    /// As [`has_rested`](Self::has_rested), by the last tick of the clock: one subtraction, if the call before was
    /// alone, too.
    #[inline]
    pub(super) fn has_rested_at(&mut self, ticks: &Ticks, tick: u64) -> bool {
        tick.wrapping_sub(self.used_at_tick) > REST_NANOS && self.has_rested(ticks.time_of(tick))
    }

    /// Whether it has not been used for so long at `now` that it is to be looked at.
    #[inline]
    pub(super) fn has_rested(&mut self, now: Instant) -> bool {
        now > self.rests_after && self.has_rested_since(now)
    }

    /// The same by when it was used last, which is asked once in a while.
    #[cold]
    fn has_rested_since(&mut self, now: Instant) -> bool {
        self.rests_after = self.used_at + REST;
        now > self.rests_after
    }
}

/// As many nanoseconds as [`REST`] has.
const REST_NANOS: u64 = REST.as_nanos() as u64;

impl State {
    pub(super) fn new(address: &Address, options: &ChannelOptions) -> Self {
        Self {
            engine: Engine::new(address, options, seed()),
            slots: Slots::new(options.waiting),
            buffers: Buffers::default(),
            trains: Vec::new(),
            line: None,
            is_connecting: false,
            back_off: BackOff::default(),
            waiting_to_send: 0,
            waiting_for_peer: 0,
            connections: 0,
            batches: 0,
        }
    }

    pub(super) fn connected(&mut self, desk: Box<Desk>) {
        self.connections += 1;
        self.engine.renew(desk.connection.is_here());
        let now = Instant::now();
        self.line = Some(Line {
            connection: Arc::clone(&desk.connection),
            desk: Some(desk),
            is_sending: false,
            backlogs: 0,
            front: Buffer::default(),
            used_at: now,
            used_at_tick: 0,
            rests_after: now,
        });
    }

    /// The line, if it still is over `connection`.
    #[inline]
    pub(super) fn line_over(&mut self, connection: &Arc<Connection>) -> Option<&mut Line> {
        self.line
            .as_mut()
            .filter(|line| Arc::ptr_eq(&line.connection, connection))
    }

    /// Whether the line is over `connection`.
    #[inline]
    pub(super) fn is_line(&self, connection: &Arc<Connection>) -> bool {
        let line = self.line.as_ref();
        line.is_some_and(|line| Arc::ptr_eq(&line.connection, connection))
    }

    /// Takes the desk of the line, if nobody reads: whoever has it is the reader.
    #[inline]
    pub(super) fn take_desk(&mut self) -> Option<Box<Desk>> {
        let mut desk = self.line.as_mut()?.desk.take()?;
        desk.inbox.shrink();
        Some(desk)
    }

    /// Whether nobody reads, and there is something to be read from.
    pub(super) fn has_desk(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.desk.is_some())
    }

    /// Puts the desk back, or returns it if the line over its connection has ended meanwhile.
    #[inline]
    pub(super) fn put_desk(&mut self, desk: Box<Desk>) -> Option<Box<Desk>> {
        match self.line_over(&desk.connection) {
            Some(line) => line.desk.replace(desk),
            None => Some(desk),
        }
    }

    /// Ends the line over `connection` and all calls in flight on it, unless that has been done.
    pub(super) fn break_line(&mut self, connection: &Arc<Connection>, broken: &Broken) {
        if self.line_over(connection).is_none() {
            return;
        }
        tracing::debug!(
            ?broken,
            in_flight = self.engine.in_flight(),
            "connection broke"
        );
        self.line = None;
        connection.shutdown();
        self.engine.broke(broken);
        for slot in self.engine.cancel_all() {
            let outcome = Outcome::Broken(broken.clone());
            self.slots.deliver(slot, outcome).inspect(Sleeper::wake);
        }
    }

    /// Gives a line up that takes no calls any more and has answered all it took.
    pub(super) fn close_line(&mut self) {
        if let Some(line) = self.line.take() {
            line.connection.shutdown();
        }
    }

    /// The connection that has rested; it counts as used from now on.
    pub(super) fn wake_line(&mut self) -> Option<Arc<Connection>> {
        let line = self.line.as_mut()?;
        line.used_at = Instant::now();
        Some(Arc::clone(&line.connection))
    }

    /// Ends the use of a slot whose call is no longer in flight.
    #[inline(always)]
    pub(super) fn release(&mut self, slot: SlotId) {
        if let Some(outcome) = self.slots.release(slot) {
            self.forget(outcome);
        }
    }

    /// Keeps the memory of what came for a call that nobody wants any more.
    #[cold]
    #[inline(never)]
    fn forget(&mut self, outcome: Outcome) {
        if let Outcome::Answered(Ok(results)) = outcome {
            self.buffers.put(results.bytes);
        }
    }
}
