//! The server's side: all conversations of all clients of one socket.
//!
//! [`handle_datagram`](ServerEngine::handle_datagram) takes in each datagram, and
//! [`poll_transmit`](ServerEngine::poll_transmit) is asked for what is to be sent until there is nothing. A call that
//! is handed out is carried out by its owner, in any order and at any time, and answered with
//! [`reply`](ServerEngine::reply).

mod calls;
mod closed_conversations;
mod closing;
mod conversation;
mod conversations;
mod greeting;
mod outgoing;
mod requests;
mod timers;

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use crate::connection::framing::ReceiveBuffer;
use crate::connection::{IncomingCall, ServiceTable};
use crate::endpoint::exchange::cookie::AddressValidator;
use crate::endpoint::exchange::datagram_max;
use crate::endpoint::exchange::opening::{TransportParameters, WelcomePacket};
use crate::endpoint::exchange::packet::{
    DropCounters, DropReason, PacketHeader, PacketKind, decode,
};
use crate::endpoint::exchange::reassembled::{ReassembledMessage, content_max};
use crate::endpoint::exchange::reassembly::{Reassembly, whole};
use crate::endpoint::exchange::spare::{KEPT_BY_SERVER, SpareBuffers};
use crate::endpoint::exchange::time::{RetransmitTimeouts, SplitMix64};
use crate::lean::{Metadata, Preamble};
pub(super) use closed_conversations::ClosedConversations;
use conversations::ConversationTable;

/// The address of a peer.
pub trait PeerAddress: Copy + Eq + Hash + Debug {
    /// Returns the address that conversations are counted by: the host, or as much of its address as it cannot choose.
    #[must_use]
    fn host(&self) -> Self;

    /// Returns whether only this machine has it, so that what it says comes from here.
    #[must_use]
    fn is_here(&self) -> bool {
        false
    }
}

impl PeerAddress for SocketAddr {
    fn host(&self) -> Self {
        // An IPv4 client of a socket that takes both has its address in the lower half of one of IPv6.
        let ip = match self.ip().to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        };
        Self::new(ip, 0)
    }

    fn is_here(&self) -> bool {
        self.ip().to_canonical().is_loopback()
    }
}

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of the largest datagram that it sends and takes in.
    pub datagram_max: usize,
    /// The same for clients at addresses of this machine.
    pub datagram_max_here: usize,
    /// Conversations that are known at once.
    pub conversations: usize,
    /// Conversations of one host. Where there is no room, here or in all, the conversation is forgotten that was not
    /// heard of for longest, if that was a second ago and no call of it is carried out.
    pub conversations_of_host: usize,
    /// Bytes of memory of requests and answers of one conversation. Those of a single packet, or of a few, are
    /// not counted: every call may have 4 KiB.
    pub bytes_of_conversation: usize,
    /// The same of all conversations of one host, if no other takes any. Of several each may have as much of what is
    /// free behind it as this is of what it leaves free of all: if it is half, no more than is free.
    pub bytes_of_host: usize,
    /// The same of all conversations.
    pub bytes: usize,
    /// The time for which a conversation is known behind its last packet.
    pub retention: Duration,
    /// The time for which a cookie is valid.
    pub cookie: Duration,
    /// Bytes of metadata that are accepted with a call.
    pub metadata_max: usize,
    /// Times to wait before something is sent again.
    pub patience: RetransmitTimeouts,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            datagram_max: super::DATAGRAM_DEFAULT,
            datagram_max_here: super::DATAGRAM_DEFAULT,
            conversations: 4096,
            conversations_of_host: 512,
            bytes_of_conversation: 160 << 20,
            bytes_of_host: 256 << 20,
            bytes: 512 << 20,
            retention: Duration::from_secs(60),
            cookie: Duration::from_secs(10),
            metadata_max: Metadata::ACCEPTED,
            patience: RetransmitTimeouts::default(),
        }
    }
}

/// Values that must be unpredictable, from the system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct ServerSecrets {
    /// The key of the cookies.
    pub key: [u8; 16],
    /// Tells this run of the server from others.
    pub incarnation: u32,
    /// For what is done by chance.
    pub seed: u64,
}

/// The identity of a call that is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallKey {
    conversation: u64,
    lane: u16,
    sequence: u32,
}

