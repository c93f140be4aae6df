//! Channels and servers over connections that the program has established itself.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, eventually, fresh_path};
use crate::common::gate;
use crate::common::serving::Serving;
use tenon::lean::Interface;
use tenon::wire::{Decoder, EncodeError, Encoder, Lean};
use tenon::{
    CallError, Channel, ChannelOptions, Client, ConnectError, EstablishedConnection, LeanInput,
    Protocol, Refusal, Server, ServerLimits, Service,
};

const BOTH: [Protocol; 2] = [Protocol::Onc, Protocol::Lean];

/// Bytes of the largest messages here.
const LARGE: usize = 64 << 20;

const ECHO: u16 = 1;
/// Returns its argument, a gate, when that is open.
const HOLD: u16 = 2;

/// Calls of HOLD that have begun.
static HELD: AtomicUsize = AtomicUsize::new(0);

fn interface() -> Interface {
    Interface::unknown(PROGRAM, VERSION)
}

fn service() -> impl Service {
    let body = |procedure: u32, arguments: &[u8]| match procedure as u16 {
        ECHO => Ok(arguments.to_vec()),
        HOLD => {
            HELD.fetch_add(1, Ordering::SeqCst);
            gate::hold(u32::from_be_bytes(arguments.try_into().unwrap()));
            Ok(arguments.to_vec())
        }
        _ => Err(Refusal::ProcedureUnavailable),
    };
    let interface = interface();
    Serving { interface, body }
}

fn unlistening() -> Server {
    let limits = ServerLimits {
        message_bytes: LARGE + 4096,
        ..ServerLimits::default()
    };
    let builder = Server::builder().no_listener().service(service());
    builder.limits(limits).start().unwrap()
}

fn client(connection: impl Into<EstablishedConnection>, protocol: Protocol) -> Client {
    let options = ChannelOptions::default()
        .send_max(LARGE + 4096)
        .receive_max(LARGE + 4096);
    let channel = Channel::over(connection, protocol, options).unwrap();
    let client = Client::over(channel, PROGRAM, VERSION).with_timeout(PATIENCE);
    client.with_interface(Arc::new(interface()))
}

fn put(bytes: &[u8]) -> impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

fn put_lean(bytes: &[u8]) -> impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

fn call(client: &Client, procedure: u16, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    let get = |input: &mut Decoder<'_>| Ok(input.take(input.left())?.to_vec());
    match client.protocol() {
        Protocol::Onc => client.onc().call(procedure.into(), put(bytes), get),
        Protocol::Lean => {
            client
                .lean()
                .call(procedure.into(), put_lean(bytes), |input| match input {
                    LeanInput::Native(input) => Ok(input.take(input.left())?.to_vec()),
                    LeanInput::Swapped(input) => Ok(input.take(input.left())?.to_vec()),
                })
        }
    }
}

/// Halves of a Unix socket that is only read from and written to.
fn halves(socket: UnixStream) -> EstablishedConnection {
    struct Writing(UnixStream);
    impl Write for Writing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Drop for Writing {
        fn drop(&mut self) {
            let _ = self.0.shutdown(Shutdown::Write);
        }
    }
    let reader = socket.try_clone().unwrap();
    EstablishedConnection::from_halves(reader, Writing(socket))
}

