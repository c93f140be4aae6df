//! Sending a call: one at a time, whole or not at all, and never waiting for a peer that itself
//! waits to be read.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use tenon_net::{Ready, Until, is_deadline};
use tenon_proto::onc::record;
use tenon_wire::Buffer;

use super::alone::Beside;
use super::broken::Broken;
use super::connection::Connection;
use super::engine::Unstarted;
use super::flight::{Call, Flight, Locked, Ticket};
use super::form::{self, Form, Started};
use super::slots::SlotId;
use super::state::State;
use super::{Channel, Reply, Timer};
use crate::account::{Step, Watcher};
use crate::error::CallError;

/// A connection that was not used for so long is looked at before a call is entrusted to it: the
/// peer may have closed it meanwhile.
pub const REST: Duration = Duration::from_millis(100);

/// How long a sender waits that cannot read for itself before it looks whether it can.
pub(super) const GLANCE: Duration = Duration::from_millis(10);

/// What stands in the way of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no connection.
    NoLine,
    /// Somebody else sends.
    SomebodySends,
    /// The connection is to be looked at first.
    Rested,
    /// The peer has as many calls as it takes, or has not said how large they may be.
    PeerIsBusy,
    /// The peer only answers what it has, and then closes.
    Closing,
}

/// The turn to send.
struct Turn {
    started: Started,
    slot: SlotId,
    way: Way,
}

/// How a call goes out.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Alone, as most do: at once, under the lock.
    Alone,
    /// By itself while others, who have calls in flight, use the bookkeeping.
    Unlocked,
    /// Behind what waits to be sent.
    BehindFront,
    /// With those that are sent next: a batch is open.
    Gathered,
}

/// A call that was not sent whole.
pub(super) struct Unsent {
    pub(super) broken: Broken,
    /// Bytes that were: nothing but the others can be sent behind them.
    pub(super) sent: usize,
}

impl Unsent {
    /// What it means for a call whose time is over. What keeps a datagram from being sent, a rule
    /// of the firewall for example, says more than that time ran out.
    fn into_error(self, timer: &Timer) -> CallError {
        match self.broken {
            Broken::Io(cause) if !is_deadline(&cause) => CallError::Disconnected {
                cause,
                may_have_executed: false,
            },
            _ => timer.error(false),
        }
    }
}

