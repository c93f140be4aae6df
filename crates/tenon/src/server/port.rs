//! A turn at a port for datagrams: receive, carry calls out, send. One socket serves all clients: messages of ONC RPC
//! are told from packets of the exchange by their first bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::serve::{
    CallContext, DATAGRAM_SEND_PATIENCE, FoundCall, PORT_RECEIVES_PER_TURN, PacketFollower,
};
use tenon_core::service::{Cancellation, Origin};
use tenon_core::wait::LOOKS;
use tenon_net::{Carrier, PacketTrain, Ready, ReceivedTrain};
use tenon_proto::endpoint::exchange::server::CloseRecipients;

use super::jobs::{AnswerTo, CallJob};
use super::port_host::PortHost;
use super::port_state::PortState;
use super::slot::{ANSWERS, LateAnswer, SlotState, SocketSlot, port_of};
use super::state::ServerState;
use super::thread::{LINGER, ThreadContext};
use super::turn_end::TurnEnd;

/// A port that a thread has.
pub(super) struct PortTurn<'t> {
    pub(super) server: &'t Arc<ServerState>,
    pub(super) slot: &'t Arc<SocketSlot>,
    pub(super) carrier: &'t Carrier,
    pub(super) thread: &'t mut ThreadContext,
}

impl PortTurn<'_> {
    /// Serves what has come, up to a limit. The state is `None` afterwards if another thread has it.
    pub(super) fn run(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        let Some(port) = port_of(place) else {
            return TurnEnd::Taken;
        };
        self.prepare(port);
        for _ in 0..PORT_RECEIVES_PER_TURN {
            let Some(port) = port_of(place) else {
                return TurnEnd::Taken;
            };
            if !port.served.has_received() && !self.receive(port) {
                self.send(port);
                self.slot.tally.publish_endpoint(&port.served.counters());
                return TurnEnd::Idle;
            }
            self.serve_received(place);
            if self.thread.activity.is_replaced() {
                break;
            }
        }
        match place {
            Some(_) => TurnEnd::More,
            None => TurnEnd::Taken,
        }
    }

    /// Takes what other threads have left, and does what is due.
    fn prepare(&mut self, port: &mut PortState) {
        let signals = std::mem::take(&mut port.signals) | self.slot.take_signals();
        if signals & ANSWERS != 0 {
            for answer in self.slot.take_answers() {
                if let LateAnswer::Datagram(key, mut reply) = answer {
                    port.end(key);
                    let registry = &self.server.shared.registry;
                    port.served.answer(registry, key, &mut reply);
                }
            }
        }
        port.served.handle_timeout(Instant::now());
        self.send(port);
    }

    /// Receives what is there; returns whether there was anything.
    fn receive(&self, port: &mut PortState) -> bool {
        if self.server.is_stopping() && !port.served.has_unarrived() {
            return false;
        }
        loop {
            match self.carrier.try_recv_from(port.served.room()) {
                Ok((came, from)) => {
                    port.served.handle_received(came, from);
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // An earlier reply met a closed port, or the like: the error is consumed.
                Err(error) => tracing::debug!(%error, "receiving a datagram failed"),
            }
        }
    }

    /// Takes in the packets that were received, and carries their calls out.
    fn serve_received(&mut self, place: &mut Option<Box<SlotState>>) {
        while let Some(port) = port_of(place) {
            let next = port.served.next_call(
                &self.server.shared,
                |size| self.carrier.expect_train(size),
                || PortHost::shared(self.server, self.slot),
            );
            let Some((found, is_last)) = next else {
                return;
            };
            match found {
                None => {}
                Some(found) if self.is_slow(&found) || self.server.scheduler.is_busy() => {
                    self.hand_over(port, found);
                }
                Some(found) => self.execute(place, found),
            }
            if let Some(port) = port_of(place)
                && is_last
            {
                self.send(port);
            }
            if self.thread.activity.is_replaced() {
                return;
            }
        }
    }

    fn is_slow(&self, found: &FoundCall) -> bool {
        let times = &self.server.shared.times;
        times.is_slow(found.call.service, found.call.procedure)
    }

    /// Has a call carried out by another thread, if there is room for it.
    #[cold]
    fn hand_over(&self, port: &mut PortState, found: FoundCall) {
        let room = &self.server.scheduler.room;
        let Some(memory) = room.take(found.message_bytes(), true) else {
            return port.served.drop_call(&found);
        };
        let flag = port.hand_over(found.key);
        let (call, target) = (found.call, AnswerTo::Datagram(found.key));
        let progress = self.server.defer(self.slot, &call, flag, target);
        let job = CallJob::of_port((call, progress), found.from, found.copy(), memory);
        port.served.give_back(found);
        self.server.scheduler.push_job(self.server, job);
    }

    /// Runs a handler with the state given away, and takes it back if no other thread has claimed it.
    fn execute(&mut self, place: &mut Option<Box<SlotState>>, found: FoundCall) {
        let shared = &self.server.shared;
        if let Some(mut state) = place.take() {
            if let SlotState::Port(port) = &mut *state {
                let number = port.begin_inline(found.key);
                self.thread.activity.runs.begin(number);
            }
            self.slot.lend(state);
        }
        let context = CallContext {
            attachments: found
                .call
                .attachments_in(found.message(), found.arguments().len()),
            origin: Origin {
                peer: Some(found.from),
                ..self.slot.origin()
            },
            cancellation: Cancellation::Run(&self.thread.activity.runs),
            streams: None,
            callbacks: None,
        };
        let call = found.call;
        let reply = &mut self.thread.reply;
        self.thread.activity.begin_handler(&call);
        self.server.watchdog.note_handler();
        let (registry, tally) = (&shared.registry, &shared.tally);
        registry.execute(&call, context, found.arguments(), tally, reply);
        self.thread.activity.end_handler();
        self.thread.activity.runs.end();
        *place = self.slot.claim();
        match port_of(place) {
            Some(port) => {
                port.end(found.key);
                PacketFollower::note_reply(&mut port.follower, self.carrier, &found, reply);
                port.served.answer(registry, found.key, reply);
                port.served.give_back(found);
            }
            None => {
                let answer = LateAnswer::Datagram(found.key, std::mem::take(reply));
                *place = self.slot.leave_answer(answer);
            }
        }
    }

    /// Sends what there is to say.
    fn send(&self, port: &mut PortState) {
        port.cancel(self.slot.id, &self.server.shared.handlers);
        if !port.served.has_transmit() {
            return;
        }
        self.slot.tally.publish_endpoint(&port.served.counters());
        let PortState {
            served, follower, ..
        } = port;
        while let Some((train, to)) = served.next_train() {
            let began = PacketFollower::begin_send(follower, self.carrier, to);
            if let Err(error) = self.send_patiently(train, to) {
                self.server.shared.tally.datagrams_dropped.up();
                tracing::debug!(peer = %to, %error, "a reply could not be sent");
            }
            if let Some(began) = began {
                PacketFollower::end_send(follower, self.carrier, began);
            }
        }
        PacketFollower::end_replies(follower);
    }

    fn send_patiently(&self, train: PacketTrain<'_>, to: SocketAddr) -> io::Result<usize> {
        match self.carrier.try_send_to(train, to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let deadline = Instant::now() + DATAGRAM_SEND_PATIENCE;
                self.carrier.wait(Ready::WRITABLE, deadline)?;
                self.carrier.try_send_to(train, to)
            }
            sent => sent,
        }
    }

    /// Stays with a port that is the only one at which something comes, until nothing has come for a while or others
    /// need the thread.
    pub(super) fn stay(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        while self.may_stay(place) {
            let Some(port) = port_of(place) else {
                return TurnEnd::Taken;
            };
            match self.wait_for_more(port) {
                Ok((came, from)) => port.served.handle_received(came, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_due = |at: Instant| at <= Instant::now();
                    if !port.served.next_repeat().is_some_and(is_due) {
                        return TurnEnd::Idle;
                    }
                    self.prepare(port);
                    continue;
                }
                Err(error) => {
                    tracing::debug!(%error, "receiving a datagram failed");
                    continue;
                }
            }
            self.serve_received(place);
            if place.is_none() {
                return TurnEnd::Taken;
            }
        }
        TurnEnd::More
    }

    /// Returns whether the thread may wait for this port alone: not for packets while answers may come of other
    /// threads.
    pub(super) fn may_stay(&self, place: &mut Option<Box<SlotState>>) -> bool {
        port_of(place).is_some_and(|port| !port.has_running_calls())
            && !self.thread.activity.is_replaced()
            && self.server.scheduler.may_stay()
            && !self.server.is_stopping()
            && !self.slot.has_signals()
    }

    /// Waits for packets: not beyond the time at which an answer is sent again.
    fn wait_for_more(&self, port: &mut PortState) -> io::Result<(ReceivedTrain, SocketAddr)> {
        let limit = match port.served.next_repeat() {
            None => LINGER,
            Some(at) => limit_until(at, Instant::now()),
        };
        let carrier = self.carrier;
        let room = port.served.room();
        let mut looks = 0;
        let receive = |limit| match limit {
            None => {
                carrier.look(looks);
                looks = LOOKS;
                carrier.try_recv_from(room)
            }
            Some(limit) => carrier.recv_from_within(room, limit),
        };
        self.server
            .linger(&mut port.waiter, port.looking, false, limit, receive)
    }

    /// Tells clients that the server stops.
    pub(super) fn close(&self, port: &mut PortState, to: CloseRecipients) {
        port.served.close(to);
        self.send(port);
    }
}

/// Returns for how long to wait until `at`, but not longer than a thread lingers. ReassembledMessage milliseconds: a
/// socket has to be told of a limit that is another than before.
fn limit_until(at: Instant, now: Instant) -> Duration {
    let left = at.saturating_duration_since(now).min(LINGER);
    let millis = left.as_micros().div_ceil(1000).max(1);
    Duration::from_millis(millis as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_the_time_of_an_answer_and_not_never() {
        let now = Instant::now();
        let limit = |micros| limit_until(now + Duration::from_micros(micros), now);
        assert_eq!(limit(10_001), Duration::from_millis(11));
        assert_eq!(limit(3_000_000), LINGER);
        // A socket takes a limit of nothing for none.
        assert_eq!(limit(0), Duration::from_millis(1));
        assert_eq!(limit_until(now, now + LINGER), Duration::from_millis(1));
    }
}
