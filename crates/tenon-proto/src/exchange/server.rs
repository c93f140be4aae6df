//! The server's side: all conversations of all clients of one socket.
//!
//! What a datagram means is found out by [`handle_datagram`](ServerEngine::handle_datagram), what is
//! to be sent is asked for with [`poll_transmit`](ServerEngine::poll_transmit) until there is nothing.
//! A call that is handed out is carried out by its owner, in any order and at any time, and answered
//! with [`reply`](ServerEngine::reply).

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use super::ack::{Arrived, Progress};
use super::assembly::{Assembly, NotTaken, Taken, whole};
use super::content::{Asked, Question};
use super::conversation::{Conversation, Lane, Limited, Stage};
use super::cookie::Cookies;
use super::opening::{Facts, Opening, Welcome};
use super::packet::{
    ASKS, Header, Ignored, IgnoredCounters, OPENS, PACKET_HEADER, PacketKind, Prototype, decode,
};
use super::time::{Chance, Patience};
use super::{PREFIX_MAX, datagram_max};
use crate::lean::server::{Call, Caller, Catalog, Reply};
use crate::lean::{Exception, Preamble, RefusalReason, Status};
use crate::storage::Storage;

/// Answers to strangers that wait to be sent; what is more is dropped.
const STRAY_MAX: usize = 256;

/// The address of a peer.
pub trait Address: Copy + Eq + Hash + Debug {
    /// What conversations are counted by: the host, or as much of its address as it cannot choose.
    #[must_use]
    fn host(&self) -> Self;
}

impl Address for SocketAddr {
    fn host(&self) -> Self {
        let ip = match self.ip() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        };
        Self::new(ip, 0)
    }
}

/// What a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of the largest datagram that it sends and takes in.
    pub datagram_max: usize,
    /// Conversations that are known at once.
    pub conversations: usize,
    /// Conversations of one host.
    pub conversations_of_host: usize,
    /// Bytes of requests and answers of one conversation that are kept.
    pub bytes_of_conversation: usize,
    /// The same of all conversations.
    pub bytes: usize,
    /// For how long a conversation is known behind its last packet.
    pub retention: Duration,
    /// For how long a cookie is one.
    pub cookie: Duration,
    /// How long to wait.
    pub patience: Patience,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            datagram_max: super::DATAGRAM_DEFAULT,
            conversations: 4096,
            conversations_of_host: 512,
            bytes_of_conversation: 160 << 20,
            bytes: 512 << 20,
            retention: Duration::from_secs(60),
            cookie: Duration::from_secs(10),
            patience: Patience::default(),
        }
    }
}

/// What nobody may foresee, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ServerSecrets {
    /// The key of the cookies.
    pub key: [u8; 16],
    /// Tells this run of the server from others.
    pub incarnation: u32,
    /// For what is done by chance.
    pub seed: u64,
}

/// Which call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallKey {
    conversation: u64,
    lane: u16,
    sequence: u32,
}

/// A call for a service.
#[derive(Debug)]
pub struct Request<'m> {
    /// What [`reply`](ServerEngine::reply) wants to know.
    pub key: CallKey,
    /// The call.
    pub call: Call<'m>,
}

/// What happened to a call that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nobody waits for it any more. It is to be answered all the same, by anything.
    Cancelled(CallKey),
}

/// What a server has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Calls handed to a service.
    pub calls: u64,
    /// Calls of procedure 0.
    pub pings: u64,
    /// Calls refused before a service saw them.
    pub refusals: u64,
    /// Conversations begun.
    pub conversations: u64,
    /// Conversations forgotten.
    pub forgotten: u64,
    /// Answers that were sent again.
    pub repeated: u64,
    /// Datagrams that were dropped.
    pub ignored: IgnoredCounters,
}

/// All conversations of all clients of one socket.
#[derive(Debug)]
pub struct ServerEngine<A> {
    core: Core<A>,
    /// The request that was handed out last, if it came in several fragments.
    whole: Storage,
}

