//! The client's side: the conversation with one server, and its calls.
//!
//! What a datagram means is found out by [`handle_datagram`](ClientEngine::handle_datagram), what is
//! to be sent is asked for with [`poll_transmit`](ClientEngine::poll_transmit) until there is nothing,
//! and calls that came to nothing with [`poll_event`](ClientEngine::poll_event).

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use siphasher::sip::SipHasher24;
use tenon_wire::Buffer;

use super::ack::{Arrived, Progress};
use super::assembly::{Assembly, NotTaken, Taken, whole};
use super::congestion::Congestion;
use super::content::Answered;
use super::failure::{Failure, Reason};
use super::lane::{Lane, Pending, Stage};
use super::opening::{Facts, OPENING, Opening, Welcome};
use super::packet::{
    ASKS, Header, Ignored, IgnoredCounters, OPENS, PACKET_HEADER, PacketKind, Prototype, decode,
};
use super::sending::Learnt;
use super::time::{Chance, Patience, RoundTrip};
use super::{PREFIX_MAX, datagram_max};
use crate::lean::client::{BindError, NotStarted, ReplyError};
use crate::lean::{
    Bind, BindRefusal, ByteOrder, CALLS_MIN, Exception, Extensions, HEADER, Interface, Kind,
    MESSAGE_MIN, Preamble, RefusalReason, Refused,
};
use crate::storage::Storage;

/// An answer that is sent later than so many microseconds after its call says so by this number.
const HELD_LONG: u16 = u16::MAX;

/// Times that something is asked in vain, at least, before the server is taken to be gone.
const IN_VAIN_MIN: u32 = 4;

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Bytes of the largest datagram that it sends and takes in.
    pub datagram_max: usize,
    /// Bytes of answers that are being received, of all calls together.
    pub bytes: usize,
    /// How long to wait.
    pub patience: Patience,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            datagram_max: super::DATAGRAM_DEFAULT,
            bytes: 256 << 20,
            patience: Patience::default(),
        }
    }
}

/// What nobody may foresee, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ClientSecrets {
    /// What the names of conversations are made from.
    pub key: [u8; 16],
    /// For what is done by chance.
    pub seed: u64,
}

/// A call that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// The number that [`bind`](ClientEngine::bind) gave to its service.
    pub service: u16,
    /// Procedure number.
    pub procedure: u16,
    /// When it is given up.
    pub deadline: Instant,
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId {
    lane: u16,
    serial: u32,
}

/// An answer to a call that was in flight until now.
#[derive(Debug)]
pub struct Answer<'m, W> {
    /// The call.
    pub id: CallId,
    /// What was handed in for whoever waits.
    pub waiter: W,
    /// The order of the bytes of the results.
    pub order: ByteOrder,
    /// What the answer carries beside.
    pub extensions: Extensions<'m>,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError<'m>>,
}

/// What happened without an answer.
#[derive(Debug)]
pub enum ClientEvent<W> {
    /// A call came to nothing. It is no longer in flight.
    Failed {
        /// The call.
        id: CallId,
        /// What was handed in for whoever waits.
        waiter: W,
        /// Why.
        failure: Failure,
    },
}

/// What a client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls answered with exceptions.
    pub exceptions: u64,
    /// Calls that came to nothing.
    pub failures: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Conversations begun.
    pub conversations: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Datagrams that were dropped.
    pub ignored: IgnoredCounters,
}

#[derive(Debug)]
struct Binding {
    interface: Arc<Interface>,
    state: BindingState,
}

#[derive(Debug)]
enum BindingState {
    Asked,
    Bound,
    Refused(Arc<BindRefusal>),
}

/// How things stand with the server.
#[derive(Debug)]
enum Link {
    /// There is nothing to say.
    Idle,
    /// A conversation is asked for.
    Greeting(Greeting),
    Open(Open),
}

#[derive(Debug)]
struct Greeting {
    conversation: u64,
    /// Hellos sent.
    sent: u32,
    sent_at: Instant,
    began_at: Instant,
    /// When the next one is to be sent.
    timer: Instant,
}

#[derive(Debug)]
struct Open {
    conversation: u64,
    prototype: Prototype,
    /// As long as the server may not know the conversation.
    opening: Option<Opening>,
    /// Bytes behind the header of a datagram.
    room: usize,
    incarnation: u32,
}

impl Open {
    /// Bytes of the fragments of a message that is begun now.
    fn fragment_bytes(&self) -> usize {
        match self.opening {
            Some(_) => self.room - OPENING,
            None => self.room,
        }
    }
}

/// The conversation with one server. `W` is what the owner needs to find whoever waits. When the
/// server does not know the conversation any more another is begun, and calls that cannot have been
/// carried out are sent again.
#[derive(Debug)]
pub struct ClientEngine<W> {
    core: Core<W>,
    /// The answer that was handed out last, if it came in several fragments.
    whole: Storage,
}

