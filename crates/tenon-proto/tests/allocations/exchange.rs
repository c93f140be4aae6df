//! A call over datagrams takes no memory once everything is warm. The counter counts for the whole
//! process, the test's harness included: so this test is alone in its file.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon_proto::exchange::client::{ClientEngine, ClientLimits, ClientSecrets, Outgoing};
use tenon_proto::exchange::server::{ServerEngine, ServerLimits, ServerSecrets};
use tenon_proto::lean::server::{Catalog, Reply};
use tenon_proto::lean::{ByteOrder, Draft, Extras, Interface, Preamble};
use tenon_wire::Buffer;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Ends {
    now: Instant,
    client: ClientEngine<u32>,
    server: ServerEngine<SocketAddr>,
    catalog: Catalog,
    interface: Arc<Interface>,
    address: SocketAddr,
    call: Buffer,
    reply: Buffer,
    wire: Buffer,
    packets: usize,
    answers: usize,
}

impl Ends {
    fn new() -> Self {
        let now = Instant::now();
        let interface = Arc::new(Interface::unknown(300, 1));
        let mut catalog = Catalog::default();
        catalog.add(Arc::clone(&interface));
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let (key, seed) = ([2; 16], 2);
        Self {
            now,
            client: ClientEngine::new(
                Preamble::client(1 << 20),
                ClientLimits::default(),
                ClientSecrets { key, seed },
            ),
            server: ServerEngine::new(
                Preamble::server(1 << 20, 64),
                ServerLimits::default(),
                secrets,
                now,
            ),
            catalog,
            interface,
            address: SocketAddr::from(([10, 0, 0, 1], 1)),
            call: Buffer::default(),
            reply: Buffer::default(),
            wire: Buffer::default(),
            packets: 0,
            answers: 0,
        }
    }

    fn call(&mut self, extras: &Extras<'_>) {
        self.call.clear();
        let draft = Draft::call(&mut self.call, ByteOrder::NATIVE, 7, extras);
        self.call.extend(&[1; 200]);
        draft.seal(&mut self.call);
        let service = self.client.bind(&self.interface).unwrap();
        let call = Outgoing {
            service,
            procedure: 7,
            deadline: self.now + Duration::from_secs(1),
        };
        self.client
            .start(self.now, &call, &mut self.call, 7)
            .unwrap();
        self.carry();
        self.now += Duration::from_micros(20);
        assert!(self.client.poll_timeout().is_none_or(|at| at > self.now));
        assert!(self.server.poll_timeout().is_none_or(|at| at > self.now));
    }

    fn carry(&mut self) {
        loop {
            self.wire.clear();
            if self.client.poll_transmit(self.now, &mut self.wire) {
                self.packets += 1;
                self.serve();
                continue;
            }
            if self
                .server
                .poll_transmit(self.now, &mut self.wire)
                .is_none()
            {
                return;
            }
            self.packets += 1;
            if let Some(answer) = self.client.handle_datagram(self.now, self.wire.as_slice()) {
                assert_eq!(answer.outcome.unwrap().len(), 100);
                self.answers += 1;
            }
        }
    }

    fn serve(&mut self) {
        let datagram = self.wire.as_slice();
        let request = self
            .server
            .handle_datagram(self.now, self.address, datagram, &self.catalog);
        let Some(request) = request else { return };
        assert_eq!(request.call.arguments, [1; 200]);
        let (key, caller) = (request.key, request.call.caller);
        self.reply.clear();
        let reply = Reply::begin(&mut self.reply, caller);
        self.reply.extend(&[2; 100]);
        reply.seal(&mut self.reply);
        assert!(self.server.reply(key, &mut self.reply));
    }
}

#[test]
fn a_warm_call_allocates_nothing_and_is_two_packets() {
    let timed = Extras {
        time_left: Some(Duration::from_secs(1)),
        extensions: &[],
        ..Extras::default()
    };
    for extras in [Extras::default(), timed] {
        let mut ends = Ends::new();
        (0..100).for_each(|_| ends.call(&extras));
        let mut allocations = || {
            (ends.packets, ends.answers) = (0, 0);
            let region = Region::new(ALLOCATOR);
            (0..1000).for_each(|_| ends.call(&extras));
            let change = region.change();
            assert_eq!((ends.packets, ends.answers), (2000, 1000));
            change.allocations + change.reallocations
        };
        // What the harness takes on a busy machine it takes once.
        assert!((0..3).any(|_| allocations() == 0), "{extras:?}");
    }
}