/// Pairs of connected ends: sockets, and halves at one end or both.
fn pairs() -> Vec<(&'static str, EstablishedConnection, EstablishedConnection)> {
    let unix = || UnixStream::pair().unwrap();
    let (one, other) = tenon::memory().unwrap();
    let mut pairs = vec![("memory", one, other)];
    let (one, other) = unix();
    pairs.push(("halves at the client", halves(one), other.into()));
    let (one, other) = unix();
    pairs.push(("halves at the server", one.into(), halves(other)));
    let (one, other) = unix();
    pairs.push(("halves at both ends", halves(one), halves(other)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    pairs.push(("TCP", one.into(), other.into()));
    pairs
}

#[test]
fn calls_of_both_protocols_go_over_every_kind_of_connection() {
    let server = unlistening();
    for protocol in BOTH {
        for (kind, ours, theirs) in pairs() {
            server.serve_stream(theirs).unwrap();
            let client = client(ours, protocol);
            for length in [0, 4, 1000, 65_536, 1 << 20] {
                let sent = vec![0x5a; length];
                let echoed = call(&client, ECHO, &sent).unwrap();
                assert!(echoed == sent, "{kind}, {protocol}, {length}");
            }
        }
    }
    server.shutdown(PATIENCE);
}

#[test]
fn the_largest_messages_pass() {
    let server = unlistening();
    let sent: Vec<u8> = (0..LARGE).map(|index| (index / 7) as u8).collect();
    for protocol in BOTH {
        let (one, other) = UnixStream::pair().unwrap();
        server.serve_stream(halves(other)).unwrap();
        let client = client(halves(one), protocol);
        assert!(call(&client, ECHO, &sent).unwrap() == sent, "{protocol}");
    }
}

#[test]
fn a_call_over_halves_keeps_its_deadline_and_the_others_go_on() {
    let server = unlistening();
    for protocol in BOTH {
        let gate = gate::fresh_gate();
        let (one, other) = UnixStream::pair().unwrap();
        server.serve_stream(halves(other)).unwrap();
        let client = client(halves(one), protocol);
        let hurried = client.with_timeout(Duration::from_millis(50));
        let error = call(&hurried, HOLD, &gate.to_be_bytes()).unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        assert_eq!(call(&client, ECHO, b"on it goes").unwrap(), b"on it goes");
        gate::open(gate);
    }
}

#[test]
fn the_end_of_the_peer_is_told_and_the_connection_is_not_made_again() {
    for protocol in BOTH {
        let (one, other) = UnixStream::pair().unwrap();
        let client = client(halves(one), protocol);
        drop(other);
        let mut last = None;
        eventually("the end is seen", || {
            let error = call(&client, ECHO, b"four").unwrap_err();
            let is_last = matches!(
                error,
                CallError::Connect(ConnectError::NotReconnected { .. })
            );
            last = Some(error);
            is_last
        });
        let text = last.unwrap().to_string();
        assert!(text.contains("the program supplied it"), "{text}");
    }
}

#[test]
fn a_shutdown_answers_what_was_begun_and_ends_the_connection() {
    for protocol in BOTH {
        let server = unlistening();
        let (one, other) = UnixStream::pair().unwrap();
        server.serve_stream(halves(other)).unwrap();
        let client = client(halves(one), protocol);
        let gate = gate::fresh_gate();
        let before = HELD.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let held = scope.spawn(|| call(&client, HOLD, &gate.to_be_bytes()));
            eventually("it has begun", || HELD.load(Ordering::SeqCst) > before);
            let stopped = scope.spawn(|| server.shutdown(PATIENCE));
            gate::open(gate);
            assert_eq!(held.join().unwrap().unwrap(), gate.to_be_bytes());
            stopped.join().unwrap();
        });
        let refused = server.serve_stream(UnixStream::pair().unwrap().0);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotConnected);
        call(&client, ECHO, b"four").unwrap_err();
    }
}

#[test]
fn closing_drops_the_writer_and_says_so() {
    struct Never;
    impl Read for Never {
        fn read(&mut self, _room: &mut [u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }
    }
    struct Dropped(Arc<AtomicBool>);
    impl Write for Dropped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let [dropped, closed] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let connection = EstablishedConnection::from_halves(Never, Dropped(Arc::clone(&dropped)));
    let connection = connection.on_close({
        let (dropped, closed) = (Arc::clone(&dropped), Arc::clone(&closed));
        move || {
            assert!(dropped.load(Ordering::SeqCst));
            closed.store(true, Ordering::SeqCst);
        }
    });
    let client = client(connection, Protocol::Onc).with_timeout(Duration::from_millis(50));
    let error = client.ping().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    assert!(!closed.load(Ordering::SeqCst));
    drop(client);
    eventually("the connection is closed", || closed.load(Ordering::SeqCst));
}

#[test]
fn a_server_takes_no_more_connections_than_it_may() {
    let limits = ServerLimits {
        connections: 1,
        ..ServerLimits::default()
    };
    let builder = Server::builder().no_listener().limits(limits);
    let server = builder.start().unwrap();
    let (_ours, theirs) = tenon::memory().unwrap();
    server.serve_stream(theirs).unwrap();
    let (_ours, theirs) = tenon::memory().unwrap();
    let error = server.serve_stream(theirs).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    assert_eq!(server.counters().connections_refused, 1);
}

#[test]
fn calls_go_over_sockets_that_the_program_connected() {
    let path = fresh_path();
    let builder = Server::builder().service(service());
    let builder = builder.listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.listen("udp://127.0.0.1:0").unwrap();
    let unix = format!("unix://{}", path.display());
    let server = builder.listen(&unix).unwrap().start().unwrap();
    let port = |index: usize| {
        let address = server.addresses()[index].to_string();
        address.split_once("://").unwrap().1.to_owned()
    };
    for protocol in BOTH {
        let tcp = TcpStream::connect(port(0)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(port(1)).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        let clients = [
            client(tcp, protocol),
            client(udp, protocol),
            client(OwnedFd::from(stream), protocol),
        ];
        for client in clients {
            assert_eq!(call(&client, ECHO, b"seven").unwrap(), b"seven");
            assert_eq!(call(&client, ECHO, b"eight").unwrap(), b"eight");
        }
    }
}

#[test]
fn what_is_no_connected_socket_is_refused() {
    let refused = |fd: OwnedFd| {
        let options = ChannelOptions::default();
        Channel::over(fd, Protocol::Onc, options).unwrap_err()
    };
    let unconnected = UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = File::open("/dev/null").unwrap();
    for error in [refused(unconnected.into()), refused(file.into())] {
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    }
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.connect("127.0.0.1:9").unwrap();
    let error = unlistening().serve_stream(datagrams).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
