//! The bookkeeping of a channel, under its one lock. Nothing here waits.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use tenon::runtime::{
    BackOff, Broken, Buffers, Engine, Inbox, Meaning, Obstacle, Received, Results, SlotId, Socket,
    Timer, Unstarted, is_late, seed,
};
use tenon::{Address, CallError, ChannelOptions, ConnectError};
use tenon_proto::onc::client::Timeout;

use super::outbox::{Outbox, Piece, Progress};
use super::packets::Packets;
use super::slots::{Outcome, Slots, Stage};
use super::written::Written;

/// Whether a channel takes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Those that it has are still answered.
    Closing,
    Closed,
}

#[derive(Debug)]
pub(super) struct State {
    address: Address,
    pub(super) engine: Engine,
    pub(super) slots: Slots,
    pub(super) buffers: Buffers,
    /// Calls that have no number yet, in order.
    pub(super) queue: VecDeque<SlotId>,
    pub(super) outbox: Outbox,
    pub(super) packets: Packets,
    /// Whether there is a connection to send over.
    pub(super) is_connected: bool,
    /// When a call was last sent.
    pub(super) used_at: Instant,
    /// Whether the connection was not used for so long that it is to be looked at first.
    pub(super) has_rested: bool,
    pub(super) back_off: BackOff,
    /// Why the last connection was lost, until an answer comes over another.
    lost: Option<Arc<io::Error>>,
    /// When time may run out for a call, or later if there is none.
    pub(super) alarm: Option<Instant>,
    pub(super) phase: Phase,
    pub(super) connections: u64,
    /// Owners of calls that are over, to be woken when the lock is free.
    pub(super) woken: Vec<Waker>,
}

/// What prevents the connection from being used any further.
pub(super) enum Trouble {
    Broken(Broken),
    /// It takes no calls any more and has answered all it took.
    UsedUp,
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl State {
    pub(super) fn new(address: &Address, options: &ChannelOptions) -> Self {
        Self {
            address: address.clone(),
            engine: Engine::new(address, options, seed()),
            slots: Slots::default(),
            buffers: Buffers::default(),
            queue: VecDeque::new(),
            outbox: Outbox::default(),
            packets: Packets::default(),
            is_connected: false,
            used_at: Instant::now(),
            has_rested: false,
            back_off: BackOff::default(),
            lost: None,
            alarm: None,
            phase: Phase::Open,
            connections: 0,
            woken: Vec::new(),
        }
    }

    /// Goes on with a connection that was just made, to another process of this machine if `is_here`.
    pub(super) fn connected(&mut self, is_here: bool) {
        self.connections += 1;
        self.packets = Packets::default();
        self.engine.renew(is_here);
        self.is_connected = true;
        self.has_rested = false;
        self.used_at = Instant::now();
    }

    /// Takes a call in; says in which slot it is.
    pub(super) fn add(
        &mut self,
        written: Written,
        timer: Timer,
        owner: &Waker,
    ) -> Result<SlotId, CallError> {
        if self.phase != Phase::Open {
            self.buffers.put(written.into_message());
            return Err(closed());
        }
        let slot = self.slots.take(timer, Stage::Waiting(written), owner);
        self.queue.push_back(slot);
        self.expect(timer.deadline());
        if self.queue.len() == 1
            && let Err(Unstarted::Error(error)) = self.start(slot)
        {
            self.give_up(slot);
            return Err(error);
        }
        Ok(slot)
    }

    /// Has the driver look after the calls at `at` at the latest.
    pub(super) fn expect(&mut self, at: Instant) {
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
        }
    }

