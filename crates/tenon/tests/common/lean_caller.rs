//! A lean client over a plain socket, and a service that does what a test asks it for in both
//! protocols.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tenon::lean::{ByteOrder, Extras, Interface, MessageDraft, Part, Preamble};
use tenon::wire::{Buffer, DecodeError, Decoder, Encoder, Lean};
use tenon::{CallInfo, LeanInput, LeanService, Refusal, ServerBuilder, Service};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    CallDraft, Connection, ConnectionError, Event, LeanCall, ReplyError, ServiceTable,
    TransmitBatch, WireProtocol,
};
use tenon_shm::Joined;

use super::caller::{PATIENCE, PROGRAM, VERSION, fresh_path, listening};
use super::gate;
use super::serving::rest;

pub const ECHO: u16 = 1;
pub const SLEEP: u16 = 2;
pub const PANIC: u16 = 3;
pub const FAIL: u16 = 8;
/// Returns when the gate that is its argument is open. Few bits that flip make none of the others this.
pub const HOLD: u16 = 0x5a5a;
pub const WHICH_ORDER: u16 = 20;

fn name(procedure: u16) -> &'static str {
    match procedure {
        0 => "0",
        ECHO => "ECHO",
        SLEEP => "SLEEP",
        PANIC => "PANIC",
        FAIL => "FAIL",
        HOLD => "HOLD",
        WHICH_ORDER => "WHICH_ORDER",
        _ => "99",
    }
}

/// Serves what a test asks for.
pub struct LeanObliging;

pub fn interface() -> Interface {
    Interface {
        fingerprint: 0x1234,
        parts: vec![Part {
            name: "point".into(),
            fingerprint: 1,
            layout: 0,
            procedure: 0,
        }],
        ..Interface::unknown(PROGRAM, VERSION)
    }
}

pub fn lean_builder() -> ServerBuilder {
    listening().service(LeanObliging)
}

/// As [`lean_builder`], and in shared memory, too.
pub fn lean_everywhere() -> ServerBuilder {
    with_shm(lean_builder())
}

/// Has a server listen in shared memory, too.
pub fn with_shm(builder: ServerBuilder) -> ServerBuilder {
    #[cfg(not(tenon_portable))]
    let builder = builder
        .listen(&format!("shm://{}", fresh_path().display()))
        .unwrap();
    builder
}

impl Service for LeanObliging {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let rest = arguments.rest();
        result.room(rest.len()).copy_from_slice(rest);
        Ok(())
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for LeanObliging {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(interface())
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        let mut put = |bytes: &[u8]| result.room(bytes.len()).copy_from_slice(bytes);
        match call.procedure() as u16 {
            ECHO => put(rest(&arguments)),
            WHICH_ORDER => put(match arguments {
                LeanInput::Native(_) => b"native",
                LeanInput::Swapped(_) => b"swapped",
            }),
            SLEEP => {
                let millis = word(arguments)?;
                thread::sleep(Duration::from_millis(millis.into()));
                put(b"slept");
            }
            HOLD => {
                gate::hold(word(arguments)?);
                put(b"held");
            }
            PANIC => panic!("as the test asked"),
            FAIL => return Err(Refusal::SystemError("as the test asked".to_owned())),
            _ => return Err(Refusal::ProcedureUnavailable),
        }
        Ok(())
    }
}

