//! The client's bookkeeping: which calls are in flight, until when, and which reply is whose.
//!
//! The engine is small enough to be used under a lock that is held for a moment only. It keeps no
//! message: whoever waits for a call keeps the call's bytes for retransmission, and the results of
//! a reply stay in the buffer they were received in, where the reader decodes its own.

use std::time::{Duration, Instant};

use tenon_wire::Decoder;

use super::message::{Refused, ReplyBody, ReplyHeader, Violation};
use crate::in_flight::InFlight;

/// When a call over datagrams is sent again: after `first`, then after twice as long each time, but
/// never after longer than `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// Time until the first retransmission.
    pub first: Duration,
    /// Longest time between two retransmissions.
    pub longest: Duration,
}

impl Default for Retransmission {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
        }
    }
}

/// What a client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounters {
    /// Calls started.
    pub calls: u64,
    /// Calls answered with results.
    pub successes: u64,
    /// Calls that the peer refused.
    pub refusals: u64,
    /// Calls whose time ran out.
    pub timeouts: u64,
    /// Calls that were given up before they were answered.
    pub cancellations: u64,
    /// Calls sent again.
    pub retransmissions: u64,
    /// Replies to no call in flight: duplicates, late ones, strangers.
    pub unmatched: u64,
    /// Messages that broke the protocol.
    pub violations: u64,
}

/// Why a call was answered without results, by blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The peer did not carry the call out.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(#[from] Violation),
}

/// A reply to a call that was in flight until now.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<'m, W> {
    /// The call.
    pub xid: u32,
    /// What was handed in for whoever waits.
    pub waiter: W,
    /// The encoded results, where they were received.
    pub outcome: Result<&'m [u8], ReplyError>,
}

/// What a call is to do at a given time.
#[derive(Debug, PartialEq, Eq)]
pub enum Timeout<W> {
    /// Nothing before this time.
    Wait(Instant),
    /// Send the same bytes again, then nothing before this time.
    Retransmit(Instant),
    /// Give up: the time of the call ran out, and it is no longer in flight.
    Expired(W),
}

/// The calls in flight on one connection or socket. `W` is what the owner needs to find whoever
/// waits. No xid in flight is ever taken, and none comes again before all others have.
#[derive(Debug)]
pub struct ClientEngine<W> {
    calls: InFlight<Pending<W>>,
    retransmission: Option<Retransmission>,
    counters: ClientCounters,
}

#[derive(Debug)]
struct Pending<W> {
    deadline: Instant,
    /// When to send again, and how long to wait after that.
    resend: Option<(Instant, Duration)>,
    waiter: W,
}

impl<W> ClientEngine<W> {
    /// An engine for a stream, which loses nothing. `seed` is the first xid: choose it at random,
    /// so that a restarted client does not repeat the xids of its former life.
    pub fn stream(seed: u32) -> Self {
        Self::new(seed, None)
    }

    /// An engine for datagrams, which get lost. `seed` is the first xid, as for a
    /// [`stream`](Self::stream).
    pub fn datagram(seed: u32, retransmission: Retransmission) -> Self {
        Self::new(seed, Some(retransmission))
    }

    fn new(seed: u32, retransmission: Option<Retransmission>) -> Self {
        Self {
            calls: InFlight::new(seed),
            retransmission,
            counters: ClientCounters::default(),
        }
    }

    /// Puts a call in flight until `deadline` and gives it its xid.
    pub fn start(&mut self, now: Instant, deadline: Instant, waiter: W) -> u32 {
        let xid = self.calls.insert(Pending {
            deadline,
            resend: self.retransmission.map(|r| (now + r.first, r.first)),
            waiter,
        });
        self.counters.calls += 1;
        xid
    }