    /// Gives the first call of the queue its number, and puts it in the outbox.
    fn start(&mut self, slot: SlotId) -> Result<(), Unstarted> {
        if !self.is_connected {
            return Err(Unstarted::Obstacle(Obstacle::NoLine));
        }
        if self.is_exchange() {
            return self.start_packets(slot);
        }
        let entry = self.slots.get(slot);
        let Stage::Waiting(written) = &mut entry.stage else {
            unreachable!("the queue names calls that wait");
        };
        let (size, timer) = (written.size(), entry.timer);
        let started = self.engine.start(&written.form(), size, &timer, slot)?;
        written.stamp(started, &timer);
        let number = started.id;
        let waited = std::mem::replace(&mut entry.stage, Stage::InFlight(number, None));
        self.queue.pop_front();
        self.note();
        if let Stage::Waiting(written) = waited {
            self.outbox.push(Piece::Call(slot, number, written));
        }
        if let Some(at) = self.engine.next_timeout(number) {
            self.expect(at);
        }
        Ok(())
    }

    /// Starts what can be started of the queue.
    pub(super) fn start_queue(&mut self) -> Result<(), Trouble> {
        while let Some(slot) = self.queue.front().copied() {
            match self.start(slot) {
                Ok(()) => {}
                Err(Unstarted::Error(error)) => {
                    self.queue.pop_front();
                    self.finish(slot, Err(error));
                }
                Err(Unstarted::Obstacle(Obstacle::Closing)) if self.engine.in_flight() == 0 => {
                    return Err(Trouble::UsedUp);
                }
                Err(Unstarted::Obstacle(_)) => break,
            }
        }
        Ok(())
    }

    /// Puts what the engine itself has to say in the outbox.
    fn note(&mut self) {
        if self.engine.has_transmit() {
            let mut note = self.buffers.take();
            self.engine.poll_transmit(&mut note);
            self.outbox.push(Piece::Note(note));
        }
    }

    /// Whether there is something to be sent.
    pub(super) fn has_transmit(&self) -> bool {
        let has_transmit =
            !self.outbox.is_empty() || self.engine.has_transmit() || self.packets.has_transmit();
        self.is_connected && has_transmit
    }

    /// Sends as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room for all; what the socket reports.
    pub(super) fn send(&mut self, socket: &Socket) -> io::Result<()> {
        if self.is_exchange() {
            return self.send_packets(socket);
        }
        // Behind calls that cannot be sent yet the engine keeps what it has to say, so that it sees
        // how much that is.
        if self.outbox.is_empty() {
            self.note();
        }
        while !self.outbox.is_empty() {
            let (slots, buffers) = (&mut self.slots, &mut self.buffers);
            self.outbox
                .send(socket, &self.address, |piece| match (piece, socket) {
                    (Piece::Call(slot, number, written), Socket::Packets(_))
                        if slots.has_number(slot, number) =>
                    {
                        slots.get(slot).stage = Stage::InFlight(number, Some(written));
                    }
                    (piece, Socket::Packets(_) | Socket::Stream(_)) => piece.recycle(buffers),
                })?;
            if self.outbox.is_empty() {
                self.note();
            }
        }
        Ok(())
    }

    /// Takes in what has been received whole.
    pub(super) fn take_in(&mut self, inbox: &mut Inbox) -> Result<(), Broken> {
        while let Some(received) = inbox.next_received()? {
            self.note_train(&received);
            if let Some(noted) = self.take_in_one(received)? {
                self.slots.note(noted, inbox.note());
            }
        }
        Ok(())
    }

    /// Takes in one message; says of which call it may say more than its results.
    fn take_in_one(&mut self, received: Received<'_>) -> Result<Option<SlotId>, Broken> {
        match self.engine.take_in(received)? {
            Meaning::Answer(answer) => {
                self.back_off.reset();
                self.lost = None;
                let (slot, order) = (answer.slot, answer.order);
                let noted = answer.is_noted.then_some(slot);
                let outcome = answer.outcome.map(|results| {
                    let mut bytes = self.buffers.take();
                    bytes.extend(results);
                    Results {
                        bytes,
                        order,
                        note: None,
                    }
                });
                let timer = self.slots.get(slot).timer;
                let outcome = outcome.map_err(|error| match is_late(&error) {
                    true => timer.error(true),
                    false => *error,
                });
                self.finish(slot, outcome);
                return Ok(noted);
            }
            Meaning::Goodbye { cause, unbegun } => {
                let error = CallError::Disconnected {
                    cause: Arc::new(cause),
                    may_have_executed: false,
                };
                for slot in unbegun {
                    self.finish(slot, Err(error.clone()));
                }
            }
            Meaning::Handled => self.end_failed(),
        }
        Ok(None)
    }

