//! All streams of bytes of the clients of one socket.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use tenon_wire::Buffer;

use super::ByteStream;
use crate::endpoint::exchange::cookie::AddressValidator;
use crate::endpoint::exchange::datagram_max;
use crate::endpoint::exchange::opening::ConversationOpening;
use crate::endpoint::exchange::packet::{
    DropReason, HeaderTemplate, OPENS, PACKET_HEADER, PacketHeader, PacketKind, decode,
};
use crate::endpoint::exchange::server::{
    ClosedConversations, PeerAddress, ServerLimits, ServerSecrets,
};
use crate::endpoint::exchange::time::SplitMix64;

/// Packets to peers without a stream that wait to be sent; what is more is dropped.
const STRAY_MAX: usize = 256;

/// The streams of bytes of the clients of one socket.
#[derive(Debug)]
pub struct ServerByteStreams<A> {
    cookies: AddressValidator,
    limits: ServerLimits,
    streams: HashMap<u64, ServedByteStream<A>>,
    /// How many of them each host has.
    hosts: HashMap<A, usize>,
    /// Conversations that are over, until no packet that is under way can begin them again.
    closed: ClosedConversations,
    /// Streams that may have something to send.
    ready: VecDeque<u64>,
    timers: BTreeSet<(Instant, u64)>,
    /// Peers that are told that a conversation is not known.
    strays: VecDeque<(A, u64)>,
    rng: SplitMix64,
    is_closed: bool,
}

#[derive(Debug)]
struct ServedByteStream<A> {
    peer: A,
    stream: ByteStream,
    /// Before this time a packet could begin the conversation again.
    cookie_expiry: Instant,
    timer: Option<Instant>,
    is_ready: bool,
}

/// The effect of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteStreamEvent<A> {
    /// A stream of this number has begun, from this peer.
    Opened(u64, A),
    /// Something has happened to the stream of this number.
    Changed(u64),
}

impl<A: PeerAddress> ServerByteStreams<A> {
    /// The streams of a socket that opened at `now`. Its [engine](crate::exchange::server::ServerEngine), which gives out
    /// the cookies, has the same limits, secrets and time.
    pub fn new(limits: ServerLimits, secrets: ServerSecrets, now: Instant) -> Self {
        Self {
            cookies: AddressValidator::new(secrets.key, now, limits.cookie),
            limits,
            streams: HashMap::new(),
            hosts: HashMap::new(),
            closed: ClosedConversations::default(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            strays: VecDeque::new(),
            rng: SplitMix64(secrets.seed),
            is_closed: false,
        }
    }

    /// Takes in a datagram.
    ///
    /// # Errors
    /// It is dropped.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: A,
        datagram: &[u8],
    ) -> Result<ByteStreamEvent<A>, DropReason> {
        let (header, body) = decode(datagram)?;
        let id = header.conversation;
        let (event, body) = match self.streams.get(&id) {
            Some(served) if served.peer != from => {
                self.answer_stray(from, id);
                return Err(DropReason::OtherAddress);
            }
            Some(_) if header.has(OPENS) => {
                let (_, rest) = ConversationOpening::get(body)?;
                (ByteStreamEvent::Changed(id), rest)
            }
            Some(_) => (ByteStreamEvent::Changed(id), body),
            None => {
                let rest = self.open(now, from, &header, body)?;
                (ByteStreamEvent::Opened(id, from), rest)
            }
        };
        if let Some(served) = self.streams.get_mut(&id) {
            let handled = served.stream.handle_packet(now, &header, body);
            self.touch(id);
            if let ByteStreamEvent::Changed(_) = event {
                handled?;
            }
        }
        Ok(event)
    }

