//! A lean client of a stream whose every message is its test's choice.

use std::sync::Arc;
use std::time::Instant;

use tenon::Address;
use tenon::lean::client::{ClientEngine, Outgoing};
use tenon::lean::{ByteOrder, Draft, Extras, Incoming, Interface, MessageReader, Preamble};
use tenon::wire::Buffer;
use tenon_net::Stream;

use super::{ECHO, PATIENCE};

/// Bytes of the largest message that it takes.
const MESSAGE_MAX: u32 = 4 << 20;

/// A lean client that sends what it is told to.
pub struct Raw {
    pub stream: Stream,
    engine: ClientEngine<()>,
    reader: MessageReader,
    out: Buffer,
}

impl Raw {
    pub fn connect(address: &str) -> Self {
        let address: Address = address.parse().unwrap();
        Self {
            stream: Stream::connect(&address, Instant::now() + PATIENCE).unwrap(),
            engine: ClientEngine::new(Preamble::client(MESSAGE_MAX), 1),
            reader: MessageReader::new(MESSAGE_MAX as usize),
            out: Buffer::default(),
        }
    }

    pub fn bind(&mut self, interface: Interface) -> u16 {
        let service = self.engine.bind(&Arc::new(interface)).unwrap();
        self.engine.poll_transmit(&mut self.out);
        service
    }

    /// Has a call sent with what follows.
    pub fn call(&mut self, service: u16, procedure: u16, id: u32, arguments: &[u8]) {
        let mut call = Buffer::default();
        let draft = Draft::call(&mut call, ByteOrder::NATIVE, procedure, &Extras::default());
        call.extend(arguments);
        draft.seal(&mut call);
        draft.stamp(&mut call, id, service);
        self.out.extend(call.as_slice());
    }

    /// Has cancellations of a call that there is not sent with what follows, `bytes` of them at least.
    pub fn cancel_nothing(&mut self, service: u16, bytes: usize) {
        let outgoing = Outgoing {
            service,
            procedure: ECHO,
            size: 16,
            deadline: Instant::now() + PATIENCE,
        };
        let id = self.engine.start(&outgoing, ()).unwrap();
        self.engine.cancel(id).unwrap();
        let mut one = Buffer::default();
        self.engine.poll_transmit(&mut one);
        for _ in 0..bytes.div_ceil(one.len()) {
            self.out.extend(one.as_slice());
        }
    }

    /// Sends all of it, which is to have room.
    pub fn send(&mut self) {
        let sent = self.stream.try_send(self.out.as_slice()).unwrap();
        assert_eq!(sent, self.out.len());
        self.out.clear();
    }

    /// The result of the call with this number. What comes before it is not looked at.
    pub fn result(&mut self, id: u32) -> Vec<u8> {
        loop {
            while let Some(incoming) = self.reader.next_message().unwrap() {
                if let Incoming::Message(message) = incoming
                    && message.header.id == id
                    && let Ok(parts) = message.parts()
                    && !parts.body.is_empty()
                {
                    return parts.body.to_vec();
                }
            }
            let until = Instant::now() + PATIENCE;
            let came = self.stream.recv_until(self.reader.room(), until).unwrap();
            assert_ne!(came, 0, "the server has hung up");
            self.reader.filled(came);
        }
    }
}
