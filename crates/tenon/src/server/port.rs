//! A turn at a port for datagrams: receive, carry calls out, send. One socket serves all clients: messages of ONC RPC
//! are told from packets of the exchange by their first bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_core::serve::{CallContext, CallToServe};
use tenon_core::service::Origin;
use tenon_core::trains::Trains;
use tenon_core::wait::{LOOKS, Looking, Waiter};
use tenon_net::{Came, Carrier, Ready, Train, Transport, Watch};
use tenon_proto::endpoint::exchange::server::{Farewell, ServerLimits as ExchangeLimits};
use tenon_proto::endpoint::exchange::{DATAGRAM_HERE, Whole, is_one_of_many};
use tenon_proto::endpoint::{DatagramCallKey, ServerEndpoint};
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::jobs::Job;
use super::random;
use super::slot::{ANSWERS, LateAnswer, Slot, SlotState};
use super::state::ServerState;
use super::stream::TurnEnd;
use super::thread::Thread;
use tenon_core::serve::ServerLimits;
use tenon_proto::endpoint::duplicates::DuplicateLimits;

/// How long a thread stays with a port at which nothing comes, if it has nothing else to serve.
const LINGER: Duration = Duration::from_millis(100);

/// How long a reply waits for room in the socket before it is dropped; the peer repeats its call.
const SEND_PATIENCE: Duration = Duration::from_millis(100);

/// Receives of a turn, before others have theirs.
const RECEIVES_PER_TURN: usize = 32;

/// Bytes of memory that the largest request of the exchange takes beside its message.
const BESIDE_MESSAGE: usize = 64 << 10;

/// What only one thread at a time has of a port.
#[derive(Debug)]
pub(super) struct ServedPort {
    endpoint: ServerEndpoint<SocketAddr>,
    trains: Trains<SocketAddr>,
    received: ReceivedPackets,
    waiter: Waiter,
    looking: Looking,
    watch: Watch,
}

/// Packets that were received together, and not all of them looked at.
#[derive(Debug)]
struct ReceivedPackets {
    memory: Vec<u8>,
    came: Came,
    from: Option<SocketAddr>,
    /// Where the next packet begins.
    next: usize,
    /// What several packets have made whole.
    whole: Whole,
}

/// A call that was found in a datagram, with what it was found in.
struct FoundCall {
    key: DatagramCallKey<SocketAddr>,
    call: CallToServe,
    from: SocketAddr,
    arguments: usize,
    /// What the call was found in: the whole of several packets, or a datagram.
    message: Message,
}

enum Message {
    /// All that was received, and where in it the arguments end.
    Memory(Vec<u8>, usize),
    /// The same of several packets.
    Whole(Whole, usize),
    Copied(Buffer),
}

impl FoundCall {
    fn bytes(&self) -> &[u8] {
        match &self.message {
            Message::Memory(memory, end) => &memory[..*end],
            Message::Whole(whole, end) => &whole.message()[..*end],
            Message::Copied(buffer) => buffer.as_slice(),
        }
    }

    fn arguments(&self) -> &[u8] {
        let bytes = self.bytes();
        &bytes[bytes.len() - self.arguments..]
    }
}

impl ReceivedPackets {
    fn new(server: &ServerState) -> Self {
        Self {
            memory: Vec::new(),
            came: Came { length: 0, size: 0 },
            from: None,
            next: 0,
            whole: server.new_whole(),
        }
    }

    /// Where to receive into.
    fn room(&mut self) -> &mut [u8] {
        if self.memory.is_empty() {
            self.memory = vec![0; Carrier::RECEIVE_MAX];
        }
        &mut self.memory
    }

    fn set(&mut self, came: Came, from: SocketAddr) {
        (self.came, self.from, self.next) = (came, Some(from), 0);
    }

