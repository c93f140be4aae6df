//! A call takes no memory once everything is warm, whatever its header carries. The counter counts
//! for the whole process, the test's harness included: so this test is alone in its file.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tenon_proto::lean::client::{ClientEngine, Event, Outgoing};
use tenon_proto::lean::server::{Catalog, Received, Reply, ServerEngine};
use tenon_proto::lean::{
    ByteOrder, Calls, Draft, Extension, Extras, Incoming, Interface, MessageReader, Preamble,
};
use tenon_wire::Buffer;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Ends {
    client: ClientEngine<u32>,
    interface: Arc<Interface>,
    client_reader: MessageReader,
    server: ServerEngine,
    server_reader: MessageReader,
    catalog: Catalog,
    running: Calls<u32>,
    call: Buffer,
    wire: Buffer,
    now: Instant,
}

fn carry(bytes: &mut Buffer, reader: &mut MessageReader) {
    reader.room()[..bytes.len()].copy_from_slice(bytes.as_slice());
    reader.filled(bytes.len());
    bytes.clear();
}

impl Ends {
    fn new() -> Self {
        let interface = Arc::new(Interface::unknown(300, 1));
        let mut catalog = Catalog::default();
        catalog.add(Arc::clone(&interface));
        Self {
            client: ClientEngine::new(Preamble::client(1 << 20), 0),
            interface,
            client_reader: MessageReader::new(1 << 20),
            server: ServerEngine::new(Preamble::server(1 << 20, 64)),
            server_reader: MessageReader::new(1 << 20),
            catalog,
            running: Calls::new(64),
            call: Buffer::default(),
            wire: Buffer::default(),
            now: Instant::now(),
        }
    }

    fn call(&mut self, procedure: u16, extras: &Extras<'_>) {
        self.call.clear();
        let draft = Draft::call(&mut self.call, ByteOrder::NATIVE, procedure, extras);
        self.call.extend(b"arguments");
        let size = draft.seal(&mut self.call);
        let service = self.client.bind(&self.interface).unwrap();
        let deadline = self.now + Duration::from_secs(1);
        let outgoing = Outgoing {
            service,
            procedure,
            size,
            deadline,
        };
        let id = self.client.start(&outgoing, 7).unwrap();
        draft.stamp(&mut self.call, id, service);
        self.client.poll_transmit(&mut self.wire);
        self.wire.extend(self.call.as_slice());
        carry(&mut self.wire, &mut self.server_reader);
        self.serve();
        carry(&mut self.wire, &mut self.client_reader);
        assert_eq!(self.take_answers(), 1);
    }

    fn serve(&mut self) {
        while let Some(incoming) = self.server_reader.next_message().unwrap() {
            let message = match incoming {
                Incoming::Preamble(theirs) => {
                    self.server
                        .handle_preamble(&theirs, &mut self.wire)
                        .unwrap();
                    continue;
                }
                Incoming::Message(message) => message,
            };
            let received = self
                .server
                .handle_message(&self.catalog, &message, &mut self.wire);
            if let Received::Call(call) = received.unwrap() {
                let (id, deadline) = (call.caller.id, call.deadline(self.now));
                self.running.begin(id, deadline, 1).unwrap();
                let reply = Reply::begin(&mut self.wire, call.caller);
                self.wire.extend(call.arguments);
                reply.seal(&mut self.wire);
                self.running.finish(id).unwrap();
            }
        }
    }

    fn take_answers(&mut self) -> usize {
        let mut answers = 0;
        while let Some(incoming) = self.client_reader.next_message().unwrap() {
            match incoming {
                Incoming::Preamble(theirs) => self.client.handle_preamble(&theirs).unwrap(),
                Incoming::Message(message) => {
                    if let Event::Answer(answer) = self.client.handle_message(&message).unwrap() {
                        assert!(answer.outcome.is_ok());
                        answers += 1;
                    }
                }
            }
        }
        answers
    }
}

#[test]
fn a_warm_call_allocates_nothing() {
    let stamps = [Extension {
        kind: Extension::STAMPS,
        content: b"12345678",
    }];
    let all = Extras {
        time_left: Some(Duration::from_secs(1)),
        extensions: &stamps,
        ..Extras::default()
    };
    for (procedure, extras) in [(1, Extras::default()), (1, all), (0, Extras::default())] {
        let mut ends = Ends::new();
        (0..100).for_each(|_| ends.call(procedure, &extras));
        let mut allocations = || {
            let region = Region::new(ALLOCATOR);
            (0..1000).for_each(|_| ends.call(procedure, &extras));
            let change = region.change();
            change.allocations + change.reallocations
        };
        // What the harness takes on a busy machine it takes once.
        let is_quiet = (0..3).any(|_| allocations() == 0);
        assert!(is_quiet, "procedure {procedure}, {extras:?}");
    }
}
