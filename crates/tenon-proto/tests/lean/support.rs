//! What the tests share: messages written field by field as the specification has them, and two
//! engines that are joined.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_proto::lean::client::{ClientEngine, Event, Outgoing};
use tenon_proto::lean::server::{Catalog, Received, ServerEngine};
use tenon_proto::lean::{
    ByteOrder, Draft, Extras, Header, Incoming, Interface, MessageReader, Part, Preamble, Violation,
};
use tenon_wire::Buffer;

pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
pub const LIMIT: usize = 1 << 20;
pub const SECOND: Duration = Duration::from_secs(1);

/// A field of a message.
#[derive(Clone, Copy)]
pub enum F {
    /// 2 bytes.
    H(u16),
    /// 4 bytes.
    W(u32),
    /// 8 bytes.
    D(u64),
    /// As they are.
    B(&'static [u8]),
}

pub fn bytes(order: ByteOrder, fields: &[F]) -> Vec<u8> {
    fn put<const N: usize>(order: ByteOrder, little: [u8; N]) -> Vec<u8> {
        let mut bytes = little.to_vec();
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }
    let fields = fields.iter().map(|field| match *field {
        F::H(number) => put(order, number.to_le_bytes()),
        F::W(number) => put(order, number.to_le_bytes()),
        F::D(number) => put(order, number.to_le_bytes()),
        F::B(bytes) => bytes.to_vec(),
    });
    fields.flatten().collect()
}

/// Program 300 in the versions 2 and 5, of which the latter is known, and program 400.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    assert_eq!(catalog.add(known(5)), Some(0));
    assert_eq!(catalog.add(Arc::new(Interface::unknown(300, 2))), Some(1));
    assert_eq!(catalog.add(Arc::new(Interface::unknown(400, 1))), Some(2));
    catalog
}

/// A version of program 300 whose parts are known.
pub fn known(version: u32) -> Arc<Interface> {
    Arc::new(Interface {
        program: 300,
        version,
        fingerprint: 0x1122_3344_5566_7788,
        parts: vec![part("point", 1), part("procedure MOVE", 2)],
    })
}

pub fn part(name: &str, fingerprint: u64) -> Part {
    Part {
        name: name.into(),
        fingerprint,
    }
}

pub fn client_preamble(order: ByteOrder) -> Preamble {
    Preamble {
        order,
        ..Preamble::client(LIMIT as u32)
    }
}

pub fn server_preamble(order: ByteOrder) -> Preamble {
    Preamble {
        order,
        ..Preamble::server(LIMIT as u32, 64)
    }
}

/// Everything of a stream, taken in pieces of at most `piece` bytes; and why it ended early.
pub fn read(
    reader: &mut MessageReader,
    mut stream: &[u8],
    piece: usize,
    mut each: impl FnMut(Incoming<'_>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    while !stream.is_empty() {
        let mut wanted = 0;
        let room = reader.room_within(|bytes| {
            wanted = bytes;
            true
        });
        let room = room.expect("it may");
        assert!(!room.is_empty(), "there is always room for what is missing");
        let taken = room.len().min(stream.len()).min(piece);
        room[..taken].copy_from_slice(&stream[..taken]);
        reader.filled(taken);
        assert_eq!(reader.capacity(), wanted, "the reader takes what it said");
        stream = &stream[taken..];
        while let Some(incoming) = reader.next_message()? {
            each(incoming)?;
        }
    }
    Ok(())
}

/// The headers and bodies of a stream.
pub fn messages(stream: &[u8], piece: usize) -> Result<Vec<(Header, Vec<u8>)>, Violation> {
    let mut found = Vec::new();
    read(&mut MessageReader::new(LIMIT), stream, piece, |incoming| {
        if let Incoming::Message(message) = incoming {
            found.push((message.header, message.parts()?.body.to_vec()));
        }
        Ok(())
    })?;
    Ok(found)
}

/// What a client was told, without borrowing.
pub type Told = String;

/// A client and a server whose preambles have been exchanged.
pub struct Pair {
    order: ByteOrder,
    pub client: ClientEngine<&'static str>,
    pub server: ServerEngine,
    pub catalog: Catalog,
    pub client_reader: MessageReader,
    pub server_reader: MessageReader,
    /// What the server has sent and the client has not received.
    pub out: Buffer,
    pub now: Instant,
}

impl Pair {
    pub fn new(client: ByteOrder, server: ByteOrder) -> Self {
        let mut pair = Self::before_preambles(client, server);
        pair.serve_owed(|_, _, _| panic!("no call yet"));
        pair.take_answers();
        pair
    }

