//! A lean call makes two system calls at the client's end once everything is warm, if the client
//! sleeps while it waits: to send and to receive.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;
#[path = "common/counting.rs"]
mod counting;
#[path = "common/lean.rs"]
mod lean_caller;
#[path = "common/lean_steady.rs"]
mod lean_steady;

use counting::{orders, system_calls_of};
use lean_caller::lean_builder;
use lean_steady::{call, client_with};
use tenon::{ChannelOptions, Waiting};

#[test]
fn a_warm_lean_call_makes_two_system_calls() {
    const CALLS: u32 = 1000;
    let server = lean_builder().start().unwrap();
    for address in server.addresses() {
        let child = "make_the_calls_that_are_ordered";
        let counts = system_calls_of(child, &format!("lean+{address}"), CALLS);
        let (sent, received) = (counts["sendto"], counts["recvfrom"]);
        let all: u64 = counts.values().sum();
        assert_eq!(sent, u64::from(CALLS), "{address}: {counts:?}");
        assert_eq!(received, u64::from(CALLS), "{address}: {counts:?}");
        // The scheduler of a busy machine may cause a few others, never one per call.
        assert!(all - sent - received < 20, "{address}: {counts:?}");
    }
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = client_with(&orders.address, options);
    (0..orders.calls).for_each(|number| call(&client, number));
}
