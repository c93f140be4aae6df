//! A call takes no memory once everything is warm: counted at both ends.

use crate::ALLOCATOR;
use crate::common::onc_peer::{PROGRAM, VERSION};
use crate::common::steady::{MAX_RESULT, NULL, Steady, TRANSPORTS, call};
use stats_alloc::Region;
use tenon::Client;

pub fn a_warm_call_allocates_nothing() {
    for transport in TRANSPORTS {
        let peer = Steady::start(transport);
        let client = Client::connect(&peer.address, PROGRAM, VERSION).unwrap();
        for procedure in [NULL, MAX_RESULT] {
            (0..100).for_each(|_| call(&client, procedure));
            let allocations = || {
                let region = Region::new(ALLOCATOR);
                (0..1000).for_each(|_| call(&client, procedure));
                let change = region.change();
                change.allocations + change.reallocations
            };
            // On a machine that is busy with something else, the harness may have time to say that the
            // test takes long, or a datagram may have to be sent again.
            let is_quiet = (0..20).any(|_| allocations() == 0);
            assert!(is_quiet, "{transport}, procedure {procedure}");
        }
    }
}
