//! A lean server over a plain socket that says only what its script tells it to say.
#![allow(dead_code, reason = "every test file uses its own part of this module")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenon::lean::server::{Caller, Catalog, Received, Reply, ServerEngine};
use tenon::lean::{
    Exception, Incoming, Interface, MessageReader, Preamble, Reason, RefusalReason, Status,
};
use tenon::wire::Buffer;

use crate::caller::{PATIENCE, PROGRAM, VERSION};
use crate::lean_caller::interface;

/// What a client sent that a script has to see.
#[derive(Debug)]
pub enum Told {
    Call(Taken),
    Cancel(u32),
    Pong(u32),
}

/// A call as it came.
#[derive(Debug)]
pub struct Taken {
    pub caller: Caller,
    pub arguments: Vec<u8>,
    pub time_left: Option<Duration>,
}

/// A peer whose script runs in a thread of its own.
pub struct LeanPeer {
    pub address: String,
    thread: JoinHandle<()>,
}

impl LeanPeer {
    /// `script` is handed what accepts the next connection.
    pub fn start(script: impl FnOnce(&TcpListener) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("lean+tcp://{}", listener.local_addr().unwrap());
        let thread = thread::spawn(move || script(&listener));
        Self { address, thread }
    }

    /// One that takes a single connection.
    pub fn with_one_line(script: impl FnOnce(LeanLine) + Send + 'static) -> Self {
        Self::start(|listener| script(LeanLine::accept(listener)))
    }

    pub fn client(&self) -> tenon::Client {
        let client = tenon::Client::connect(&self.address, PROGRAM, VERSION).unwrap();
        client.with_timeout(PATIENCE)
    }

    /// Waits for the end of the script.
    pub fn join(self) {
        self.thread.join().unwrap();
    }
}

/// A connection of the peer.
pub struct LeanLine {
    stream: TcpStream,
    engine: ServerEngine,
    catalog: Catalog,
    reader: MessageReader,
    out: Buffer,
}

impl LeanLine {
    pub fn accept(listener: &TcpListener) -> Self {
        Self::accept_as(listener, Preamble::server(1 << 20, 16))
    }

    pub fn accept_as(listener: &TcpListener, preamble: Preamble) -> Self {
        Self::accept_for(listener, preamble, Arc::new(interface()))
    }

    /// One that has a service built from `interface`.
    pub fn accept_for(
        listener: &TcpListener,
        preamble: Preamble,
        interface: Arc<Interface>,
    ) -> Self {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut catalog = Catalog::default();
        catalog.add(interface);
        Self {
            stream,
            engine: ServerEngine::new(preamble),
            catalog,
            reader: MessageReader::new(preamble.message_max as usize),
            out: Buffer::default(),
        }
    }

    /// The next that the client says; nothing when it has closed the connection. What the engine
    /// has to answer itself is sent. What comes behind is not looked at.
    pub fn told(&mut self) -> Option<Told> {
        loop {
            while let Some(told) = self.take_next() {
                self.send();
                if told.is_some() {
                    return told;
                }
            }
            match self.stream.read(self.reader.room()) {
                Ok(0) | Err(_) => return None,
                Ok(bytes) => self.reader.filled(bytes),
            }
        }
    }

    /// Takes in the next that has come, and returns what a script has to see of it.
    fn take_next(&mut self) -> Option<Option<Told>> {
        let Self {
            engine,
            catalog,
            reader,
            out,
            ..
        } = self;
        let message = match reader.next_message().unwrap()? {
            Incoming::Preamble(theirs) => {
                engine.handle_preamble(&theirs, out).unwrap();
                return Some(None);
            }
            Incoming::Message(message) => message,
        };
        Some(
            match engine.handle_message(catalog, &message, out).unwrap() {
                Received::Call(call) => Some(Told::Call(Taken {
                    caller: call.caller,
                    arguments: call.arguments.to_vec(),
                    time_left: call.time_left,
                })),
                Received::Cancel(id) => Some(Told::Cancel(id)),
                Received::Pong(number) => Some(Told::Pong(number)),
                Received::Goodbye(_) | Received::Handled => None,
                Received::StampedNull(_) => unreachable!("it does not offer stamps"),
            },
        )
    }

    /// The next call.
    pub fn call(&mut self) -> Taken {
        match self.told() {
            Some(Told::Call(call)) => call,
            other => panic!("{other:?} where a call was expected"),
        }
    }

    /// Answers every call with its arguments until the client closes the connection.
    pub fn echo(&mut self) {
        while let Some(told) = self.told() {
            if let Told::Call(call) = told {
                self.reply(&call, &call.arguments);
            }
        }
    }

    pub fn reply(&mut self, call: &Taken, results: &[u8]) {
        let reply = Reply::begin(&mut self.out, call.caller);
        self.out.extend(results);
        reply.seal(&mut self.out);
        self.send();
    }

    pub fn refuse(&mut self, call: &Taken, status: Status) {
        let reply = Reply::begin(&mut self.out, call.caller);
        let exception = Exception::new(status, "as the test asked");
        reply.refuse(&mut self.out, &exception).seal(&mut self.out);
        self.send();
    }

    pub fn ping(&mut self, number: u32) {
        self.engine.ping(number, &mut self.out);
        self.send();
    }

    /// Accepts the calls that have come, and no others.
    pub fn goodbye(&mut self, reason: Reason) {
        self.engine
            .goodbye(reason, "as the test asked", &mut self.out);
        self.send();
    }

    /// Refuses the connection.
    pub fn refuse_connection(&mut self, reason: RefusalReason) {
        self.engine.refuse(reason, &mut self.out);
        self.send();
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn send(&mut self) {
        self.stream.write_all(self.out.as_slice()).unwrap();
        self.out.clear();
    }
}