    /// Takes in a received message. `Ok(None)` if it answers no call in flight: it was late, sent
    /// twice, or, on datagrams, damaged.
    ///
    /// # Errors
    /// On a stream, a message that cannot be attributed to a call: close the connection. A
    /// message that names a call but is malformed behind ends that call, on a stream; on datagrams
    /// anybody may have sent it, and the call goes on.
    pub fn handle_reply<'m>(
        &mut self,
        message: &'m [u8],
    ) -> Result<Option<Answer<'m, W>>, Violation> {
        let mut input = Decoder::new(message);
        match ReplyHeader::decode(&mut input) {
            Ok(header) => {
                let outcome = match header.body {
                    ReplyBody::Success(_) => Ok(input.rest()),
                    ReplyBody::Refused(refused) => Err(refused.into()),
                };
                Ok(self.answer(header.xid, outcome))
            }
            Err(violation) => self.handle_violation(message, violation),
        }
    }

    /// Ends the call that a received reply with results answers, if that is the one which is meant;
    /// says whether. Anything else [`handle_reply`](Self::handle_reply) knows.
    #[inline]
    pub fn handle_success(&mut self, xid: u32, is_meant: impl FnOnce(&W) -> bool) -> bool {
        let answered = self.calls.take_if(xid, |call| is_meant(&call.waiter));
        self.counters.successes += u64::from(answered.is_some());
        answered.is_some()
    }

    #[cold]
    fn handle_violation<'m>(
        &mut self,
        message: &[u8],
        violation: Violation,
    ) -> Result<Option<Answer<'m, W>>, Violation> {
        self.counters.violations += 1;
        if self.retransmission.is_some() {
            return Ok(None);
        }
        let is_reply = !matches!(violation, Violation::NotAReply(_));
        let xid = message.first_chunk().map(|xid| u32::from_be_bytes(*xid));
        match xid
            .filter(|_| is_reply)
            .and_then(|xid| self.answer(xid, Err(violation.into())))
        {
            Some(answer) => Ok(Some(answer)),
            None => Err(violation),
        }
    }

    #[inline]
    fn answer<'m>(
        &mut self,
        xid: u32,
        outcome: Result<&'m [u8], ReplyError>,
    ) -> Option<Answer<'m, W>> {
        let Some(waiter) = self.take(xid) else {
            self.counters.unmatched += 1;
            return None;
        };
        match outcome {
            Ok(_) => self.counters.successes += 1,
            Err(ReplyError::Refused(_)) => self.counters.refusals += 1,
            Err(ReplyError::Violation(_)) => {}
        }
        Some(Answer {
            xid,
            waiter,
            outcome,
        })
    }

    /// When the call has something to do: to be sent again or to be given up. `None` if it is no
    /// longer in flight.
    pub fn next_timeout(&self, xid: u32) -> Option<Instant> {
        self.calls.get(xid).map(Pending::next_timeout)
    }

    /// What the call is to do at `now`. `None` if it is no longer in flight.
    pub fn handle_timeout(&mut self, xid: u32, now: Instant) -> Option<Timeout<W>> {
        let longest = self.retransmission.map(|r| r.longest);
        let call = self.calls.get_mut(xid)?;
        if now >= call.deadline {
            self.counters.timeouts += 1;
            return self.take(xid).map(Timeout::Expired);
        }
        if let (Some((at, wait)), Some(longest)) = (call.resend, longest)
            && now >= at
        {
            let wait = (wait * 2).min(longest);
            call.resend = Some((now + wait, wait));
            let next = call.next_timeout();
            self.counters.retransmissions += 1;
            return Some(Timeout::Retransmit(next));
        }
        Some(Timeout::Wait(call.next_timeout()))
    }

    /// Gives a call up; its reply will be ignored. `None` if it is no longer in flight.
    pub fn cancel(&mut self, xid: u32) -> Option<W> {
        let waiter = self.take(xid)?;
        self.counters.cancellations += 1;
        Some(waiter)
    }

    /// Gives all calls up, for when the connection is lost. None is in flight any more, even before
    /// the iterator has come to it.
    pub fn cancel_all(&mut self) -> impl Iterator<Item = (u32, W)> + use<W> {
        self.counters.cancellations += self.calls.len() as u64;
        let calls = self.calls.take_all();
        calls.map(|(xid, call)| (xid, call.waiter))
    }

    /// Number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// What has been seen so far.
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }

    #[inline]
    fn take(&mut self, xid: u32) -> Option<W> {
        self.calls.take(xid).map(|call| call.waiter)
    }
}

impl<W> Pending<W> {
    fn next_timeout(&self) -> Instant {
        match self.resend {
            Some((at, _)) => at.min(self.deadline),
            None => self.deadline,
        }
    }
}
