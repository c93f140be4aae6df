//! Peers over plain sockets, and in shared memory, that speak the lean protocol in an order of bytes of their own: a machine of
//! the other kind.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tenon::lean::{ByteOrder, Exception, Extras, MessageDraft, Status};
use tenon::wire::{Buffer, Encoder, Lean, Marshal, Order, Swapped};
use tenon_interop::compiled::torture::Drawing;
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::Receiver;
use tenon_proto::connection::{
    CallDraft, Connection, Event, IncomingCall, LeanCall, ReplyDraft, ServiceTable, TransmitBatch,
    WireProtocol,
};
use tenon_shm::{Joined, Sizes};

use crate::rows::PATIENCE;
use crate::service::{ADD, details, interface};
use crate::sockets::{self, ListenPlace, PlainListener, PlainStream};

/// Bytes of the largest message that a peer takes in.
const MESSAGE_MAX: usize = 1 << 20;

/// What the exception of [`serve`] says beside: [`details`] in this order of bytes.
fn encoded_details(order: ByteOrder) -> Buffer {
    let mut buffer = Buffer::default();
    match order.is_swapped() {
        false => put_details(&mut Encoder::<Lean>::over(&mut buffer)),
        true => put_details(&mut Encoder::<Lean<Swapped>>::over(&mut buffer)),
    }
    buffer
}

/// The details begin with the position of the error in the procedure's list.
fn put_details<O: Order>(out: &mut Encoder<'_, Lean<O>>)
where
    Drawing: Marshal<Lean<O>>,
{
    out.put(0_u32);
    out.align(<Drawing as Marshal<Lean<O>>>::ALIGN, 0);
    details().encode(out).unwrap();
}

pub trait Stream: Read + Write + Send + 'static {}

impl<S: Read + Write + Send + 'static> Stream for S {}

/// An end of memory that is shared, of one who looks and does not sleep.
struct Shared {
    joined: Joined,
    /// Wakes the other end.
    socket: PlainStream,
}

impl Shared {
    fn ring(&self) {
        // Who is gone need not be woken.
        let _ = (&self.socket).write(&[1]);
    }
}

impl Read for Shared {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let is_last = self.joined.end.peer_sends_nothing();
            match self.joined.end.receive(room, || self.ring()) {
                Ok(0) if is_last => return Ok(0),
                Ok(0) => thread::yield_now(),
                Ok(received) => return Ok(received),
                Err(violation) => return Err(io::Error::other(violation)),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.joined.end.send(bytes, || self.ring());
        sent.map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to the server at `address`.
pub fn connect(address: &str) -> Box<dyn Stream> {
    let socket = sockets::connect(address).unwrap();
    if address.starts_with("shm:") {
        let joined = tenon_shm::join(socket.as_fd(), Instant::now() + PATIENCE).unwrap();
        return Box::new(Shared { joined, socket });
    }
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    Box::new(socket)
}

/// What a machine of this order grants.
fn config(order: ByteOrder, config: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        receive_max: MESSAGE_MAX,
        byte_order: order,
        ..config
    }
}

/// Sends what waits to be sent; returns whether the peer took it.
fn send<W: Copy>(connection: &mut Connection<W>, stream: &mut dyn Stream) -> bool {
    let mut batch = TransmitBatch::default();
    while connection.poll_transmit(&mut batch) {
        for slice in batch.slices() {
            if stream.write_all(slice).is_err() {
                return false;
            }
        }
        batch.advance(batch.remaining());
        connection.handle_transmitted(&mut batch);
    }
    true
}

/// Calls ADD as a machine of this order does, and returns the sum.
pub fn add_one(stream: &mut dyn Stream, order: ByteOrder, number: u64) -> u64 {
    let config = config(order, ConnectionConfig::client());
    let (mut connection, mut receiver) = Connection::client(config, WireProtocol::Lean, 1);
    let mut message = Buffer::default();
    let draft = MessageDraft::call(&mut message, order, ADD, &Extras::default());
    message.extend(&bytes_of(order, number));
    draft.seal(&mut message);
    let interface = Arc::new(interface());
    let call = CallDraft::Lean(LeanCall {
        draft,
        interface: &interface,
        procedure: ADD,
    });
    let deadline = Instant::now() + PATIENCE;
    let started = connection.start_call(&call, &mut message, deadline, ());
    connection.push_call(&started.unwrap(), &mut message);
    assert!(send(&mut connection, stream));
    let services = ServiceTable::default();
    loop {
        while let Some(frame) = receiver.next_frame().unwrap() {
            if let Event::Answered(answer) = connection.handle_frame(frame, &services).unwrap() {
                return number_of(answer.order, answer.outcome.unwrap());
            }
        }
        receive(stream, &mut receiver);
    }
}

fn receive(stream: &mut dyn Stream, receiver: &mut Receiver) {
    match stream.read(receiver.room()).unwrap() {
        0 => panic!("the server closed the connection"),
        bytes => receiver.handle_received(bytes).unwrap(),
    }
}

/// A server of this order, at an address of this kind, for one connection. It carries ADD out, and raises
/// an exception of its interface for everything else.
pub fn serve(carrier: &str, order: ByteOrder) -> String {
    let (listener, place) = PlainListener::bind(carrier);
    let is_shared = carrier == "shm";
    let ListenPlace { address, file } = place;
    thread::spawn(move || {
        let mut socket = listener.accept().unwrap();
        // No other client is to come.
        file.map(std::fs::remove_file).transpose().unwrap();
        if is_shared {
            let joined = tenon_shm::invite(socket.as_fd(), Sizes::default()).unwrap();
            answer(&mut Shared { joined, socket }, order);
        } else {
            answer(&mut socket, order);
        }
    });
    address
}

fn answer(stream: &mut dyn Stream, order: ByteOrder) {
    let interface = Arc::new(interface());
    let mut services = ServiceTable::default();
    services.add(interface.program, interface.version, Some(interface));
    let config = config(order, ConnectionConfig::server());
    let (mut connection, mut receiver) = Connection::<()>::server(config);
    while let Ok(bytes @ 1..) = stream.read(receiver.room()) {
        receiver.handle_received(bytes).unwrap();
        while let Some(frame) = receiver.next_frame().unwrap() {
            if let Event::Called(call) = connection.handle_frame(frame, &services).unwrap() {
                let mut reply = oblige(&call, order);
                connection.push_reply(&mut reply);
            }
        }
        if !send(&mut connection, stream) {
            break;
        }
    }
}

fn oblige(call: &IncomingCall<'_>, order: ByteOrder) -> Buffer {
    let mut out = Buffer::default();
    let mut draft = ReplyDraft::begin(&mut out, call.caller);
    if u32::from(ADD) == call.procedure {
        let sum = number_of(call.order, call.arguments) + 1;
        out.extend(&bytes_of(order, sum));
    } else if let ReplyDraft::Lean(reply) = draft {
        let details = encoded_details(order);
        let raised = Exception {
            details: details.as_slice(),
            ..Exception::new(Status::RAISED, "as the test asked")
        };
        draft = ReplyDraft::Lean(reply.refuse(&mut out, &raised));
    }
    draft.seal(&mut out);
    out
}

pub fn bytes_of(order: ByteOrder, number: u64) -> [u8; 8] {
    match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    }
}

pub fn number_of(order: ByteOrder, bytes: &[u8]) -> u64 {
    let bytes = bytes.try_into().unwrap();
    match order {
        ByteOrder::Little => u64::from_le_bytes(bytes),
        ByteOrder::Big => u64::from_be_bytes(bytes),
    }
}
