//! A call makes two system calls at the client's end once everything is warm, if the client sleeps
//! while it waits: to send and to receive.
#![allow(clippy::unwrap_used)]

mod common;

use common::counting::{orders, system_calls_of};
use common::steady::{Steady, TRANSPORTS, call};
use common::{PROGRAM, VERSION};
use tenon::{ChannelOptions, Client, Waiting};

#[test]
fn a_warm_call_makes_two_system_calls() {
    const CALLS: u32 = 1000;
    for transport in TRANSPORTS {
        let peer = Steady::start(transport);
        let child = "make_the_calls_that_are_ordered";
        let counts = system_calls_of(child, &peer.address, CALLS);
        let (sent, received) = (counts["sendto"], counts["recvfrom"]);
        let all: u64 = counts.values().sum();
        assert_eq!(sent, u64::from(CALLS), "{transport}: {counts:?}");
        assert_eq!(received, u64::from(CALLS), "{transport}: {counts:?}");
        // The scheduler of a busy machine may cause a few others, never one per call.
        assert!(all - sent - received < 20, "{transport}: {counts:?}");
    }
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let options = ChannelOptions::default().waiting(Waiting::Block);
    let client = Client::connect_with(&orders.address, PROGRAM, VERSION, options).unwrap();
    for number in 0..orders.calls {
        call(&client, number % 2);
    }
}
