//! A call over shared memory makes no system call at all, at neither end, if both look while they wait, and
//! no more than two at the client's end if it sleeps: to wake the server and to sleep.
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
    let _server = serve(&address, waiting);
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

fn serve(address: &str, waiting: Waiting) -> Server {
    let builder = Server::builder().listen(address).unwrap();
    let builder = builder.service(LeanObliging).waiting(waiting);
    builder.start().unwrap()
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

/// Client and server are threads of the process that is counted.
#[test]
fn a_warm_call_between_two_that_look_makes_none_at_either_end() {
    check("serve_and_make_calls_that_look", Waiting::Block, |counts| {
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

fn make_calls(address: &str, calls: u32, waiting: Waiting) {
    let options = ChannelOptions::default().waiting(waiting);
    let client = client_with(address, options);
    (0..calls).for_each(|number| call(&client, number));
}

/// A child whose system calls are counted; without orders it does nothing.
#[test]
fn make_calls_that_look() {
    let Some(orders) = orders() else { return };
    make_calls(&orders.address, orders.calls, Waiting::Spin);
}

/// The same.
#[test]
fn make_calls_that_sleep() {
    let Some(orders) = orders() else { return };
    make_calls(&orders.address, orders.calls, Waiting::Block);
}

/// The same, with the server in the child.
#[test]
fn serve_and_make_calls_that_look() {
    let Some(orders) = orders() else { return };
    let address = format!("{}-own", orders.address);
    let _server = serve(&address, Waiting::Spin);
    make_calls(&address, orders.calls, Waiting::Spin);
}
