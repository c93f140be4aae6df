//! The duplicate request cache: what is remembered, for how long, what makes way, and what memory it takes.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::common::{Random, ShownOnFailure, seeds, words};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Connection, Event, ServiceTable};
use tenon_proto::endpoint::duplicates::{
    CacheEntry, CacheLookup, DuplicateCache, DuplicateCounters, DuplicateKey, DuplicateLimits,
};
use tenon_wire::Buffer;

const SECOND: Duration = Duration::from_secs(1);

/// Bytes of a cell, and of its part in the tables.
const CELL: usize = 128 + 13;

/// Bytes of a reply that stand in the cell of its call, and in each further one.
const INLINE: usize = 47;
const PIECE: usize = 119;

/// Limits with so many cells, one of which is never in use.
fn limits(cells: usize) -> DuplicateLimits {
    DuplicateLimits {
        bytes: DuplicateLimits::BYTES_MIN.max((cells + 1) * CELL),
        age: 120 * SECOND,
        protected_calls: 4,
        protected_age: 60 * SECOND,
    }
}

/// A call as its client sends it.
#[derive(Debug, Clone, Copy)]
struct Call {
    xid: u32,
    program: u32,
    version: u32,
    procedure: u32,
    arguments: &'static [u8],
}

fn call(xid: u32) -> Call {
    Call {
        xid,
        program: 300,
        version: 2,
        procedure: 7,
        arguments: b"arguments",
    }
}

thread_local! {
    /// What finds out what calls mean: tests make many.
    static SERVER: RefCell<(Connection<()>, ServiceTable)> = {
        let mut services = ServiceTable::default();
        for (program, version) in [(300, 2), (301, 2), (300, 3)] {
            services.add(program, version, None);
        }
        let (connection, _) = Connection::server(ConnectionConfig::server());
        RefCell::new((connection, services))
    };
}

impl Call {
    /// What tells it apart when it comes from this peer.
    fn key(self, peer: u32) -> DuplicateKey<u32> {
        let head = [self.xid, 0, 2, self.program, self.version, self.procedure];
        let message = [&words(&head)[..], &words(&[0; 4]), self.arguments].concat();
        SERVER.with_borrow_mut(|(connection, services)| {
            match connection.handle_frame(Frame::Record(&message), services) {
                Ok(Event::Called(call)) => DuplicateKey::new(peer, &call),
                other => panic!("{other:?}"),
            }
        })
    }
}

/// A cache and its clock.
struct Clocked {
    cache: DuplicateCache<u32>,
    now: Instant,
    /// The entry that each call of a peer had last.
    entries: HashMap<(u32, u32), CacheEntry>,
}

impl Clocked {
    fn new(limits: DuplicateLimits) -> Self {
        Self {
            cache: DuplicateCache::new(limits),
            now: Instant::now(),
            entries: HashMap::new(),
        }
    }

    fn check(&mut self, peer: u32, xid: u32) -> CacheLookup {
        self.cache.check(call(xid).key(peer), self.now)
    }

    /// Begins a call, which is new.
    #[track_caller]
    fn begin(&mut self, peer: u32, xid: u32) -> CacheEntry {
        match self.check(peer, xid) {
            CacheLookup::New(entry) => entry,
            other => panic!("call {xid} of {peer} is {other:?}"),
        }
    }

    /// Carries a call out, which is new.
    #[track_caller]
    fn carry_out(&mut self, peer: u32, xid: u32, reply: &[u8]) {
        let entry = self.begin(peer, xid);
        self.entries.insert((peer, xid), entry);
        self.cache.finish(entry, reply, self.now);
    }

    /// Whether the reply to a call is remembered, which is not empty. To find out changes nothing.
    fn holds(&self, peer: u32, xid: u32) -> bool {
        let mut out = Buffer::default();
        let entry = self.entries[&(peer, xid)];
        self.cache.append_reply(entry, &mut out);
        !out.is_empty()
    }

    fn finish(&mut self, entry: CacheEntry, reply: &[u8]) {
        self.cache.finish(entry, reply, self.now);
    }

