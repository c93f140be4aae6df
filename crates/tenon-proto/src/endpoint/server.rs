//! The server's end of a socket for datagrams: calls of ONC RPC, each carried out once, and the conversations of the
//! packet exchange.

use std::collections::VecDeque;
use std::time::Instant;

use tenon_wire::Buffer;

use super::duplicates::{CacheEntry, CacheLookup, DuplicateCache, DuplicateKey, DuplicateLimits};
use super::exchange::server::{
    self as exchange, CloseRecipients, PeerAddress, ServerEngine, ServerEvent, ServerLimits,
    ServerSecrets,
};
use super::exchange::{ReassembledMessage, is_packet};
use crate::codec::onc::message::{BadCall, Refused};
use crate::codec::onc::record::{self, FRAGMENT_MAX};
use crate::codec::onc::reply::OncReplyDraft;
use crate::config::{ConnectionConfig, Role};
use crate::connection::{IncomingCall, IncomingCounters, NULL_PROCEDURE, ServiceTable, understand};

/// Bytes of the largest datagram of UDP over IPv4.
pub const DATAGRAM_SIZE_MAX: usize = 65_507;

/// Buffers that are kept for further replies.
const SPARE_MAX: usize = 64;

/// The server's end of a socket for datagrams. `A` is the address of a peer.
#[derive(Debug)]
pub struct ServerEndpoint<A> {
    exchange: ServerEngine<A>,
    duplicates: DuplicateCache<A>,
    /// Bytes of the largest reply of ONC RPC; none if its messages are not accepted.
    onc_reply_max: Option<usize>,
    /// Calls that have not come before are dropped.
    is_closed: bool,
    /// Replies of ONC RPC that are to be sent.
    replies: VecDeque<(A, Buffer)>,
    spare: Vec<Buffer>,
    counters: EndpointCounters,
}

/// Names a call that is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramCallKey<A> {
    /// A call of ONC RPC.
    Onc(OncCallKey<A>),
    /// A call of the packet exchange.
    Exchange(exchange::CallKey),
}

/// Names a call of ONC RPC that is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OncCallKey<A> {
    peer: A,
    xid: u32,
    service: usize,
    procedure: u32,
    entry: CacheEntry,
}

/// A reply of ONC RPC does not fit into a datagram. Its client is told SYSTEM_ERR instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a reply of {size} bytes is over the {limit} bytes of a datagram")]
pub struct ReplyTooLarge {
    /// The index of the service.
    pub service: usize,
    /// The procedure's number.
    pub procedure: u32,
    /// Bytes of the reply, its header included.
    pub size: usize,
    /// Bytes of the largest reply that one datagram takes here.
    pub limit: usize,
}

/// A call for a service that came in a datagram, or in several.
#[derive(Debug)]
pub struct DatagramCall<'m, A> {
    /// The key by which the call is [answered](ServerEndpoint::answer).
    pub key: DatagramCallKey<A>,
    /// The call.
    pub call: IncomingCall<'m>,
}

/// Counters of a server's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointCounters {
    /// Outcomes of calls.
    pub calls: IncomingCounters,
    /// Repeated calls of ONC RPC that were answered from the cache.
    pub duplicates_answered: u64,
    /// Datagrams of ONC RPC that were dropped: duplicates of calls in progress, calls without room.
    pub dropped: u64,
    /// Replies that the cache gave up for others before [`DuplicateLimits::protected_age`].
    pub replies_evicted: u64,
    /// Those of them that were among the newest [`DuplicateLimits::protected_calls`] of their peer.
    pub replies_evicted_early: u64,
    /// Replies that do not fit into a datagram, which a refusal has replaced.
    pub replies_too_large: u64,
}