impl Channel {
    /// Makes a call: sends it and waits for its reply. It is given up if none comes by `limit` from now.
    #[inline(always)]
    pub(crate) fn call(
        &self,
        mut message: Buffer,
        form: &Form<'_>,
        limit: Duration,
        watcher: impl Watcher,
    ) -> Result<Reply<'_>, CallError> {
        match self.call_alone(&mut message, form, limit, watcher) {
            Ok(reader) => Ok(Reply::InPlace(reader)),
            Err(beside) => self.call_beside(beside, message, form, watcher),
        }
    }

    /// The same for a call that is not alone, or was sent and got something else than its reply.
    #[inline(never)]
    fn call_beside<'c>(
        &'c self,
        beside: Beside<'c>,
        message: Buffer,
        form: &Form<'_>,
        watcher: impl Watcher,
    ) -> Result<Reply<'c>, CallError> {
        let mut call = Call {
            channel: self,
            flight: Flight::of(beside.timer),
        };
        let flight = &mut call.flight;
        let locked = match beside.sent {
            None => self.send(flight, message, form, beside.locked, watcher)?,
            Some((started, slot)) => {
                flight.begin(started, slot, None);
                flight.timer.look();
                Locked(self.lock())
            }
        };
        let until = flight.timer.until();
        self.wait(locked, flight, until, watcher)
    }

    /// Sends a call whose reply is fetched some time, by whoever has the ticket.
    pub(crate) fn start(
        &self,
        message: Buffer,
        form: &Form<'_>,
        timer: Timer,
        watcher: impl Watcher,
    ) -> Result<Ticket, CallError> {
        let mut flight = Flight::of(timer);
        drop(self.send(&mut flight, message, form, None, watcher)?);
        Ok(Ticket {
            channel: self.clone(),
            flight,
        })
    }

    /// Sends a call. If the connection turns out to be gone before the call is sent whole, the call
    /// goes over a new one. The bookkeeping may be locked already.
    #[inline]
    fn send<'s>(
        &'s self,
        flight: &mut Flight,
        mut message: Buffer,
        form: &Form<'_>,
        locked: Option<Locked<'s>>,
        watcher: impl Watcher,
    ) -> Result<Locked<'s>, CallError> {
        let size = form.prepare(&mut message, self.address(), self.options())?;
        if self.is_exchange() {
            drop(locked);
            return self.send_packets(flight, message, form, watcher);
        }
        let timer = &mut flight.timer;
        let mut locked = locked;
        loop {
            let state = match locked.take() {
                Some(Locked(state)) => state,
                None => self.lock(),
            };
            let (state, turn) = self.take_turn(state, form, size, timer)?;
            form.stamp(&mut message, turn.started, timer);
            let packet = form::packet(self.address(), &message);
            let mut state = match self.send_in_turn(state, &turn, packet, timer, watcher) {
                Ok(state) => state,
                Err((connection, unsent)) => {
                    self.fail_turn(turn, &connection, unsent, packet, timer)?;
                    continue;
                }
            };
            let kept = self.end_turn(&mut state, message);
            flight.begin(turn.started, turn.slot, kept);
            return Ok(Locked(state));
        }
    }

    /// Waits for the reply to the call of `flight`.
    #[inline]
    pub(super) fn wait(
        &self,
        locked: Locked<'_>,
        flight: &Flight,
        until: Until,
        watcher: impl Watcher,
    ) -> Result<Reply<'_>, CallError> {
        let reply = self.receive(locked, flight, until, watcher)?;
        let reply = reply.ok_or_else(|| flight.timer.error(true))?;
        watcher.found(&reply);
        Ok(reply)
    }

    /// Sends a call, or leaves it to the one who sends next, with the bookkeeping locked before and
    /// behind.
    #[inline]
    fn send_in_turn<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        turn: &Turn,
        packet: &[u8],
        timer: &mut Timer,
        watcher: impl Watcher,
    ) -> Result<MutexGuard<'s, State>, (Arc<Connection>, Unsent)> {
        watcher.at(Step::Sending);
        let begun = match (turn.way, &state.line) {
            (Way::Gathered, _) => {
                state.gather(packet);
                watcher.at(Step::Sent);
                return Ok(state);
            }
            // Who else wants to send has to wait in any case: it may as well be for the lock.
            (Way::Alone, Some(line)) => match line.connection.try_send(packet, 0) {
                Ok(sent) if sent == packet.len() => {
                    watcher.at(Step::Sent);
                    return Ok(state);
                }
                begun => Some(begun),
            },
            (Way::Alone | Way::Unlocked | Way::BehindFront, _) => None,
        };
        let connection = state.begin_sending();
        drop(state);
        let sent = match (begun, turn.way) {
            (Some(begun), _) => self.transmit_rest(&connection, packet, begun, timer.deadline),
            (None, Way::BehindFront) => self.transmit_behind(&connection, packet, timer),
            (None, Way::Alone | Way::Unlocked | Way::Gathered) => {
                self.transmit(&connection, packet, timer.deadline)
            }
        };
        watcher.at(Step::Sent);
        match sent {
            Ok(false) => {}
            Ok(true) => timer.look(),
            Err(unsent) => return Err((connection, unsent)),
        }
        let mut state = self.lock();
        state.stop_sending(&connection);
        Ok(state)
    }

    #[inline]
    fn is_datagram(&self) -> bool {
        form::is_datagram(self.address())
    }

    /// Becomes the one who sends, with a call in flight.
    #[inline]
    fn take_turn<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        form: &Form<'_>,
        size: usize,
        timer: &mut Timer,
    ) -> Result<(MutexGuard<'s, State>, Turn), CallError> {
        loop {
            let obstacle = match state.take_turn(self, form, size, timer) {
                Ok(turn) => return Ok((state, turn)),
                Err(Unstarted::Obstacle(obstacle)) => obstacle,
                Err(Unstarted::Error(error)) => {
                    // The turn may have been offered to this caller, which does not take it.
                    self.pass_turn(&state);
                    return Err(error);
                }
            };
            state = self.overcome(state, obstacle, timer)?;
            timer.look();
        }
    }

    /// Does what there is to do about an obstacle; the call may be tried again then.
    #[cold]
    pub(super) fn overcome<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        obstacle: Obstacle,
        timer: &Timer,
    ) -> Result<MutexGuard<'s, State>, CallError> {
        match obstacle {
            Obstacle::NoLine => self.reconnect(state, timer),
            Obstacle::SomebodySends => self.wait_to_send(state, timer),
            Obstacle::Rested => {
                drop(state);
                self.look_after_rest();
                Ok(self.lock())
            }
            Obstacle::PeerIsBusy => self.wait_for_peer(state, timer),
            Obstacle::Closing if state.engine.in_flight() > 0 => self.wait_for_peer(state, timer),
            Obstacle::Closing => {
                state.close_line();
                Ok(state)
            }
        }
    }

    /// Sends `bytes` whole; says whether there was not room for all of them at once.
    #[inline]
    pub(super) fn transmit(
        &self,
        connection: &Arc<Connection>,
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<bool, Unsent> {
        match connection.try_send(bytes, 0) {
            Ok(sent) if sent == bytes.len() => Ok(false),
            begun => self.transmit_rest(connection, bytes, begun, deadline),
        }
    }

    /// Sends what of `bytes` was not sent at once; says whether there was not room for that.
    fn transmit_rest(
        &self,
        connection: &Arc<Connection>,
        bytes: &[u8],
        begun: io::Result<usize>,
        deadline: Instant,
    ) -> Result<bool, Unsent> {
        let mut step = begun;
        let mut sent = 0;
        let mut has_waited = false;
        loop {
            let done = match step {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    has_waited = true;
                    self.wait_for_room(connection, deadline).map(|()| 0)
                }
                done => done.map_err(Broken::from),
            };
            sent += done.map_err(|broken| Unsent { broken, sent })?;
            if sent == bytes.len() {
                return Ok(has_waited);
            }
            step = connection.try_send(bytes, sent);
        }
    }

    /// Waits until more can be sent. Meanwhile it takes in what the peer sends: the peer may not
    /// read before it got rid of that.
    #[cold]
    fn wait_for_room(&self, connection: &Arc<Connection>, deadline: Instant) -> Result<(), Broken> {
        loop {
            let reader = self.read_on(&mut self.lock(), connection);
            let ready = match reader {
                Some(mut reader) => {
                    let ready = connection.wait(Ready::EITHER, deadline)?;
                    if ready.readable {
                        reader.take_in()?;
                    }
                    ready
                }
                None => wait_at_most(connection, GLANCE, deadline)?,
            };
            if ready.writable {
                return Ok(());
            }
        }
    }

    /// Finds out whether the peer closed the connection while nobody looked.
    #[cold]
    fn look_after_rest(&self) {
        let Some(connection) = self.lock().wake_line() else {
            return;
        };
        let reader = self.read_on(&mut self.lock(), &connection);
        let looked = match reader {
            Some(mut reader) => {
                connection.refresh();
                reader.take_in()
            }
            None => Ok(()),
        };
        if let Err(broken) = looked {
            self.lock().break_line(&connection, &broken);
        }
    }

    /// Passes the turn on after the call was sent whole. What may have to be sent again is returned.
    #[inline]
    fn end_turn(&self, state: &mut State, message: Buffer) -> Option<Buffer> {
        if state.engine.has_transmit() {
            state.flush_front();
        }
        self.pass_turn(state);
        if self.is_datagram() {
            return Some(message);
        }
        state.buffers.keep(message);
        None
    }

    /// Passes the turn on after a failure, and says whether that ends the call.
    #[cold]
    fn fail_turn(
        &self,
        turn: Turn,
        connection: &Arc<Connection>,
        unsent: Unsent,
        packet: &[u8],
        timer: &Timer,
    ) -> Result<(), CallError> {
        // The kernel calls a connection timed out, too, that has broken.
        let timed_out = timer.left().is_zero();
        let is_begun = unsent.sent > 0;
        let mut state = self.lock();
        // The reader may have ended the connection and all calls, this one too.
        let others = state.engine.in_flight().saturating_sub(1);
        let outcome = if timed_out && is_begun && others > 0 {
            // The connection is worth more to the others than the doubt is to this call.
            state.leave_rest(connection, &packet[unsent.sent..]);
            state.engine.cancel(turn.started.id);
            Err(timer.error(true))
        } else {
            // The peer does not carry out what it never gets whole.
            state.engine.withdraw(turn.started.id);
            if is_begun || !timed_out {
                state.break_line(connection, &unsent.broken);
            }
            match timed_out {
                true => Err(unsent.into_error(timer)),
                false => Ok(()),
            }
        };
        state.stop_sending(connection);
        if state.engine.has_transmit() {
            state.flush_front();
        }
        state.release(turn.slot);
        self.pass_turn(&state);
        outcome
    }

    /// Sends a datagram again. That it cannot be sent now is no reason to give up.
    pub(super) fn retransmit(&self, flight: &Flight) {
        let connection = self.lock().connection();
        let (Some(message), Some(connection)) = (&flight.message, connection) else {
            return;
        };
        match connection.try_send(record::message(message), 0) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                self.lock().break_line(&connection, &Broken::from(error));
            }
            _ => {}
        }
    }
}

