//! Calls over a connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::{ROOM_FIRST, ReceiveMemory, Receiver};
use tenon_proto::connection::{
    CallDraft, Connection, Event, LeanCall, Received, ReplyDraft, ServiceTable, TransmitBatch,
    WireProtocol,
};
use tenon_proto::lean::{ByteOrder, Extension, Extras, Interface, MessageDraft};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;
use tenon_proto::onc::record::{self, FRAGMENT_MAX};
use tenon_wire::Buffer;

use crate::{change, is_free, turn};

/// How a server takes calls in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serving {
    /// Frame by frame, where they lie.
    InPlace,
    /// Each with its memory.
    Detached,
    /// The same, carried out elsewhere.
    Deferred,
}

/// One end and what it sends.
struct End {
    connection: Connection<u32>,
    receiver: Receiver,
    batch: TransmitBatch,
    /// A call or a reply that is being written.
    message: Buffer,
}

impl End {
    fn new((connection, receiver): (Connection<u32>, Receiver)) -> Self {
        Self {
            connection,
            receiver,
            batch: TransmitBatch::default(),
            message: Buffer::default(),
        }
    }

    /// Brings to the other end what this one has to say.
    fn send(&mut self, to: &mut Receiver) {
        while self.connection.poll_transmit(&mut self.batch) {
            for slice in self.batch.slices() {
                to.room()[..slice.len()].copy_from_slice(slice);
                to.handle_received(slice.len()).unwrap();
            }
            self.batch.advance(self.batch.remaining());
            self.connection.handle_transmitted(&mut self.batch);
        }
    }
}

struct Ends {
    client: End,
    server: End,
    services: ServiceTable,
    interface: Arc<Interface>,
    template: CallTemplate,
    protocol: WireProtocol,
    deadline: Instant,
}

impl Ends {
    fn new(protocol: WireProtocol) -> Self {
        let interface = Arc::new(Interface::unknown(300, 1));
        let mut services = ServiceTable::default();
        services.add(300, 1, Some(Arc::clone(&interface)));
        let client = Connection::client(ConnectionConfig::client(), protocol, 0);
        Self {
            client: End::new(client),
            server: End::new(Connection::server(ConnectionConfig::server())),
            services,
            interface,
            template: CallTemplate::new(300, 1, &Credential::None),
            protocol,
            deadline: Instant::now() + Duration::from_secs(60),
        }
    }

    fn start(&mut self, procedure: u16, extras: &Extras<'_>) {
        let End {
            connection,
            message,
            ..
        } = &mut self.client;
        message.clear();
        let draft = match self.protocol {
            WireProtocol::Onc => {
                self.template.begin(message, procedure.into());
                message.extend(b"arguments...");
                record::seal(message, 0, FRAGMENT_MAX);
                CallDraft::Onc
            }
            WireProtocol::Lean => {
                let draft = MessageDraft::call(message, ByteOrder::NATIVE, procedure, extras);
                message.extend(b"arguments...");
                draft.seal(message);
                CallDraft::Lean(LeanCall {
                    draft,
                    interface: &self.interface,
                    procedure,
                })
            }
        };
        let call = connection.start_call(&draft, message, self.deadline, 7);
        connection.push_call(&call.unwrap(), message);
    }

    /// Makes so many calls at once, which are answered with their arguments.
    fn call(&mut self, count: usize, procedure: u16, extras: &Extras<'_>, serving: Serving) {
        (0..count).for_each(|_| self.start(procedure, extras));
        self.client.send(&mut self.server.receiver);
        match serving {
            Serving::InPlace => self.serve_in_place(),
            Serving::Detached | Serving::Deferred => self.serve_detached(serving),
        }
        self.server.send(&mut self.client.receiver);
        assert_eq!(self.take_answers(), count);
    }

    fn serve_in_place(&mut self) {
        let End {
            connection,
            receiver,
            message,
            ..
        } = &mut self.server;
        while let Some(frame) = receiver.next_frame().unwrap() {
            let event = connection.handle_frame(frame, &self.services);
            if let Event::Called(call) = event.unwrap() {
                let draft = ReplyDraft::begin(message, call.caller);
                message.extend(call.arguments);
                draft.seal(message);
                connection.push_reply(message);
            }
        }
    }

