//! A lean server over a plain socket that says only what its script tells it to say.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenon::lean::{CloseReason, Exception, Interface, Preamble, RefusalReason, Status};
use tenon::wire::Buffer;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{Caller, Connection, DeferredId, Event, ReplyDraft, ServiceTable};

use super::caller::{PATIENCE, PROGRAM, VERSION};
use super::lean_caller::{config_of, interface, take_out};

/// What a client sent that a script has to see.
#[derive(Debug)]
pub enum PeerEvent {
    Call(TakenCall),
    Cancel(u32),
    Pong(u32),
}

/// A call as it came.
#[derive(Debug)]
pub struct TakenCall {
    pub caller: Caller,
    pub arguments: Vec<u8>,
    pub time_left: Option<Duration>,
    /// Under which the connection knows it until it is answered.
    id: DeferredId,
}

impl TakenCall {
    /// The number of the call.
    pub fn number(&self) -> u32 {
        self.caller.number()
    }
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
    connection: Connection<()>,
    receiver: Receiver,
    services: ServiceTable,
    /// The numbers of the calls that are not answered.
    calls: HashMap<DeferredId, u32>,
}

impl LeanLine {
    pub fn accept(listener: &TcpListener) -> Self {
        Self::accept_as(listener, &Preamble::server(1 << 20, 16))
    }

    pub fn accept_as(listener: &TcpListener, preamble: &Preamble) -> Self {
        Self::accept_for(listener, preamble, Arc::new(interface()))
    }

    /// One that has a service built from `interface`.
    pub fn accept_for(
        listener: &TcpListener,
        preamble: &Preamble,
        interface: Arc<Interface>,
    ) -> Self {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut services = ServiceTable::default();
        services.add(interface.program, interface.version, Some(interface));
        let config = config_of(preamble, ConnectionConfig::server());
        let (connection, receiver) = Connection::server(config);
        Self {
            stream,
            connection,
            receiver,
            services,
            calls: HashMap::new(),
        }
    }

    /// The next that the client says; nothing when it has closed the connection. What the connection
    /// has to answer itself is sent. What comes behind is not looked at.
    pub fn told(&mut self) -> Option<PeerEvent> {
        loop {
            while let Some(told) = self.take_next() {
                self.send();
                if told.is_some() {
                    return told;
                }
            }
            match self.stream.read(self.receiver.room()) {
                Ok(0) | Err(_) => return None,
                Ok(bytes) => self.receiver.handle_received(bytes).unwrap(),
            }
        }
    }

    /// Takes in the next that has come, and returns what a script has to see of it.
    fn take_next(&mut self) -> Option<Option<PeerEvent>> {
        let frame = self.receiver.next_frame().unwrap()?;
        let event = self.connection.handle_frame(frame, &self.services);
        Some(match event.unwrap() {
            Event::Called(call) => {
                assert!(!call.wants_stamps, "it does not offer stamps");
                let (caller, time_left) = (call.caller, call.time_left);
                let arguments = call.arguments.to_vec();
                let id = self.connection.defer(&caller, None).unwrap();
                self.calls.insert(id, caller.number());
                Some(PeerEvent::Call(TakenCall {
                    caller,
                    arguments,
                    time_left,
                    id,
                }))
            }
            Event::Cancelled(id) => Some(PeerEvent::Cancel(self.calls[&id])),
            Event::Pong(number) => Some(PeerEvent::Pong(number)),
            _ => None,
        })
    }

    /// The next call.
    pub fn call(&mut self) -> TakenCall {
        match self.told() {
            Some(PeerEvent::Call(call)) => call,
            other => panic!("{other:?} where a call was expected"),
        }
    }

    /// Answers every call with its arguments until the client closes the connection.
    pub fn echo(&mut self) {
        while let Some(told) = self.told() {
            if let PeerEvent::Call(call) = told {
                self.reply(&call, &call.arguments);
            }
        }
    }

    pub fn reply(&mut self, call: &TakenCall, results: &[u8]) {
        let mut reply = Buffer::default();
        let draft = ReplyDraft::begin(&mut reply, call.caller);
        reply.extend(results);
        draft.seal(&mut reply);
        self.connection.finish_deferred(call.id);
        self.connection.push_reply(&mut reply);
        self.send();
    }

    pub fn refuse(&mut self, call: &TakenCall, status: Status) {
        let exception = Exception::new(status, "as the test asked");
        let Caller::Lean(caller) = call.caller else {
            unreachable!("it speaks the lean protocol")
        };
        self.connection.finish_deferred(call.id);
        self.connection.refuse_call(caller, &exception);
        self.send();
    }

    /// Asks whether the client is there; the number that its answer will have.
    pub fn ping(&mut self) -> u32 {
        let number = self.connection.ping();
        self.send();
        number
    }

    /// Accepts the calls that have come, and no others.
    pub fn close(&mut self, reason: CloseReason) {
        self.connection.close(reason, "as the test asked");
        self.send();
    }

    /// Refuses the connection.
    pub fn refuse_connection(&mut self, reason: RefusalReason) {
        self.connection.refuse(reason);
        self.send();
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn send(&mut self) {
        self.stream
            .write_all(&take_out(&mut self.connection))
            .unwrap();
    }
}