impl State {
    #[inline]
    pub(super) fn obstacle(&mut self, now: Instant) -> Option<Obstacle> {
        match &mut self.line {
            None => Some(Obstacle::NoLine),
            Some(line) if line.is_sending => Some(Obstacle::SomebodySends),
            Some(line) => line.has_rested(now).then_some(Obstacle::Rested),
        }
    }

    /// Whether a call may begin now.
    #[inline]
    pub(super) fn check(&mut self, channel: &Channel, timer: &Timer) -> Result<(), Unstarted> {
        if let Some(obstacle) = self.obstacle(timer.started) {
            return Err(Unstarted::Obstacle(obstacle));
        }
        let limit = channel.options().calls_max;
        match self.engine.in_flight() < limit {
            true => Ok(()),
            false => Err(CallError::TooManyCalls { limit }.into()),
        }
    }

    /// Puts a call in flight and makes its owner the one who sends, if nothing is in the way.
    #[inline]
    fn take_turn(
        &mut self,
        channel: &Channel,
        form: &Form<'_>,
        size: usize,
        timer: &Timer,
    ) -> Result<Turn, Unstarted> {
        self.check(channel, timer)?;
        let slot = self.slots.take();
        let started = self.engine.start(form, size, timer, slot);
        let started = started.inspect_err(|_| self.release(slot))?;
        let way = match self.gathers(size) && !channel.is_datagram() {
            true => Way::Gathered,
            false if self.engine.has_transmit() || self.has_front() => Way::BehindFront,
            false if self.engine.in_flight() == 1 => Way::Alone,
            false => Way::Unlocked,
        };
        if let Some(line) = &mut self.line {
            line.used_at = timer.started;
        }
        Ok(Turn { started, slot, way })
    }

