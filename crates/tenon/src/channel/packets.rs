//! Calls of the packet exchange: what the engine has to send goes out packet by packet, by whoever
//! made it so.
//!
//! Packets may overtake each other on their way. So there is no turn to send: every caller sends for
//! itself, at the same time as others.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use tenon_net::Address;
use tenon_wire::Buffer;

use super::backlog::send;
use super::connection::Connection;
use super::engine::{Engine, Unstarted};
use super::flight::{Flight, Locked};
use super::form::{Form, LeanForm, Started};
use super::sending::GLANCE;
use super::slots::SlotId;
use super::state::State;
use super::{Channel, Timer};
use crate::account::{Step, Watcher};
use crate::error::CallError;

/// Calls that are gathered at most while a batch is open.
const GATHERED_MAX: usize = 64;

impl Channel {
    /// Whether calls go by the packet exchange.
    #[inline]
    pub(super) fn is_exchange(&self) -> bool {
        matches!(self.address(), Address::LeanUdp(_) | Address::Xdp(_))
    }

    /// Asks the server for a conversation and waits until it has answered: so what is no server is found
    /// out when a channel is made, and calls that are started later go out without waiting.
    pub(super) fn greet(&self, timer: &Timer) -> Result<(), Arc<io::Error>> {
        let mut state = self.lock();
        if let Engine::Exchange(engine) = &mut state.engine {
            engine.greet();
        }
        while state.is_greeting()? {
            let waited = self.wait_for_peer(state, timer);
            state = waited.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        }
        Ok(())
    }

    /// Sends a call by the packet exchange. What it lacks it is given by the engine.
    pub(super) fn send_packets(
        &self,
        flight: &mut Flight,
        mut message: Buffer,
        form: &Form<'_>,
        watcher: impl Watcher,
    ) -> Result<Locked<'_>, CallError> {
        let Form::Lean(form) = form else {
            let spoken = self.address().protocol();
            return Err(CallError::OtherProtocol { spoken });
        };
        let timer = &mut flight.timer;
        form.tell_time(&mut message, timer);
        let mut state = self.lock();
        let (connection, slot) = loop {
            match state.enter(self, form, &mut message, timer) {
                Ok(entered) => break entered,
                Err(Unstarted::Obstacle(obstacle)) => {
                    state = self.overcome(state, obstacle, timer)?;
                    timer.look();
                    form.tell_time(&mut message, timer);
                }
                Err(Unstarted::Error(error)) => return Err(error),
            }
        };
        state.buffers.keep(message);
        watcher.at(Step::Sending);
        if !state.gathers_packets() {
            state = self.transmit_packets(state, &connection, timer.seen);
        }
        watcher.at(Step::Sent);
        // The engine has numbers of its own for what it sends.
        let started = Started {
            id: slot.index() as u32,
            service: 0,
            procedure: form.procedure,
        };
        flight.begin(started, slot, None);
        Ok(Locked(state))
    }

    /// Does what is due while somebody waits who has no call in flight.
    pub(super) fn look_at_time<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
    ) -> MutexGuard<'s, State> {
        let now = Instant::now();
        let Engine::Exchange(engine) = &mut state.engine else {
            return state;
        };
        if engine.next_timeout_of_all().is_none_or(|at| at > now) {
            return state;
        }
        engine.handle_timeout(now);
        state.end_failed(None);
        self.flush_packets(state)
    }

    /// Sends what is to be sent, unless somebody waits for room, who sends it then, and leaves the bookkeeping to
    /// others meanwhile. The clock was `seen` just now.
    #[inline]
    fn transmit_packets<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        connection: &Arc<Connection>,
        seen: Instant,
    ) -> MutexGuard<'s, State> {
        let mut trains = state.trains.pop().unwrap_or_default();
        let mut seen = Some(seen);
        while trains.has_next() || state.has_packets() && !state.has_backlog() {
            let Some((train, ())) = trains.next(|out| state.poll_packet(seen.take(), out)) else {
                break;
            };
            let length = train.bytes.len();
            drop(state);
            let sent = send(connection, train);
            state = self.lock();
            match sent {
                Ok(sent) if sent < length => {
                    trains.keep((), sent);
                    let backlog = state.begin_backlog(Arc::clone(connection), trains);
                    return self.send_backlog_unlocked(state, backlog);
                }
                sent => state.note_sent(sent),
            }
        }
        state.trains.push(trains);
        state
    }
}

impl State {
    /// Puts a call in flight, if nothing is in the way.
    #[inline]
    fn enter(
        &mut self,
        channel: &Channel,
        form: &LeanForm<'_>,
        message: &mut Buffer,
        timer: &Timer,
    ) -> Result<(Arc<Connection>, SlotId), Unstarted> {
        self.check(channel, timer)?;
        let slot = self.slots.take();
        let Engine::Exchange(engine) = &mut self.engine else {
            unreachable!("an engine is made for its address");
        };
        let started = engine.start(form, message, timer, slot);
        started.inspect_err(|_| self.release(slot))?;
        let Some(line) = &mut self.line else {
            unreachable!("no line is an obstacle");
        };
        line.used_at = timer.started;
        Ok((Arc::clone(&line.connection), slot))
    }

    fn is_greeting(&self) -> Result<bool, Arc<io::Error>> {
        match &self.engine {
            Engine::Exchange(engine) => engine.is_greeting(),
            Engine::Onc(_) | Engine::Lean(_) => Ok(false),
        }
    }

    /// Whether calls wait for others that are sent with them.
    #[inline]
    fn gathers_packets(&self) -> bool {
        self.batches > 0 && !self.engine.in_flight().is_multiple_of(GATHERED_MAX)
    }

    /// Whether packets wait to be sent.
    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        match &self.engine {
            Engine::Exchange(engine) => engine.has_transmit(),
            Engine::Onc(_) | Engine::Lean(_) => false,
        }
    }

    #[inline]
    pub(super) fn poll_packet(&mut self, seen: Option<Instant>, out: &mut Buffer) -> Option<()> {
        match &mut self.engine {
            Engine::Exchange(engine) => engine.poll_packet(seen, out).then_some(()),
            Engine::Onc(_) | Engine::Lean(_) => None,
        }
    }

    #[inline]
    pub(super) fn note_sent(&mut self, sent: io::Result<usize>) {
        if let (Err(error), Engine::Exchange(engine)) = (sent, &mut self.engine) {
            engine.note_fault(error);
        }
    }

    /// How long may be read before something is due, if not until `deadline`.
    pub(super) fn next_look(&self, deadline: Instant) -> Instant {
        match &self.engine {
            Engine::Exchange(engine) => {
                let next = engine.next_timeout_of_all();
                let next = next.map_or(deadline, |next| next.min(deadline));
                self.next_glance(next)
            }
            Engine::Onc(_) | Engine::Lean(_) => deadline,
        }
    }

    /// When to look again who meant to wait until `at`: soon, if somebody else sends now and may leave something
    /// for later.
    #[inline]
    pub(super) fn next_glance(&self, at: Instant) -> Instant {
        match self.has_front() || self.has_packets() {
            true => at.min(Instant::now() + GLANCE),
            false => at,
        }
    }

    /// Nobody listens at the peer's port: calls in flight fail.
    #[cold]
    pub(super) fn refused(&mut self, error: io::Error) {
        if let Engine::Exchange(engine) = &mut self.engine {
            engine.refused(error);
        }
        self.end_failed(None);
    }
}
