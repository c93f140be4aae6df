//! Peers over plain sockets, and in shared memory, that speak the lean protocol in an order of bytes of their own: a machine of
//! the other kind.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tenon::lean::client::{ClientEngine, Event, Outgoing};
use tenon::lean::server::{Call, Catalog, Received, Reply, ServerEngine};
use tenon::lean::{ByteOrder, Draft, Exception, Extras, Incoming, MessageReader, Preamble, Status};
use tenon::wire::{Buffer, Encoder, Lean, Marshal, Swapped};
use tenon_shm::{Joined, Sizes};

use crate::rows::PATIENCE;
use crate::service::{ADD, details, interface};

/// Bytes of the largest message that a peer takes in.
const MESSAGE_MAX: usize = 1 << 20;

/// What the exception of [`serve`] says beside: [`details`] in this order of bytes.
fn encoded_details(order: ByteOrder) -> Buffer {
    let mut buffer = Buffer::default();
    match order.is_swapped() {
        false => details().encode(&mut Encoder::<Lean>::over(&mut buffer)),
        true => details().encode(&mut Encoder::<Lean<Swapped>>::over(&mut buffer)),
    }
    .unwrap();
    buffer
}

pub trait Stream: Read + Write + Send + 'static {}

impl<S: Read + Write + Send + 'static> Stream for S {}

/// An end of memory that is shared, of one who looks and does not sleep.
struct Shared {
    joined: Joined,
    /// Wakes the other end.
    socket: UnixStream,
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
    let (scheme, place) = address.split_once("://").unwrap();
    match scheme {
        "tcp" => {
            let stream = TcpStream::connect(place).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Box::new(stream)
        }
        "unix" => {
            let stream = UnixStream::connect(place).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Box::new(stream)
        }
        "shm" => {
            let socket = UnixStream::connect(place).unwrap();
            let joined = tenon_shm::join(socket.as_fd(), Instant::now() + PATIENCE).unwrap();
            Box::new(Shared { joined, socket })
        }
        other => panic!("no peer over {other}"),
    }
}

/// Calls ADD as a machine of this order does, and returns the sum.
pub fn add_one(stream: &mut dyn Stream, order: ByteOrder, number: u64) -> u64 {
    let preamble = Preamble {
        order,
        ..Preamble::client(MESSAGE_MAX as u32)
    };
    let mut engine = ClientEngine::new(preamble, 1);
    let mut reader = MessageReader::new(MESSAGE_MAX);
    let mut out = Buffer::default();
    let Ok(service) = engine.bind(&Arc::new(interface())) else {
        panic!("nothing is refused yet");
    };
    engine.poll_transmit(&mut out);
    let draft = Draft::call(&mut out, order, ADD, &Extras::default());
    out.extend(&bytes_of(order, number));
    let outgoing = Outgoing {
        service,
        procedure: ADD,
        size: draft.seal(&mut out),
        deadline: Instant::now() + PATIENCE,
    };
    let id = engine.start(&outgoing, ()).unwrap();
    draft.stamp(&mut out, id, service);
    stream.write_all(out.as_slice()).unwrap();
    loop {
        while let Some(incoming) = reader.next_message().unwrap() {
            match incoming {
                Incoming::Preamble(theirs) => engine.handle_preamble(&theirs).unwrap(),
                Incoming::Message(message) => {
                    if let Event::Answer(answer) = engine.handle_message(&message).unwrap() {
                        return number_of(answer.order, answer.outcome.unwrap());
                    }
                }
            }
        }
        match stream.read(reader.room()).unwrap() {
            0 => panic!("the server closed the connection"),
            bytes => reader.filled(bytes),
        }
    }
}

/// A server of this order, at an address of this kind, for one connection. It carries ADD out, and raises
/// an exception of its interface for everything else.
pub fn serve(carrier: &str, order: ByteOrder) -> String {
    match carrier {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("tcp://{}", listener.local_addr().unwrap());
            thread::spawn(move || answer(&mut listener.accept().unwrap().0, order));
            address
        }
        "unix" | "shm" => {
            let path = crate::rows::fresh_path();
            let listener = UnixListener::bind(&path).unwrap();
            let address = format!("{carrier}://{}", path.display());
            let is_shared = carrier == "shm";
            thread::spawn(move || {
                let mut socket = listener.accept().unwrap().0;
                // Nobody else is to come.
                std::fs::remove_file(path).unwrap();
                if is_shared {
                    let joined = tenon_shm::invite(socket.as_fd(), Sizes::default()).unwrap();
                    answer(&mut Shared { joined, socket }, order);
                } else {
                    answer(&mut socket, order);
                }
            });
            address
        }
        other => panic!("no peer over {other}"),
    }
}

fn answer(stream: &mut dyn Stream, order: ByteOrder) {
    let mut catalog = Catalog::default();
    catalog.add(Arc::new(interface()));
    let preamble = Preamble {
        order,
        ..Preamble::server(MESSAGE_MAX as u32, 16)
    };
    let mut engine = ServerEngine::new(preamble);
    let mut reader = MessageReader::new(MESSAGE_MAX);
    let mut out = Buffer::default();
    while let Ok(bytes @ 1..) = stream.read(reader.room()) {
        reader.filled(bytes);
        while let Some(incoming) = reader.next_message().unwrap() {
            match incoming {
                Incoming::Preamble(theirs) => engine.handle_preamble(&theirs, &mut out).unwrap(),
                Incoming::Message(message) => {
                    let received = engine.handle_message(&catalog, &message, &mut out);
                    if let Received::Call(call) = received.unwrap() {
                        oblige(&call, order, &mut out);
                    }
                }
            }
        }
        if stream.write_all(out.as_slice()).is_err() {
            break;
        }
        out.clear();
    }
}

fn oblige(call: &Call<'_>, order: ByteOrder, out: &mut Buffer) {
    let reply = Reply::begin(out, call.caller);
    if call.procedure() != ADD {
        let details = encoded_details(order);
        let raised = Exception {
            details: details.as_slice(),
            ..Exception::new(Status::RAISED, "as the test asked")
        };
        return reply.refuse(out, &raised).seal(out);
    }
    let sum = number_of(call.order, call.arguments) + 1;
    out.extend(&bytes_of(order, sum));
    reply.seal(out);
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
