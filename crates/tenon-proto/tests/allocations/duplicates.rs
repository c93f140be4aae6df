//! The memory of the duplicate request cache, as the allocator sees it.

use std::time::Instant;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Connection, Event, ServiceTable};
use tenon_proto::endpoint::duplicates::{
    CacheLookup, DuplicateCache, DuplicateKey, DuplicateLimits,
};

use crate::{change, turn};

const BYTES: usize = 1 << 20;

/// Calls of many peers, each new.
struct Calls {
    cache: DuplicateCache<u32>,
    now: Instant,
    peer: u32,
}

fn key(peer: u32) -> DuplicateKey<u32> {
    let mut services = ServiceTable::default();
    services.add(300, 1, None);
    let words = [9, 0, 2, 300, 1, 7, 0, 0, 0, 0_u32];
    let mut message = [0; 40];
    for (place, word) in message.chunks_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    let (mut connection, _) = Connection::<()>::server(ConnectionConfig::server());
    let Ok(Event::Called(call)) = connection.handle_frame(Frame::Record(&message), &services)
    else {
        panic!("it is a call")
    };
    DuplicateKey::new(peer, &call)
}

impl Calls {
    fn new() -> Self {
        let limits = DuplicateLimits {
            bytes: BYTES,
            ..DuplicateLimits::default()
        };
        Self {
            cache: DuplicateCache::new(limits),
            now: Instant::now(),
            peer: 0,
        }
    }

    /// Prepares so many calls, for which memory is needed that is not the cache's.
    fn keys(&mut self, calls: u32) -> Vec<DuplicateKey<u32>> {
        let peers = self.peer..self.peer + calls;
        self.peer = peers.end;
        peers.map(key).collect()
    }

    fn carry_out(&mut self, keys: &[DuplicateKey<u32>]) {
        let reply = [7; 700];
        for (index, key) in keys.iter().enumerate() {
            let CacheLookup::New(entry) = self.cache.check(*key, self.now) else {
                panic!("it is new")
            };
            self.cache.finish(entry, &reply[..index % 700], self.now);
        }
    }
}

/// Whether it holds at one of a few tries: what the test harness allocates counts, too.
fn at_a_quiet_moment(mut holds: impl FnMut() -> bool) -> bool {
    (0..5).any(|_| holds())
}

#[test]
fn a_full_cache_has_taken_no_more_than_its_limit_and_takes_nothing_more() {
    let _turn = turn();
    let holds = at_a_quiet_moment(|| {
        let keys = Calls::new().keys(5000);
        let mut calls = None;
        let stats = change(|| {
            let mut full = Calls::new();
            full.carry_out(&keys);
            calls = Some(full);
        });
        let mut calls = calls.unwrap();
        let taken = stats.bytes_allocated - stats.bytes_deallocated;
        let said = calls.cache.allocated_bytes();
        println!(
            "{taken} bytes taken, {said} said, {} allocations",
            stats.allocations
        );
        let is_lazy = stats.allocations < 4 + BYTES / (64 << 10);
        calls.peer = 5000;
        let more = calls.keys(2000);
        let stats = change(|| calls.carry_out(&more));
        let is_free = stats.allocations + stats.reallocations == 0;
        is_lazy && is_free && (said..=BYTES).contains(&taken)
    });
    assert!(holds);
}

#[test]
fn a_cache_takes_memory_in_pieces_as_calls_come() {
    let _turn = turn();
    let holds = at_a_quiet_moment(|| {
        let mut calls = Calls::new();
        let empty = calls.cache.allocated_bytes();
        let keys = calls.keys(200);
        let stats = change(|| calls.carry_out(&keys[..1]));
        let first = stats.bytes_allocated;
        let stats = change(|| calls.carry_out(&keys[1..]));
        println!("{empty} bytes, {first} more for one call, {stats:?} for 199");
        empty < BYTES / 8 && first == 64 << 10 && stats.allocations < 5
    });
    assert!(holds);
}