    /// The reply to a call that is repeated, if it is remembered. One that is new is forgotten again.
    fn repeat(&mut self, peer: u32, xid: u32) -> Option<Vec<u8>> {
        match self.check(peer, xid) {
            CacheLookup::Done(entry) => {
                let mut out = Buffer::default();
                self.cache.append_reply(entry, &mut out);
                Some(out.as_slice().to_vec())
            }
            CacheLookup::New(entry) => {
                self.cache.forget(entry);
                None
            }
            other => panic!("call {xid} of {peer} is {other:?}"),
        }
    }

    /// How many replies to these calls of a peer are remembered; they are to be the last ones.
    #[track_caller]
    fn newest(&self, peer: u32, xids: std::ops::Range<u32>) -> usize {
        let remembered: Vec<bool> = xids.map(|xid| self.holds(peer, xid)).collect();
        let first = remembered.iter().position(|is| *is);
        let newest = &remembered[first.unwrap_or(remembered.len())..];
        assert!(newest.iter().all(|is| *is), "{remembered:?}");
        newest.len()
    }

    fn evicted(&self) -> (u64, u64) {
        let DuplicateCounters {
            evicted,
            evicted_early,
            ..
        } = self.cache.counters();
        (evicted, evicted_early)
    }
}

// ---- What is remembered ----

#[test]
fn a_repeated_call_is_dropped_while_it_is_carried_out_and_answered_afterwards() {
    let mut cache = Clocked::new(limits(30));
    let entry = cache.begin(1, 1);
    assert_eq!(cache.check(1, 1), CacheLookup::InProgress);
    cache.now += 9000 * SECOND;
    assert_eq!(cache.check(1, 1), CacheLookup::InProgress);
    cache.finish(entry, b"reply");
    assert_eq!(cache.repeat(1, 1).unwrap(), b"reply");
    cache.now += 120 * SECOND;
    assert_eq!(cache.repeat(1, 1).unwrap(), b"reply");
    let counters = cache.cache.counters();
    assert_eq!((counters.dropped, counters.answered), (2, 2));
}

#[test]
fn calls_that_differ_in_anything_are_different_calls() {
    const LONG: [u8; 300] = [b'x'; 300];
    let mut cache = Clocked::new(limits(30));
    let other_arguments = |arguments| Call {
        arguments,
        ..call(1)
    };
    let of_program = |program, version, procedure| Call {
        program,
        version,
        procedure,
        ..call(1)
    };
    let calls = [
        (1, call(1)),
        (2, call(1)),
        (1, call(2)),
        (1, of_program(301, 2, 7)),
        (1, of_program(300, 3, 7)),
        (1, of_program(300, 2, 8)),
        (1, other_arguments(b"argumentz")),
        (1, other_arguments(b"argument")),
        (1, other_arguments(&LONG[..299])),
        (1, other_arguments(&LONG)),
    ];
    for (peer, call) in calls {
        let verdict = cache.cache.check(call.key(peer), cache.now);
        let CacheLookup::New(entry) = verdict else {
            panic!("{peer} {call:?}")
        };
        cache.finish(entry, b"");
    }
}

#[test]
fn replies_of_any_length_come_back_as_they_were_sent() {
    let mut cache = Clocked::new(limits(700));
    let mut random = Random(1);
    let lengths = (0..INLINE + 3 * PIECE + 3).chain([65_000, 65_506, 65_507]);
    for (xid, length) in (0..).zip(lengths) {
        let reply = random.bytes(length);
        cache.carry_out(1, xid, &reply);
        assert_eq!(cache.repeat(1, xid), Some(reply), "{length} bytes");
    }
}

#[test]
fn a_reply_is_forgotten_when_it_is_old() {
    let mut cache = Clocked::new(limits(30));
    cache.carry_out(1, 1, b"first");
    cache.now += 120 * SECOND + Duration::from_nanos(1);
    cache.carry_out(1, 1, b"second");
    assert_eq!(cache.repeat(1, 1).unwrap(), b"second");
    assert_eq!(cache.evicted(), (0, 0));
}

