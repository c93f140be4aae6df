//! The duplicate request cache: calls over datagrams are carried out at most once, within its
//! bounds.
//!
//! A client that hears nothing sends its call again, and the server must not create the same file
//! twice. So every call is remembered while it is carried out, and its reply for a while
//! afterwards.
//!
//! What falls out, and is then carried out again when the client repeats it: the reply of a call
//! that is older than [`DuplicateLimits::age`]; the oldest replies once there are more than
//! [`DuplicateLimits::entries`] calls or more than [`DuplicateLimits::bytes`] of replies; a reply
//! that is by itself longer than that; and everything when the server restarts. A call that is
//! being carried out never falls out.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

// A call is looked up five times. Who finds keys that collide makes its own calls slow, and those not by
// much: there are few entries.
use foldhash::quality::{FixedState, RandomState};

use crate::connection::IncomingCall;

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateLimits {
    /// Most calls.
    pub entries: usize,
    /// Most bytes of replies. They are taken from the system at once, but touched only as they are
    /// used.
    pub bytes: usize,
    /// Longest time that a reply is kept, longer than clients go on repeating a call and shorter
    /// than they take to come back to the same xid.
    pub age: Duration,
}

impl Default for DuplicateLimits {
    fn default() -> Self {
        Self {
            entries: 1024,
            bytes: 1 << 20,
            age: Duration::from_secs(120),
        }
    }
}

/// Bytes at the front of the arguments that tell calls apart, beside their length. Clients count
/// xids upwards: the sum is there for a client that restarted with the same ones. It need not
/// withstand an attacker, who could only make calls of his own be taken for each other.
const SUMMED_BYTES: usize = 256;

/// What makes two calls the same: who called, with which xid, for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallKey<P> {
    peer: P,
    xid: u32,
    service: usize,
    procedure: u32,
    length: usize,
    sum: u64,
}

impl<P> CallKey<P> {
    /// The key of a call from `peer`, its address.
    pub fn new(peer: P, call: &IncomingCall<'_>) -> Self {
        let summed = call.arguments.len().min(SUMMED_BYTES);
        Self {
            peer,
            xid: call.caller.number(),
            service: call.service,
            procedure: call.procedure,
            length: call.arguments.len(),
            sum: FixedState::default().hash_one(&call.arguments[..summed]),
        }
    }
}

impl<P: Copy> CallKey<P> {
    /// The address of the caller.
    pub(super) fn peer(&self) -> P {
        self.peer
    }

    /// The number of the call.
    pub(super) fn xid(&self) -> u32 {
        self.xid
    }
}

/// What to do with a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'c> {
    /// Carry it out and [`finish`](DuplicateCache::finish) it, or
    /// [`forget`](DuplicateCache::forget) it.
    New,
    /// Drop it: it is being carried out, and the reply will come.
    InProgress,
    /// Send this reply again.
    Done(&'c [u8]),
    /// Drop it: every entry is taken by a call that is being carried out. The client will repeat
    /// it.
    Full,
}

/// What the cache has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DuplicateCounters {
    /// Repeated calls that were dropped because they were being carried out.
    pub dropped: u64,
    /// Repeated calls that were answered from the cache.
    pub answered: u64,
    /// Calls dropped because the cache was full of calls being carried out.
    pub overflows: u64,
    /// Replies too long to be kept.
    pub too_long: u64,
}

/// The calls and replies of the last while. `P` is a peer's address.
#[derive(Debug)]
pub struct DuplicateCache<P> {
    calls: HashMap<CallKey<P>, Remembered, RandomState>,
    /// Every call with its turn, oldest first; a call whose turn differs has come again since.
    order: VecDeque<(CallKey<P>, u64)>,
    replies: ReplyRing,
    turn: u64,
    limits: DuplicateLimits,
    counters: DuplicateCounters,
}

#[derive(Debug, Clone, Copy)]
struct Remembered {
    turn: u64,
    /// The reply and when it was made; `None` while the call is being carried out.
    reply: Option<(SavedReply, Instant)>,
}

impl<P: Copy + Eq + Hash> DuplicateCache<P> {
    /// An empty cache. All memory that it will ever use is reserved now.
    ///
    /// # Panics
    /// A limit is 0.
    pub fn new(limits: DuplicateLimits) -> Self {
        assert!(limits.entries > 0 && limits.bytes > 0);
        Self {
            // A map that is never more than half full need not grow to clean up after removals.
            calls: HashMap::with_capacity_and_hasher(limits.entries * 2, RandomState::default()),
            order: VecDeque::with_capacity(limits.entries),
            replies: ReplyRing::new(limits.bytes),
            turn: 0,
            limits,
            counters: DuplicateCounters::default(),
        }
    }

