//! The suite that every transport passes: what is sent arrives whole and in order, waiting ends at
//! the deadline, and a peer that is gone is reported.
#![allow(clippy::unwrap_used)]

#[path = "../../tenon/tests/common/place.rs"]
mod place;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use place::{fresh_host, fresh_path};
#[cfg(tenon_portable)]
use tenon_net::Carrier;
use tenon_net::{Accepted, Address, DatagramSocket, Listener, Ready, Stream, Transport};

#[cfg(not(tenon_portable))]
const TRANSPORTS: [Transport; 4] = [
    Transport::Tcp,
    Transport::Unix,
    Transport::Udp,
    Transport::Shm,
];
/// What other systems than Linux have.
#[cfg(tenon_portable)]
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Udp];
/// Packets past the kernel go between networks that `xdp.rs` makes.
const NEEDS_NETWORKS: &str = "has tests of its own";

#[cfg(not(tenon_portable))]
const STREAMS: [Transport; 3] = [Transport::Tcp, Transport::Unix, Transport::Shm];
#[cfg(tenon_portable)]
const STREAMS: [Transport; 1] = [Transport::Tcp];

const READ: Ready = Ready {
    readable: true,
    writable: false,
};
/// Bounds every wait that is meant to succeed.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// For waits that are meant to end without success.
fn shortly() -> Instant {
    Instant::now() + Duration::from_millis(30)
}

fn anywhere(transport: Transport) -> Address {
    match transport {
        Transport::Tcp => format!("tcp://{}:0", fresh_host()).parse().unwrap(),
        Transport::Udp => format!("udp://{}:0", fresh_host()).parse().unwrap(),
        Transport::Unix => Address::unix(fresh_path()),
        Transport::Shm => Address::shm(fresh_path()),
        Transport::Xdp => unreachable!("{NEEDS_NETWORKS}"),
    }
}

/// One end of a connection that carries messages; on a stream a length goes before each.
enum End {
    Stream(Stream),
    Connected(DatagramSocket),
    Open(DatagramSocket, Option<SocketAddr>),
}

impl End {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream(stream) => {
                send_all(stream, &(message.len() as u32).to_be_bytes())?;
                send_all(stream, message)
            }
            Self::Connected(socket) => socket.try_send(message),
            Self::Open(socket, peer) => socket.try_send_to(message, peer.unwrap()),
        }
    }

    fn recv(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        match self {
            Self::Stream(stream) => recv_framed(stream, deadline),
            Self::Connected(socket) => recv_datagram(|room| socket.recv_until(room, deadline)),
            Self::Open(socket, peer) => {
                socket.wait(READ, deadline)?;
                recv_datagram(|room| {
                    let (length, from) = socket.try_recv_from(room)?;
                    *peer = Some(from);
                    Ok(length)
                })
            }
        }
    }
}

fn send_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_send(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stream.wait(Ready::WRITABLE, soon())?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn recv_framed(stream: &Stream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    recv_exact(stream, &mut length, deadline)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    recv_exact(stream, &mut message, deadline)?;
    Ok(message)
}

fn recv_exact(stream: &Stream, mut room: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !room.is_empty() {
        match stream.recv_until(room, deadline)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            received => room = &mut room[received..],
        }
    }
    Ok(())
}

fn recv_datagram(recv: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut room = vec![0; DatagramSocket::SIZE_MAX];
    let length = recv(&mut room)?;
    room.truncate(length);
    Ok(room)
}

/// A client and a server end that are connected.
fn pair(transport: Transport) -> (End, End) {
    match transport {
        Transport::Udp => {
            let server = DatagramSocket::bind(&anywhere(transport)).unwrap();
            let client = DatagramSocket::connect(&server.address().unwrap(), soon()).unwrap();
            (End::Connected(client), End::Open(server, None))
        }
        Transport::Tcp | Transport::Unix | Transport::Shm => {
            let (client, server) = streams(transport);
            (End::Stream(client), End::Stream(server))
        }
        Transport::Xdp => unreachable!("{NEEDS_NETWORKS}"),
    }
}

fn streams(transport: Transport) -> (Stream, Stream) {
    let listener = Listener::bind(&anywhere(transport)).unwrap();
    let (client, server) = connected(&listener);
    assert_eq!(client.transport(), transport);
    assert_eq!(server.transport(), transport);
    (client, server)
}

/// Shared memory is handed over only when the connection is accepted.
fn connected(listener: &Listener) -> (Stream, Stream) {
    thread::scope(|scope| {
        let client = scope.spawn(|| Stream::connect(listener.address(), soon()).unwrap());
        let server = accept(listener);
        (client.join().unwrap(), server)
    })
}

