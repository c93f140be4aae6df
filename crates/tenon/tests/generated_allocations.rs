//! A call by generated stubs takes no memory at either end once everything is warm, by either
//! protocol, if its values need none. The counter counts for the whole process, client and server
//! and the test's harness: so this test is alone in its file.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;
#[path = "common/generated.rs"]
mod generated;
#[path = "../../tenon-gen/tests/golden/hprpc.rs"]
mod hprpc;

use std::alloc::System;

use generated::{addresses, call, server};
use hprpc::HprpcVersionClient;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon::{CallOptions, MakeCalls};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of the quietest of several rounds: a machine that is busy with something else may
/// let the server believe that the peer is silent.
fn fewest_allocations<C: MakeCalls>(client: &HprpcVersionClient<C>) -> usize {
    (0..1000).for_each(|number| call(client, number));
    let rounds = (0..20).map(|_| {
        let region = Region::new(ALLOCATOR);
        (0..99).for_each(|number| call(client, number));
        let change = region.change();
        change.allocations + change.reallocations
    });
    rounds.min().unwrap()
}

#[test]
fn a_warm_generated_call_allocates_nothing() {
    let server = server();
    for address in addresses(&server) {
        // What the server keeps of a datagram's reply is another matter.
        if address.starts_with("udp") {
            continue;
        }
        let client = HprpcVersionClient::connect(&address).unwrap();
        assert_eq!(fewest_allocations(&client), 0, "{address}");
        let with_deadline = client.with_timeout(caller::PATIENCE);
        assert_eq!(fewest_allocations(&with_deadline), 0, "{address}");
        let options = CallOptions::new().timeout(caller::PATIENCE);
        let with_options = client.with_options(options);
        assert_eq!(fewest_allocations(&with_options), 0, "{address}");
    }
}
