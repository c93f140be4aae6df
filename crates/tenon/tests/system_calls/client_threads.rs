//! Threads that share a channel and whose replies come together are woken by one system call.

use std::thread;
use std::time::Duration;

use crate::common::counting::{alone, count_in_trace, orders};
use crate::common::onc_peer::{Line, PROGRAM, Peer, VERSION, record, success};
use tenon::{ChannelOptions, Client, Waiting};

/// Threads with a call each.
const THREADS: usize = 8;

/// Calls of each.
const CALLS: u32 = 40;

/// Answers the calls of all threads together, once the threads sleep.
fn answer_together(mut line: Line) {
    loop {
        let mut replies = Vec::new();
        for _ in 0..THREADS {
            let Some(call) = line.call() else { return };
            replies.extend(record(&success(call.xid, &[])));
        }
        thread::sleep(Duration::from_millis(2));
        line.send(&replies);
    }
}

#[test]
fn callers_whose_replies_come_together_are_woken_by_one_system_call() {
    let _alone = alone();
    let peer = Peer::tcp(|accept| answer_together(accept()));
    let child = "client_threads::make_the_calls_that_are_ordered";
    let wakes = count_in_trace(child, &peer.address, CALLS, ("futex", "FUTEX_WAKE_BITSET"));
    // One for all replies, and one for the thread that is to read next, of those that have called again meanwhile.
    let (fewest, most) = (CALLS as usize / 2, 2 * CALLS as usize);
    assert!((fewest..=most).contains(&wakes), "{wakes}");
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = Client::connect_with(&orders.address, PROGRAM, VERSION, options).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..orders.calls).for_each(|_| client.ping().unwrap()));
        }
    });
}