#[derive(Debug)]
struct Core<A> {
    own: Facts,
    limits: ServerLimits,
    cookies: Cookies,
    incarnation: u32,
    started: Instant,
    conversations: HashMap<u64, Conversation<A>>,
    hosts: HashMap<A, usize>,
    /// Calls that have something to send.
    ready: VecDeque<(u64, u16)>,
    /// Calls whose answers wait to be acknowledged.
    timed: Vec<(u64, u16)>,
    stray: VecDeque<Stray<A>>,
    events: VecDeque<ServerEvent>,
    scratch: Buffer,
    bytes: usize,
    sweep_at: Instant,
    /// Packets sent.
    order: u64,
    chance: Chance,
    is_closed: bool,
    counters: ServerCounters,
}

/// An answer to somebody without a conversation.
#[derive(Debug)]
struct Stray<A> {
    to: A,
    header: Header,
    welcome: Option<Welcome>,
}

/// A request that is whole: where it is.
#[derive(Debug)]
struct Complete<'d> {
    key: CallKey,
    /// None: in what was assembled.
    datagram: Option<&'d [u8]>,
}

impl<A: Address> ServerEngine<A> {
    /// A server that starts at `now`. `preamble` says what it is; the calls in flight that it grants
    /// hold for each conversation.
    pub fn new(
        preamble: Preamble,
        limits: ServerLimits,
        secrets: ServerSecrets,
        now: Instant,
    ) -> Self {
        let bytes_max = preamble.message_max as usize + PREFIX_MAX;
        Self {
            core: Core {
                own: Facts {
                    preamble,
                    datagram_max: datagram_max(limits.datagram_max, usize::MAX) as u32,
                },
                limits,
                cookies: Cookies::new(secrets.key, now, limits.cookie),
                incarnation: secrets.incarnation,
                started: now,
                conversations: HashMap::new(),
                hosts: HashMap::new(),
                ready: VecDeque::new(),
                timed: Vec::new(),
                stray: VecDeque::new(),
                events: VecDeque::new(),
                scratch: Buffer::default(),
                bytes: 0,
                sweep_at: now + limits.retention / 4,
                order: 0,
                chance: Chance(secrets.seed),
                is_closed: false,
                counters: ServerCounters::default(),
            },
            whole: Assembly::receiver(bytes_max),
        }
    }

    /// Takes in a datagram; the call, if that makes one whole. It stays where it is until the next
    /// datagram. The arguments are at a multiple of 8 in memory if the datagram is.
    #[inline]
    pub fn handle_datagram<'d>(
        &'d mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        catalog: &Catalog,
    ) -> Option<Request<'d>> {
        let Self { core, whole: taken } = self;
        match core.handle(now, from, datagram, taken) {
            Ok(None) => None,
            Ok(Some(complete)) => {
                let message = complete.datagram.unwrap_or_else(|| whole(taken));
                core.judge(complete.key, message, catalog)
            }
            Err(ignored) => {
                core.counters.ignored.count(ignored);
                None
            }
        }
    }

    /// Answers a call: `message` is what [`Reply`] has written, from its beginning. An empty buffer is
    /// given back for it. False if nobody waits for the answer.
    pub fn reply(&mut self, key: CallKey, message: &mut Buffer) -> bool {
        self.core.reply(key, message)
    }

    /// Appends the next datagram that is to be sent, and says to whom.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        self.core.poll_transmit(now, out)
    }

    /// What happened to calls that were handed out.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
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

    /// Takes no conversations and no calls any more; what was taken is still answered.
    pub fn close(&mut self) {
        self.core.is_closed = true;
    }

    /// Conversations that are known.
    pub fn conversations(&self) -> usize {
        self.core.conversations.len()
    }

    /// Bytes of requests and answers that are kept.
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ServerCounters {
        self.core.counters
    }
}

