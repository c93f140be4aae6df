//! The duplicate request cache: calls over datagrams are carried out at most once, within its
//! bounds.
//!
//! A client that hears nothing sends its call again, and the server must not create the same file
//! twice (RFC 5531 section 5). So every call is remembered while it is carried out, and its reply
//! for a while afterwards. `docs/udp.md` says what is promised.
//!
//! When [`DuplicateLimits::bytes`] are used up, replies make way, in this order:
//!
//! 1. replies older than [`DuplicateLimits::protected_age`], the oldest first;
//! 2. the oldest reply to the peer that has most of them. As long as a peer has more than
//!    [`DuplicateLimits::protected_calls`], this spares the newest of every peer.
//!
//! A call that is being carried out never makes way: a further call is dropped instead, which its
//! client repeats.
//!
//! A call costs a bounded number of steps, whatever peers there are: replies, the replies to each
//! peer, and peers with the same number of replies are lists that any element leaves at once, and
//! no table is ever copied to a larger one. A long reply may take the place of as many short ones
//! as it has pieces.

mod call_key;
mod cell_id;
mod cells;
mod hash_index;
mod limits;
mod links;
mod peer_ranking;

pub use call_key::DuplicateKey;
pub use limits::DuplicateLimits;

use std::hash::Hash;
use std::time::{Duration, Instant};

use tenon_wire::Buffer;

use call_key::MessageKey;
use cell_id::{CellId, NONE};
use cells::{CacheCell, CachedCall, CachedPeer, CellContent, CellPool, INLINE_BYTES};
use hash_index::HashIndex;
use links::{CellLinks, CellList};
use peer_ranking::PeerRanking;

/// Bytes that each cell costs beside itself: 4 in the ranking of peers, up to 8 in the index, and less than 1 in the
/// list of chunks.
const TABLE_BYTES: usize = 13;

/// Outdated replies that are forgotten with each call that comes.
const FORGOTTEN_PER_CALL: usize = 2;

/// Names a call that the cache knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheEntry {
    cell: CellId,
    turn: u32,
}

/// The cache's verdict on a call, and what to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLookup {
    /// Carry it out and [`finish`](DuplicateCache::finish) it, or
    /// [`forget`](DuplicateCache::forget) it.
    New(CacheEntry),
    /// Drop it: it is being carried out, and the reply will come.
    InProgress,
    /// Send [its reply](DuplicateCache::append_reply) again.
    Done(CacheEntry),
    /// Drop it: calls that are being carried out take all the memory. The client will repeat it.
    Full,
}

/// Counters of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DuplicateCounters {
    /// Repeated calls that were dropped because they were being carried out.
    pub dropped: u64,
    /// Repeated calls that were answered from the cache.
    pub answered: u64,
    /// Calls dropped because the cache was full of calls being carried out.
    pub overflows: u64,
    /// Replies that made way for others before they were as old as [`DuplicateLimits::protected_age`].
    pub evicted: u64,
    /// Those of them that were among the newest [`DuplicateLimits::protected_calls`] of their peer, and replies for
    /// which there was no room at all.
    pub evicted_early: u64,
}

/// The calls and replies of the last while. `P` is a peer's address.
#[derive(Debug)]
pub struct DuplicateCache<P> {
    cells: CellPool<P>,
    index: HashIndex,
    ranking: PeerRanking,
    /// All replies, the oldest first.
    replies: CellList,
    /// The number of the last call.
    turn: u32,
    /// Ages are counted from here. The first call sets it.
    epoch: Option<Instant>,
    /// Limits in nanoseconds.
    age: u64,
    protected_age: u64,
    protected_calls: usize,
    counters: DuplicateCounters,
}

fn by_age<P>(cells: &mut CellPool<P>, call: CellId) -> &mut CellLinks {
    &mut cells.call_mut(call).by_age
}