fn word(arguments: LeanInput<'_>) -> Result<u32, DecodeError> {
    match arguments {
        LeanInput::Native(mut arguments) => arguments.get(),
        LeanInput::Swapped(mut arguments) => arguments.get(),
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Shm(Box<Memory>),
}

/// A client's end of memory that it shares with a server, of which nobody asks what it does.
pub struct Memory {
    pub joined: Joined,
    /// Wakes the server, and ends with it.
    pub socket: UnixStream,
}

impl Memory {
    pub fn connect(address: &str) -> Self {
        let (_, path) = address.split_once("://").unwrap();
        let socket = UnixStream::connect(path).unwrap();
        let joined = tenon_shm::join(socket.as_fd(), Instant::now() + PATIENCE).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { joined, socket }
    }

    /// Wakes the server, whether it sleeps or not.
    pub fn ring(&self) {
        // A server that is gone need not be woken.
        let _ = (&self.socket).write(&[1]);
    }

    /// Sends all of `bytes`, or as many as the server receives.
    pub fn send(&self, bytes: &[u8]) {
        let begin = Instant::now();
        let mut sent = 0;
        while sent < bytes.len() && !self.joined.end.peer_receives_nothing() {
            match self
                .joined
                .end
                .send(&bytes[sent..], || self.ring())
                .unwrap()
            {
                0 => thread::sleep(Duration::from_millis(1)),
                more => sent += more,
            }
            assert!(begin.elapsed() < PATIENCE, "the server takes no more");
        }
    }

    /// Receives what comes next: nothing if the server has ended.
    pub fn receive(&self, room: &mut [u8]) -> usize {
        let begin = Instant::now();
        loop {
            let is_last = self.joined.end.peer_sends_nothing();
            match self.joined.end.receive(room, || self.ring()).unwrap() {
                0 if is_last => return 0,
                0 => thread::sleep(Duration::from_micros(100)),
                received => return received,
            }
            assert!(begin.elapsed() < PATIENCE, "nothing comes");
        }
    }

    /// Says that nothing more is sent, and takes in what comes until the server has ended.
    pub fn finish(&self) {
        self.joined.end.end_sending(|| self.ring());
        while self.receive(&mut [0; 4096]) > 0 {}
    }
}

impl Socket {
    fn connect(address: &str) -> Self {
        let timeout = Some(PATIENCE);
        match address.split_once("://").unwrap() {
            ("tcp", place) => {
                let stream = TcpStream::connect(place).unwrap();
                stream.set_read_timeout(timeout).unwrap();
                stream.set_nodelay(true).unwrap();
                Self::Tcp(stream)
            }
            ("shm", _) => Self::Shm(Box::new(Memory::connect(address))),
            (_, path) => {
                let stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(timeout).unwrap();
                Self::Unix(stream)
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).unwrap(),
            Self::Unix(stream) => stream.write_all(bytes).unwrap(),
            Self::Shm(memory) => memory.send(bytes),
        }
    }

    fn receive(&mut self, room: &mut [u8]) -> usize {
        let received = match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
            Self::Shm(memory) => Ok(memory.receive(room)),
        };
        match received {
            // Something that the peer did not read was under way.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            received => received.unwrap(),
        }
    }
}

/// What an end with this preamble grants.
pub fn config_of(preamble: &Preamble, config: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        receive_max: preamble.message_max as usize,
        incoming_calls_max: preamble.calls_max as usize,
        features: preamble.features,
        byte_order: preamble.order,
        ..config
    }
}

/// A client that says only what it is told to say.
pub struct LeanCaller {
    socket: Socket,
    order: ByteOrder,
    connection: Connection<&'static str>,
    receiver: Receiver,
    told: VecDeque<String>,
}

impl LeanCaller {
    pub fn connect(address: &str) -> Self {
        Self::connect_as(address, &Preamble::client(1 << 20))
    }

    pub fn connect_as(address: &str, preamble: &Preamble) -> Self {
        let (connection, receiver) = begin(preamble);
        Self {
            socket: Socket::connect(address),
            order: preamble.order,
            connection,
            receiver,
            told: VecDeque::new(),
        }
    }

    /// All that is sent up to the end of a first call.
    pub fn first_call(interface: Interface, procedure: u16, arguments: &[u8]) -> Vec<u8> {
        let (mut connection, _) = begin(&Preamble::client(1 << 20));
        let extras = Extras::default();
        let call = (&Arc::new(interface), procedure, arguments, &extras);
        start(&mut connection, ByteOrder::NATIVE, call, "");
        take_out(&mut connection)
    }

