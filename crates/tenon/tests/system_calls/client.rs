//! A call makes two system calls at the client's end once everything is warm, if the client sleeps
//! while it waits: to send and to receive.

use crate::common::counting::{expect_system_calls, orders, sends_and_receives_once};
use crate::common::onc_peer::{PROGRAM, VERSION};
use crate::common::steady::{Steady, TRANSPORTS, call};
use tenon::{ChannelOptions, Client, Waiting};

#[test]
fn a_warm_call_makes_two_system_calls() {
    const CALLS: u32 = 1000;
    for transport in TRANSPORTS {
        let peer = Steady::start(transport);
        let child = "client::make_the_calls_that_are_ordered";
        expect_system_calls(child, &peer.address, CALLS, |counts| {
            sends_and_receives_once(counts, CALLS)
        });
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