fn of_peer<P>(cells: &mut CellPool<P>, call: CellId) -> &mut CellLinks {
    &mut cells.call_mut(call).of_peer
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl<P: Copy + Eq + Hash> DuplicateCache<P> {
    /// An empty cache.
    ///
    /// # Panics
    /// The limits [have no room](DuplicateLimits::have_room).
    pub fn new(limits: DuplicateLimits) -> Self {
        assert!(limits.have_room(), "{limits:?}");
        let cells = limits.bytes / (size_of::<CacheCell<P>>() + TABLE_BYTES);
        // One cell is never in use.
        let max = cells.min(u32::MAX as usize) - 1;
        Self {
            cells: CellPool::new(max),
            index: HashIndex::new(max),
            ranking: PeerRanking::new(max),
            replies: CellList::default(),
            turn: 0,
            epoch: None,
            age: nanos(limits.age),
            protected_age: nanos(limits.protected_age.min(limits.age)),
            protected_calls: limits.protected_calls,
            counters: DuplicateCounters::default(),
        }
    }

    /// Judges a call that arrived at `now`.
    pub fn check(&mut self, key: DuplicateKey<P>, now: Instant) -> CacheLookup {
        let now = self.time(now);
        self.forget_old(now);
        let peer_hash = self.index.hash(key.peer);
        let peer = self.find_peer(key.peer, peer_hash);
        if peer != NONE {
            let id = self.find_call(peer, key.message);
            if id != NONE {
                let call = self.cells.call(id);
                if !call.is_finished {
                    self.counters.dropped += 1;
                    return CacheLookup::InProgress;
                }
                if now.saturating_sub(call.finished_at) <= self.age {
                    self.counters.answered += 1;
                    let turn = call.turn;
                    return CacheLookup::Done(CacheEntry { cell: id, turn });
                }
                self.remove_reply(id);
            }
        }
        self.remember(key, peer_hash, now)
    }

    /// Appends the reply to a call that was judged [`CacheLookup::Done`] just now.
    pub fn append_reply(&self, entry: CacheEntry, out: &mut Buffer) {
        if self.is_current(entry) {
            let pieces = self.cells.reply(entry.cell);
            pieces.for_each(|piece| out.extend(piece));
        }
    }

    /// Keeps the reply to a call that was judged [`CacheLookup::New`], as it was sent. Does nothing if
    /// the call was forgotten.
    pub fn finish(&mut self, entry: CacheEntry, reply: &[u8], now: Instant) {
        if !self.is_running(entry) {
            return;
        }
        let now = self.time(now);
        if !self.make_room(CellPool::<P>::pieces_of(reply.len()), now) {
            self.counters.evicted += 1;
            self.counters.evicted_early += 1;
            return self.forget(entry);
        }
        let id = entry.cell;
        self.cells.save_reply(id, reply);
        let call = self.cells.call_mut(id);
        (call.finished_at, call.is_finished) = (now, true);
        let peer = call.peer;
        self.replies.push(&mut self.cells, id, by_age);
        let mut replies = self.cells.peer(peer).replies;
        replies.push(&mut self.cells, id, of_peer);
        let cached = self.cells.peer_mut(peer);
        cached.replies = replies;
        cached.running -= 1;
        self.ranking.add_reply(&mut self.cells, peer);
    }

    /// Forgets a call that was judged [`CacheLookup::New`] but is not carried out after all: when it is
    /// repeated, it is new again.
    pub fn forget(&mut self, entry: CacheEntry) {
        if !self.is_running(entry) {
            return;
        }
        let peer = self.cells.call(entry.cell).peer;
        self.index.remove(&mut self.cells, entry.cell);
        self.cells.give_back(entry.cell);
        self.cells.peer_mut(peer).running -= 1;
        self.forget_unused(peer);
    }

    /// Bytes of memory that the cache has taken from the system. They are never more than [`DuplicateLimits::bytes`].
    pub fn allocated_bytes(&self) -> usize {
        let tables = self.index.allocated_bytes() + self.ranking.allocated_bytes();
        self.cells.allocated_bytes() + tables
    }

    /// Returns whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.cells.in_use() == 0
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> DuplicateCounters {
        self.counters
    }

    /// Nanoseconds since the first call.
    fn time(&mut self, now: Instant) -> u64 {
        let epoch = *self.epoch.get_or_insert(now);
        nanos(now.saturating_duration_since(epoch))
    }

    // ---- What is known ----

    fn find_peer(&self, address: P, hash: u32) -> CellId {
        let is_wanted = |content: &CellContent<P>| matches!(content, CellContent::Peer(peer) if peer.address == address);
        self.index.find(&self.cells, hash, is_wanted)
    }

    fn find_call(&self, peer: CellId, message: MessageKey) -> CellId {
        let hash = self.index.hash((peer, message));
        let is_wanted = |content: &CellContent<P>| matches!(content, CellContent::Call(call) if call.peer == peer && call.message == message);
        self.index.find(&self.cells, hash, is_wanted)
    }

    fn is_current(&self, entry: CacheEntry) -> bool {
        let content = &self.cells.cell(entry.cell).content;
        matches!(content, CellContent::Call(call) if call.turn == entry.turn)
    }

    fn is_running(&self, entry: CacheEntry) -> bool {
        self.is_current(entry) && !self.cells.call(entry.cell).is_finished
    }

    // ---- Remembering ----

    fn remember(&mut self, key: DuplicateKey<P>, peer_hash: u32, now: u64) -> CacheLookup {
        let Some(peer) = self.make_room_for_call(key.peer, peer_hash, now) else {
            self.counters.overflows += 1;
            return CacheLookup::Full;
        };
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let cell = self.cells.take(CellContent::Call(CachedCall {
            message: key.message,
            peer,
            turn,
            finished_at: 0,
            by_age: CellLinks::default(),
            of_peer: CellLinks::default(),
            pieces: NONE,
            reply_length: 0,
            is_finished: false,
            inline: [0; INLINE_BYTES],
        }));
        let hash = self.index.hash((peer, key.message));
        self.index.insert(&mut self.cells, hash, cell);
        self.cells.peer_mut(peer).running += 1;
        CacheLookup::New(CacheEntry { cell, turn })
    }

    /// Makes room for a call of a peer, which is remembered, too. Room may be made by forgetting the same peer.
    fn make_room_for_call(&mut self, address: P, hash: u32, now: u64) -> Option<CellId> {
        loop {
            let peer = self.find_peer(address, hash);
            let needed = if peer == NONE { 2 } else { 1 };
            if self.cells.available() >= needed {
                return Some(match peer {
                    NONE => self.remember_peer(address, hash),
                    peer => peer,
                });
            }
            if !self.evict(now) {
                return None;
            }
        }
    }

    fn remember_peer(&mut self, address: P, hash: u32) -> CellId {
        let peer = self.cells.take(CellContent::Peer(CachedPeer {
            address,
            running: 0,
            replies: CellList::default(),
            reply_count: 0,
            of_count: CellLinks::default(),
        }));
        self.index.insert(&mut self.cells, hash, peer);
        peer
    }

    // ---- Forgetting ----

    /// Makes room for the pieces of a reply; false if there cannot be enough.
    fn make_room(&mut self, pieces: usize, now: u64) -> bool {
        // The call and its peer take two. What cannot fit pushes nothing out.
        if pieces + 2 > self.cells.max() {
            return false;
        }
        while self.cells.available() < pieces {
            if !self.evict(now) {
                return false;
            }
        }
        true
    }

    /// Forgets some of the replies that are too old to be sent again.
    fn forget_old(&mut self, now: u64) {
        for _ in 0..FORGOTTEN_PER_CALL {
            let oldest = self.replies.first();
            if oldest == NONE || self.age_of(oldest, now) <= self.age {
                return;
            }
            self.remove_reply(oldest);
        }
    }

    /// Forgets the reply that is first to make way; false if there is none.
    fn evict(&mut self, now: u64) -> bool {
        let oldest = self.replies.first();
        if oldest == NONE {
            return false;
        }
        if self.age_of(oldest, now) >= self.protected_age {
            self.remove_reply(oldest);
            return true;
        }
        let largest = self.cells.peer(self.ranking.largest());
        let is_early = largest.reply_count as usize <= self.protected_calls;
        let victim = largest.replies.first();
        self.counters.evicted += 1;
        self.counters.evicted_early += u64::from(is_early);
        self.remove_reply(victim);
        true
    }

    fn age_of(&self, reply: CellId, now: u64) -> u64 {
        now.saturating_sub(self.cells.call(reply).finished_at)
    }

    fn remove_reply(&mut self, id: CellId) {
        let peer = self.cells.call(id).peer;
        self.index.remove(&mut self.cells, id);
        self.replies.remove(&mut self.cells, id, by_age);
        let mut replies = self.cells.peer(peer).replies;
        replies.remove(&mut self.cells, id, of_peer);
        self.cells.peer_mut(peer).replies = replies;
        self.cells.free_pieces(id);
        self.cells.give_back(id);
        self.ranking.remove_reply(&mut self.cells, peer);
        self.forget_unused(peer);
    }

    /// Forgets a peer of which no call is known.
    fn forget_unused(&mut self, peer: CellId) {
        let cached = self.cells.peer(peer);
        if cached.running == 0 && cached.reply_count == 0 {
            self.index.remove(&mut self.cells, peer);
            self.cells.give_back(peer);
        }
    }
}