    /// One that has sent nothing, not even a preamble.
    pub fn connect_silent(address: &str) -> Self {
        let mut caller = Self::connect(address);
        take_out(&mut caller.connection);
        caller
    }

    /// Puts a call behind what is to be sent.
    pub fn start(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        extras: &Extras<'_>,
        waiter: &'static str,
    ) -> u32 {
        let call = (interface, procedure, arguments, extras);
        start(&mut self.connection, self.order, call, waiter)
    }

    pub fn cancel(&mut self, id: u32) {
        self.connection.cancel_call(id).unwrap();
    }

    pub fn send(&mut self) {
        let bytes = take_out(&mut self.connection);
        self.socket.send(&bytes);
    }

    pub fn send_byte_by_byte(&mut self) {
        for byte in take_out(&mut self.connection) {
            self.socket.send(&[byte]);
            thread::yield_now();
        }
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.send(bytes);
    }

    pub fn call(&mut self, procedure: u16, arguments: &[u8]) -> String {
        let extras = Extras::default();
        self.call_of(&Arc::new(interface()), procedure, arguments, &extras)
    }

    /// Calls and waits for what becomes of it.
    pub fn call_of(
        &mut self,
        interface: &Arc<Interface>,
        procedure: u16,
        arguments: &[u8],
        extras: &Extras<'_>,
    ) -> String {
        self.start(interface, procedure, arguments, extras, name(procedure));
        self.send();
        self.answer()
    }

    /// Calls in flight that the server takes.
    pub fn granted(&self) -> u32 {
        self.connection.peer().unwrap().calls_max
    }

    /// The next that the server says to a person: an answer, a refusal, that it closes, the end.
    pub fn answer(&mut self) -> String {
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            match self.socket.receive(self.receiver.room()) {
                0 => return "closed".to_owned(),
                bytes => self.receiver.handle_received(bytes).unwrap(),
            }
            self.take_what_came();
        }
    }

    fn take_what_came(&mut self) {
        let services = ServiceTable::default();
        while let Some(frame) = self.receiver.next_frame().unwrap() {
            let told = match self.connection.handle_frame(frame, &services) {
                Err(ConnectionError::Refused(refused)) => format!("refused: {refused}"),
                Err(error) => panic!("{error}"),
                Ok(Event::Answered(answer)) => match answer.outcome {
                    Ok(results) => format!("{}: {}", answer.waiter, results.escape_ascii()),
                    Err(ReplyError::Exception(exception)) => {
                        format!("{} failed: {exception}", answer.waiter)
                    }
                    Err(ReplyError::Unbound(refusal)) => {
                        format!("{} unbound: {refusal}", answer.waiter)
                    }
                    Err(error) => panic!("{error:?}"),
                },
                Ok(Event::PeerClosing(closing)) => {
                    let close = closing.close;
                    format!("close after {:?}: {close}", close.last_call)
                }
                Ok(Event::Pong(number)) => format!("pong {number}"),
                Ok(_) => continue,
            };
            self.told.push_back(told);
        }
    }
}

fn begin(preamble: &Preamble) -> (Connection<&'static str>, Receiver) {
    let config = config_of(preamble, ConnectionConfig::client());
    Connection::client(config, WireProtocol::Lean, 1)
}

fn start(
    connection: &mut Connection<&'static str>,
    order: ByteOrder,
    (interface, procedure, arguments, extras): (&Arc<Interface>, u16, &[u8], &Extras<'_>),
    waiter: &'static str,
) -> u32 {
    let mut message = Buffer::default();
    let draft = MessageDraft::call(&mut message, order, procedure, extras);
    message.extend(arguments);
    draft.seal(&mut message);
    let draft = CallDraft::Lean(LeanCall {
        draft,
        interface,
        procedure,
    });
    let deadline = Instant::now() + PATIENCE;
    let call = connection.start_call(&draft, &mut message, deadline, waiter);
    let call = call.unwrap();
    connection.push_call(&call, &mut message);
    call.number
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
