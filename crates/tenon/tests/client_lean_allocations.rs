//! A lean call takes no memory at either end once everything is warm. The counter counts for the
//! whole process, client and server and the test's harness: so this test is alone in its file.
#![allow(clippy::unwrap_used)]

#[path = "common/caller.rs"]
mod caller;
#[path = "common/lean.rs"]
mod lean_caller;
#[path = "common/lean_steady.rs"]
mod lean_steady;

use std::alloc::System;

use lean_caller::lean_everywhere;
use lean_steady::{call, clients};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon::Client;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of the quietest of several rounds: a machine that is busy with something else may
/// let the server believe that the peer is silent.
fn fewest_allocations(client: &Client) -> usize {
    (0..1000).for_each(|number| call(client, number));
    let rounds = (0..20).map(|_| {
        let region = Region::new(ALLOCATOR);
        (0..100).for_each(|number| call(client, number));
        let change = region.change();
        change.allocations + change.reallocations
    });
    rounds.min().unwrap()
}

#[test]
fn a_warm_lean_call_allocates_nothing() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(server.addresses()) {
        assert_eq!(fewest_allocations(&client), 0, "{client:?}");
        let with_deadline = client.with_timeout(caller::PATIENCE);
        assert_eq!(fewest_allocations(&with_deadline), 0, "{client:?}");
    }
}
