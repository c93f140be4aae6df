//! A call by generated stubs makes two system calls at the client's end once everything is warm, by
//! either protocol: to send and to receive.

use crate::common::counting::{expect_system_calls, orders, sends_and_receives_once};
use crate::hprpc::HprpcVersionClient;
use crate::hprpc_service::{addresses, call, server};
use tenon::{Channel, ChannelOptions, Waiting};

#[test]
fn a_warm_generated_call_makes_two_system_calls() {
    const CALLS: u32 = 999;
    let server = server();
    for address in addresses(&server) {
        let child = "generated::make_the_calls_that_are_ordered";
        expect_system_calls(child, &address, CALLS, |counts| {
            sends_and_receives_once(counts, CALLS)
        });
    }
}

/// Looking for a reply before sleeping makes further system calls, as many as the wait is long.
fn blocking() -> ChannelOptions {
    ChannelOptions::default().waiting(Waiting::Block)
}

/// The child whose system calls are counted; without orders it does nothing.
#[test]
fn make_the_calls_that_are_ordered() {
    let Some(orders) = orders() else { return };
    let address = orders.address.parse().unwrap();
    let client = HprpcVersionClient::over(Channel::connect_with(&address, blocking()).unwrap());
    (0..orders.calls).for_each(|number| call(&client, number));
}