impl<A: PeerAddress> ServerEndpoint<A> {
    /// An end that opens at `now`. Replies of ONC RPC have up to `onc_reply_max` bytes, of those that
    /// [UDP takes](DATAGRAM_SIZE_MAX); its messages are dropped if that is none.
    pub fn new(
        config: &ConnectionConfig,
        limits: ServerLimits,
        duplicates: DuplicateLimits,
        secrets: ServerSecrets,
        onc_reply_max: Option<usize>,
        now: Instant,
    ) -> Self {
        let preamble = config.preamble(Role::Server);
        Self {
            exchange: ServerEngine::new(preamble, limits, secrets, now),
            duplicates: DuplicateCache::new(duplicates),
            onc_reply_max: onc_reply_max.map(|bytes| bytes.min(DATAGRAM_SIZE_MAX)),
            is_closed: false,
            replies: VecDeque::new(),
            spare: Vec::new(),
            counters: EndpointCounters::default(),
        }
    }

    /// Takes in a datagram; the call, if that makes one whole. One that came in several packets is left in `whole`.
    #[inline]
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: A,
        datagram: &'d [u8],
        services: &ServiceTable,
        whole: &'d mut ReassembledMessage,
    ) -> Option<DatagramCall<'d, A>> {
        if !is_packet(datagram) {
            return self.handle_message(now, from, datagram, services);
        }
        if self.exchange.poll_timeout().is_some_and(|at| at <= now) {
            self.exchange.handle_timeout(now);
        }
        let request = self
            .exchange
            .handle_datagram_into(now, from, datagram, services, whole)?;
        Some(DatagramCall {
            key: DatagramCallKey::Exchange(request.key),
            call: request.call,
        })
    }

    fn handle_message<'d>(
        &mut self,
        now: Instant,
        from: A,
        message: &'d [u8],
        services: &ServiceTable,
    ) -> Option<DatagramCall<'d, A>> {
        if self.onc_reply_max.is_none() {
            self.counters.dropped += 1;
            return None;
        }
        let counters = &mut self.counters.calls;
        match understand(message, services, FRAGMENT_MAX) {
            Ok(call) if call.procedure == NULL_PROCEDURE => {
                counters.pings += 1;
                self.reply(from, |out| {
                    OncReplyDraft::begin(out, call.caller.number());
                });
            }
            Ok(call) => return self.admit(now, from, call),
            Err(BadCall::Refuse { xid, refused }) => {
                counters.refusals += 1;
                self.reply(from, |out| {
                    let _ = OncReplyDraft::begin(out, xid).refuse(out, refused);
                });
            }
            Err(BadCall::Unanswerable(_)) => counters.violations += 1,
        }
        None
    }

    /// Lets a call through that is new; answers or drops one that is not. A client repeats a call that is dropped
    /// while the endpoint closes, and the server that follows gets it.
    fn admit<'d>(
        &mut self,
        now: Instant,
        from: A,
        call: IncomingCall<'d>,
    ) -> Option<DatagramCall<'d, A>> {
        match self.duplicates.check(DuplicateKey::new(from, &call), now) {
            CacheLookup::New(entry) if self.is_closed => {
                self.counters.dropped += 1;
                self.duplicates.forget(entry);
            }
            CacheLookup::New(entry) => {
                self.counters.calls.calls += 1;
                let key = DatagramCallKey::Onc(OncCallKey {
                    peer: from,
                    xid: call.caller.number(),
                    service: call.service,
                    procedure: call.procedure,
                    entry,
                });
                return Some(DatagramCall { key, call });
            }
            CacheLookup::Done(entry) => {
                self.counters.duplicates_answered += 1;
                let mut out = self.spare.pop().unwrap_or_default();
                out.room(record::MARK);
                self.duplicates.append_reply(entry, &mut out);
                self.replies.push_back((from, out));
            }
            CacheLookup::InProgress | CacheLookup::Full => self.counters.dropped += 1,
        }
        None
    }

    fn reply(&mut self, to: A, write: impl FnOnce(&mut Buffer)) {
        let mut out = self.spare.pop().unwrap_or_default();
        write(&mut out);
        self.replies.push_back((to, out));
    }

    /// Answers a call: `reply` is what [`ReplyDraft`](crate::connection::ReplyDraft) has written. An empty buffer is
    /// left in its place.
    ///
    /// # Errors
    /// The reply does not fit into a datagram; the client is told so.
    #[inline]
    pub fn answer(
        &mut self,
        now: Instant,
        key: DatagramCallKey<A>,
        reply: &mut Buffer,
    ) -> Result<(), ReplyTooLarge> {
        match key {
            DatagramCallKey::Exchange(key) => {
                self.exchange.reply(key, reply);
                reply.clear();
                Ok(())
            }
            DatagramCallKey::Onc(key) => self.answer_onc(now, key, reply),
        }
    }

    fn answer_onc(
        &mut self,
        now: Instant,
        key: OncCallKey<A>,
        reply: &mut Buffer,
    ) -> Result<(), ReplyTooLarge> {
        let size = record::message(reply).len();
        let fits = match self.onc_reply_max {
            Some(limit) if size > limit => Err(self.replace_reply(key, size, limit, reply)),
            _ => Ok(()),
        };
        self.duplicates
            .finish(key.entry, record::message(reply), now);
        let spare = self.spare.pop().unwrap_or_default();
        let reply = std::mem::replace(reply, spare);
        self.replies.push_back((key.peer, reply));
        fits
    }

    /// Puts a refusal in the place of a reply that does not fit into a datagram.
    #[cold]
    fn replace_reply(
        &mut self,
        key: OncCallKey<A>,
        size: usize,
        limit: usize,
        reply: &mut Buffer,
    ) -> ReplyTooLarge {
        self.counters.replies_too_large += 1;
        reply.clear();
        let _ = OncReplyDraft::begin(reply, key.xid).refuse(reply, Refused::SystemError);
        ReplyTooLarge {
            service: key.service,
            procedure: key.procedure,
            size,
            limit,
        }
    }

    /// There is no room for a call that was let through. A client of ONC RPC repeats it.
    pub fn drop_call(&mut self, key: DatagramCallKey<A>) {
        if let DatagramCallKey::Onc(key) = key {
            self.counters.dropped += 1;
            self.duplicates.forget(key.entry);
        }
    }

    /// Appends the next datagram that is to be sent, and returns its receiver.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        if let Some((to, mut reply)) = self.replies.pop_front() {
            out.extend(record::message(&reply));
            if self.spare.len() < SPARE_MAX {
                reply.clear();
                self.spare.push(reply);
            }
            return Some(to);
        }
        if !self.exchange.has_transmit() {
            return None;
        }
        self.exchange.poll_transmit(now, out)
    }

    /// Returns whether there may be something to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        !self.replies.is_empty() || self.exchange.has_transmit()
    }

    /// Returns a call for which its client no longer waits. It is to be answered all the same, by anything.
    #[inline]
    pub fn poll_cancelled(&mut self) -> Option<DatagramCallKey<A>> {
        let ServerEvent::Cancelled(key) = self.exchange.poll_event()?;
        Some(DatagramCallKey::Exchange(key))
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.exchange.poll_timeout()
    }

    /// Returns when an answer may have to be sent again.
    #[inline]
    pub fn next_repeat(&self) -> Option<Instant> {
        self.exchange.next_repeat()
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.exchange.poll_timeout().is_some_and(|at| at <= now) {
            self.exchange.handle_timeout(now);
        }
    }

    /// Takes no calls any more, and has clients of the exchange told that the server stops. Calls that were let through
    /// are still answered, and so are their repetitions.
    pub fn close(&mut self, to: CloseRecipients) {
        self.is_closed = true;
        self.exchange.send_close(to);
    }

    /// Returns whether an answer is still to be sent, or one of several packets has not arrived and is sent again by
    /// itself.
    pub fn has_unarrived(&self) -> bool {
        !self.replies.is_empty() || self.exchange.has_unarrived()
    }

    /// Returns the conversations of the packet exchange, for what they have seen and what memory they have.
    pub fn conversations(&self) -> &ServerEngine<A> {
        &self.exchange
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> EndpointCounters {
        let exchange = self.exchange.counters();
        let onc = self.counters.calls;
        let duplicates = self.duplicates.counters();
        EndpointCounters {
            replies_evicted: duplicates.evicted,
            replies_evicted_early: duplicates.evicted_early,
            calls: IncomingCounters {
                calls: onc.calls + exchange.calls,
                pings: onc.pings + exchange.pings,
                refusals: onc.refusals + exchange.refusals,
                ..onc
            },
            ..self.counters
        }
    }
}