fn accept(listener: &Listener) -> Stream {
    let deadline = soon();
    while Instant::now() < deadline {
        if let Some(Accepted::Stream(stream)) = listener.try_accept().unwrap() {
            return stream;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody connected");
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + length) as u8).collect()
}

fn sizes(transport: Transport) -> Vec<usize> {
    let small = [0, 1, 3, 4, 5, 1439, 1440, 1472, 1473, 8191, 8192, 8193];
    let large: &[usize] = match transport {
        Transport::Udp | Transport::Xdp => {
            &[DatagramSocket::SIZE_MAX - 1, DatagramSocket::SIZE_MAX]
        }
        Transport::Tcp | Transport::Unix | Transport::Shm => &[65_535, 65_536, 65_537, 3 << 20],
    };
    small.into_iter().chain(large.iter().copied()).collect()
}

#[test]
fn every_size_comes_back_whole() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        let sizes = sizes(transport);
        let rounds = sizes.len();
        let echo = thread::spawn(move || {
            for _ in 0..rounds {
                let message = server.recv(soon()).unwrap();
                server.send(&message).unwrap();
            }
        });
        for size in sizes {
            client.send(&pattern(size)).unwrap();
            let back = client.recv(soon()).unwrap();
            assert!(back == pattern(size), "{transport}: {size} bytes");
        }
        echo.join().unwrap();
    }
}

#[test]
fn messages_keep_their_order() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        for burst in 0..100_u32 {
            for number in 0..10 {
                client.send(&(burst * 10 + number).to_be_bytes()).unwrap();
            }
            for number in 0..10 {
                let expected = (burst * 10 + number).to_be_bytes();
                assert_eq!(server.recv(soon()).unwrap(), expected, "{transport}");
            }
        }
    }
}

#[test]
fn a_deadline_ends_the_wait_and_nothing_else() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        let error = client.recv(shortly()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{transport}");
        client.send(b"call").unwrap();
        assert_eq!(server.recv(soon()).unwrap(), b"call");
        server.send(b"reply").unwrap();
        assert_eq!(client.recv(soon()).unwrap(), b"reply", "{transport}");
    }
}

/// A receiver may sleep in another way then.
#[test]
fn a_deadline_ends_the_wait_after_long_messages_too() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        let long = vec![7; 4096];
        client.send(&long).unwrap();
        assert_eq!(server.recv(soon()).unwrap(), long, "{transport}");
        for receiver in [&mut client, &mut server] {
            let error = receiver.recv(shortly()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{transport}");
        }
        client.send(&long).unwrap();
        client.recv(Instant::now()).unwrap_err();
        assert_eq!(server.recv(soon()).unwrap(), long, "{transport}");
    }
}

#[test]
fn a_long_deadline_outlives_a_short_one_before_it() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        client.send(b"call").unwrap();
        server.recv(soon()).unwrap();
        client.recv(shortly()).unwrap_err();
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            server.send(b"late").unwrap();
            server
        });
        assert_eq!(client.recv(soon()).unwrap(), b"late", "{transport}");
        drop(late.join().unwrap());
    }
}

#[test]
fn what_has_come_is_received_even_behind_the_deadline() {
    for transport in TRANSPORTS {
        let (mut client, mut server) = pair(transport);
        client.send(b"call").unwrap();
        server.recv(soon()).unwrap();
        server.send(b"reply").unwrap();
        let ready = match &client {
            End::Stream(stream) => stream.wait(READ, soon()),
            End::Connected(socket) | End::Open(socket, _) => socket.wait(READ, soon()),
        };
        assert!(ready.unwrap().readable);
        let reply = client.recv(Instant::now()).unwrap();
        assert_eq!(reply, b"reply", "{transport}");
    }
}

#[test]
fn a_peer_that_is_gone_is_reported() {
    for transport in TRANSPORTS {
        let (mut client, server) = pair(transport);
        drop(server);
        let expected = match transport {
            Transport::Udp | Transport::Xdp => ErrorKind::ConnectionRefused,
            Transport::Tcp | Transport::Unix | Transport::Shm => ErrorKind::UnexpectedEof,
        };
        if transport == Transport::Udp {
            client.send(b"into the void").unwrap();
        }
        let error = client.recv(soon()).unwrap_err();
        assert_eq!(error.kind(), expected, "{transport}");
    }
}

#[test]
fn sending_to_a_stream_that_is_gone_fails_without_a_signal() {
    for transport in STREAMS {
        let (client, server) = streams(transport);
        drop(server);
        let deadline = soon();
        let error = loop {
            match client.try_send(b"x") {
                Err(error) => break error,
                Ok(_) => assert!(Instant::now() < deadline, "{transport}: still sends"),
            }
        };
        let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{transport}: {error}");
    }
}