/// A call for a service.
#[derive(Debug)]
pub struct ExchangeRequest<'m> {
    /// The key for [`reply`](ServerEngine::reply).
    pub key: CallKey,
    /// The call. One of procedure 0 asks when it passed which place: the engine, which reads no clock, leaves the
    /// answer to its owner.
    pub call: IncomingCall<'m>,
}

/// An event of a call that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// Its client no longer waits for it. It is to be answered all the same, by anything.
    Cancelled(CallKey),
}

/// The clients that are told that a server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseRecipients {
    /// Clients without a call that is carried out, or answered in several packets.
    ToIdle,
    /// All of them: no call will be answered any more.
    ToAll,
}

/// Counters of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExchangeServerCounters {
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
    pub ignored: DropCounters,
}

/// All conversations of all clients of one socket.
#[derive(Debug)]
pub struct ServerEngine<A> {
    core: ServerCore<A>,
    /// The request that was handed out last, if it came in several fragments.
    whole: ReceiveBuffer,
}

#[derive(Debug)]
struct ServerCore<A> {
    preamble: Preamble,
    limits: ServerLimits,
    cookies: AddressValidator,
    incarnation: u32,
    started: Instant,
    conversations: ConversationTable<A>,
    hosts: HashMap<A, HostUsage>,
    /// Conversations that are over, until no packet that is under way can begin them again.
    over: Box<ClosedConversations>,
    /// The time at which the conversation was heard last that was heard latest of those that were forgotten for want of
    /// room.
    reclaimed_heard_at: Option<Instant>,
    /// The last search for room for a conversation of a host: the host, the time, and true if there was room.
    room_found: Option<(A, Instant, bool)>,
    /// Calls that have something to send.
    ready: VecDeque<(u64, u16)>,
    /// Calls with answers that wait to be acknowledged.
    timed: Vec<(u64, u16)>,
    /// No timer of those is earlier; it may be that none is as early, as answers have gone on since.
    next_due: Option<Instant>,
    stray: VecDeque<StatelessReply<A>>,
    /// Conversations of clients that are to be told that the server stops.
    leaving: Vec<u64>,
    /// The time at which the last of those was told, and forgotten.
    farewell_at: Option<Instant>,
    events: VecDeque<ServerEvent>,
    scratch: Buffer,
    spare: SpareBuffers,
    bytes: usize,
    sweep_at: Instant,
    /// Packets sent.
    order: u64,
    rng: SplitMix64,
    is_closed: bool,
    counters: ExchangeServerCounters,
}

/// The conversations and the memory of a host.
#[derive(Debug, Default)]
struct HostUsage {
    conversations: usize,
    bytes: usize,
}

/// An answer to a peer without a conversation.
#[derive(Debug)]
struct StatelessReply<A> {
    to: A,
    header: PacketHeader,
    welcome: Option<WelcomePacket>,
}

/// A request that is whole: where it is.
#[derive(Debug)]
struct CompleteRequest<'d> {
    key: CallKey,
    /// None: in what was assembled.
    datagram: Option<&'d [u8]>,
}

impl<A: PeerAddress> ServerEngine<A> {
    /// A server that starts at `now`. `preamble` says what it is; the calls in flight that it grants
    /// hold for each conversation.
    pub fn new(
        preamble: Preamble,
        limits: ServerLimits,
        secrets: ServerSecrets,
        now: Instant,
    ) -> Self {
        let bytes_max = content_max(&preamble);
        Self {
            core: ServerCore {
                preamble,
                limits,
                cookies: AddressValidator::new(secrets.key, now, limits.cookie),
                incarnation: secrets.incarnation,
                started: now,
                conversations: ConversationTable::default(),
                hosts: HashMap::new(),
                over: Box::default(),
                reclaimed_heard_at: None,
                room_found: None,
                ready: VecDeque::new(),
                timed: Vec::new(),
                next_due: None,
                stray: VecDeque::new(),
                leaving: Vec::new(),
                farewell_at: None,
                events: VecDeque::new(),
                scratch: Buffer::default(),
                spare: SpareBuffers::new(Reassembly::receiver(bytes_max), KEPT_BY_SERVER),
                bytes: 0,
                sweep_at: now + limits.retention / 4,
                order: 0,
                rng: SplitMix64(secrets.seed),
                is_closed: false,
                counters: ExchangeServerCounters::default(),
            },
            whole: Reassembly::receiver(bytes_max),
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
        services: &ServiceTable,
    ) -> Option<ExchangeRequest<'d>> {
        let Self { core, whole } = self;
        core.take_in(now, from, datagram, services, whole)
    }

