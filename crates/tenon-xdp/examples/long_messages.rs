//! Times a long message in both ways that there are where the kernel copies frames: each datagram in a frame of its own, and
//! many in one piece by the kernel's socket. The server answers each message with one short datagram.
//!
//!     cargo run --release -p tenon-rpc-xdp --example long_messages -- server ADDRESS BYTES
//!     cargo run --release -p tenon-rpc-xdp --example long_messages -- client ADDRESS BYTES

use std::error::Error;
use std::io;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use tenon_xdp::{OutgoingDatagrams, ReceivedDatagrams, UdpChecksum, XdpSocket};

/// Bytes of a datagram, as the packet exchange has them on an Ethernet.
const DATAGRAM: usize = 1448;

/// Datagrams that are sent together: as many as fit into the largest that UDP takes.
const TOGETHER: usize = 45;

/// The number of datagrams by which a message goes in frames, and in one piece.
const WAYS: [(&str, u32); 2] = [("in frames", 1), ("in one piece", u32::MAX)];

const TURNS: usize = 11;
const ROUNDS: usize = 200;

/// After so long a datagram was lost.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, address, bytes] = &arguments[..] else {
        return Err("usage: long_messages server|client ADDRESS BYTES".into());
    };
    let (at, bytes): (SocketAddrV4, usize) = (address.parse()?, bytes.parse()?);
    match role.as_str() {
        "server" => serve(&XdpSocket::bind(at, UdpChecksum::Optional)?, bytes),
        "client" => measure(&XdpSocket::connect(at, UdpChecksum::Optional)?, bytes),
        other => Err(format!("{other} is neither server nor client").into()),
    }
}

/// Answers messages until the client is gone.
fn serve(socket: &XdpSocket, bytes: usize) -> Result<(), Box<dyn Error>> {
    let mut room = vec![0; 1 << 16];
    socket.expect_many();
    loop {
        let mut came = 0;
        let from = loop {
            let datagrams = receive(socket, &mut room, Duration::MAX)?;
            came += datagrams.length;
            if came >= bytes {
                break datagrams.from;
            }
        };
        socket.try_send_to(&[0; 64], from)?;
    }
}

/// Sends messages in both ways in turns, and prints the median of each.
fn measure(socket: &XdpSocket, bytes: usize) -> Result<(), Box<dyn Error>> {
    let message = vec![7; bytes];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (times, (_, datagrams)) in times.iter_mut().zip(WAYS) {
            for _ in 0..ROUNDS {
                times.push(exchange(socket, &message, datagrams)?);
            }
        }
    }
    for (times, (way, _)) in times.iter_mut().zip(WAYS) {
        times.sort_unstable();
        let median = times[times.len() / 2];
        println!(
            "{bytes} bytes {way}: {:.1} us",
            median.as_nanos() as f64 / 1e3
        );
    }
    Ok(())
}

fn exchange(socket: &XdpSocket, message: &[u8], datagrams: u32) -> io::Result<Duration> {
    let begin = Instant::now();
    for bytes in message.chunks(TOGETHER * DATAGRAM) {
        let mut left = bytes;
        while !left.is_empty() {
            let all = OutgoingDatagrams {
                bytes: left,
                size: DATAGRAM,
                message_datagrams: datagrams,
            };
            match socket.try_send_all(all) {
                Ok(sent) => left = &left[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    receive(socket, &mut [0; 64], PATIENCE)?;
    Ok(begin.elapsed())
}

fn receive(socket: &XdpSocket, room: &mut [u8], limit: Duration) -> io::Result<ReceivedDatagrams> {
    let begin = Instant::now();
    loop {
        for _ in 0..1000 {
            match socket.try_recv(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.look(100),
                done => return done,
            }
        }
        if begin.elapsed() > limit {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "a datagram was lost",
            ));
        }
    }
}