#[test]
fn a_half_closed_stream_still_answers() {
    for transport in STREAMS {
        let (client, server) = streams(transport);
        send_all(&client, b"last words").unwrap();
        client.shutdown_send().unwrap();
        let mut room = [0; 10];
        recv_exact(&server, &mut room, soon()).unwrap();
        assert_eq!(&room, b"last words");
        assert_eq!(
            server.recv_until(&mut room, soon()).unwrap(),
            0,
            "{transport}"
        );
        send_all(&server, b"understood").unwrap();
        recv_exact(&client, &mut room, soon()).unwrap();
        assert_eq!(&room, b"understood", "{transport}");
    }
}

#[test]
fn shutting_down_wakes_who_waits() {
    for transport in STREAMS {
        let (client, _server) = streams(transport);
        thread::scope(|scope| {
            let reader = scope.spawn(|| client.recv_until(&mut [0; 8], soon()).unwrap());
            thread::sleep(Duration::from_millis(20));
            client.shutdown().unwrap();
            assert_eq!(reader.join().unwrap(), 0, "{transport}");
        });
    }
    let (End::Connected(client), _server) = pair(Transport::Udp) else {
        unreachable!("a UDP client is a connected socket")
    };
    thread::scope(|scope| {
        let reader = scope.spawn(|| client.recv_until(&mut [0; 8], soon()).unwrap());
        thread::sleep(Duration::from_millis(20));
        client.shutdown().unwrap();
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn a_receive_gives_up_after_its_limit_and_shutting_down_the_receiving_side_wakes_it() {
    for transport in STREAMS {
        let (client, server) = streams(transport);
        let nothing = server.recv_within(&mut [0; 8], Duration::from_millis(5));
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
        send_all(&client, b"last").unwrap();
        let long = Duration::from_secs(60);
        assert_eq!(server.recv_within(&mut [0; 8], long).unwrap(), 4);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| server.recv_within(&mut [0; 8], long));
            server.shutdown_recv().unwrap();
            assert_eq!(waiting.join().unwrap().unwrap(), 0);
        });
        send_all(&server, b"still sends").unwrap();
        assert_eq!(client.recv_until(&mut [0; 16], soon()).unwrap(), 11);
    }
}

#[test]
fn a_datagram_is_waited_for_no_longer_than_the_limit() {
    let socket = DatagramSocket::bind(&anywhere(Transport::Udp)).unwrap();
    let nothing = socket.recv_from_within(&mut [0; 8], Duration::from_millis(5));
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::WouldBlock);
    let peer = DatagramSocket::connect(&socket.address().unwrap(), soon()).unwrap();
    peer.try_send(b"there").unwrap();
    let (length, _) = socket
        .recv_from_within(&mut [0; 8], Duration::from_secs(60))
        .unwrap();
    assert_eq!(length, 5);
}

#[test]
fn a_full_stream_says_so_and_can_still_be_read() {
    for transport in STREAMS {
        let (client, server) = streams(transport);
        let block = vec![7; 1 << 16];
        let error = loop {
            let error = loop {
                if let Err(error) = client.try_send(&block) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{transport}");
            // The kernel may still be about to move what was sent to the other end.
            if let Err(error) = client.wait(Ready::WRITABLE, shortly()) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{transport}");
        send_all(&server, b"reply").unwrap();
        let ready = client.wait(Ready::EITHER, soon()).unwrap();
        assert_eq!(ready, READ, "{transport}");
        assert_eq!(client.try_recv(&mut [0; 8]).unwrap(), 5, "{transport}");
    }
}

#[test]
fn a_sender_that_waits_for_room_is_told_that_the_peer_is_gone() {
    for transport in STREAMS {
        let (client, server) = streams(transport);
        let block = vec![7; 1 << 16];
        while client.try_send(&block).is_ok() {}
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                drop(server);
            });
            let error = loop {
                assert!(client.wait(Ready::WRITABLE, soon()).unwrap().writable);
                match client.try_send(&block) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => break error,
                    Ok(_) => {}
                }
            };
            let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
            assert!(kinds.contains(&error.kind()), "{transport}: {error}");
        });
    }
}

#[test]
fn bytes_go_both_ways_at_once_through_full_streams() {
    const ALL: usize = 5 << 20;
    for transport in STREAMS {
        let (client, server) = streams(transport);
        let sent = pattern(ALL);
        thread::scope(|scope| {
            for end in [&client, &server] {
                scope.spawn(|| send_all(end, &sent).unwrap());
                scope.spawn(|| {
                    let mut received = vec![0; ALL];
                    recv_exact(end, &mut received, soon()).unwrap();
                    assert!(received == sent, "{transport}");
                });
            }
        });
    }
}

