//! In the steady state the server takes no memory for a lean call either, inline or on workers.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::ALLOCATOR;
use crate::common::caller::{PATIENCE, listening};
use crate::common::lean_caller::{ECHO, LeanCaller, LeanObliging, interface, lean_builder};
use stats_alloc::Region;
use tenon::Server;
use tenon::lean::{HEADER, PREAMBLE};

const CALLS: u32 = 100;
const ARGUMENTS: usize = 1440;

/// Calls by bytes that were prepared, so that only the server may allocate.
struct Exchange {
    stream: TcpStream,
    id: u32,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Exchange {
    fn start(server: &Server) -> Self {
        let address = server.addresses()[0].to_string();
        let mut stream = TcpStream::connect(address.strip_prefix("tcp://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let first = LeanCaller::first_call(interface(), ECHO, &[7; ARGUMENTS]);
        stream.write_all(&first).unwrap();
        let bound = HEADER + 8;
        let reply = HEADER + ARGUMENTS;
        stream
            .read_exact(&mut vec![0; PREAMBLE + bound + reply])
            .unwrap();
        let request = first[first.len() - reply..].to_vec();
        Self {
            stream,
            id: u32::from_ne_bytes(request[4..8].try_into().unwrap()),
            request,
            reply: vec![0; reply],
        }
    }

    fn run(&mut self, calls: u32) {
        for _ in 0..calls {
            self.id += 1;
            let id = self.id.to_ne_bytes();
            self.request[4..8].copy_from_slice(&id);
            self.stream.write_all(&self.request).unwrap();
            self.stream.read_exact(&mut self.reply).unwrap();
            assert_eq!(self.reply[4..8], id);
            assert_eq!(self.reply[HEADER..], self.request[HEADER..]);
        }
    }

    /// Allocations of the quietest of several rounds: a machine that is busy with something else
    /// may let the server believe that the peer is silent.
    fn fewest_allocations(&mut self) -> usize {
        self.run(1000);
        let rounds = (0..20).map(|_| {
            let region = Region::new(ALLOCATOR);
            self.run(CALLS);
            let change = region.change();
            change.allocations + change.reallocations
        });
        rounds.min().unwrap()
    }
}

pub fn no_allocation_per_lean_call() {
    let inline = lean_builder().start().unwrap();
    assert_eq!(Exchange::start(&inline).fewest_allocations(), 0);
    let on_workers = listening().service(LeanObliging);
    let on_workers = on_workers.start().unwrap();
    assert_eq!(Exchange::start(&on_workers).fewest_allocations(), 0);
}
