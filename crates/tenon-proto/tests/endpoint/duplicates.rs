//! The duplicate request cache: what is remembered, for how long, and within which bounds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::common::{Random, words};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Frame;
use tenon_proto::connection::{Connection, Event, ServiceTable};
use tenon_proto::endpoint::duplicates::{CallKey, DuplicateCache, DuplicateLimits, Verdict};

const SECOND: Duration = Duration::from_secs(1);

const LIMITS: DuplicateLimits = DuplicateLimits {
    entries: 4,
    bytes: 100,
    age: SECOND,
};

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

impl Call {
    /// What tells it apart when it comes from this port.
    fn key(self, peer: u16) -> CallKey<u16> {
        let mut services = ServiceTable::default();
        for (program, version) in [(300, 2), (301, 2), (300, 3)] {
            services.add(program, version, None);
        }
        let head = [self.xid, 0, 2, self.program, self.version, self.procedure];
        let message = [&words(&head)[..], &words(&[0; 4]), self.arguments].concat();
        let (mut connection, _) = Connection::<()>::server(ConnectionConfig::server());
        match connection.handle_frame(Frame::Record(&message), &services) {
            Ok(Event::Called(call)) => CallKey::new(peer, &call),
            other => panic!("{other:?}"),
        }
    }
}

fn key(xid: u32) -> CallKey<u16> {
    call(xid).key(1)
}

fn cache() -> (DuplicateCache<u16>, Instant) {
    (DuplicateCache::new(LIMITS), Instant::now())
}

/// Carries out a call that is new.
fn carry_out(cache: &mut DuplicateCache<u16>, xid: u32, reply: &[u8], now: Instant) {
    assert_eq!(cache.check(key(xid), now), Verdict::New, "call {xid}");
    cache.finish(&key(xid), reply, now);
}

#[test]
fn a_repeated_call_is_dropped_while_it_is_carried_out_and_answered_afterwards() {
    let (mut cache, now) = cache();
    assert_eq!(cache.check(key(1), now), Verdict::New);
    assert_eq!(cache.check(key(1), now), Verdict::InProgress);
    assert_eq!(cache.check(key(1), now + 9 * SECOND), Verdict::InProgress);
    cache.finish(&key(1), b"reply", now);
    assert_eq!(cache.check(key(1), now), Verdict::Done(b"reply"));
    assert_eq!(cache.check(key(1), now + SECOND), Verdict::Done(b"reply"));
    let counters = cache.counters();
    assert_eq!((counters.dropped, counters.answered), (2, 2));
}

#[test]
fn calls_that_differ_in_anything_are_different_calls() {
    const LONG: [u8; 300] = [b'x'; 300];
    let (mut cache, now) = cache();
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
        let key = call.key(peer);
        assert_eq!(cache.check(key, now), Verdict::New, "{peer} {call:?}");
        cache.finish(&key, b"", now);
    }
}

#[test]
fn a_reply_is_forgotten_when_it_is_old() {
    let (mut cache, now) = cache();
    carry_out(&mut cache, 1, b"first", now);
    let later = now + SECOND + Duration::from_nanos(1);
    carry_out(&mut cache, 1, b"second", later);
    assert_eq!(cache.check(key(1), later), Verdict::Done(b"second"));
}

#[test]
fn a_call_that_came_again_is_as_young_as_its_last_time() {
    let (mut cache, now) = cache();
    carry_out(&mut cache, 1, b"", now);
    let later = now + 2 * SECOND;
    carry_out(&mut cache, 2, b"", later);
    carry_out(&mut cache, 1, b"again", later);
    carry_out(&mut cache, 3, b"", later);
    carry_out(&mut cache, 4, b"", later);
    assert_eq!(cache.check(key(1), later), Verdict::Done(b"again"));
}

#[test]
fn the_oldest_call_is_forgotten_when_the_entries_are_used_up() {
    let (mut cache, now) = cache();
    for xid in 1..=5 {
        carry_out(&mut cache, xid, b"reply", now);
        assert!(cache.len() <= LIMITS.entries);
    }
    for xid in 2..=5 {
        assert_eq!(cache.check(key(xid), now), Verdict::Done(b"reply"));
    }
    assert_eq!(cache.check(key(1), now), Verdict::New);
}

