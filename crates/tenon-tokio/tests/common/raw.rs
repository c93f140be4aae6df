//! A lean client of a stream whose every message is its test's choice.

use std::sync::Arc;
use std::time::Instant;

use tenon::Address;
use tenon::lean::{ByteOrder, Extras, Flags, Header, Interface, Kind, MessageDraft};
use tenon::wire::Buffer;
use tenon_net::Stream;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::{Frame, Receiver};
use tenon_proto::connection::{CallDraft, Connection, LeanCall, TransmitBatch, WireProtocol};

use super::obliging::{ECHO, PATIENCE};

/// A lean client that sends what it is told to, however many calls the server takes.
pub struct Raw {
    pub stream: Stream,
    connection: Connection<()>,
    receiver: Receiver,
    /// Versions of programs that are bound.
    services: u16,
    out: Vec<u8>,
}

impl Raw {
    pub fn connect(address: &str) -> Self {
        let address: Address = address.parse().unwrap();
        let config = ConnectionConfig::client();
        let (connection, receiver) = Connection::client(config, WireProtocol::Lean, 1);
        Self {
            stream: Stream::connect(&address, Instant::now() + PATIENCE).unwrap(),
            connection,
            receiver,
            services: 0,
            out: Vec::new(),
        }
    }

    /// Has a version of a program bound with what follows; returns its number.
    pub fn bind(&mut self, interface: Interface) -> u16 {
        self.out.extend(bind(&mut self.connection, interface));
        self.services += 1;
        self.services - 1
    }

    /// Has a call sent with what follows.
    pub fn call(&mut self, service: u16, procedure: u16, id: u32, arguments: &[u8]) {
        self.out.extend(call(service, procedure, id, arguments));
    }

    /// Has cancellations of a call that there is not sent with what follows, `bytes` of them at least.
    pub fn cancel_nothing(&mut self, bytes: usize) {
        let header = Header {
            kind: Kind::Cancel,
            flags: Flags::default(),
            id: u32::MAX,
            service: 0,
            procedure: 0,
            length: 0,
        };
        let one = header.encode(ByteOrder::NATIVE);
        self.out.extend(one.repeat(bytes.div_ceil(one.len())));
    }

    /// Sends all of it, which is to have room.
    pub fn send(&mut self) {
        let sent = self.stream.try_send(&self.out).unwrap();
        assert_eq!(sent, self.out.len());
        self.out.clear();
    }

    /// The result of the call with this number. What comes before it is not looked at.
    pub fn result(&mut self, id: u32) -> Vec<u8> {
        loop {
            while let Some(frame) = self.receiver.next_frame().unwrap() {
                if let Frame::Message(message) = frame
                    && message.header.id == id
                    && let Ok(parts) = message.parts()
                    && !parts.body.is_empty()
                {
                    return parts.body.to_vec();
                }
            }
            let until = Instant::now() + PATIENCE;
            let room = self.receiver.room();
            let came = self.stream.recv_until(room, until).unwrap();
            assert_ne!(came, 0, "the server has hung up");
            self.receiver.handle_received(came).unwrap();
        }
    }
}

/// All that is sent up to the end of a first call of [`ECHO`].
pub fn first_call(interface: Interface) -> Vec<u8> {
    let config = ConnectionConfig::client();
    let (mut connection, _) = Connection::client(config, WireProtocol::Lean, 1);
    let bound = bind(&mut connection, interface);
    [bound, call(0, ECHO, 1, b"four")].concat()
}

/// What binds a version of a program, and what begins the connection if that has not begun.
fn bind(connection: &mut Connection<()>, interface: Interface) -> Vec<u8> {
    // It is bound for the sake of a call, which is not made.
    let mut message = Buffer::default();
    let draft = MessageDraft::call(&mut message, ByteOrder::NATIVE, ECHO, &Extras::default());
    draft.seal(&mut message);
    let call = CallDraft::Lean(LeanCall {
        draft,
        interface: &Arc::new(interface),
        procedure: ECHO,
    });
    let deadline = Instant::now() + PATIENCE;
    let started = connection.start_call(&call, &mut message, deadline, ());
    connection.withdraw_call(started.unwrap().number);
    take_out(connection)
}

/// Takes all that is to be sent.
pub fn take_out<W>(connection: &mut Connection<W>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut batch = TransmitBatch::default();
    while connection.poll_transmit(&mut batch) {
        out.extend(batch.slices().concat());
        batch.advance(batch.remaining());
        connection.handle_transmitted(&mut batch);
    }
    out
}

fn call(service: u16, procedure: u16, id: u32, arguments: &[u8]) -> Vec<u8> {
    let mut call = Buffer::default();
    let order = ByteOrder::NATIVE;
    let draft = MessageDraft::call(&mut call, order, procedure, &Extras::default());
    call.extend(arguments);
    draft.finish(&mut call, id, service);
    call.as_slice().to_vec()
}