#[cfg(not(tenon_portable))]
#[test]
fn a_datagram_cut_short_shows_its_length() {
    let (mut client, mut server) = pair(Transport::Udp);
    client.send(b"hello").unwrap();
    server.recv(soon()).unwrap();
    server.send(&pattern(1000)).unwrap();
    let End::Connected(socket) = client else {
        unreachable!("a UDP client is a connected socket")
    };
    let mut room = [0; 100];
    assert_eq!(socket.recv_until(&mut room, soon()).unwrap(), 1000);
    assert_eq!(room, pattern(1000)[..100]);
}

#[test]
fn nobody_there_refuses_the_connection() {
    for transport in STREAMS {
        let listener = Listener::bind(&anywhere(transport)).unwrap();
        let address = listener.address().clone();
        drop(listener);
        let error = Stream::connect(&address, soon()).unwrap_err();
        let kinds = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{transport}: {error}");
    }
}

/// Those of TCP are not answered until the listener is closed, and others are refused at once.
#[cfg(not(tenon_portable))]
#[test]
fn a_listener_that_stops_takes_nothing_more_in_and_still_accepts_what_waits() {
    for transport in [Transport::Tcp, Transport::Unix] {
        let listener = Listener::bind(&anywhere(transport)).unwrap();
        let waiting = Stream::connect(listener.address(), soon()).unwrap();
        listener.stop_listening();
        let late = Stream::connect(listener.address(), shortly()).unwrap_err();
        let kind = match transport {
            Transport::Tcp => ErrorKind::TimedOut,
            _ => ErrorKind::ConnectionRefused,
        };
        assert_eq!(late.kind(), kind, "{transport}: {late}");
        let accepted = accept(&listener);
        let address = listener.address().clone();
        drop(listener);
        let error = Stream::connect(&address, soon()).unwrap_err();
        let kinds = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
        assert!(kinds.contains(&error.kind()), "{transport}: {error}");
        // What was accepted works on.
        End::Stream(waiting).send(b"late").unwrap();
        let received = End::Stream(accepted).recv(soon());
        assert_eq!(received.unwrap(), b"late");
    }
}

#[test]
fn an_address_of_another_kind_is_refused_in_words() {
    let tcp: Address = "tcp://127.0.0.1:1".parse().unwrap();
    let udp: Address = "udp://127.0.0.1:1".parse().unwrap();
    let no_port: Address = "tcp://127.0.0.1".parse().unwrap();
    for (error, hint) in [
        (Stream::connect(&udp, soon()).unwrap_err(), "use tcp://"),
        (Listener::bind(&udp).unwrap_err(), "use tcp://"),
        (DatagramSocket::bind(&tcp).unwrap_err(), "use udp://"),
        (Stream::connect(&no_port, soon()).unwrap_err(), "host:port"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[cfg(tenon_portable)]
#[test]
fn what_only_linux_has_is_refused_in_words() {
    for text in ["unix:///run/none", "shm:///run/none", "xdp://127.0.0.1:1"] {
        let address: Address = text.parse().unwrap();
        let error = match address.transport() {
            Transport::Xdp => Carrier::bind(&address).unwrap_err(),
            _ => Listener::bind(&address).unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("needs Linux"), "{error}");
        let error = match address.transport() {
            Transport::Xdp => Carrier::connect(&address, soon()).map(drop),
            _ => Stream::connect(&address, soon()).map(drop),
        };
        let error = error.unwrap_err();
        assert!(error.to_string().contains("needs Linux"), "{error}");
    }
}

#[cfg(not(tenon_portable))]
#[test]
fn a_socket_file_lives_as_long_as_its_listener() {
    let path = fresh_path();
    let address = Address::unix(path.clone());
    let listener = Listener::bind(&address).unwrap();
    let error = Listener::bind(&address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    Stream::connect(&address, soon()).unwrap();
    drop(listener);
    assert!(!path.exists());
}

#[cfg(not(tenon_portable))]
#[test]
fn a_stale_socket_file_is_replaced_and_another_file_is_not() {
    let path = fresh_path();
    let address = Address::unix(path.clone());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the standard library leaves the file");
    drop(Listener::bind(&address).unwrap());

    std::fs::write(&path, "precious").unwrap();
    let error = Listener::bind(&address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
}

/// The kernel lends a connecting socket a port of the ephemeral range. When that is the port it
/// connects to, and nobody listens there, it would be connected to itself.
#[test]
fn a_socket_is_not_connected_to_itself() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // Linux lends the even ports to those who connect.
    let port = free.local_addr().unwrap().port() & !1;
    drop(free);
    let address: Address = format!("tcp://127.0.0.1:{port}").parse().unwrap();
    for _ in 0..40_000 {
        let refused = Stream::connect(&address, deadline).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}