#[test]
fn a_call_that_is_being_carried_out_is_never_forgotten() {
    let (mut cache, now) = cache();
    assert_eq!(cache.check(key(1), now), Verdict::New);
    for xid in 2..100 {
        carry_out(&mut cache, xid, b"reply", now);
    }
    assert_eq!(cache.check(key(1), now), Verdict::InProgress);
}

#[test]
fn when_all_entries_are_being_carried_out_a_further_call_is_dropped() {
    let (mut cache, now) = cache();
    for xid in 1..=4 {
        assert_eq!(cache.check(key(xid), now), Verdict::New);
    }
    assert_eq!(cache.check(key(5), now), Verdict::Full);
    assert_eq!(cache.counters().overflows, 1);
    cache.finish(&key(3), b"reply", now);
    assert_eq!(cache.check(key(5), now), Verdict::New);
}

#[test]
fn the_oldest_replies_make_way_when_the_bytes_are_used_up() {
    let (mut cache, now) = cache();
    carry_out(&mut cache, 1, &[1; 40], now);
    carry_out(&mut cache, 2, &[2; 40], now);
    assert_eq!(cache.check(key(1), now), Verdict::Done(&[1; 40]));
    carry_out(&mut cache, 3, &[3; 40], now);
    assert_eq!(cache.check(key(2), now), Verdict::Done(&[2; 40]));
    assert_eq!(cache.check(key(3), now), Verdict::Done(&[3; 40]));
    assert_eq!(cache.check(key(1), now), Verdict::New);
}

#[test]
fn a_call_that_is_not_carried_out_after_all_is_new_again() {
    let (mut cache, now) = cache();
    for _ in 0..100 {
        assert_eq!(cache.check(key(1), now), Verdict::New);
        cache.forget(&key(1));
    }
    carry_out(&mut cache, 1, b"reply", now);
    carry_out(&mut cache, 2, b"reply", now);
    assert_eq!(cache.check(key(1), now), Verdict::Done(b"reply"));
}

#[test]
fn a_reply_that_is_too_long_is_not_kept_and_harms_no_other() {
    let (mut cache, now) = cache();
    carry_out(&mut cache, 1, &[1; 40], now);
    carry_out(&mut cache, 2, &[2; 101], now);
    assert_eq!(cache.counters().too_long, 1);
    assert_eq!(cache.check(key(1), now), Verdict::Done(&[1; 40]));
    carry_out(&mut cache, 2, &[2; 60], now);
    assert_eq!(cache.check(key(2), now), Verdict::Done(&[2; 60]));
}

/// Neither calls that were not carried out after all nor those whose replies are too long push others out.
#[test]
fn calls_that_are_not_remembered_take_no_place() {
    let (mut cache, now) = cache();
    carry_out(&mut cache, 1, b"reply", now);
    for xid in 2..100 {
        assert_eq!(cache.check(key(xid), now), Verdict::New);
        cache.forget(&key(xid));
        carry_out(&mut cache, xid, &[0; 101], now);
    }
    assert_eq!(cache.len(), 1);
    assert_eq!(cache.check(key(1), now), Verdict::Done(b"reply"));
}

#[test]
fn random_calls_are_answered_with_their_own_replies_and_the_bounds_hold() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut cache = DuplicateCache::new(LIMITS);
        let mut now = Instant::now();
        let mut in_progress = Vec::new();
        let mut replies = HashMap::new();
        for _ in 0..500 {
            now += SECOND / 10 * random.below(3) as u32;
            let xid = random.below(8) as u32;
            match cache.check(key(xid), now) {
                Verdict::New => {
                    assert!(
                        !in_progress.contains(&xid),
                        "seed {seed}: {xid} carried out twice"
                    );
                    in_progress.push(xid);
                }
                Verdict::InProgress => assert!(in_progress.contains(&xid), "seed {seed}"),
                Verdict::Done(reply) => assert_eq!(replies.get(&xid), Some(&reply.to_vec())),
                Verdict::Full => assert_eq!(in_progress.len(), LIMITS.entries, "seed {seed}"),
            }
            if !in_progress.is_empty() && random.per_mille(500) {
                let xid = in_progress.swap_remove(random.below(in_progress.len()));
                let length = random.below(120);
                let reply = random.bytes(length);
                cache.finish(&key(xid), &reply, now);
                replies.insert(xid, reply);
            }
            assert!(cache.len() <= LIMITS.entries);
        }
    }
}