    /// The place of the next packet, and whether it is the last. A packet without bytes is one, too.
    fn next(&mut self) -> Option<(std::ops::Range<usize>, SocketAddr, bool)> {
        let from = self.from?;
        let start = self.next;
        let end = self
            .came
            .length
            .min(start + self.came.size)
            .min(self.memory.len());
        self.next = end;
        let is_last = end >= self.came.length || self.came.size == 0;
        if is_last {
            self.from = None;
        }
        Some((start..end, from, is_last))
    }
}

impl ServedPort {
    pub(super) fn new(
        server: &ServerState,
        carrier: &Carrier,
        duplicates: DuplicateLimits,
    ) -> Self {
        let shared = &server.shared;
        let transport = carrier.transport();
        let endpoint = ServerEndpoint::new(
            &shared.config,
            exchange_limits(&shared.limits),
            duplicates,
            random::server_secrets(),
            // Messages of ONC RPC have no check of their own, which frames on Ethernet need.
            transport != Transport::Xdp,
            Instant::now(),
        );
        Self {
            endpoint,
            trains: Trains::default(),
            received: ReceivedPackets::new(server),
            waiter: Waiter::new(server.waiting),
            looking: Looking::at(transport),
            watch: Watch::Receive,
        }
    }

    /// As [`StreamState::change_watch`](super::stream::StreamState::change_watch).
    pub(super) fn change_watch(&mut self, watch: Watch) -> Option<Watch> {
        (std::mem::replace(&mut self.watch, watch) != watch).then_some(watch)
    }

    /// When something is to be done even if nothing comes.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// Whether an answer is still to be sent, or one of several packets has not arrived.
    pub(super) fn has_unarrived(&self) -> bool {
        self.endpoint.has_unarrived()
    }
}

/// What the packet exchange of a port grants. One host leaves others half of the memory, unless a single message needs
/// more.
fn exchange_limits(limits: &ServerLimits) -> ExchangeLimits {
    let of_host = (limits.receive_bytes / 2).max(limits.message_bytes + BESIDE_MESSAGE);
    ExchangeLimits {
        datagram_max_here: DATAGRAM_HERE,
        bytes_of_conversation: of_host,
        bytes_of_host: of_host,
        bytes: limits.receive_bytes,
        ..ExchangeLimits::default()
    }
}

/// A port that a thread has.
pub(super) struct PortTurn<'t> {
    pub(super) server: &'t Arc<ServerState>,
    pub(super) slot: &'t Arc<Slot>,
    pub(super) carrier: &'t Carrier,
    pub(super) thread: &'t mut Thread,
}