#[derive(Debug)]
struct Core<W> {
    own: Facts,
    limits: ClientLimits,
    key: [u8; 16],
    peer: Option<Preamble>,
    link: Link,
    lanes: Vec<Lane<W>>,
    free: Vec<u16>,
    ready: VecDeque<u16>,
    bindings: Vec<Binding>,
    events: VecDeque<ClientEvent<W>>,
    congestion: Congestion,
    round_trip: RoundTrip,
    /// A call waits for room in the window.
    has_waiting: bool,
    /// Bytes of answers that are being received.
    bytes: usize,
    /// Packets sent.
    order: u64,
    serial: u32,
    chance: Chance,
    counters: ClientCounters,
}

/// An answer that is whole: where it is.
struct Complete<'d> {
    lane: u16,
    /// None: in what was assembled.
    datagram: Option<&'d [u8]>,
}

impl<W> ClientEngine<W> {
    /// A client of a server that it has not talked to. `preamble` says what it is.
    pub fn new(preamble: Preamble, limits: ClientLimits, secrets: ClientSecrets) -> Self {
        let bytes_max = preamble.message_max as usize + PREFIX_MAX;
        Self {
            core: Core {
                own: Facts {
                    preamble,
                    datagram_max: datagram_max(limits.datagram_max, usize::MAX) as u32,
                },
                limits,
                key: secrets.key,
                peer: None,
                link: Link::Idle,
                lanes: Vec::new(),
                free: Vec::new(),
                ready: VecDeque::new(),
                bindings: Vec::new(),
                events: VecDeque::new(),
                congestion: Congestion::new(),
                round_trip: RoundTrip::new(limits.patience),
                has_waiting: false,
                bytes: 0,
                order: 0,
                serial: 0,
                chance: Chance(secrets.seed),
                counters: ClientCounters::default(),
            },
            whole: Assembly::receiver(bytes_max),
        }
    }

    /// What the server has said of itself; `None` as long as it has said nothing.
    pub fn peer(&self) -> Option<&Preamble> {
        self.core.peer.as_ref()
    }

    /// The number of the service that is `interface` at the server. If it has none yet it gets one,
    /// and its calls ask for it.
    ///
    /// # Errors
    /// The server refused it already, or there are no numbers left.
    #[inline]
    pub fn bind(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        self.core.bind(interface)
    }

    /// Puts a call in flight. `message` is what [`Draft`](crate::lean::Draft) has written, from its
    /// beginning; number and service are filled in. An empty buffer is given back for it.
    ///
    /// # Errors
    /// It cannot be started now, and why; the message stays where it is.
    ///
    /// # Panics
    /// The message is shorter than a header.
    pub fn start(
        &mut self,
        now: Instant,
        call: &Outgoing,
        message: &mut Buffer,
        waiter: W,
    ) -> Result<CallId, NotStarted> {
        self.core.start(now, call, message, waiter)
    }

    /// Takes in a datagram of the server; the answer, if that makes one whole. It stays where it is
    /// until the next datagram. The result is at a multiple of 8 in memory if the datagram is.
    #[inline]
    pub fn handle_datagram<'d>(
        &'d mut self,
        now: Instant,
        datagram: &'d [u8],
    ) -> Option<Answer<'d, W>> {
        let Self { core, whole: taken } = self;
        match core.handle(now, datagram, taken) {
            Ok(None) => None,
            Ok(Some(complete)) => {
                let answer = complete.datagram.unwrap_or_else(|| whole(taken));
                core.settle(complete.lane, answer)
            }
            Err(ignored) => {
                core.counters.ignored.count(ignored);
                None
            }
        }
    }

    /// Appends the next datagram that is to be sent; false if there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        self.core.poll_transmit(now, out)
    }

    /// What happened without an answer.
    pub fn poll_event(&mut self) -> Option<ClientEvent<W>> {
        self.core.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
    }

    /// Gives a call up; the server is told so, and its answer will be ignored. `None` if it is no
    /// longer in flight.
    pub fn cancel(&mut self, id: CallId) -> Option<W> {
        self.core.cancel(id)
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        let lanes = self.core.lanes.iter();
        lanes
            .filter(|lane| matches!(lane.stage, Stage::Calling(_)))
            .count()
    }

    /// Calls in flight, and those that were given up and of which the server has not said yet that
    /// they are over.
    pub fn lanes_in_use(&self) -> usize {
        self.core.lanes.len() - self.core.free.len()
    }

    /// Bytes of answers that are being received.
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// Packets that are taken to be under way.
    pub fn under_way(&self) -> u32 {
        self.core.congestion.under_way()
    }

    /// The smoothed round trip, once one has been measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.core.round_trip.smoothed()
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ClientCounters {
        self.core.counters
    }
}