impl<A: Address> Core<A> {
    fn handle<'d>(
        &mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let (header, body) = decode(datagram)?;
        match header.kind {
            PacketKind::Hello => self.handle_hello(now, from, &header, body).map(|()| None),
            PacketKind::Call | PacketKind::Probe | PacketKind::Cancel | PacketKind::Ack => {
                let body = self.find_conversation(now, from, &header, body)?;
                self.handle_of_call(now, &header, body, taken)
            }
            PacketKind::Welcome | PacketKind::Reply | PacketKind::Reset => Err(Ignored::WrongEnd),
        }
    }

    // ---- Conversations ----

    #[cold]
    fn handle_hello(
        &mut self,
        now: Instant,
        from: A,
        header: &Header,
        body: &[u8],
    ) -> Result<(), Ignored> {
        let theirs = Facts::of_hello(body)?.preamble;
        let ours = self.own.preamble;
        let reason = match ours.versions.common(theirs.versions) {
            _ if self.is_closed => Some(RefusalReason::STOPPING),
            _ if theirs.refusal.is_some() => return Err(Ignored::Malformed),
            None => Some(RefusalReason::VERSION),
            Some(_) if !self.has_room(from) => Some(RefusalReason::BUSY),
            Some(_) => None,
        };
        let preamble = reason.map_or(ours, |reason| ours.refusing(reason));
        let retention = self.limits.retention.as_millis();
        let welcome = Welcome {
            facts: Facts {
                preamble,
                ..self.own
            },
            incarnation: self.incarnation,
            cookie: self.cookies.give(now, &from),
            retention_ms: u32::try_from(retention).unwrap_or(u32::MAX),
        };
        let header = Header::plain(PacketKind::Welcome, header.conversation, 0, header.sequence);
        self.answer_stray(from, header, Some(welcome));
        Ok(())
    }

    fn has_room(&self, from: A) -> bool {
        let of_host = self.hosts.get(&from.host()).copied().unwrap_or(0);
        self.conversations.len() < self.limits.conversations
            && of_host < self.limits.conversations_of_host
    }

    fn answer_stray(&mut self, to: A, header: Header, welcome: Option<Welcome>) {
        if self.stray.len() < STRAY_MAX {
            self.stray.push_back(Stray {
                to,
                header,
                welcome,
            });
        }
    }

    /// Finds the conversation of a packet, or begins it; what is left of the packet's body.
    #[inline]
    fn find_conversation<'d>(
        &mut self,
        now: Instant,
        from: A,
        header: &Header,
        body: &'d [u8],
    ) -> Result<&'d [u8], Ignored> {
        match self.conversations.get_mut(&header.conversation) {
            Some(conversation) if conversation.peer == from => {
                conversation.heard_at = now;
                match header.has(OPENS) {
                    false => Ok(body),
                    true => Opening::get(body).map(|(_, rest)| rest),
                }
            }
            Some(_) => {
                self.reset(now, from, header, true);
                Err(Ignored::OtherAddress)
            }
            None => self.open_conversation(now, from, header, body),
        }
    }

    #[cold]
    fn open_conversation<'d>(
        &mut self,
        now: Instant,
        from: A,
        header: &Header,
        body: &'d [u8],
    ) -> Result<&'d [u8], Ignored> {
        if !header.has(OPENS) {
            self.reset(now, from, header, false);
            return Err(Ignored::Stale);
        }
        let (opening, rest) = Opening::get(body)?;
        let Some(expiry) = self.cookies.expiry(now, &from, &opening.cookie) else {
            self.reset(now, from, header, false);
            return Err(Ignored::Stale);
        };
        // Nobody is told: the same packet may come again, and find room.
        if !self.has_room(from) || self.is_closed {
            return Err(Ignored::Full);
        }
        let datagram = datagram_max(
            self.own.datagram_max as usize,
            opening.facts.datagram_max as usize,
        );
        let conversation = Conversation::new(
            header.conversation,
            from,
            expiry,
            opening.facts.preamble,
            datagram - PACKET_HEADER,
            self.limits.patience,
            now,
        );
        self.conversations.insert(header.conversation, conversation);
        *self.hosts.entry(from.host()).or_insert(0) += 1;
        self.counters.conversations += 1;
        Ok(rest)
    }

    /// Says that a conversation is not known, and for how long it would have been.
    #[cold]
    fn reset(&mut self, now: Instant, to: A, header: &Header, is_of_other: bool) {
        if header.kind == PacketKind::Ack {
            return;
        }
        let up = now.saturating_duration_since(self.started);
        let memory = match is_of_other {
            true => 0,
            false => up.min(self.limits.retention).as_millis(),
        };
        let reset = Header {
            fragment: self.incarnation,
            fragments: u32::try_from(memory).unwrap_or(u32::MAX),
            ..Header::plain(
                PacketKind::Reset,
                header.conversation,
                header.lane,
                header.sequence,
            )
        };
        self.answer_stray(to, reset, None);
    }

    // ---- Calls ----

    #[inline]
    fn handle_of_call<'d>(
        &mut self,
        now: Instant,
        header: &Header,
        body: &'d [u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let lanes_max = self.own.preamble.calls_max;
        let bytes_max = self.own.preamble.message_max as usize + PREFIX_MAX;
        if u32::from(header.lane) >= lanes_max {
            return Err(Ignored::Malformed);
        }
        let Some(conversation) = self.conversations.get_mut(&header.conversation) else {
            return Err(Ignored::Stale);
        };
        let (index, is_new) = conversation.lane_for(header, bytes_max, now)?;
        if is_new {
            conversation.begin_call(index, header.sequence, now);
            self.charge(header.conversation, index);
            self.wake(header.conversation);
        }
        match header.kind {
            PacketKind::Call => self.handle_fragment(now, header, index, body, taken),
            PacketKind::Ack => self.handle_ack(now, header, index, body).map(|()| None),
            PacketKind::Probe => {
                self.handle_probe(header, index);
                Ok(None)
            }
            PacketKind::Cancel => self.handle_cancel(header, index).map(|()| None),
            PacketKind::Hello | PacketKind::Welcome | PacketKind::Reply | PacketKind::Reset => {
                Err(Ignored::WrongEnd)
            }
        }
    }

    #[inline]
    fn handle_fragment<'d>(
        &mut self,
        now: Instant,
        header: &Header,
        index: usize,
        body: &'d [u8],
        taken: &mut Storage,
    ) -> Result<Option<Complete<'d>>, Ignored> {
        let lane = self.lane(header.conversation, index)?;
        if !matches!(lane.stage, Stage::Receiving) {
            self.repeat(header, index);
            return Err(Ignored::Repeated);
        }
        lane.received_at = now;
        let key = CallKey {
            conversation: header.conversation,
            lane: header.lane,
            sequence: header.sequence,
        };
        if header.fragments == 1 && header.fragment == 0 && !lane.assembly.is_begun() {
            lane.begin_running(1);
            let datagram = Some(body);
            return Ok(Some(Complete { key, datagram }));
        }
        match self.assemble(header, index, body)? {
            Taken::Whole => {}
            Taken::More(is_due) => {
                if is_due || header.has(ASKS) {
                    self.owe_ack(header, index);
                }
                return Ok(None);
            }
            Taken::Repeated => {
                self.owe_ack(header, index);
                return Err(Ignored::Repeated);
            }
        }
        let lane = self.lane(header.conversation, index)?;
        let count = lane.assembly.count();
        lane.assembly.hand_over(taken);
        lane.begin_running(count);
        self.charge(header.conversation, index);
        self.owe_ack(header, index);
        let datagram = None;
        Ok(Some(Complete { key, datagram }))
    }

    fn assemble(&mut self, header: &Header, index: usize, body: &[u8]) -> Result<Taken, Ignored> {
        let total = self.bytes + body.len();
        let Some(conversation) = self.conversations.get_mut(&header.conversation) else {
            return Err(Ignored::Stale);
        };
        let of_conversation = conversation.bytes + body.len();
        let is_full =
            total > self.limits.bytes || of_conversation > self.limits.bytes_of_conversation;
        let lane = &mut conversation.lanes[index];
        let taken = match is_full {
            true => Err(NotTaken::TooLarge),
            false => lane.assembly.take(header.fragment, header.fragments, body),
        };
        let taken = match taken {
            Ok(taken) => Ok(taken),
            Err(NotTaken::Malformed) => Err(Ignored::Malformed),
            Err(NotTaken::TooLarge) => {
                lane.end(Progress::Overloaded);
                self.counters.refusals += 1;
                self.owe_ack(header, index);
                Err(Ignored::Full)
            }
        };
        self.charge(header.conversation, index);
        taken
    }

    /// A packet of a call comes again, or its client asks: it hears what becomes of it.
    fn repeat(&mut self, header: &Header, index: usize) {
        if !header.has(ASKS) {
            return;
        }
        match self.lane(header.conversation, index) {
            Ok(lane) if matches!(lane.stage, Stage::Answered) => {
                self.answer_again(header, index);
            }
            Ok(_) => self.owe_ack(header, index),
            Err(_) => {}
        }
    }

    fn answer_again(&mut self, header: &Header, index: usize) {
        let Ok(lane) = self.lane(header.conversation, index) else {
            return;
        };
        match lane.sending.count() {
            1 => lane.owes_answer = true,
            _ => {
                // The client is there: go on, if it was given up.
                lane.in_vain = 0;
                lane.owes_ack = true;
            }
        }
        self.counters.repeated += 1;
        self.wait_for(header.conversation, index);
        self.make_ready(header.conversation, header.lane);
    }

    fn handle_probe(&mut self, header: &Header, index: usize) {
        let asking = Header {
            flags: ASKS,
            ..*header
        };
        self.repeat(&asking, index);
    }

    fn handle_cancel(&mut self, header: &Header, index: usize) -> Result<(), Ignored> {
        let Some(conversation) = self.conversations.get_mut(&header.conversation) else {
            return Err(Ignored::Stale);
        };
        let lane = &mut conversation.lanes[index];
        match lane.stage {
            Stage::Running => {
                lane.stage = Stage::Cancelled;
                self.events.push_back(ServerEvent::Cancelled(CallKey {
                    conversation: header.conversation,
                    lane: header.lane,
                    sequence: header.sequence,
                }));
            }
            Stage::Receiving | Stage::Answered => {
                conversation.end_call(index, Progress::Over);
            }
            Stage::Cancelled | Stage::Over(_) => {}
        }
        self.charge(header.conversation, index);
        self.owe_ack(header, index);
        self.wake(header.conversation);
        Ok(())
    }

    /// The client says what it has of an answer.
    fn handle_ack(
        &mut self,
        now: Instant,
        header: &Header,
        index: usize,
        body: &[u8],
    ) -> Result<(), Ignored> {
        let arrived = Arrived::get(header.fragment, body)?;
        let Some(conversation) = self.conversations.get_mut(&header.conversation) else {
            return Err(Ignored::Stale);
        };
        let is_awaited = matches!(conversation.lanes[index].stage, Stage::Answered);
        if !is_awaited || conversation.lanes[index].sending.count() <= 1 {
            return Err(Ignored::Repeated);
        }
        conversation.handle_arrived(index, &arrived, now, &mut self.chance);
        self.charge(header.conversation, index);
        self.make_ready(header.conversation, header.lane);
        self.wake(header.conversation);
        Ok(())
    }

    fn lane(&mut self, conversation: u64, index: usize) -> Result<&mut Lane, Ignored> {
        let conversation = self.conversations.get_mut(&conversation);
        let lane = conversation.and_then(|conversation| conversation.lanes.get_mut(index));
        lane.ok_or(Ignored::Stale)
    }

    fn owe_ack(&mut self, header: &Header, index: usize) {
        if let Ok(lane) = self.lane(header.conversation, index) {
            lane.owes_ack = true;
        }
        self.make_ready(header.conversation, header.lane);
    }

    fn make_ready(&mut self, conversation: u64, lane: u16) {
        let Some(found) = self.conversations.get_mut(&conversation) else {
            return;
        };
        if let Some(lane) = found.lane_mut(lane)
            && !std::mem::replace(&mut lane.is_ready, true)
        {
            self.ready.push_back((conversation, lane.number));
        }
    }

    /// Lanes that waited for room in the window of their conversation.
    fn wake(&mut self, id: u64) {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return;
        };
        if conversation.congestion.has_room() && std::mem::take(&mut conversation.has_waiting) {
            for lane in &mut conversation.lanes {
                let waits = matches!(lane.stage, Stage::Answered) && lane.sending.count() > 1;
                if waits && !std::mem::replace(&mut lane.is_ready, true) {
                    self.ready.push_back((id, lane.number));
                }
            }
        }
    }

    /// Counts anew what a call keeps.
    fn charge(&mut self, conversation: u64, index: usize) {
        let Some(conversation) = self.conversations.get_mut(&conversation) else {
            return;
        };
        let lane = &mut conversation.lanes[index];
        let bytes = lane.assembly.bytes() + lane.sending.bytes();
        let before = std::mem::replace(&mut lane.charged, bytes);
        conversation.bytes = conversation.bytes - before + bytes;
        self.bytes = self.bytes - before + bytes;
    }

    // ---- Requests ----

    #[inline]
    fn judge<'m>(
        &mut self,
        key: CallKey,
        message: &'m [u8],
        catalog: &Catalog,
    ) -> Option<Request<'m>> {
        let conversation = self.conversations.get_mut(&key.conversation)?;
        let index = conversation.index_of(key.lane)?;
        let asked = Question::read(message, conversation.client.order, key.sequence);
        let question = match asked {
            Ok(question) => question,
            Err(_) => {
                conversation.lanes[index].end(Progress::Malformed);
                self.counters.refusals += 1;
                self.counters.ignored.count(Ignored::Malformed);
                self.make_owing(key);
                return None;
            }
        };
        let caller = Caller::new(
            &question.call.header,
            self.own.preamble.order,
            conversation.client.message_max,
        );
        conversation.lanes[index].caller = Some(caller);
        if let Some(bind) = &question.bind {
            let number = question.call.header.service;
            let found = catalog.find(bind);
            if let Err(unbound) = found.and_then(|found| conversation.bind(index, number, found)) {
                self.scratch.clear();
                unbound.encode(&mut self.scratch, self.own.preamble.order, number);
                return self.refuse(key, caller, &Exception::new(Status::UNBOUND, ""));
            }
        }
        let service = conversation.service(question.call.header.service);
        self.scratch.clear();
        match question.judge(service, self.is_closed) {
            Asked::Call { service, parts } => {
                self.counters.calls += 1;
                let call = Call {
                    service,
                    procedure: question.call.header.procedure,
                    time_left: parts.time_left,
                    extensions: parts.extensions,
                    wants_stamps: false,
                    found_at: 0,
                    order: question.call.order,
                    arguments: parts.body,
                    caller,
                };
                Some(Request { key, call })
            }
            Asked::Ping => {
                self.counters.pings += 1;
                Reply::begin(&mut self.scratch, caller).seal(&mut self.scratch);
                self.answer_by_itself(key);
                None
            }
            Asked::Refused(exception) => self.refuse(key, caller, &exception),
        }
    }

    /// Answers a call with an exception, behind what is in `scratch`.
    #[cold]
    fn refuse<'m>(
        &mut self,
        key: CallKey,
        caller: Caller,
        exception: &Exception<'_>,
    ) -> Option<Request<'m>> {
        self.counters.refusals += 1;
        let reply = Reply::begin(&mut self.scratch, caller);
        reply
            .refuse(&mut self.scratch, exception)
            .seal(&mut self.scratch);
        self.answer_by_itself(key);
        None
    }

    fn make_owing(&mut self, key: CallKey) {
        let header = Header::plain(PacketKind::Ack, key.conversation, key.lane, key.sequence);
        let conversation = self.conversations.get(&key.conversation);
        let index = conversation.and_then(|conversation| conversation.index_of(key.lane));
        if let Some(index) = index {
            self.charge(key.conversation, index);
            self.owe_ack(&header, index);
        }
    }

    fn answer_by_itself(&mut self, key: CallKey) {
        let mut answer = std::mem::take(&mut self.scratch);
        self.send_answer(key, &mut answer);
        self.scratch = answer;
    }

    // ---- Answers ----

    fn reply(&mut self, key: CallKey, message: &mut Buffer) -> bool {
        let Some(conversation) = self.conversations.get_mut(&key.conversation) else {
            return false;
        };
        let Some(lane) = conversation.lane_mut(key.lane) else {
            return false;
        };
        if lane.sequence != key.sequence {
            return false;
        }
        match (lane.stage, lane.caller) {
            (Stage::Running, Some(caller)) => {
                let bytes = message.len();
                let is_full = self.bytes + bytes > self.limits.bytes
                    || conversation.bytes + bytes > self.limits.bytes_of_conversation;
                if is_full {
                    refuse_for_room(message, caller);
                }
                self.send_answer(key, message);
                true
            }
            (Stage::Cancelled, _) => {
                lane.end(Progress::Over);
                message.clear();
                self.make_owing(key);
                false
            }
            (Stage::Running | Stage::Receiving | Stage::Answered | Stage::Over(_), _) => false,
        }
    }

    fn send_answer(&mut self, key: CallKey, message: &mut Buffer) {
        let Some(conversation) = self.conversations.get_mut(&key.conversation) else {
            return;
        };
        let Some(index) = conversation.index_of(key.lane) else {
            return;
        };
        conversation.begin_answer(index, message, self.own.preamble.order);
        self.wait_for(key.conversation, index);
        self.charge(key.conversation, index);
        self.make_ready(key.conversation, key.lane);
    }

    /// Has an answer of several fragments sent again until it has arrived.
    fn wait_for(&mut self, id: u64, index: usize) {
        if let Ok(lane) = self.lane(id, index)
            && lane.sending.count() > 1
            && !std::mem::replace(&mut lane.is_timed, true)
        {
            let number = lane.number;
            self.timed.push((id, number));
        }
    }

    // ---- Packets ----

    #[inline]
    fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        if let Some(stray) = self.stray.pop_front() {
            let prototype = Prototype::new(stray.header.conversation);
            prototype.put(out, &stray.header, |out| {
                if let Some(welcome) = &stray.welcome {
                    welcome.put(out);
                }
            });
            return Some(stray.to);
        }
        loop {
            let (id, number) = self.ready.pop_front()?;
            let Some(conversation) = self.conversations.get_mut(&id) else {
                continue;
            };
            let Some(index) = conversation.index_of(number) else {
                continue;
            };
            conversation.lanes[index].is_ready = false;
            match conversation.transmit(index, now, &mut self.order, &mut self.chance, out) {
                None => {}
                Some(Limited::Done) => return Some(conversation.peer),
                Some(Limited::More) => {
                    let peer = conversation.peer;
                    self.make_ready(id, number);
                    return Some(peer);
                }
            }
        }
    }

    // ---- Time ----

    fn poll_timeout(&self) -> Option<Instant> {
        let timers = self.timed.iter().filter_map(|(id, number)| {
            let lane = self.conversations.get(id)?.lane(*number)?;
            lane.timer
        });
        let sweep = (!self.conversations.is_empty()).then_some(self.sweep_at);
        timers.chain(sweep).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        let mut timed = std::mem::take(&mut self.timed);
        timed.retain(|(id, number)| self.handle_lane_timeout(now, *id, *number));
        timed.append(&mut self.timed);
        self.timed = timed;
        if self.sweep_at <= now {
            self.sweep_at = now + self.limits.retention / 4;
            self.sweep(now);
        }
    }

    /// Whether the answer is still to be waited for.
    fn handle_lane_timeout(&mut self, now: Instant, id: u64, number: u16) -> bool {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return false;
        };
        let Some(index) = conversation.index_of(number) else {
            return false;
        };
        let lane = &mut conversation.lanes[index];
        let is_awaited = lane.stage == Stage::Answered && lane.sending.count() > 1;
        match lane.timer {
            _ if !is_awaited => {
                lane.is_timed = false;
                return false;
            }
            None => return true,
            Some(timer) if timer > now => return true,
            Some(_) => {}
        }
        let goes_on = conversation.send_again(index, now, &mut self.chance);
        conversation.lanes[index].is_timed = goes_on;
        if goes_on {
            self.make_ready(id, number);
        }
        self.wake(id);
        goes_on
    }

    /// Forgets conversations that nobody has used for long enough.
    fn sweep(&mut self, now: Instant) {
        let retention = self.limits.retention;
        let over = self.conversations.iter();
        let over = over.filter(|(_, conversation)| {
            now >= conversation.heard_at + retention && now >= conversation.cookie_expiry
        });
        let over: Vec<u64> = over.map(|(id, _)| *id).collect();
        for id in over {
            self.forget(id);
        }
        if self.conversations.is_empty() {
            self.ready.clear();
            self.timed.clear();
        }
    }

    fn forget(&mut self, id: u64) {
        let Some(conversation) = self.conversations.remove(&id) else {
            return;
        };
        self.bytes -= conversation.bytes;
        self.counters.forgotten += 1;
        let running = conversation.lanes.iter();
        let running = running.filter(|lane| matches!(lane.stage, Stage::Running));
        self.events.extend(running.map(|lane| {
            ServerEvent::Cancelled(CallKey {
                conversation: id,
                lane: lane.number,
                sequence: lane.sequence,
            })
        }));
        let host = conversation.peer.host();
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }
}

/// Puts an exception in the place of a result that there is no room for.
#[cold]
fn refuse_for_room(message: &mut Buffer, caller: Caller) {
    message.clear();
    let exception = Exception::new(Status::TOO_LARGE, "the server has no room for the result");
    let reply = Reply::begin(message, caller);
    reply.refuse(message, &exception).seal(message);
}