#[test]
fn old_replies_and_their_peers_give_their_memory_back() {
    let mut cache = Clocked::new(limits(1000));
    for peer in 0..300 {
        cache.carry_out(peer, 1, &[1; 100]);
    }
    cache.now += 121 * SECOND;
    // Two with each call, so that no call waits for many.
    for xid in 0..200 {
        let entry = cache.begin(9999, xid);
        cache.cache.forget(entry);
    }
    assert!(cache.cache.is_empty());
    assert_eq!(cache.evicted(), (0, 0), "they were old");
}

#[test]
fn a_call_that_is_not_carried_out_after_all_is_new_again() {
    let mut cache = Clocked::new(limits(30));
    for _ in 0..100 {
        let entry = cache.begin(1, 1);
        cache.cache.forget(entry);
        cache.finish(entry, b"too late");
        assert!(cache.cache.is_empty());
    }
    cache.carry_out(1, 1, b"reply");
    cache.carry_out(1, 2, b"reply");
    assert_eq!(cache.repeat(1, 1).unwrap(), b"reply");
}

// ---- What makes way ----

#[test]
fn the_peer_with_most_replies_makes_way_and_its_oldest_first() {
    let mut cache = Clocked::new(limits(32));
    // Two peers and thirty replies.
    (0..10).for_each(|xid| cache.carry_out(1, xid, b"-"));
    (0..20).for_each(|xid| cache.carry_out(2, xid, b"-"));
    for further in 10..14 {
        cache.carry_out(1, further, b"-");
    }
    assert_eq!(cache.evicted(), (4, 0));
    assert_eq!(cache.newest(1, 0..14), 14);
    assert_eq!(cache.newest(2, 0..20), 16);
}

#[test]
fn of_peers_with_as_many_replies_the_one_that_has_had_them_for_longest_makes_way() {
    let mut cache = Clocked::new(limits(29));
    for peer in [3, 1, 2] {
        (0..8).for_each(|xid| cache.carry_out(peer, xid, b"-"));
    }
    // The fourth peer takes the last two cells, its second call that of the first of the three.
    cache.carry_out(4, 0, b"-");
    assert_eq!(cache.evicted(), (0, 0));
    cache.carry_out(4, 1, b"-");
    assert_eq!(cache.newest(3, 0..8), 7);
    cache.carry_out(4, 2, b"-");
    assert_eq!(cache.newest(1, 0..8), 7);
    cache.carry_out(4, 3, b"-");
    assert_eq!(cache.newest(2, 0..8), 7);
    assert_eq!(cache.evicted(), (3, 0));
}

#[test]
fn a_busy_peer_leaves_others_their_protected_replies() {
    let limits = DuplicateLimits {
        protected_calls: 128,
        ..limits(2000)
    };
    let mut cache = Clocked::new(limits);
    for peer in 1..4 {
        (0..128).for_each(|xid| cache.carry_out(peer, xid, b"quiet"));
    }
    // Sixty seconds long, at thousands of calls in each.
    for xid in 0..100_000 {
        cache.carry_out(9, xid, b"busy");
        cache.now += 60 * SECOND / 100_001;
    }
    assert!(cache.evicted().0 > 90_000);
    assert_eq!(cache.evicted().1, 0, "none of them was promised");
    for peer in 1..4 {
        assert_eq!(cache.newest(peer, 0..128), 128, "peer {peer}");
    }
}

#[test]
fn replies_that_are_not_protected_any_more_go_before_those_of_the_largest_peer() {
    let mut cache = Clocked::new(limits(32));
    (0..5).for_each(|xid| cache.carry_out(1, xid, b"-"));
    cache.now += 60 * SECOND;
    (0..25).for_each(|xid| cache.carry_out(2, xid, b"-"));
    (25..29).for_each(|xid| cache.carry_out(2, xid, b"-"));
    assert_eq!(cache.newest(1, 0..5), 1);
    assert_eq!(cache.evicted(), (0, 0), "they were not promised for longer");
    cache.carry_out(2, 29, b"-");
    // The first peer is gone, and its cell is free for one call more.
    cache.carry_out(2, 30, b"-");
    assert_eq!(cache.newest(2, 0..31), 31);
    cache.carry_out(2, 31, b"-");
    assert_eq!(cache.newest(2, 0..32), 31);
    assert_eq!(cache.evicted(), (1, 0));
}

