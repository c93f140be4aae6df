//! A call by generated stubs takes no memory at either end once everything is warm, by either
//! protocol, if its values need none.

use crate::ALLOCATOR;
use crate::common::caller;
use crate::hprpc::HprpcVersionClient;
use crate::hprpc_service::{addresses, call, server};
use stats_alloc::Region;
use tenon::{CallOptions, MakeCalls};

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

pub fn a_warm_generated_call_allocates_nothing() {
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