    pub fn before_preambles(client: ByteOrder, server: ByteOrder) -> Self {
        Self {
            order: client,
            client: ClientEngine::new(client_preamble(client), 1),
            server: ServerEngine::new(server_preamble(server)),
            catalog: catalog(),
            client_reader: MessageReader::new(LIMIT),
            server_reader: MessageReader::new(LIMIT),
            out: Buffer::default(),
            now: Instant::now(),
        }
    }

    /// Writes a call of a service that is bound if it was not; returns its number and all that is to
    /// be sent.
    pub fn call(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        waiter: &'static str,
    ) -> (u32, Vec<u8>) {
        self.call_with(interface, procedure, arguments, &Extras::default(), waiter)
    }

    pub fn call_with(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        extras: &Extras<'_>,
        waiter: &'static str,
    ) -> (u32, Vec<u8>) {
        let mut call = Buffer::default();
        let draft = Draft::call(&mut call, self.order, procedure, extras);
        call.extend(arguments);
        let size = draft.seal(&mut call);
        let service = self.client.bind(interface).unwrap();
        let deadline = self.now + SECOND;
        let outgoing = Outgoing {
            service,
            procedure,
            size,
            deadline,
        };
        let id = self.client.start(&outgoing, waiter).unwrap();
        draft.stamp(&mut call, id, service);
        let mut stream = Buffer::default();
        self.client.poll_transmit(&mut stream);
        stream.extend(call.as_slice());
        (id, stream.as_slice().to_vec())
    }

    /// Brings what the client's engine has to say to the server.
    pub fn serve_owed(&mut self, each: impl FnMut(&mut ServerEngine, Received<'_>, &mut Buffer)) {
        let mut owed = Buffer::default();
        self.client.poll_transmit(&mut owed);
        self.send_to_server(owed.as_slice(), each).unwrap();
    }

    /// Brings bytes to the server.
    pub fn send_to_server(
        &mut self,
        stream: &[u8],
        mut each: impl FnMut(&mut ServerEngine, Received<'_>, &mut Buffer),
    ) -> Result<(), Violation> {
        let Self {
            server,
            catalog,
            server_reader,
            out,
            ..
        } = self;
        read(server_reader, stream, usize::MAX, |incoming| {
            match incoming {
                Incoming::Preamble(theirs) => server.handle_preamble(&theirs, out).unwrap(),
                Incoming::Message(message) => {
                    match server.handle_message(catalog, &message, out)? {
                        Received::Handled => {}
                        received => each(server, received, out),
                    }
                }
            }
            Ok(())
        })
    }

    /// Brings to the client what the server has sent; returns what it was told.
    pub fn take_answers(&mut self) -> Vec<Told> {
        let stream = self.out.as_slice().to_vec();
        self.out.clear();
        self.send_to_client(&stream).unwrap()
    }

    /// Brings bytes to the client.
    pub fn send_to_client(&mut self, stream: &[u8]) -> Result<Vec<Told>, Violation> {
        let mut told = Vec::new();
        let Self {
            client,
            client_reader,
            ..
        } = self;
        read(client_reader, stream, usize::MAX, |incoming| {
            match incoming {
                Incoming::Preamble(theirs) => client.handle_preamble(&theirs).unwrap(),
                Incoming::Message(message) => match client.handle_message(&message)? {
                    Event::Handled => {}
                    event => told.push(tell(event)),
                },
            }
            Ok(())
        })?;
        Ok(told)
    }
}

fn tell(event: Event<'_, &'static str>) -> Told {
    use tenon_proto::lean::client::ReplyError;
    match event {
        Event::Answer(answer) => {
            let waiter = answer.waiter;
            match answer.outcome {
                Ok(results) => format!("{waiter}: {}", results.escape_ascii()),
                Err(ReplyError::Exception(exception)) if exception.details.is_empty() => {
                    format!("{waiter} failed: {exception}")
                }
                Err(ReplyError::Exception(exception)) => format!(
                    "{waiter} failed: {exception} ({})",
                    exception.details.escape_ascii()
                ),
                Err(ReplyError::Unbound(refusal)) => format!("{waiter} unbound: {refusal}"),
            }
        }
        Event::Bound(service) => format!("bound {service}"),
        Event::Unbound(service, refusal) => format!("unbound {service}: {refusal}"),
        Event::Pong(number) => format!("pong {number}"),
        Event::Goodbye(goodbye) => format!("goodbye after {:?}: {goodbye}", goodbye.last_call),
        Event::Handled => String::new(),
    }
}