#[test]
fn only_protected_replies_that_are_young_count_as_evicted_early() {
    let nearly = 60 * SECOND - Duration::from_nanos(1);
    for (age, expected) in [(nearly, (1, 1)), (60 * SECOND, (0, 0))] {
        let mut cache = Clocked::new(limits(35));
        // Seven peers with four replies each, which is as many as are protected.
        for peer in 0..7 {
            (0..4).for_each(|xid| cache.carry_out(peer, xid, b"-"));
        }
        cache.now += age;
        cache.carry_out(0, 4, b"-");
        assert_eq!(cache.evicted(), expected, "{age:?}");
    }
}

#[test]
fn peers_that_come_once_push_each_other_out_when_all_have_one_reply() {
    let mut cache = Clocked::new(limits(200));
    (0..100).for_each(|peer| cache.carry_out(peer, 1, b"-"));
    assert_eq!(cache.evicted(), (0, 0));
    for peer in 100..5000 {
        cache.carry_out(peer, 1, b"-");
        let oldest = cache.evicted().0 as u32;
        assert_eq!(oldest, peer - 99);
    }
    assert_eq!(cache.evicted(), (4900, 4900), "the operator is told");
    assert_eq!(
        (4900..5000)
            .filter(|peer| cache.repeat(*peer, 1).is_some())
            .count(),
        100
    );
}

/// So many that a step that looked at all peers or all calls would make this take hours.
#[test]
fn floods_of_spoofed_peers_and_of_calls_of_one_peer_are_survived() {
    let limits = DuplicateLimits {
        bytes: 16 << 20,
        ..DuplicateLimits::default()
    };
    let mut cache = Clocked::new(limits);
    (0..128).for_each(|xid| cache.carry_out(1, xid, b"honest"));
    (0..150_000).for_each(|xid| cache.carry_out(2, xid, b"busy"));
    assert_eq!(cache.newest(1, 0..128), 128);
    for peer in 1000..51_000 {
        cache.carry_out(peer, 1, b"spoofed");
    }
    assert_eq!(cache.evicted().1, 0, "the busy peer has made way");
    assert_eq!(cache.newest(1, 0..128), 128);
    for peer in 51_000..151_000 {
        cache.carry_out(peer, 1, b"spoofed");
    }
    assert!(cache.evicted().1 > 0, "there are more peers than room");
    let bytes = cache.cache.allocated_bytes();
    assert!((15 << 20..=16 << 20).contains(&bytes), "{bytes}");
}

// ---- What is carried out ----

#[test]
fn a_call_that_is_being_carried_out_never_makes_way() {
    let mut cache = Clocked::new(limits(30));
    let running = cache.begin(1, 1);
    for xid in 2..1000 {
        cache.carry_out(1, xid, b"reply");
        cache.carry_out(xid, 1, &[7; 500]);
        cache.now += SECOND;
    }
    assert_eq!(cache.check(1, 1), CacheLookup::InProgress);
    cache.finish(running, b"at last");
    assert_eq!(cache.repeat(1, 1).unwrap(), b"at last");
}

#[test]
fn when_calls_being_carried_out_take_all_memory_a_further_call_is_dropped() {
    let mut cache = Clocked::new(limits(30));
    let running: Vec<_> = (0..29).map(|xid| cache.begin(1, xid)).collect();
    assert_eq!(cache.check(1, 99), CacheLookup::Full);
    assert_eq!(cache.check(2, 99), CacheLookup::Full);
    assert_eq!(cache.cache.counters().overflows, 2);
    for (xid, entry) in (0..).zip(&running) {
        assert_eq!(cache.check(1, xid), CacheLookup::InProgress, "{entry:?}");
    }
    cache.finish(running[3], b"reply");
    cache.begin(1, 99);
    assert_eq!(cache.evicted(), (1, 1));
}

