//! A lean call makes two system calls at the client's end once everything is warm, if the client
//! sleeps while it waits: to send and to receive. A long one over a Unix socket makes a third, to be woken once.

use crate::common::counting::{
    Counts, count, expect_system_calls, orders, sends_and_receives_once,
};
use crate::common::lean_caller::lean_builder;
use crate::common::lean_steady::{call, client_with, echo};
use tenon::{ChannelOptions, Transport, Waiting};

#[test]
fn a_warm_lean_call_makes_two_system_calls() {
    const CALLS: u32 = 1000;
    let server = lean_builder().start().unwrap();
    for address in server.addresses() {
        let child = "client_lean::make_the_calls_that_are_ordered";
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

/// Bytes of a message that its receiver is busy with for some time, and that goes in one piece.
const LONG: usize = 4096;

#[test]
fn a_long_call_sleeps_in_a_poll_on_a_unix_socket() {
    const CALLS: u32 = 500;
    let server = lean_builder().start().unwrap();
    for address in server.addresses() {
        let polls = match address.transport() {
            Transport::Unix => CALLS,
            _ => 0,
        };
        let child = "client_lean::make_the_long_calls_that_are_ordered";
        expect_system_calls(child, &format!("lean+{address}"), CALLS, |counts| {
            polls_and_receives_once(counts, CALLS, polls)
        });
    }
}

/// Whether `calls` calls sent and received once each, and polled `polls` times or a little less: a reply that
/// is there before its receiver sleeps is not waited for.
fn polls_and_receives_once(counts: &Counts, calls: u32, polls: u32) -> bool {
    let mut others = counts.clone();
    let polled = others.remove("ppoll").unwrap_or(0);
    let all = count(counts, "recvfrom") == u64::from(calls);
    all && polled.abs_diff(u64::from(polls)) < 20 && sends_and_receives_once(&others, calls)
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_long_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = client_with(&orders.address, options);
    (0..orders.calls).for_each(|_| echo(&client, LONG));
}