    /// Does the same; a call that comes in several packets is put together outside of the engine, which may be used by
    /// others as long as the call is carried out.
    #[inline]
    pub fn handle_datagram_into<'d>(
        &mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        services: &ServiceTable,
        taken: &'d mut ReassembledMessage,
    ) -> Option<ExchangeRequest<'d>> {
        self.core
            .take_in(now, from, datagram, services, &mut taken.0)
    }

    /// Answers a call: `message` is what [`ReplyDraft`](crate::lean::ReplyDraft) has written, from its beginning. An
    /// empty buffer is given back for it. False if the answer is not waited for.
    pub fn reply(&mut self, key: CallKey, message: &mut Buffer) -> bool {
        self.core.reply(key, message)
    }

    /// Appends the next datagram that is to be sent, and returns its destination.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        self.core.poll_transmit(now, out)
    }

    /// Returns whether there may be something to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        let core = &self.core;
        !(core.stray.is_empty() && core.ready.is_empty() && core.leaving.is_empty())
    }

    /// Returns the next event of a call that was handed out.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.core.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    /// Returns when an answer may have to be sent again: of what [`poll_timeout`](Self::poll_timeout) says, the time of
    /// an answer that a client waits for.
    #[inline]
    pub fn next_repeat(&self) -> Option<Instant> {
        self.core.next_due
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
    }

    /// Takes no conversations and no calls any more; what was taken is still answered.
    pub fn close(&mut self) {
        self.core.is_closed = true;
    }

    /// Takes nothing any more, and has clients told that it stops: all of them, or those that wait for
    /// nothing of which they have not been told the result. Their conversations are forgotten then.
    pub fn send_close(&mut self, to: CloseRecipients) {
        self.core.is_closed = true;
        self.core.send_close(to);
    }

    /// Conversations that are known.
    pub fn conversations(&self) -> usize {
        self.core.conversations.len()
    }

    /// Bytes of memory of requests and answers, as far as they are counted.
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// Packets of answers that are taken to be under way, to all clients together.
    pub fn under_way(&self) -> u32 {
        let conversations = self.core.conversations.iter();
        conversations
            .map(|(_, conversation)| conversation.congestion.under_way())
            .sum()
    }

    /// Returns whether an answer is still to be sent, or one of several packets has not arrived and is sent again by
    /// itself.
    pub fn has_unarrived(&self) -> bool {
        let mut conversations = self.core.conversations.iter();
        conversations.any(|(_, conversation)| conversation.has_unarrived())
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> ExchangeServerCounters {
        self.core.counters
    }
}

impl<A: PeerAddress> ServerCore<A> {
    /// Returns the parameters of this end for a client.
    fn facts_for(&self, client: A) -> TransportParameters {
        let limit = match client.is_here() {
            true => self.limits.datagram_max_here,
            false => self.limits.datagram_max,
        };
        TransportParameters {
            preamble: self.preamble,
            datagram_max: datagram_max(limit, usize::MAX) as u32,
        }
    }

    #[inline]
    fn take_in<'d>(
        &mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        services: &ServiceTable,
        taken: &'d mut ReceiveBuffer,
    ) -> Option<ExchangeRequest<'d>> {
        match self.handle(now, from, datagram, taken) {
            Ok(None) => None,
            Ok(Some(complete)) => {
                let message = complete.datagram.unwrap_or_else(|| whole(taken));
                self.judge(complete.key, message, services)
            }
            Err(ignored) => {
                self.counters.ignored.count(ignored);
                None
            }
        }
    }

    fn handle<'d>(
        &mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        taken: &mut ReceiveBuffer,
    ) -> Result<Option<CompleteRequest<'d>>, DropReason> {
        let (header, body) = decode(datagram)?;
        match header.kind {
            PacketKind::Hello => self.handle_hello(now, from, &header, body).map(|()| None),
            PacketKind::Call | PacketKind::Probe | PacketKind::Cancel | PacketKind::Ack => {
                let body = self.find_conversation(now, from, &header, body)?;
                self.handle_of_call(now, &header, body, taken)
            }
            PacketKind::Goodbye => self.handle_goodbye(now, from, &header, body).map(|()| None),
            PacketKind::Welcome
            | PacketKind::Reply
            | PacketKind::Reset
            | PacketKind::Data
            | PacketKind::DataAck
            | PacketKind::DataEnd => Err(DropReason::WrongEnd),
        }
    }
}
