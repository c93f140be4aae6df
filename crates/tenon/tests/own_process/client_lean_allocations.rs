//! A lean call takes no memory at either end once everything is warm.

use crate::ALLOCATOR;
use crate::common::caller;
use crate::common::lean_caller::lean_everywhere;
use crate::common::lean_steady::{call, clients};
use stats_alloc::Region;
use tenon::Client;

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

pub fn a_warm_lean_call_allocates_nothing() {
    let server = lean_everywhere().start().unwrap();
    for client in clients(server.addresses()) {
        assert_eq!(fewest_allocations(&client), 0, "{client:?}");
        let with_deadline = client.with_timeout(caller::PATIENCE);
        assert_eq!(fewest_allocations(&with_deadline), 0, "{client:?}");
    }
}
