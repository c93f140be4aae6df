//! What a server does with datagrams: repeated calls are executed once, replies fit or say so, and
//! nothing answers what is no call.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::*;
use crate::common::gate;
use tenon::{DuplicateLimits, Server, StartError};

fn servers() -> [Server; 2] {
    let on_workers = listening().service(Obliging(VERSION));
    [builder(), on_workers].map(|builder| builder.start().unwrap())
}

#[test]
fn a_call_that_is_repeated_is_executed_once() {
    for server in servers() {
        let mut caller = Caller::udp(&server);
        let message = call(1, COUNT, &[]);
        caller.send(&message);
        let reply = caller.receive();
        for _ in 0..5 {
            caller.expect(&message, &reply);
        }
        assert_eq!(server.counters().duplicates_answered, 5);
        caller.send(&call(2, COUNT, &[]));
        assert_ne!(caller.receive()[4..], reply[4..]);
    }
}

/// Makes so many calls, some at a time.
fn call_busily(server: &Server, calls: u32) {
    const TOGETHER: u32 = 16;
    let mut caller = Caller::udp(server);
    for first in (0..calls).step_by(TOGETHER as usize) {
        for xid in first..first + TOGETHER {
            caller.send(&call(xid, COUNT, &[]));
        }
        (0..TOGETHER).for_each(|_| drop(caller.receive()));
    }
}

/// A client whose replies are lost asks again after half a second and more, while another one is busy.
#[test]
fn calls_whose_replies_are_lost_are_executed_once_beside_a_busy_client() {
    const BUSY: u32 = 20_000;
    const LOST: u32 = 8;
    for bytes in [DuplicateLimits::default().bytes, 128 << 10] {
        // On a busy machine the calls may take longer than replies are kept for.
        let limits = DuplicateLimits {
            bytes,
            age: Duration::from_secs(3600),
            protected_age: Duration::from_secs(3600),
            ..DuplicateLimits::default()
        };
        let server = builder().duplicate_limits(limits).start().unwrap();
        let mut caller = Caller::udp(&server);
        let calls: Vec<_> = (0..LOST).map(|xid| call(xid, COUNT, &[])).collect();
        let replies: Vec<_> = calls
            .iter()
            .map(|call| {
                caller.send(call);
                caller.receive()
            })
            .collect();
        let lost_at = Instant::now();
        call_busily(&server, BUSY);
        let half_a_second = lost_at + Duration::from_millis(500);
        thread::sleep(half_a_second.saturating_duration_since(Instant::now()));
        for (call, reply) in calls.iter().zip(&replies) {
            // The reply has the number of the execution.
            caller.expect(call, reply);
        }
        let counters = server.counters();
        assert_eq!(counters.calls, u64::from(BUSY + LOST));
        assert_eq!(counters.duplicates_answered, u64::from(LOST));
        assert_eq!(counters.replies_evicted > 0, bytes < 1 << 20, "{bytes}");
        assert_eq!(counters.replies_evicted_early, 0);
    }
}

/// More clients than there is room for: the counter tells the operator.
#[test]
fn replies_that_make_way_early_are_counted() {
    let limits = DuplicateLimits {
        bytes: DuplicateLimits::BYTES_MIN,
        ..DuplicateLimits::default()
    };
    let server = builder().duplicate_limits(limits).start().unwrap();
    let mut callers: Vec<_> = (0..40).map(|_| Caller::udp(&server)).collect();
    for caller in &mut callers {
        caller.expect(&call(1, ECHO, b"four"), &success(1, b"four"));
    }
    // Each client takes two of 28 cells.
    let counters = server.counters();
    assert_eq!(counters.replies_evicted_early, 40 - 14);
    assert_eq!(counters.replies_evicted, 40 - 14);
}

#[test]
fn a_call_that_is_repeated_while_it_is_executed_is_answered_once() {
    let server = listening().service(Obliging(VERSION)).start().unwrap();
    let mut caller = Caller::udp(&server);
    let gate = gate::fresh_gate();
    for _ in 0..3 {
        caller.send(&call(1, HOLD, &words(&[gate])));
    }
    eventually("two are dropped", || {
        server.counters().datagrams_dropped == 2
    });
    gate::open(gate);
    assert_eq!(caller.receive(), success(1, &words(&[gate])));
    caller.expect_service();
    assert_eq!(server.counters().datagrams_dropped, 2);
}

#[test]
fn the_same_call_of_another_peer_is_another_call() {
    let server = builder().start().unwrap();
    let mut replies = [0, 1].map(|_| {
        let mut caller = Caller::udp(&server);
        caller.send(&call(1, COUNT, &[]));
        caller.receive()
    });
    replies.sort();
    assert!(replies[0] < replies[1]);
}

#[test]
fn a_reply_that_does_not_fit_is_a_system_error() {
    for server in servers() {
        let mut caller = Caller::udp(&server);
        let fits = 65_507 - 24;
        let reply = success(1, &vec![0x5a; fits as usize]);
        caller.expect(&call(1, BIG, &words(&[fits])), &reply);
        caller.expect(&call(2, BIG, &words(&[fits + 1])), &accepted(2, &[5]));
        assert_eq!(server.counters().replies_too_large, 1);
    }
}

#[test]
fn nothing_answers_what_is_no_call() {
    let server = builder().start().unwrap();
    let mut caller = Caller::udp(&server);
    caller.send(&success(1, &[]));
    caller.send(&denied(2, &[0, 2, 2]));
    caller.send(&[]);
    caller.send(&[1, 2, 3]);
    // The first answer is the one to this.
    caller.expect_service();
    assert_eq!(server.counters().violations, 4);
}

#[test]
fn many_peers_share_the_port() {
    for server in servers() {
        let mut callers: Vec<_> = (0..50).map(|_| Caller::udp(&server)).collect();
        for (xid, caller) in (0..).zip(&mut callers) {
            caller.send(&call(xid, ECHO, &words(&[xid])));
        }
        for (xid, caller) in (0..).zip(&mut callers) {
            assert_eq!(caller.receive(), success(xid, &words(&[xid])));
        }
    }
}

#[test]
fn a_memory_without_room_is_refused_before_anything_listens() {
    for bytes in [0, DuplicateLimits::BYTES_MIN - 1] {
        let limits = DuplicateLimits {
            bytes,
            ..DuplicateLimits::default()
        };
        let refused = builder().duplicate_limits(limits).start().err().unwrap();
        assert_eq!(
            refused.to_string(),
            format!("the duplicate limits leave no room: bytes must be 4096 at least, not {bytes}")
        );
        assert!(matches!(refused, StartError::DuplicateLimits(told) if told == limits));
    }
}