    /// Judges a call that arrived at `now`.
    pub fn check(&mut self, key: CallKey<P>, now: Instant) -> Verdict<'_> {
        match self.calls.get(&key).map(|call| call.reply) {
            Some(None) => {
                self.counters.dropped += 1;
                Verdict::InProgress
            }
            Some(Some((reply, at))) if self.is_kept(reply, at, now) => {
                self.counters.answered += 1;
                Verdict::Done(self.replies.get(reply))
            }
            Some(Some(_)) | None => self.remember(key),
        }
    }

    /// Keeps the reply to a call that was judged [`Verdict::New`], as it was sent. Does nothing if
    /// the call was forgotten.
    pub fn finish(&mut self, key: &CallKey<P>, reply: &[u8], now: Instant) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        match self.replies.save(reply) {
            Some(saved) => call.reply = Some((saved, now)),
            None => {
                self.counters.too_long += 1;
                self.forget(key);
            }
        }
    }

    /// Forgets a call that was judged [`Verdict::New`] but is not carried out after all: when it is
    /// repeated, it is new again.
    pub fn forget(&mut self, key: &CallKey<P>) {
        let Some(call) = self.calls.remove(key) else {
            return;
        };
        // Its turn takes the place of another call no longer. It is among the last.
        let turns = self.order.iter();
        let position = turns.rev().position(|(_, turn)| *turn == call.turn);
        if let Some(behind) = position {
            self.order.remove(self.order.len() - 1 - behind);
        }
    }

    /// Calls remembered.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether no call is remembered.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// What has been seen so far.
    pub fn counters(&self) -> DuplicateCounters {
        self.counters
    }

    fn is_kept(&self, reply: SavedReply, at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(at) <= self.limits.age && self.replies.holds(reply)
    }

    fn remember(&mut self, key: CallKey<P>) -> Verdict<'_> {
        if self.order.len() == self.limits.entries && !self.evict() {
            self.counters.overflows += 1;
            return Verdict::Full;
        }
        self.turn += 1;
        let turn = self.turn;
        self.order.push_back((key, turn));
        self.calls.insert(key, Remembered { turn, reply: None });
        Verdict::New
    }

    /// Makes room in the order by forgetting the oldest call that is not being carried out.
    fn evict(&mut self) -> bool {
        for _ in 0..self.order.len() {
            let Some((key, turn)) = self.order.pop_front() else {
                return true;
            };
            match self.calls.get(&key).filter(|call| call.turn == turn) {
                Some(call) if call.reply.is_none() => self.order.push_back((key, turn)),
                Some(_) => {
                    self.calls.remove(&key);
                    return true;
                }
                None => return true,
            }
        }
        false
    }
}

/// Replies one behind the other in a ring of fixed size: a new one overwrites the oldest.
#[derive(Debug)]
struct ReplyRing {
    storage: Vec<u8>,
    /// Where the next reply goes, counted on and on; its remainder is the place in `storage`.
    head: u64,
}

#[derive(Debug, Clone, Copy)]
struct SavedReply {
    position: u64,
    length: usize,
}

impl ReplyRing {
    fn new(bytes: usize) -> Self {
        let storage = vec![0; bytes];
        Self { storage, head: 0 }
    }

    /// `None` if the reply is longer than the ring.
    fn save(&mut self, reply: &[u8]) -> Option<SavedReply> {
        let length = reply.len();
        if length > self.storage.len() {
            return None;
        }
        let until_end = self.storage.len() - self.place(self.head);
        if length > until_end {
            self.head += until_end as u64;
        }
        let position = self.head;
        let place = self.place(position);
        self.storage[place..place + length].copy_from_slice(reply);
        self.head += length as u64;
        Some(SavedReply { position, length })
    }

    fn holds(&self, reply: SavedReply) -> bool {
        self.head - reply.position <= self.storage.len() as u64
    }

    fn get(&self, reply: SavedReply) -> &[u8] {
        let place = self.place(reply.position);
        &self.storage[place..place + reply.length]
    }

    fn place(&self, position: u64) -> usize {
        (position % self.storage.len() as u64) as usize
    }
}