    fn serve_detached(&mut self, serving: Serving) {
        let End {
            connection,
            receiver,
            message,
            ..
        } = &mut self.server;
        loop {
            let call = match connection.next_received(receiver, &self.services) {
                Ok(Received::Nothing) => return,
                Ok(Received::Call(call)) => call,
                Ok(_) => continue,
                Err(error) => panic!("{error}"),
            };
            let deferred = (serving == Serving::Deferred)
                .then(|| connection.defer(&call.caller, Some(self.deadline)).unwrap());
            let draft = ReplyDraft::begin(message, call.caller);
            message.extend(call.arguments());
            draft.seal(message);
            deferred.map(|id| connection.finish_deferred(id).unwrap());
            receiver.reattach(call.message);
            connection.push_reply(message);
        }
    }

    fn take_answers(&mut self) -> usize {
        let mut answers = 0;
        while let Some(frame) = self.client.receiver.next_frame().unwrap() {
            let event = self.client.connection.handle_frame(frame, &self.services);
            if let Event::Answered(answer) = event.unwrap() {
                assert!(answer.outcome.is_ok());
                answers += 1;
            }
        }
        answers
    }
}

const SERVINGS: [Serving; 3] = [Serving::InPlace, Serving::Detached, Serving::Deferred];

#[test]
fn a_warm_call_allocates_nothing() {
    let _turn = turn();
    let extension = [Extension {
        kind: Extension::STAMPS,
        content: b"12345678",
    }];
    let time_left = Some(Duration::from_secs(1));
    let timed = Extras {
        time_left,
        ..Extras::default()
    };
    let extended = Extras {
        time_left,
        extensions: &extension,
        ..Extras::default()
    };
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        for serving in SERVINGS {
            for (procedure, extras) in [(1, Extras::default()), (0, timed), (1, extended)] {
                let mut ends = Ends::new(protocol);
                let is_free = is_free(|| ends.call(1, procedure, &extras, serving));
                assert!(is_free, "{protocol:?} {serving:?} {procedure} {extras:?}");
            }
        }
    }
}

/// They are sent, received and answered together.
#[test]
fn warm_calls_in_flight_together_allocate_nothing() {
    let _turn = turn();
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        for (count, serving) in [(10, Serving::InPlace), (10, Serving::Detached)] {
            let mut ends = Ends::new(protocol);
            // The preamble comes first, by which the client knows how many calls it may make.
            ends.call(1, 1, &Extras::default(), serving);
            let is_free = is_free(|| ends.call(count, 1, &Extras::default(), serving));
            assert!(is_free, "{protocol:?} {serving:?}");
        }
    }
}

/// A thread serves many connections, one turn each, out of memory that is its own.
#[test]
fn connections_that_are_lent_memory_allocate_nothing_and_keep_none() {
    const CONNECTIONS: usize = 50;
    let _turn = turn();
    for protocol in [WireProtocol::Onc, WireProtocol::Lean] {
        for count in [1, 10] {
            let mut memory = ReceiveMemory::default();
            let mut connections: Vec<Ends> =
                (0..CONNECTIONS).map(|_| Ends::new(protocol)).collect();
            let mut next = 0;
            let mut serve_next = || {
                let ends = &mut connections[next % CONNECTIONS];
                next += 1;
                ends.server.receiver.lend(&mut memory);
                ends.call(count, 1, &Extras::default(), Serving::Detached);
                ends.server.receiver.reclaim(&mut memory);
                assert_eq!(ends.server.receiver.capacity(), 0);
            };
            assert!(is_free(&mut serve_next), "{protocol:?}, {count} at once");
            drop(memory);
            let of_receivers: usize = connections
                .into_iter()
                .map(|ends| {
                    let receiver = ends.server.receiver;
                    change(|| drop(receiver)).bytes_deallocated
                })
                .sum();
            let most = CONNECTIONS * 512;
            assert!(of_receivers < most, "{of_receivers} bytes {protocol:?}");
            const { assert!(ROOM_FIRST > 512) };
        }
    }
}
