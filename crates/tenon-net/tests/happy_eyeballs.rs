//! Connecting to one of several addresses, some of which are silent, closed, or cannot be reached.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, connect, listen, socket_with,
};
use tenon_net::Stream;

/// Bounds every wait that is meant to succeed.
const PATIENCE: Duration = Duration::from_secs(60);

/// An address at which connections are neither taken nor refused, as the queue of its listener is full.
struct Silent {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<OwnedFd>,
}

impl Silent {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let queue = || {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
            // It is not known yet whether it finds room.
            let _ = connect(&socket, &address);
            socket
        };
        Self {
            address,
            _listener: listener,
            _queued: (0..8).map(|_| queue()).collect(),
        }
    }
}

fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn connect_to(addresses: &[SocketAddr], limit: Duration) -> std::io::Result<Stream> {
    Stream::connect_first(addresses, Instant::now() + limit)
}

#[test]
fn a_silent_address_does_not_keep_from_the_next() {
    let silent = Silent::open();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let answering = listener.local_addr().unwrap();
    for addresses in [
        vec![silent.address, answering],
        vec![silent.address, closed(), silent.address, answering],
        vec![closed(), silent.address, closed(), answering],
        vec![answering, silent.address],
    ] {
        let stream = connect_to(&addresses, PATIENCE).unwrap();
        assert_eq!(stream.peer(), Some(answering), "{addresses:?}");
        let (_, caller) = listener.accept().unwrap();
        assert_eq!(caller.ip(), answering.ip());
    }
}

#[cfg(not(tenon_portable))]
#[test]
fn the_socket_of_the_winner_blocks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [closed(), listener.local_addr().unwrap()];
    let stream = connect_to(&addresses, PATIENCE).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let sender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        (&accepted).write_all(b"late").unwrap();
    });
    let mut room = [0; 4];
    let received = rustix::net::recv(&stream, &mut room[..], RecvFlags::empty());
    assert_eq!(received.map(|(_, bytes)| bytes), Ok(4));
    sender.join().unwrap();
}

#[test]
fn all_causes_are_told() {
    let silent = Silent::open();
    let addresses = [closed(), silent.address, closed()];
    let error = connect_to(&addresses, Duration::from_millis(900)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let text = error.to_string();
    for address in addresses {
        assert!(text.contains(&address.to_string()), "{text}");
    }
    assert!(
        text.contains("refused") && text.contains("timed out"),
        "{text}"
    );
}

#[test]
fn the_only_address_reports_what_it_does() {
    let error = connect_to(&[closed()], PATIENCE).unwrap_err();
    assert!(error.raw_os_error().is_some(), "{error:?}");
    let silent = Silent::open();
    let error = connect_to(&[silent.address], Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(tenon_net::is_deadline(&error));
}