    /// Becomes the one who sends, while others use the bookkeeping.
    fn begin_sending(&mut self) -> Arc<Connection> {
        let Some(line) = &mut self.line else {
            unreachable!("no line is an obstacle to a turn");
        };
        line.is_sending = true;
        Arc::clone(&line.connection)
    }

    /// What calls are sent over.
    fn connection(&self) -> Option<Arc<Connection>> {
        let line = self.line.as_ref();
        line.map(|line| Arc::clone(&line.connection))
    }

    #[inline]
    pub(super) fn stop_sending(&mut self, connection: &Arc<Connection>) {
        if let Some(line) = self.line_over(connection) {
            line.is_sending = false;
        }
    }
}

/// Waits for room, but not for longer than `limit`: that is no error.
fn wait_at_most(connection: &Connection, limit: Duration, deadline: Instant) -> io::Result<Ready> {
    let glance = Instant::now() + limit;
    match connection.wait(Ready::WRITABLE, glance.min(deadline)) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut && glance < deadline => {
            Ok(Ready::default())
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(cause: io::Error) -> CallError {
        let broken = Broken::from(cause);
        let unsent = Unsent { broken, sent: 0 };
        unsent.into_error(&Timer::start(Duration::ZERO))
    }

    #[test]
    fn what_kept_a_call_from_being_sent_is_told_at_the_end() {
        const EPERM: i32 = 1;
        let refused = error(io::Error::from_raw_os_error(EPERM));
        assert!(refused.to_string().contains("not permitted"), "{refused}");
        assert!(!refused.may_have_executed());
        let late = error(io::ErrorKind::TimedOut.into());
        assert!(matches!(late, CallError::TimedOut { .. }), "{late}");
        assert!(!late.may_have_executed());
    }
}