    /// Ends a call that is no longer in flight nor queued.
    pub(super) fn finish(&mut self, slot: SlotId, outcome: Outcome) {
        let (before, owner) = self.slots.finish(slot, outcome);
        self.woken.extend(owner);
        self.recycle(before);
    }

    fn recycle(&mut self, stage: Stage) {
        match stage {
            Stage::Waiting(written) | Stage::InFlight(_, Some(written)) => {
                self.buffers.put(written.into_message());
            }
            Stage::Over(Ok(results)) => self.buffers.put(results.bytes),
            Stage::Free | Stage::InFlight(_, None) | Stage::Over(Err(_)) => {}
        }
    }

    /// Ends the use of a slot whose owner waits no more; its call is given up if it is not over.
    pub(super) fn give_up(&mut self, slot: SlotId) {
        let stage = self.slots.release(slot);
        match stage {
            Stage::Waiting(_) => self.queue.retain(|queued| *queued != slot),
            Stage::InFlight(number, _) if self.unsend(number) => {}
            Stage::InFlight(number, _) => self.engine.cancel(number),
            Stage::Free | Stage::Over(_) => {}
        }
        self.recycle(stage);
    }

    /// Takes a call back of which nothing was sent; says whether that was so.
    fn unsend(&mut self, number: u32) -> bool {
        if self.outbox.progress(number) != Progress::Nothing {
            return false;
        }
        if let Some(piece) = self.outbox.take(number) {
            piece.recycle(&mut self.buffers);
        }
        self.engine.withdraw(number);
        true
    }

    /// Has calls sent again or given up whose time has come, and says when to look again.
    pub(super) fn look_at_time(
        &mut self,
        now: Instant,
        socket: Option<&Socket>,
    ) -> Result<(), Broken> {
        self.alarm = None;
        self.handle_packet_timeout(now);
        let is_exchange = self.is_exchange();
        let mut looked = Ok(());
        for slot in self.slots.ids() {
            let entry = self.slots.get(slot);
            let (deadline, number) = match &entry.stage {
                Stage::Waiting(_) => (entry.timer.deadline(), None),
                Stage::InFlight(number, _) if !is_exchange => {
                    (entry.timer.deadline(), Some(*number))
                }
                Stage::InFlight(..) | Stage::Free | Stage::Over(_) => continue,
            };
            match number {
                None if deadline <= now => self.give_up_waiting(slot),
                None => self.expect(deadline),
                Some(number) => {
                    if let Err(broken) = self.look_at_call(slot, number, now, socket) {
                        looked = Err(broken);
                    }
                }
            }
        }
        looked
    }

    fn look_at_call(
        &mut self,
        slot: SlotId,
        number: u32,
        now: Instant,
        socket: Option<&Socket>,
    ) -> Result<(), Broken> {
        let timer = self.slots.get(slot).timer;
        if timer.deadline() <= now {
            match self.outbox.progress(number) {
                Progress::Whole => {}
                Progress::Nothing => {
                    self.unsend(number);
                    self.finish(slot, Err(timer.error(false)));
                    return Ok(());
                }
                // Nothing else can be sent behind a part of a call.
                Progress::Part => {
                    self.engine.withdraw(number);
                    self.finish(slot, Err(timer.error(false)));
                    return Err(io::Error::from(io::ErrorKind::TimedOut).into());
                }
            }
        }
        match self.engine.handle_timeout(number, now) {
            Some(Timeout::Expired(slot)) => self.finish(slot, Err(timer.error(true))),
            Some(Timeout::Wait(at)) => self.expect(at),
            Some(Timeout::Retransmit(at)) => {
                self.expect(at);
                return self.send_again(slot, socket);
            }
            None => {}
        }
        Ok(())
    }

