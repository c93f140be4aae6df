//! Calls of the packet exchange: what the engine has to send goes out packet by packet, by whoever
//! made it so.
//!
//! Packets may overtake each other on their way. So there is no turn to send: every caller sends for
//! itself, at the same time as others.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use tenon_net::{Address, Ready, Train};
use tenon_wire::Buffer;

use super::connection::Connection;
use super::engine::{Engine, Unstarted};
use super::flight::{Flight, Locked};
use super::form::{Form, LeanForm, Started};
use super::slots::SlotId;
use super::state::State;
use super::{Channel, Timer};
use crate::account::{Step, Watcher};
use crate::error::CallError;

/// How long a packet waits for room in the socket before it counts as lost.
const PATIENCE: Duration = Duration::from_millis(100);

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
    pub(super) fn look_at_time(&self, state: &mut State) {
        let now = Instant::now();
        let Engine::Exchange(engine) = &mut state.engine else {
            return;
        };
        if engine.next_timeout_of_all().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
            state.end_failed(None);
            self.flush(state);
        }
    }

    /// Sends what is to be sent, and leaves the bookkeeping to others meanwhile. The clock was `seen` just now.
    #[inline]
    fn transmit_packets<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        connection: &Connection,
        seen: Instant,
    ) -> MutexGuard<'s, State> {
        let mut trains = state.trains.pop().unwrap_or_default();
        let mut seen = Some(seen);
        while trains.has_next() || state.has_packets() {
            let Some((train, ())) = trains.next(|out| state.poll_packet(seen.take(), out)) else {
                break;
            };
            drop(state);
            let sent = send(connection, train);
            state = self.lock();
            state.note_sent(sent);
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
    fn poll_packet(&mut self, seen: Option<Instant>, out: &mut Buffer) -> Option<()> {
        match &mut self.engine {
            Engine::Exchange(engine) => engine.poll_packet(seen, out).then_some(()),
            Engine::Onc(_) | Engine::Lean(_) => None,
        }
    }

    #[inline]
    fn note_sent(&mut self, sent: io::Result<()>) {
        if let (Err(error), Engine::Exchange(engine)) = (sent, &mut self.engine) {
            engine.note_fault(error);
        }
    }

    /// How long may be read before something is due, if not until `deadline`.
    pub(super) fn next_look(&self, deadline: Instant) -> Instant {
        match &self.engine {
            Engine::Exchange(engine) => {
                let next = engine.next_timeout_of_all();
                next.map_or(deadline, |next| next.min(deadline))
            }
            Engine::Onc(_) | Engine::Lean(_) => deadline,
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

    /// Sends what is to be sent at once.
    pub(super) fn flush_packets(&mut self) {
        let Some(line) = &self.line else { return };
        let connection = Arc::clone(&line.connection);
        let mut trains = self.trains.pop().unwrap_or_default();
        while let Some((train, ())) = trains.next(|out| self.poll_packet(None, out)) {
            let sent = send(&connection, train);
            self.note_sent(sent);
        }
        self.trains.push(trains);
    }
}

/// Sends packets. What finds no room for long enough is lost, as it may be anywhere on its way.
#[inline]
fn send(connection: &Connection, train: Train<'_>) -> io::Result<()> {
    match connection.try_send_train(train) {
        Ok(sent) if sent == train.bytes.len() => Ok(()),
        sent => send_rest(connection, train, sent),
    }
}

/// Goes on after a part was sent, or nothing.
#[cold]
fn send_rest(
    connection: &Connection,
    mut train: Train<'_>,
    mut sent: io::Result<usize>,
) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut is_refused = false;
    loop {
        match sent {
            Ok(sent) => train = train.behind(sent),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => {
                    connection.wait(Ready::WRITABLE, until)?;
                }
                // An earlier packet met a closed port; this one was not sent.
                io::ErrorKind::ConnectionRefused if !is_refused => is_refused = true,
                _ => return Err(error),
            },
        }
        if train.bytes.is_empty() {
            return Ok(());
        }
        sent = connection.try_send_train(train);
    }
}