impl PortTurn<'_> {
    /// Serves what has come, up to a limit. The state is `None` afterwards if another thread has it.
    pub(super) fn run(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        let Some(port) = port_of(place) else {
            return TurnEnd::Taken;
        };
        self.prepare(port);
        for _ in 0..RECEIVES_PER_TURN {
            let Some(port) = port_of(place) else {
                return TurnEnd::Taken;
            };
            if port.received.from.is_none() && !self.receive(port) {
                self.send(port);
                self.slot.tally.publish_endpoint(&port.endpoint.counters());
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
    fn prepare(&mut self, port: &mut ServedPort) {
        if self.slot.take_signals() & ANSWERS != 0 {
            for answer in self.slot.take_answers() {
                if let LateAnswer::Datagram(key, mut reply) = answer {
                    port.endpoint.answer(Instant::now(), key, &mut reply);
                }
            }
        }
        port.endpoint.handle_timeout(Instant::now());
        self.send(port);
    }

    /// Receives what is there; returns whether there was anything.
    fn receive(&self, port: &mut ServedPort) -> bool {
        if self.server.is_stopping() && !port.endpoint.has_unarrived() {
            return false;
        }
        loop {
            match self.carrier.try_recv_from(port.received.room()) {
                Ok((came, from)) => {
                    port.received.set(came, from);
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
            let Some((found, is_last)) = self.take_in(port) else {
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

    /// Takes in the next packet; returns the call that it has made whole, if it has, and whether it was the last.
    fn take_in(&self, port: &mut ServedPort) -> Option<(Option<FoundCall>, bool)> {
        let (place, from, is_last) = port.received.next()?;
        let ServedPort {
            endpoint, received, ..
        } = port;
        let packet = &received.memory[place.clone()];
        if is_one_of_many(packet) {
            self.carrier.expect_train(packet.len());
        }
        let table = self.server.shared.registry.table();
        let whole = &mut received.whole;
        whole.clear();
        let now = Instant::now();
        let Some(found) = endpoint.handle_datagram(now, from, packet, table, whole) else {
            return Some((None, is_last));
        };
        let (key, call) = (found.key, CallToServe::incoming(&found.call));
        let arguments = found.call.arguments.len();
        let begin = found.call.arguments.as_ptr();
        let end_in = |bytes: &[u8]| {
            let is_inside = bytes.as_ptr_range().contains(&begin);
            is_inside.then(|| begin as usize - bytes.as_ptr() as usize + arguments)
        };
        let end = end_in(packet);
        let message = match (end, whole.message().is_empty()) {
            (_, false) => {
                // Behind the arguments is what pads the last packet.
                let end = end_in(whole.message()).unwrap_or(whole.message().len());
                let spare = self.server.new_whole();
                Message::Whole(std::mem::replace(whole, spare), end)
            }
            (Some(end), true) if is_last && place.start == 0 => {
                Message::Memory(std::mem::take(&mut received.memory), end)
            }
            (end, true) => {
                let mut copy = Buffer::default();
                copy.extend(&packet[..end.unwrap_or(packet.len())]);
                Message::Copied(copy)
            }
        };
        let found = FoundCall {
            key,
            call,
            from,
            arguments,
            message,
        };
        Some((Some(found), is_last))
    }

    fn is_slow(&self, found: &FoundCall) -> bool {
        let times = &self.server.shared.times;
        times.is_slow(found.call.service, found.call.procedure)
    }

    /// Has a call carried out by another thread, if there is room for it.
    #[cold]
    fn hand_over(&self, port: &mut ServedPort, found: FoundCall) {
        if !self.server.scheduler.has_room() {
            if let DatagramCallKey::Exchange(_) = found.key {
                let mut reply = Buffer::default();
                found.call.refuse(Status::OVERLOADED, "", &mut reply);
                port.endpoint.answer(Instant::now(), found.key, &mut reply);
            }
            return port.endpoint.drop_call(found.key);
        }
        let mut message = Buffer::default();
        message.extend(found.bytes());
        let (call, arguments) = (found.call, found.arguments);
        let job = Job::of_port(
            self.slot,
            call,
            (found.key, found.from),
            (message, arguments),
        );
        self.give_back(port, found.message);
        self.server.scheduler.push_job(self.server, job);
    }

    /// Runs a handler with the state given away, and takes it back if no other thread has claimed it.
    fn execute(&mut self, place: &mut Option<Box<SlotState>>, found: FoundCall) {
        let shared = &self.server.shared;
        if let Some(state) = place.take() {
            self.slot.lend(state);
        }
        let context = CallContext {
            credential: found.call.credential_in(found.bytes()),
            origin: Origin {
                peer: Some(found.from),
                ..self.slot.origin()
            },
            cancelled: None,
        };
        let call = found.call;
        let reply = &mut self.thread.reply;
        self.server.watchdog.note_handler();
        self.thread.activity.begin_handler();
        let (registry, tally) = (&shared.registry, &shared.tally);
        registry.execute(&call, context, found.arguments(), tally, reply);
        if self.thread.activity.end_handler() {
            shared.times.note_slow(call.service, call.procedure);
        }
        *place = self.slot.claim();
        match port_of(place) {
            Some(port) => {
                port.endpoint.answer(Instant::now(), found.key, reply);
                self.give_back(port, found.message);
            }
            None => {
                let answer = LateAnswer::Datagram(found.key, std::mem::take(reply));
                *place = self.slot.leave_answer(answer);
            }
        }
    }

    /// Gives the memory back that a call was found in.
    fn give_back(&self, port: &mut ServedPort, message: Message) {
        match message {
            Message::Memory(memory, _) if port.received.memory.is_empty() => {
                port.received.memory = memory;
            }
            Message::Whole(mut whole, _) if port.received.whole.message().is_empty() => {
                whole.clear();
                port.received.whole = whole;
            }
            Message::Memory(..) | Message::Whole(..) | Message::Copied(_) => {}
        }
    }

    /// Sends what there is to say.
    fn send(&self, port: &mut ServedPort) {
        // Handlers are not told that their calls are not waited for any more.
        while port.endpoint.poll_cancelled().is_some() {}
        if !port.endpoint.has_transmit() && !port.trains.has_next() {
            return;
        }
        self.slot.tally.publish_endpoint(&port.endpoint.counters());
        let ServedPort {
            endpoint, trains, ..
        } = port;
        let mut poll = |packet: &mut Buffer| {
            // The clock is not read for nothing.
            let has_transmit = endpoint.has_transmit();
            has_transmit.then(|| endpoint.poll_transmit(Instant::now(), packet))?
        };
        while let Some((train, to)) = trains.next(&mut poll) {
            if let Err(error) = self.send_patiently(train, to) {
                self.server.shared.tally.datagrams_dropped.up();
                tracing::debug!(peer = %to, %error, "a reply could not be sent");
            }
        }
    }

    fn send_patiently(&self, train: Train<'_>, to: SocketAddr) -> io::Result<usize> {
        match self.carrier.try_send_to(train, to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let deadline = Instant::now() + SEND_PATIENCE;
                self.carrier.wait(Ready::WRITABLE, deadline)?;
                self.carrier.try_send_to(train, to)
            }
            sent => sent,
        }
    }

    /// Stays with a port that is the only one at which something comes, until nothing has come for a while or others
    /// need the thread.
    pub(super) fn stay(&mut self, place: &mut Option<Box<SlotState>>) -> TurnEnd {
        while self.may_stay() {
            let Some(port) = port_of(place) else {
                return TurnEnd::Taken;
            };
            match self.wait_for_more(port) {
                Ok((came, from)) => port.received.set(came, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_due = |at: Instant| at <= Instant::now();
                    if !port.endpoint.next_repeat().is_some_and(is_due) {
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

    /// Whether the thread may wait for this port alone.
    pub(super) fn may_stay(&self) -> bool {
        !self.thread.activity.is_replaced()
            && self.server.scheduler.may_stay()
            && !self.server.is_stopping()
            && !self.slot.has_signals()
    }

    /// Waits for packets: not beyond the time at which an answer is sent again.
    fn wait_for_more(&self, port: &mut ServedPort) -> io::Result<(Came, SocketAddr)> {
        let limit = match port.endpoint.next_repeat() {
            None => LINGER,
            Some(at) => limit_until(at, Instant::now()),
        };
        let carrier = self.carrier;
        let room = port.received.room();
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
    pub(super) fn close(&self, port: &mut ServedPort, to: Farewell) {
        port.endpoint.close(to);
        self.send(port);
    }
}

/// For how long to wait until `at`, but not longer than a thread lingers. Whole milliseconds: a socket whose
/// limit is another than before has to be told.
fn limit_until(at: Instant, now: Instant) -> Duration {
    let left = at.saturating_duration_since(now).min(LINGER);
    let millis = left.as_micros().div_ceil(1000).max(1);
    Duration::from_millis(millis as u64)
}

/// The state of a port, if the thread has it.
pub(super) fn port_of(place: &mut Option<Box<SlotState>>) -> Option<&mut ServedPort> {
    match place.as_deref_mut() {
        Some(SlotState::Port(port)) => Some(port),
        Some(SlotState::Stream(_)) | None => None,
    }
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
