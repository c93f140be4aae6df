//! What both ends of streams of bytes make of any packets: nothing is read that was not received, what is not read is
//! bounded whatever the peer sends, and all that is sent is a packet.
#![no_main]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use tenon_fuzz::exchange::{facts, packet, server_facts};
use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::ServiceTable;
use tenon_proto::exchange::byte_stream::ByteStream;
use tenon_proto::exchange::byte_stream::client::ByteStreamHandshake;
use tenon_proto::exchange::byte_stream::server::ServerByteStreams;
use tenon_proto::exchange::server::{ServerEngine, ServerLimits, ServerSecrets};
use tenon_proto::exchange::{RetransmitTimeouts, is_of_byte_stream, is_packet};
use tenon_proto::lean::Preamble;
use tenon_wire::Buffer;

/// The number of the client's stream, and of one of the server's.
const ID: u64 = 7;

/// Bytes that may be ready to be read: a window of fragments of the largest size.
const READY_MAX: usize = 2 << 20;

struct World {
    now: Instant,
    cookie: Vec<u8>,
    streams: ServerByteStreams<SocketAddr>,
    client: Box<ByteStream>,
    received: usize,
    read: usize,
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut left = data;
    while let [act, a, b, c, rest @ ..] = left {
        let length = usize::from(*c).min(rest.len());
        let (body, behind) = rest.split_at(length);
        left = behind;
        world.act(*act, *a, *b, body);
        world.check();
    }
});

fn peer(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number % 2], 1))
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let limits = ServerLimits {
            conversations: 3,
            ..ServerLimits::default()
        };
        let secrets = ServerSecrets {
            key: [1; 16],
            incarnation: 1,
            seed: 1,
        };
        let mut server = ServerEngine::new(Preamble::server(0, 1), limits, secrets, now);
        let hello = packet([1, 0], ID, [0, 0], [1, 0, 0], &[&facts(), &[0; 28]]);
        let none = server.handle_datagram(now, peer(0), &hello, &ServiceTable::default());
        assert!(none.is_none());
        let mut welcome = Buffer::default();
        assert!(server.poll_transmit(now, &mut welcome).is_some());
        let cookie = welcome.as_slice()[72..88].to_vec();
        Self {
            now,
            cookie,
            streams: ServerByteStreams::new(limits, secrets, now),
            client: client(now),
            received: 0,
            read: 0,
        }
    }

    fn act(&mut self, act: u8, a: u8, b: u8, body: &[u8]) {
        let id = ID + u64::from(a >> 6);
        match act % 8 {
            0 => self.receive(peer(a), body),
            1 => {
                self.now += Duration::from_millis(u64::from(b) * 50);
                while self.streams.handle_timeout(self.now).is_some() {}
                self.client.handle_timeout(self.now);
            }
            2 => {
                if let Some(stream) = self.streams.get_mut(id) {
                    self.read += use_stream(stream, b, body);
                    self.streams.touch(id);
                }
                self.read += use_stream(&mut self.client, b, body);
            }
            3 if b == 0 => {
                self.streams.remove(id, self.now);
            }
            _ => {
                let (kind, flags) = ([10, 11, 12, 10][usize::from(act >> 3) % 4], a & 3);
                let opening = [&self.cookie[..], &facts(), &[0; 4]].concat();
                let opening = if flags & 1 == 1 { &opening[..] } else { &[] };
                let (low, high) = (u32::from(b & 31), u32::from(b >> 5) * 200);
                let numbers = [0, low.wrapping_sub(2), low + high];
                let detail = u16::from(a >> 2 & 3 == 3);
                let datagram = packet([kind, flags], id, [0, detail], numbers, &[opening, body]);
                self.receive(peer(a >> 5), &datagram);
            }
        }
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.received += datagram.len();
        if is_of_byte_stream(datagram) {
            let _ = self.streams.handle_datagram(self.now, from, datagram);
        }
        let _ = self.client.handle_datagram(self.now, datagram);
    }

    fn check(&mut self) {
        let mut out = Buffer::default();
        while self.streams.poll_transmit(self.now, &mut out).is_some()
            || self.client.poll_transmit(self.now, &mut out)
        {
            assert!(is_packet(out.as_slice()) && out.len() <= 1448);
            out.clear();
        }
        let mut ready = self.client.ready().len();
        for id in ID..ID + 4 {
            ready += self
                .streams
                .get_mut(id)
                .map_or(0, |stream| stream.ready().len());
        }
        assert!(ready <= 5 * READY_MAX);
        // A datagram goes to both ends.
        assert!(self.read + ready <= 2 * self.received);
    }
}

/// A client's end that the server has welcomed.
fn client(now: Instant) -> Box<ByteStream> {
    let config = ConnectionConfig::client();
    let patience = RetransmitTimeouts::default();
    let mut handshake = ByteStreamHandshake::new(&config, 1448, patience, ID, now);
    let mut hello = Buffer::default();
    assert!(handshake.poll_transmit(now, &mut hello));
    let rest = [0; 28];
    let welcome = packet([2, 0], ID, [0, 0], [1, 0, 0], &[&server_facts(), &rest]);
    match handshake.handle_datagram(now, &welcome) {
        Some(Ok(stream)) => stream,
        _ => panic!("it is a welcome"),
    }
}

/// Writes, reads or finishes; returns how many bytes were read.
fn use_stream(stream: &mut ByteStream, what: u8, body: &[u8]) -> usize {
    match what % 4 {
        0 => {
            let free = stream.free().min(body.len());
            stream.write(&body[..free]);
        }
        1 => stream.finish(),
        _ => {
            let ready = stream.ready().len().min(usize::from(what) * 16);
            stream.consume(ready);
            return ready;
        }
    }
    0
}