#[test]
fn a_reply_that_finds_no_room_is_not_kept_and_is_counted() {
    let mut cache = Clocked::new(limits(30));
    let long = vec![2; INLINE + 29 * PIECE];
    cache.carry_out(1, 1, &[1; 40]);
    cache.carry_out(1, 2, &long);
    assert_eq!(cache.evicted(), (1, 1));
    assert_eq!(cache.repeat(1, 1).unwrap(), [1; 40], "it harms no other");
    assert_eq!(cache.repeat(1, 2), None);
    let fits = &long[..INLINE + 28 * PIECE];
    cache.carry_out(1, 3, fits);
    assert_eq!(cache.repeat(1, 3).unwrap(), fits);
    assert_eq!(cache.repeat(1, 1), None);
}

// ---- What memory it takes ----

#[test]
fn memory_is_taken_as_calls_come_and_never_more_than_the_limit() {
    for bytes in [
        4096,
        4097,
        5000,
        10_000,
        65_536,
        100_000,
        1 << 20,
        3_000_000,
    ] {
        let limits = DuplicateLimits { bytes, ..limits(0) };
        let mut cache = Clocked::new(limits);
        let tables = cache.cache.allocated_bytes();
        assert!(tables <= bytes / 8, "{tables} of {bytes} at the start");
        let mut random = Random(bytes as u64);
        for xid in 0..60_000 {
            let length = random.of_bits(10);
            cache.carry_out(random.below(50) as u32, xid, &vec![1; length]);
        }
        let allocated = cache.cache.allocated_bytes();
        assert!(allocated <= bytes, "{allocated} of {bytes}");
        assert!(allocated * 10 >= bytes * 8, "only {allocated} of {bytes}");
    }
}

#[test]
fn every_cell_is_used_before_a_reply_makes_way() {
    for cells in [28, 100, 511, 512, 513, 2000] {
        let mut cache = Clocked::new(limits(cells));
        // The peer takes a cell, a short call one, a long one more.
        cache.carry_out(1, 0, &[1; INLINE + 2 * PIECE]);
        (1..cells as u32 - 3).for_each(|xid| cache.carry_out(1, xid, &[1; INLINE]));
        assert_eq!(cache.evicted(), (0, 0), "{cells}");
        cache.carry_out(1, 9999, b"");
        assert_eq!(cache.evicted().0, 1, "{cells}");
        assert_eq!(cache.repeat(1, 0), None);
    }
}

// ---- All of it ----

/// What the cache is to do, by looking at everything each time.
#[derive(Default)]
struct Model {
    cells: usize,
    /// Peer, xid, age and cells of each reply, the oldest first.
    replies: Vec<(u32, u32, Instant, Vec<u8>)>,
    running: Vec<(u32, u32, CacheEntry)>,
    /// When the number of the replies of each peer changed last.
    since: HashMap<u32, u64>,
    changes: u64,
    evicted: (u64, u64),
}

fn cells_of(reply: &[u8]) -> usize {
    1 + reply.len().saturating_sub(INLINE).div_ceil(PIECE)
}

impl Model {
    fn used(&self) -> usize {
        let replies: usize = self.replies.iter().map(|reply| cells_of(&reply.3)).sum();
        let of_replies = self.replies.iter().map(|reply| reply.0);
        let peers: HashSet<u32> = of_replies
            .chain(self.running.iter().map(|call| call.0))
            .collect();
        replies + self.running.len() + peers.len()
    }

    fn knows(&self, peer: u32) -> bool {
        self.replies.iter().any(|reply| reply.0 == peer)
            || self.running.iter().any(|call| call.0 == peer)
    }

    fn count(&self, peer: u32) -> usize {
        self.replies.iter().filter(|reply| reply.0 == peer).count()
    }

    fn changed(&mut self, peer: u32) {
        self.changes += 1;
        self.since.insert(peer, self.changes);
    }

    fn remove(&mut self, at: usize) {
        let (peer, ..) = self.replies.remove(at);
        self.changed(peer);
    }

    fn forget_old(&mut self, now: Instant) {
        for _ in 0..2 {
            if self
                .replies
                .first()
                .is_some_and(|reply| now - reply.2 > 120 * SECOND)
            {
                self.remove(0);
            }
        }
    }

