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

use counting::{expect_system_calls, orders, sends_and_receives_once};
use lean_caller::lean_builder;
use lean_steady::{call, client_with};
use tenon::{ChannelOptions, Waiting};

#[test]
fn a_warm_lean_call_makes_two_system_calls() {
    const CALLS: u32 = 1000;
    let server = lean_builder().start().unwrap();
    for address in server.addresses() {
        let child = "make_the_calls_that_are_ordered";
        expect_system_calls(child, &format!("lean+{address}"), CALLS, |counts| {
            sends_and_receives_once(counts, CALLS)
        });
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