impl<W> Core<W> {
    // ---- Calls ----

    #[inline]
    fn bind(&mut self, interface: &Arc<Interface>) -> Result<u16, BindError> {
        let known = self.bindings.iter().position(|binding| {
            Arc::ptr_eq(&binding.interface, interface) || *binding.interface == **interface
        });
        let Some(number) = known else {
            let number = u16::try_from(self.bindings.len()).map_err(|_| BindError::NoNumbers)?;
            self.bindings.push(Binding {
                interface: Arc::clone(interface),
                state: BindingState::Asked,
            });
            return Ok(number);
        };
        match &self.bindings[number].state {
            BindingState::Refused(refusal) => Err(BindError::Refused(Arc::clone(refusal))),
            BindingState::Asked | BindingState::Bound => Ok(number as u16),
        }
    }

    fn start(
        &mut self,
        now: Instant,
        call: &Outgoing,
        message: &mut Buffer,
        waiter: W,
    ) -> Result<CallId, NotStarted> {
        assert!(message.len() >= HEADER, "a message has a header");
        let number = self.free_lane(message.len())?;
        self.serial = self.serial.wrapping_add(1);
        let id = CallId {
            lane: number,
            serial: self.serial,
        };
        let pending = Pending {
            waiter,
            serial: id.serial,
            service: call.service,
            procedure: call.procedure,
            deadline: call.deadline,
        };
        let lane = &mut self.lanes[usize::from(number)];
        lane.begin(pending);
        lane.sending.begin(message, usize::MAX, |_| {});
        self.counters.calls += 1;
        match self.link {
            Link::Open(_) => self.prepare(number),
            Link::Idle => self.greet(now),
            Link::Greeting(_) => {}
        }
        Ok(id)
    }

    /// A lane for a message of so many bytes.
    fn free_lane(&mut self, size: usize) -> Result<u16, NotStarted> {
        let (message_max, calls_max) = match &self.peer {
            Some(peer) => (peer.message_max, peer.calls_max),
            None => (MESSAGE_MIN, CALLS_MIN),
        };
        let limit = message_max as usize;
        match (size > limit, &self.peer) {
            (true, None) => return Err(NotStarted::AwaitsPreamble { size }),
            (true, Some(_)) => return Err(NotStarted::TooLarge { size, limit }),
            (false, _) => {}
        }
        let limit = (calls_max as usize).min(usize::from(u16::MAX));
        if self.lanes.len() - self.free.len() >= limit {
            return Err(NotStarted::TooManyCalls { limit });
        }
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        let bytes_max = self.own.preamble.message_max as usize + PREFIX_MAX;
        self.lanes.push(Lane::new(bytes_max));
        Ok((self.lanes.len() - 1) as u16)
    }

    /// Cuts a call into fragments for the conversation that there is, and has it sent.
    fn prepare(&mut self, number: u16) {
        let Link::Open(open) = &self.link else {
            return;
        };
        let lane = &mut self.lanes[usize::from(number)];
        let Stage::Calling(pending) = &lane.stage else {
            return;
        };
        let service = pending.service;
        let order = self.own.preamble.order;
        stamp(lane.sending.message_mut(), order, lane.sequence, service);
        let unbound = match self.bindings.get(usize::from(service)) {
            Some(Binding {
                state: BindingState::Bound,
                ..
            })
            | None => None,
            Some(binding) => Some(&binding.interface),
        };
        lane.sending.restart(open.fragment_bytes(), |prefix| {
            if let Some(interface) = unbound {
                Bind::of(interface).encode(prefix, order, service);
            }
        });
        self.make_ready(number);
    }

    fn make_ready(&mut self, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        if !std::mem::replace(&mut lane.is_ready, true) {
            self.ready.push_back(number);
        }
    }