    fn evict(&mut self, now: Instant) -> bool {
        let Some(oldest) = self.replies.first() else {
            return false;
        };
        if now - oldest.2 >= 60 * SECOND {
            self.remove(0);
            return true;
        }
        let rank = |peer: u32| (self.count(peer), Reverse(self.since[&peer]));
        let peers = self.replies.iter().map(|reply| reply.0);
        let largest = peers.max_by_key(|peer| rank(*peer)).unwrap();
        self.evicted.0 += 1;
        self.evicted.1 += u64::from(self.count(largest) <= 4);
        let first = self.replies.iter().position(|reply| reply.0 == largest);
        self.remove(first.unwrap());
        true
    }

    /// Whether there is room for a new call.
    fn admit(&mut self, peer: u32, now: Instant) -> bool {
        loop {
            if self.used() + 1 + usize::from(!self.knows(peer)) <= self.cells {
                return true;
            }
            if !self.evict(now) {
                return false;
            }
        }
    }

    fn finish(&mut self, at: usize, reply: &[u8], now: Instant) -> CacheEntry {
        let pieces = cells_of(reply) - 1;
        let mut fits = pieces + 2 <= self.cells;
        while fits && self.used() + pieces > self.cells {
            fits = self.evict(now);
        }
        let (peer, xid, entry) = self.running.swap_remove(at);
        if fits {
            self.replies.push((peer, xid, now, reply.to_vec()));
            self.changed(peer);
        } else {
            self.evicted.0 += 1;
            self.evicted.1 += 1;
        }
        entry
    }
}

#[test]
fn random_calls_fare_as_a_model_says_that_looks_at_everything() {
    let mut seen = [0; 5];
    for seed in seeds(300) {
        let _shown = ShownOnFailure(seed);
        let mut random = Random(seed);
        let cells = 28 + random.of_bits(6);
        let mut cache = Clocked::new(limits(cells));
        let mut model = Model {
            cells,
            ..Model::default()
        };
        let (peers, xids) = (1 + random.of_bits(5), 1 + random.of_bits(6));
        let (step, longest) = (random.of_bits(12) as u32, 1 + random.of_bits(12));
        for _ in 0..400 {
            cache.now += SECOND / 1000 * random.below(1 + step as usize) as u32;
            if random.per_mille(20) {
                cache.now += 121 * SECOND;
            }
            let now = cache.now;
            let (peer, xid) = (random.below(peers) as u32, random.below(xids) as u32);
            let is_same = |call: &(u32, u32, CacheEntry)| (call.0, call.1) == (peer, xid);
            let verdict = cache.check(peer, xid);
            model.forget_old(now);
            let known = model
                .replies
                .iter()
                .position(|reply| (reply.0, reply.1) == (peer, xid));
            let kept = known.filter(|at| now - model.replies[*at].2 <= 120 * SECOND);
            match verdict {
                CacheLookup::InProgress => assert!(model.running.iter().any(is_same)),
                CacheLookup::Done(entry) => {
                    let mut out = Buffer::default();
                    cache.cache.append_reply(entry, &mut out);
                    assert_eq!(out.as_slice(), model.replies[kept.unwrap()].3);
                    seen[0] += 1;
                }
                CacheLookup::New(_) | CacheLookup::Full => {
                    assert!(!model.running.iter().any(is_same) && kept.is_none());
                    if let Some(at) = known {
                        model.remove(at);
                        seen[1] += 1;
                    }
                    let is_admitted = model.admit(peer, now);
                    if let CacheLookup::New(entry) = verdict {
                        assert!(is_admitted);
                        model.running.push((peer, xid, entry));
                    } else {
                        assert!(!is_admitted);
                        seen[2] += 1;
                    }
                }
            }
            if !model.running.is_empty() && random.per_mille(600) {
                let at = random.below(model.running.len());
                if random.per_mille(100) {
                    cache.cache.forget(model.running.swap_remove(at).2);
                } else {
                    let length = random.below(longest);
                    let reply = random.bytes(length);
                    let entry = model.finish(at, &reply, now);
                    cache.finish(entry, &reply);
                }
            }
            assert_eq!(cache.evicted(), model.evicted);
            assert_eq!(cache.cache.is_empty(), model.used() == 0);
        }
        seen[3] += model.evicted.0;
        seen[4] += model.evicted.1;
    }
    println!("{seen:?}");
    assert!(seen.iter().all(|times| *times > 20), "{seen:?}");
}