    fn open<'d>(
        &mut self,
        now: Instant,
        from: A,
        header: &PacketHeader,
        body: &'d [u8],
    ) -> Result<&'d [u8], DropReason> {
        let id = header.conversation;
        if header.kind != PacketKind::Data || !header.has(OPENS) {
            if header.kind != PacketKind::DataEnd {
                self.answer_stray(from, id);
            }
            return Err(DropReason::Stale);
        }
        let (opening, rest) = ConversationOpening::get(body)?;
        let Some(cookie_expiry) = self.cookies.expiry(now, &from, &opening.cookie) else {
            self.answer_stray(from, id);
            return Err(DropReason::Stale);
        };
        if self.closed.has(id, now) {
            self.answer_stray(from, id);
            return Err(DropReason::Stale);
        }
        // The client is not told: the same packet may come again, and find room.
        if self.is_closed || !self.has_room(from) {
            return Err(DropReason::Full);
        }
        let ours = match from.is_here() {
            true => self.limits.datagram_max_here,
            false => self.limits.datagram_max,
        };
        let datagram = datagram_max(ours, opening.facts.datagram_max as usize);
        let (room, seed) = (datagram - PACKET_HEADER, self.rng.next());
        let served = ServedByteStream {
            peer: from,
            stream: ByteStream::new(id, None, room, self.limits.patience, seed, now),
            cookie_expiry,
            timer: None,
            is_ready: false,
        };
        self.streams.insert(id, served);
        *self.hosts.entry(from.host()).or_default() += 1;
        Ok(rest)
    }

    fn has_room(&self, from: A) -> bool {
        let of_host = self.hosts.get(&from.host()).copied().unwrap_or_default();
        self.streams.len() < self.limits.conversations
            && of_host < self.limits.conversations_of_host
    }

    fn answer_stray(&mut self, to: A, conversation: u64) {
        if self.strays.len() < STRAY_MAX {
            self.strays.push_back((to, conversation));
        }
    }

    /// Returns the stream of this number. What is done with it is to be [told](Self::touch).
    pub fn get_mut(&mut self, id: u64) -> Option<&mut ByteStream> {
        self.streams.get_mut(&id).map(|served| &mut served.stream)
    }

    /// Something was written to a stream, or read from it, or is due.
    pub fn touch(&mut self, id: u64) {
        if let Some(served) = self.streams.get_mut(&id)
            && !std::mem::replace(&mut served.is_ready, true)
        {
            self.ready.push_back(id);
        }
        self.note_timer(id);
    }

    fn note_timer(&mut self, id: u64) {
        let Some(served) = self.streams.get_mut(&id) else {
            return;
        };
        let timer = served.stream.poll_timeout();
        if timer == served.timer {
            return;
        }
        if let Some(at) = served.timer {
            self.timers.remove(&(at, id));
        }
        if let Some(at) = timer {
            self.timers.insert((at, id));
        }
        served.timer = timer;
    }

    /// Forgets a stream; its peer is told so, as it may have more to say. Where there is no room to remember that it was
    /// there, it stays until there is: returns false then.
    pub fn remove(&mut self, id: u64, now: Instant) -> bool {
        let Some(served) = self.streams.get(&id) else {
            return true;
        };
        if !self.closed.add(id, served.cookie_expiry, now) {
            return false;
        }
        if let Some(served) = self.streams.remove(&id) {
            if let Some(at) = served.timer {
                self.timers.remove(&(at, id));
            }
            self.leave_host(served.peer.host());
            self.answer_stray(served.peer, id);
        }
        true
    }

    fn leave_host(&mut self, host: A) {
        if let Entry::Occupied(mut count) = self.hosts.entry(host) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// No further streams are begun.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Appends the next datagram that is to be sent, and returns its receiver.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        if let Some((to, id)) = self.strays.pop_front() {
            let header = PacketHeader::plain(PacketKind::DataEnd, id, 0, 0);
            HeaderTemplate::new(id).put(out, &header, |_| {});
            return Some(to);
        }
        while let Some(&id) = self.ready.front() {
            if let Some(served) = self.streams.get_mut(&id) {
                if served.stream.poll_transmit(now, out) {
                    return Some(served.peer);
                }
                served.is_ready = false;
            }
            self.ready.pop_front();
            self.note_timer(id);
        }
        None
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Does what is due by `now`; returns a stream to which something has happened. To be called until there is none.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<u64> {
        let (_, id) = *self.timers.first().filter(|(at, _)| *at <= now)?;
        if let Some(served) = self.streams.get_mut(&id) {
            served.stream.handle_timeout(now);
        }
        self.touch(id);
        Some(id)
    }
}
