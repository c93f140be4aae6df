//! In the steady state the server takes no memory: nothing is allocated between a request and its
//! reply.

use crate::ALLOCATOR;
use crate::common::caller::*;
use stats_alloc::Region;
use tenon::{DuplicateLimits, Server};

const CALLS: u32 = 100;

/// A request and the room for its reply, used again and again.
struct Exchange {
    caller: Caller,
    /// Where the xid stands in the request.
    xid_at: usize,
    xid: u32,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Exchange {
    fn new(caller: Caller, procedure: u32, result: usize) -> Self {
        let message = call(0, procedure, &words(&[result as u32]));
        let (xid_at, request) = match caller {
            Caller::Udp(_) => (0, message),
            _ => (4, record(&message)),
        };
        Self {
            caller,
            xid_at,
            xid: 0,
            request,
            reply: vec![0; xid_at + 24 + result],
        }
    }

    fn run(&mut self, calls: u32) {
        for _ in 0..calls {
            self.xid += 1;
            let xid = self.xid.to_be_bytes();
            let at = self.xid_at..self.xid_at + 4;
            self.request[at.clone()].copy_from_slice(&xid);
            self.caller.send_raw(&self.request);
            self.caller.receive_into(&mut self.reply);
            assert_eq!(self.reply[at], xid);
        }
    }

    /// Allocations of the quietest of several rounds: a machine that is busy with something else
    /// may let the server believe that the peer is silent.
    fn fewest_allocations(&mut self) -> usize {
        // Beyond the room of the duplicate request cache, which takes memory until it is full.
        self.run(3000);
        let rounds = (0..20).map(|_| {
            let region = Region::new(ALLOCATOR);
            self.run(CALLS);
            let change = region.change();
            change.allocations + change.reallocations
        });
        rounds.min().unwrap()
    }
}

fn check(server: &Server, procedure: u32, result: usize) {
    for (place, caller) in server.addresses().iter().zip(Caller::on_all(server)) {
        let mut exchange = Exchange::new(caller, procedure, result);
        let allocations = exchange.fewest_allocations();
        assert_eq!(allocations, 0, "in {CALLS} calls of {procedure} at {place}");
    }
}

/// A duplicate request cache that is full when a test has warmed up: 1,440 bytes take 13 of its cells.
fn small_cache() -> DuplicateLimits {
    DuplicateLimits {
        bytes: 256 << 10,
        ..DuplicateLimits::default()
    }
}

/// A long reply is sent out of the memory of the one before: if that were given back each time, the system would make
/// each of its pages anew.
fn check_long_replies(server: &Server) {
    for caller in Caller::on_streams(server) {
        let allocations = Exchange::new(caller, BIG, 100_000).fewest_allocations();
        assert_eq!(allocations, 0, "in {CALLS} calls with long replies");
    }
}

pub fn no_allocation_per_call() {
    let server = builder().duplicate_limits(small_cache()).start().unwrap();
    check(&server, 0, 0);
    check(&server, BIG, 1440);
    check_long_replies(&server);
    let on_workers = listening()
        .service(Obliging(VERSION))
        .duplicate_limits(small_cache());
    let on_workers = on_workers.start().unwrap();
    check(&on_workers, BIG, 1440);
    assert!(on_workers.counters().replies_evicted > 0, "it is full");
}
