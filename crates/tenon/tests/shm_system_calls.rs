//! A call over shared memory makes no system call at all at the client's end if the client looks while it
//! waits, and no more than two if it sleeps: to wake the server and to sleep.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;
#[path = "common/counting.rs"]
mod counting;
#[path = "common/lean.rs"]
mod lean_caller;
#[path = "common/lean_steady.rs"]
mod lean_steady;

use caller::fresh_path;
use counting::{Counts, orders, system_calls_of};
use lean_caller::LeanObliging;
use lean_steady::{call, client_with};
use tenon::{ChannelOptions, Server, Waiting};

const CALLS: u32 = 1000;

/// Rounds of which one must be free of noise: a server that does not get to run makes its client wait,
/// and offer its processor.
const ROUNDS: u32 = 10;

/// Makes rounds of calls until the system calls of one are as they are to be.
fn check(child: &str, waiting: Waiting, is_well: impl Fn(&Counts) -> bool) {
    let address = format!("shm://{}", fresh_path().display());
    let builder = Server::builder().listen(&address).unwrap();
    let builder = builder.service(LeanObliging).waiting(waiting);
    let _server = builder.start().unwrap();
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let counts = system_calls_of(child, &address, CALLS);
        if is_well(&counts) {
            return;
        }
        seen.push(counts);
    }
    panic!("{seen:#?}");
}

fn all(counts: &Counts) -> u64 {
    counts.values().sum()
}

fn count(counts: &Counts, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

#[test]
fn a_warm_call_of_a_client_that_looks_makes_none() {
    check("make_calls_that_look", Waiting::Spin, |counts| {
        all(counts) < 20
    });
}

#[test]
fn a_warm_call_of_a_client_that_sleeps_makes_two_at_most() {
    check("make_calls_that_sleep", Waiting::Block, |counts| {
        let (sent, received) = (count(counts, "sendto"), count(counts, "recvfrom"));
        let limit = u64::from(CALLS) + 5;
        sent <= limit && received <= limit && all(counts) - sent - received < 20
    });
}

fn make_calls(waiting: Waiting) {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(waiting);
    let client = client_with(&orders.address, options);
    (0..orders.calls).for_each(|number| call(&client, number));
}

/// A child whose system calls are counted; without orders it does nothing.
#[test]
fn make_calls_that_look() {
    make_calls(Waiting::Spin);
}

/// The same.
#[test]
fn make_calls_that_sleep() {
    make_calls(Waiting::Block);
}