    /// Sends a datagram again. That it cannot be sent now is no reason to give up.
    fn send_again(&mut self, slot: SlotId, socket: Option<&Socket>) -> Result<(), Broken> {
        let Stage::InFlight(_, Some(written)) = &self.slots.get(slot).stage else {
            return Ok(());
        };
        let packet = written.packet(&self.address);
        match socket.map(|socket| socket.try_send(packet, 0)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The time of a call has run out in the queue.
    fn give_up_waiting(&mut self, slot: SlotId) {
        let timer = self.slots.get(slot).timer;
        self.queue.retain(|queued| *queued != slot);
        let error = match self.is_connected {
            true => timer.error(false),
            false => self.why_not_connected(&timer),
        };
        self.finish(slot, Err(error));
    }

    fn why_not_connected(&self, timer: &Timer) -> CallError {
        match (self.back_off.error(&self.address), &self.lost) {
            (Some(unreachable), _) => unreachable,
            (None, Some(cause)) => CallError::Disconnected {
                cause: Arc::clone(cause),
                may_have_executed: false,
            },
            (None, None) => timer.error(false),
        }
    }

    /// An attempt to connect has failed.
    pub(super) fn not_connected(&mut self, error: io::Error) {
        tracing::debug!(address = %self.address, %error, "cannot connect");
        if self.back_off.failed(error)
            && let Some(error) = self.back_off.error(&self.address)
        {
            for slot in std::mem::take(&mut self.queue) {
                self.finish(slot, Err(error.clone()));
            }
        }
    }

    /// The connection is gone. Calls that were not sent whole go over another; the others have failed.
    pub(super) fn lose(&mut self, broken: &Broken) {
        let in_flight = self.engine.in_flight();
        tracing::debug!(?broken, in_flight, "connection broke");
        self.is_connected = false;
        self.engine.broke(broken);
        if let Broken::Io(cause) = broken {
            self.lost = Some(Arc::clone(cause));
        }
        self.requeue();
        for slot in self.engine.cancel_all() {
            self.finish(slot, Err(broken.clone().into_error()));
        }
    }

    /// Puts calls that were not sent whole back to the front of the queue.
    fn requeue(&mut self) {
        for piece in self.outbox.take_all().into_iter().rev() {
            match piece {
                Piece::Call(slot, number, written) if self.slots.has_number(slot, number) => {
                    self.engine.withdraw(number);
                    self.slots.get(slot).stage = Stage::Waiting(written);
                    self.queue.push_front(slot);
                }
                piece => piece.recycle(&mut self.buffers),
            }
        }
    }

    /// The connection takes no calls any more and has answered all it took.
    pub(super) fn use_up(&mut self) {
        self.is_connected = false;
        for piece in self.outbox.take_all() {
            piece.recycle(&mut self.buffers);
        }
    }

    /// Whether all calls are over.
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.engine.in_flight() == 0
    }

    /// When the last of the calls in the queue gives up; none if there is none.
    pub(super) fn last_deadline(&mut self) -> Option<Instant> {
        let queue = self.queue.iter();
        queue
            .map(|slot| self.slots.get(*slot).timer.deadline())
            .max()
    }

    /// Takes no call any more; those that are not over have failed.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Closed;
        self.is_connected = false;
        for slot in std::mem::take(&mut self.queue) {
            self.finish(slot, Err(closed()));
        }
        for slot in self.engine.cancel_all() {
            self.finish(slot, Err(Broken::from(closed_error()).into_error()));
        }
        self.use_up();
    }
}

fn closed_error() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the channel is closed")
}

/// What a call is told that comes too late.
fn closed() -> CallError {
    CallError::Disconnected {
        cause: Arc::new(closed_error()),
        may_have_executed: false,
    }
}

/// What connecting for the first time has reported.
pub(super) fn unreachable_at(address: &Address, error: io::Error) -> ConnectError {
    ConnectError::Unreachable {
        address: address.clone(),
        cause: Arc::new(error),
    }
}