    /// Calls that waited for room in the window.
    fn wake(&mut self) {
        if !self.congestion.has_room() || !std::mem::take(&mut self.has_waiting) {
            return;
        }
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.make_ready(number as u16);
            }
        }
    }

    fn cancel(&mut self, id: CallId) -> Option<W> {
        let lane = self.lanes.get(usize::from(id.lane))?;
        match &lane.stage {
            Stage::Calling(pending) if pending.serial == id.serial => {}
            Stage::Calling(_) | Stage::GivenUp | Stage::Free => return None,
        }
        self.counters.cancellations += 1;
        self.give_up(id.lane).map(|pending| pending.waiter)
    }

    /// Nobody waits for a call any more. Its lane is free when the server says that it is over.
    fn give_up(&mut self, number: u16) -> Option<Pending<W>> {
        let is_open = matches!(self.link, Link::Open(_));
        let lane = &mut self.lanes[usize::from(number)];
        if !is_open || !lane.sending.is_begun() {
            return self.end(number);
        }
        let Stage::Calling(pending) = std::mem::replace(&mut lane.stage, Stage::GivenUp) else {
            return None;
        };
        self.clear(number);
        let lane = &mut self.lanes[usize::from(number)];
        lane.owes_cancel = true;
        lane.timer = None;
        lane.in_vain = 0;
        self.make_ready(number);
        Some(pending)
    }

    /// Forgets what a call sends and receives.
    fn clear(&mut self, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        self.congestion.forget(lane.sending.under_way());
        lane.sending.forget();
        if lane.assembly.is_begun() {
            self.bytes -= lane.assembly.bytes();
            lane.assembly.clear();
        }
        self.has_waiting = true;
        self.wake();
    }

    /// A lane is free; the call that it carried.
    fn end(&mut self, number: u16) -> Option<Pending<W>> {
        self.clear(number);
        let lane = &mut self.lanes[usize::from(number)];
        lane.rest();
        match std::mem::replace(&mut lane.stage, Stage::Free) {
            Stage::Free => None,
            Stage::GivenUp => {
                self.free.push(number);
                None
            }
            Stage::Calling(pending) => {
                self.free.push(number);
                Some(pending)
            }
        }
    }

    /// A call comes to nothing, and its lane is free.
    fn fail(&mut self, number: u16, reason: Reason) {
        let may_have_run = self.lanes[usize::from(number)].is_sent && reason.may_have_run();
        if let Some(pending) = self.end(number) {
            self.report(number, pending, reason, may_have_run);
        }
    }

    /// A call comes to nothing here, and the server is told.
    fn fail_and_tell(&mut self, number: u16, reason: Reason) {
        let may_have_run = self.lanes[usize::from(number)].is_sent && reason.may_have_run();
        if let Some(pending) = self.give_up(number) {
            self.report(number, pending, reason, may_have_run);
        }
    }

    fn report(&mut self, lane: u16, pending: Pending<W>, reason: Reason, may_have_run: bool) {
        self.counters.failures += 1;
        self.events.push_back(ClientEvent::Failed {
            id: CallId {
                lane,
                serial: pending.serial,
            },
            waiter: pending.waiter,
            failure: Failure {
                reason,
                may_have_run,
            },
        });
    }

    // ---- Conversations ----

    /// Asks for a conversation.
    #[cold]
    fn greet(&mut self, now: Instant) {
        let mut name = SipHasher24::new_with_key(&self.key);
        name.write(&self.counters.conversations.to_be_bytes());
        self.counters.conversations += 1;
        self.link = Link::Greeting(Greeting {
            conversation: name.finish(),
            sent: 0,
            sent_at: now,
            began_at: now,
            timer: now,
        });
    }

    #[cold]
    fn handle_welcome(
        &mut self,
        now: Instant,
        header: &Header,
        body: &[u8],
    ) -> Result<(), Ignored> {
        let Link::Greeting(greeting) = &self.link else {
            return Err(Ignored::Stale);
        };
        if header.conversation != greeting.conversation {
            return Err(Ignored::Stale);
        }
        let welcome = Welcome::get(body)?;
        if header.sequence == greeting.sent {
            let trip = now.saturating_duration_since(greeting.sent_at);
            self.round_trip.measure(trip);
        }
        let theirs = welcome.facts.preamble;
        let ours = self.own.preamble.versions;
        let reason = match (theirs.refusal, ours.common(theirs.versions)) {
            (Some(reason), _) => Some(reason),
            (None, None) => Some(RefusalReason::VERSION),
            (None, Some(_)) if theirs.calls_max < CALLS_MIN => return Err(Ignored::Malformed),
            (None, Some(_)) => None,
        };
        if let Some(reason) = reason {
            let theirs = theirs.versions;
            self.be_refused(Refused {
                reason,
                theirs,
                ours,
            });
            return Ok(());
        }
        self.open(greeting_of(&welcome, greeting.conversation, &self.own));
        self.peer = Some(theirs);
        self.prepare_all(&theirs);
        Ok(())
    }

    fn open(&mut self, open: Open) {
        self.link = Link::Open(open);
        self.congestion = Congestion::new();
    }

    fn be_refused(&mut self, refused: Refused) {
        self.link = Link::Idle;
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.fail(number as u16, Reason::Refused(refused));
            }
        }
    }

    /// Sends what waited for the conversation.
    fn prepare_all(&mut self, theirs: &Preamble) {
        for number in 0..self.lanes.len() {
            let lane = &self.lanes[number];
            if !lane.is_calling() {
                continue;
            }
            let size = lane.sending.bytes();
            let limit = theirs.message_max as usize;
            let number = number as u16;
            if u32::from(number) >= theirs.calls_max {
                self.fail(number, Reason::Overloaded);
            } else if size > limit {
                self.fail(number, Reason::TooLarge { size, limit });
            } else {
                self.prepare(number);
            }
        }
    }

    /// The server does not know the conversation. It would know one that it has heard of within the
    /// time that it says: calls that are younger were not carried out.
    #[cold]
    fn handle_reset(&mut self, now: Instant, header: &Header) -> Result<(), Ignored> {
        let lane = self.lane_of(header)?;
        if !matches!(lane.stage, Stage::Calling(_) | Stage::GivenUp) {
            return Err(Ignored::Stale);
        }
        let memory = Duration::from_millis(header.fragments.into());
        let was_restarted = match &self.link {
            Link::Open(open) => open.incarnation != header.fragment,
            Link::Idle | Link::Greeting(_) => return Err(Ignored::Stale),
        };
        self.renew(now, memory, Reason::Forgotten { was_restarted });
        Ok(())
    }

    /// Begins another conversation. Calls that may have been carried out fail.
    fn renew(&mut self, now: Instant, memory: Duration, reason: Reason) {
        self.link = Link::Idle;
        for binding in &mut self.bindings {
            binding.state = BindingState::Asked;
        }
        let mut goes_on = false;
        for number in 0..self.lanes.len() {
            let lane = &mut self.lanes[number];
            let number = number as u16;
            match &lane.stage {
                Stage::Free => lane.rest(),
                Stage::GivenUp => {
                    self.end(number);
                }
                Stage::Calling(_) if lane.may_have_run(now, memory) => self.fail(number, reason),
                Stage::Calling(_) => {
                    self.bytes -= lane.assembly.bytes();
                    lane.begin_anew();
                    goes_on = true;
                }
            }
        }
        self.ready.clear();
        for lane in &mut self.lanes {
            lane.is_ready = false;
        }
        self.congestion = Congestion::new();
        if goes_on {
            self.greet(now);
        }
    }

    // ---- What comes ----

    #[inline]
    fn handle<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let (header, body) = decode(datagram)?;
        match header.kind {
            PacketKind::Reply => self.handle_fragment(now, &header, body, taken),
            PacketKind::Ack => self.handle_ack(now, &header, body).map(|()| None),
            PacketKind::Reset => self.handle_reset(now, &header).map(|()| None),
            PacketKind::Welcome => self.handle_welcome(now, &header, body).map(|()| None),
            PacketKind::Hello | PacketKind::Call | PacketKind::Probe | PacketKind::Cancel => {
                Err(Ignored::WrongEnd)
            }
        }
    }

    /// The lane of a packet of the conversation that there is, if it carries the packet's call.
    #[inline]
    fn lane_of(&mut self, header: &Header) -> Result<&mut Lane<W>, Ignored> {
        match &self.link {
            Link::Open(open) if open.conversation == header.conversation => {}
            Link::Open(_) | Link::Idle | Link::Greeting(_) => return Err(Ignored::Stale),
        }
        match self.lanes.get_mut(usize::from(header.lane)) {
            Some(lane) if lane.sequence == header.sequence => Ok(lane),
            Some(_) | None => Err(Ignored::Stale),
        }
    }

    /// The server knows the conversation: from now on packets need no opening.
    #[inline]
    fn confirm(&mut self) {
        if let Link::Open(open) = &mut self.link
            && open.opening.is_some()
        {
            open.opening = None;
        }
    }

    fn learn(&mut self, now: Instant, learnt: &Learnt, held: Option<Duration>) {
        if let (Some(trip), Some(held)) = (learnt.trip, held) {
            self.round_trip.measure(trip.saturating_sub(held));
        }
        if let Some(sent_at) = learnt.arrived.sent_at {
            self.congestion.arrived(learnt.arrived.count, sent_at);
        }
        if let Some(sent_at) = learnt.lost.sent_at {
            self.congestion.lost(learnt.lost.count, sent_at, now);
        }
        self.wake();
    }

    fn handle_ack(&mut self, now: Instant, header: &Header, body: &[u8]) -> Result<(), Ignored> {
        let arrived = Arrived::get(header.fragment, body)?;
        let progress = Progress::of(header.detail)?;
        let lane = self.lane_of(header)?;
        let is_calling = match lane.stage {
            Stage::Free => return Err(Ignored::Stale),
            Stage::GivenUp => false,
            Stage::Calling(_) => true,
        };
        lane.heard();
        let learnt = match is_calling {
            true => lane.sending.handle_arrived(&arrived, now),
            false => Learnt::default(),
        };
        self.confirm();
        self.learn(now, &learnt, Some(Duration::ZERO));
        match (progress, is_calling) {
            (Progress::Receiving | Progress::Running, true) => self.go_on(now, header.lane),
            (Progress::Receiving | Progress::Running, false) => {}
            (Progress::Over | Progress::Overloaded | Progress::Malformed, false) => {
                self.end(header.lane);
            }
            (Progress::Over, true) => self.fail(header.lane, Reason::Lost),
            (Progress::Overloaded, true) => self.fail(header.lane, Reason::Overloaded),
            (Progress::Malformed, true) => self.fail(header.lane, Reason::Misunderstood),
        }
        Ok(())
    }

    /// The server has something of a call, or carries it out.
    fn go_on(&mut self, now: Instant, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        let wait = match lane.sending.has_all_arrived() {
            false => self.round_trip.wait(0, &mut self.chance),
            true => {
                lane.probes += 1;
                self.round_trip.probe(lane.probes, &mut self.chance)
            }
        };
        lane.timer = Some(now + wait);
        self.make_ready(number);
    }

    #[inline]
    fn handle_fragment<'d>(
        &mut self,
        now: Instant,
        header: &Header,
        body: &'d [u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let lane = self.lane_of(header)?;
        match lane.stage {
            Stage::Calling(_) => {}
            Stage::GivenUp => {
                // The server may not have heard; a single packet was all that it had to say.
                lane.heard();
                self.confirm();
                if header.fragments == 1 {
                    self.end(header.lane);
                }
                return Err(Ignored::Stale);
            }
            Stage::Free => {
                if header.has(ASKS) && lane.answer_count > 1 {
                    lane.owes_ack = true;
                    self.make_ready(header.lane);
                }
                return Err(Ignored::Repeated);
            }
        }
        lane.heard();
        let learnt = lane.sending.all_arrived(now);
        let held = match header.detail {
            HELD_LONG => None,
            held => Some(Duration::from_micros(held.into())),
        };
        self.confirm();
        self.learn(now, &learnt, held);
        let lane = &mut self.lanes[usize::from(header.lane)];
        if header.fragments == 1 && header.fragment == 0 && !lane.assembly.is_begun() {
            lane.answer_count = 1;
            let (lane, datagram) = (header.lane, Some(body));
            return Ok(Some(Complete { lane, datagram }));
        }
        self.assemble(now, header, body, taken)
    }

    fn assemble<'d>(
        &mut self,
        now: Instant,
        header: &Header,
        body: &[u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let lane = &mut self.lanes[usize::from(header.lane)];
        let wait = self.round_trip.wait(1, &mut self.chance);
        lane.timer = Some(now + wait);
        let before = lane.assembly.bytes();
        let fragment = match self.bytes + body.len() > self.limits.bytes {
            true => Err(NotTaken::TooLarge),
            false => lane.assembly.take(header.fragment, header.fragments, body),
        };
        self.bytes += lane.assembly.bytes() - before;
        match fragment {
            Ok(Taken::Whole) => {
                lane.answer_count = header.fragments;
                lane.owes_ack = true;
                self.bytes -= lane.assembly.bytes();
                lane.assembly.hand_over(taken);
                let (lane, datagram) = (header.lane, None);
                Ok(Some(Complete { lane, datagram }))
            }
            Ok(Taken::More(is_due)) => {
                if is_due || header.has(ASKS) {
                    lane.owes_ack = true;
                    self.make_ready(header.lane);
                }
                Ok(None)
            }
            Ok(Taken::Repeated) => {
                lane.owes_ack = true;
                self.make_ready(header.lane);
                Err(Ignored::Repeated)
            }
            Err(NotTaken::Malformed) => Err(Ignored::Malformed),
            Err(NotTaken::TooLarge) => {
                self.fail_and_tell(header.lane, Reason::AnswerTooLarge);
                Err(Ignored::Full)
            }
        }
    }

    /// Ends a call with its answer.
    #[inline]
    fn settle<'m>(&mut self, number: u16, answer: &'m [u8]) -> Option<Answer<'m, W>> {
        let lane = &mut self.lanes[usize::from(number)];
        let owes_ack = lane.owes_ack;
        let sequence = lane.sequence;
        let order = self.peer.map_or(ByteOrder::NATIVE, |peer| peer.order);
        let pending = self.end(number)?;
        if owes_ack {
            self.lanes[usize::from(number)].owes_ack = true;
            self.make_ready(number);
        }
        let called = (pending.service, pending.procedure);
        let understood = Answered::read(answer, order, sequence, called)
            .and_then(|answered| self.understand(called.0, &answered));
        let (extensions, outcome) = match understood {
            Ok(understood) => understood,
            Err(violation) => {
                self.report(number, pending, Reason::Violation(violation), true);
                return None;
            }
        };
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(_) => self.counters.exceptions += 1,
        }
        Some(Answer {
            id: CallId {
                lane: number,
                serial: pending.serial,
            },
            waiter: pending.waiter,
            order,
            extensions,
            outcome,
        })
    }

    #[inline]
    fn understand<'m>(
        &mut self,
        service: u16,
        answered: &Answered<'m>,
    ) -> Result<Understood<'m>, crate::lean::Violation> {
        let mut refused = None;
        if let Some(message) = &answered.binding {
            refused = self.handle_binding(service, message)?;
        }
        let parts = answered.answer.understood()?;
        let outcome = match (answered.answer.header.kind, refused) {
            (Kind::Reply, _) => Ok(parts.body),
            (_, Some(refusal)) => Err(ReplyError::Unbound(refusal)),
            (_, None) => Err(ReplyError::Exception(
                answered.answer.read(Exception::decode)?,
            )),
        };
        Ok((parts.extensions, outcome))
    }

    #[cold]
    fn handle_binding(
        &mut self,
        service: u16,
        message: &crate::lean::Message<'_>,
    ) -> Result<Option<Arc<BindRefusal>>, crate::lean::Violation> {
        let Some(binding) = self.bindings.get_mut(usize::from(service)) else {
            return Ok(None);
        };
        if message.header.kind == Kind::Bound {
            message.read(|input| input.u64())?;
            binding.state = BindingState::Bound;
            return Ok(None);
        }
        let refusal = Arc::new(BindRefusal::decode(message, &binding.interface)?);
        binding.state = BindingState::Refused(Arc::clone(&refusal));
        Ok(Some(refusal))
    }

    // ---- Packets ----

    #[inline]
    fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> bool {
        if matches!(self.link, Link::Greeting(_)) {
            return self.transmit_hello(now, out);
        }
        while let Some(number) = self.ready.pop_front() {
            self.lanes[usize::from(number)].is_ready = false;
            if self.transmit(number, now, out) {
                if self.lanes[usize::from(number)].has_more() {
                    self.make_ready(number);
                }
                return true;
            }
        }
        false
    }

    #[cold]
    fn transmit_hello(&mut self, now: Instant, out: &mut Buffer) -> bool {
        let Link::Greeting(greeting) = &mut self.link else {
            return false;
        };
        if greeting.timer > now {
            return false;
        }
        let wait = self.round_trip.wait(greeting.sent, &mut self.chance);
        greeting.sent += 1;
        greeting.sent_at = now;
        greeting.timer = now + wait;
        let header = Header::plain(PacketKind::Hello, greeting.conversation, 0, greeting.sent);
        let own = self.own;
        Prototype::new(greeting.conversation).put(out, &header, |out| own.put_hello(out));
        true
    }

    /// Appends what a lane has to send next, if it has anything and may.
    #[inline]
    fn transmit(&mut self, number: u16, now: Instant, out: &mut Buffer) -> bool {
        let Link::Open(open) = &self.link else {
            return false;
        };
        let lane = &mut self.lanes[usize::from(number)];
        let plain = |kind| Header::plain(kind, open.conversation, number, lane.sequence);
        if lane.owes_ack {
            let header = plain(PacketKind::Ack);
            lane.put_ack(&open.prototype, header, out);
            return true;
        }
        let opens = match open.opening {
            Some(_) => OPENS,
            None => 0,
        };
        let put_opening = |out: &mut Buffer| {
            if let Some(opening) = &open.opening {
                opening.put(out);
            }
        };
        if lane.owes_cancel || lane.owes_probe {
            let kind = match std::mem::take(&mut lane.owes_cancel) {
                true => PacketKind::Cancel,
                false => PacketKind::Probe,
            };
            lane.owes_probe = false;
            let header = Header {
                flags: opens,
                ..Header::plain(kind, open.conversation, number, lane.sequence)
            };
            open.prototype.put(out, &header, put_opening);
            lane.asked(now);
            if kind == PacketKind::Cancel {
                let wait = self.round_trip.wait(lane.in_vain, &mut self.chance);
                lane.timer = Some(now + wait);
            }
            return true;
        }
        if !lane.is_calling() {
            return false;
        }
        let Some(fragment) = lane.sending.next_fragment() else {
            return false;
        };
        let is_retrying = std::mem::take(&mut lane.is_retrying);
        if !is_retrying && !self.congestion.has_room() {
            self.has_waiting = true;
            return false;
        }
        let is_repeated = lane.sending.is_repeated(fragment);
        let count = lane.sending.count();
        let is_pause = lane.sending.is_end(fragment) || self.congestion.is_last();
        let asks = match is_retrying || is_repeated || count > 1 && is_pause {
            true => ASKS,
            false => 0,
        };
        self.counters.repeated += u64::from(is_repeated);
        self.order += 1;
        if lane.sending.sent(fragment, self.order, now) {
            self.congestion.sent();
        }
        let header = Header {
            flags: opens | asks,
            fragment,
            fragments: count,
            ..Header::plain(PacketKind::Call, open.conversation, number, lane.sequence)
        };
        open.prototype.put(out, &header, |out| {
            put_opening(out);
            lane.sending.put(fragment, out);
        });
        lane.sent(now);
        let wait = self.round_trip.wait(lane.in_vain, &mut self.chance);
        lane.timer = Some(now + wait);
        true
    }

    // ---- Time ----

    fn poll_timeout(&self) -> Option<Instant> {
        let greeting = match &self.link {
            Link::Greeting(greeting) => Some(greeting.timer),
            Link::Idle | Link::Open(_) => None,
        };
        let lanes = self.lanes.iter().filter_map(Lane::next_timeout);
        lanes.chain(greeting).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        for number in 0..self.lanes.len() {
            self.handle_lane_timeout(now, number as u16);
        }
        self.handle_greeting_timeout(now);
    }

    fn handle_lane_timeout(&mut self, now: Instant, number: u16) {
        let lane = &self.lanes[usize::from(number)];
        if let Stage::Calling(pending) = &lane.stage
            && pending.deadline <= now
        {
            self.fail_and_tell(number, Reason::Expired);
            return;
        }
        if lane.timer.is_none_or(|timer| timer > now) {
            return;
        }
        let is_silent =
            lane.in_vain >= IN_VAIN_MIN && lane.is_unheard_for(now, self.limits.patience.silence);
        match (&lane.stage, is_silent) {
            (Stage::Free, _) => self.lanes[usize::from(number)].timer = None,
            (Stage::Calling(_) | Stage::GivenUp, true) => {
                self.renew(now, Duration::ZERO, Reason::Unreachable);
            }
            (Stage::Calling(_) | Stage::GivenUp, false) => self.ask_again(now, number),
        }
    }

    /// Nothing was heard of a call for long enough to ask, or to send something again.
    fn ask_again(&mut self, now: Instant, number: u16) {
        let lane = &mut self.lanes[usize::from(number)];
        lane.in_vain += 1;
        let wait = self.round_trip.wait(lane.in_vain, &mut self.chance);
        lane.timer = Some(now + wait);
        if matches!(lane.stage, Stage::GivenUp) {
            lane.owes_cancel = true;
        } else if lane.sending.has_all_arrived() {
            lane.owes_probe = true;
            lane.probes += 1;
            let wait = self.round_trip.probe(lane.probes, &mut self.chance);
            lane.timer = Some(now + wait);
        } else {
            let all = lane.in_vain > 1;
            let lost = lane.sending.send_again(all);
            match (all, lost.sent_at) {
                (true, Some(sent_at)) => self.congestion.starved(lost.count, sent_at, now),
                (false, _) | (true, None) => self.congestion.forget(lost.count),
            }
            lane.is_retrying = true;
            self.has_waiting = true;
        }
        self.make_ready(number);
        self.wake();
    }

    fn handle_greeting_timeout(&mut self, now: Instant) {
        let Link::Greeting(greeting) = &self.link else {
            return;
        };
        let is_wanted = self.lanes.iter().any(Lane::is_calling);
        let asked_for = now.saturating_duration_since(greeting.began_at);
        let is_silent = greeting.sent > IN_VAIN_MIN && asked_for >= self.limits.patience.silence;
        if is_wanted && !is_silent {
            return;
        }
        self.link = Link::Idle;
        for number in 0..self.lanes.len() {
            if self.lanes[number].is_calling() {
                self.fail(number as u16, Reason::Unreachable);
            }
        }
    }
}

type Understood<'m> = (Extensions<'m>, Result<&'m [u8], ReplyError<'m>>);

fn greeting_of(welcome: &Welcome, conversation: u64, own: &Facts) -> Open {
    let datagram = datagram_max(
        own.datagram_max as usize,
        welcome.facts.datagram_max as usize,
    );
    Open {
        conversation,
        prototype: Prototype::new(conversation),
        opening: Some(Opening {
            cookie: welcome.cookie,
            facts: *own,
        }),
        room: datagram - PACKET_HEADER,
        incarnation: welcome.incarnation,
    }
}

/// Gives a call its number and its service.
fn stamp(message: &mut Buffer, order: ByteOrder, sequence: u32, service: u16) {
    let place = &mut message.as_mut_slice()[4..10];
    place[..4].copy_from_slice(&order.bytes_of_u32(sequence));
    place[4..].copy_from_slice(&order.bytes_of_u16(service));
}
