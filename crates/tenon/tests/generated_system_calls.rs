//! A call by generated stubs makes two system calls at the client's end once everything is warm, by
//! either protocol: to send and to receive.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;
#[path = "common/counting.rs"]
mod counting;
#[path = "common/generated.rs"]
mod generated;
#[allow(dead_code)]
#[path = "../../tenon-gen/tests/golden/hprpc.rs"]
mod hprpc;

use counting::{orders, system_calls_of};
use generated::{addresses, call, server};
use hprpc::HprpcVersionClient;
use tenon::{Channel, ChannelOptions, Waiting};

#[test]
fn a_warm_generated_call_makes_two_system_calls() {
    const CALLS: u32 = 999;
    let server = server();
    for address in addresses(&server) {
        let counts = system_calls_of("make_the_calls_that_are_ordered", &address, CALLS);
        let (sent, received) = (counts["sendto"], counts["recvfrom"]);
        let all: u64 = counts.values().sum();
        assert_eq!(sent, u64::from(CALLS), "{address}: {counts:?}");
        assert_eq!(received, u64::from(CALLS), "{address}: {counts:?}");
        // The scheduler of a busy machine may cause a few others, never one per call.
        assert!(all - sent - received < 20, "{address}: {counts:?}");
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
