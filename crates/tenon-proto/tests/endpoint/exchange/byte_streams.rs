//! Streams of bytes in packets: what one end writes the other reads, whatever the network does, and an end that is gone
//! is noticed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tenon_proto::config::{ConnectionConfig, Role};
use tenon_proto::exchange::byte_stream::client::ByteStreamHandshake;
use tenon_proto::exchange::byte_stream::server::{ByteStreamEvent, ServerByteStreams};
use tenon_proto::exchange::byte_stream::{ByteStream, ByteStreamEnd};
use tenon_proto::exchange::server::{CloseRecipients, ServerEngine, ServerLimits};
use tenon_proto::exchange::{
    DATAGRAM_DEFAULT, DATAGRAM_HERE, DropReason, ReassembledMessage, RetransmitTimeouts,
    is_of_byte_stream,
};
use tenon_proto::lean::{ByteOrder, Preamble, RefusalReason, Refused};
use tenon_wire::Buffer;

use super::support::{address, config, server_address, server_secrets, services};
use crate::common::{Random, ShownOnFailure, seeds};
use crate::network::{Datagram, Faults, Network};

/// The longest time that nothing happens in a run before it is taken to hang: longer than an end waits for a silent one.
const PATIENCE: Duration = Duration::from_secs(120);

/// One direction of a stream as its ends see it.
#[derive(Debug, Default)]
struct Direction {
    /// Bytes to be written in all.
    total: usize,
    written: usize,
    read: usize,
}

/// The byte at an offset of a stream.
fn byte_at(offset: usize, seed: u64) -> u8 {
    (offset as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed)
        .to_be_bytes()[1]
}

impl Direction {
    /// Writes some of what is left, and ends the stream behind the last.
    fn write(&mut self, stream: &mut ByteStream, random: &mut Random) {
        let room = stream.free().min(self.total - self.written);
        let count = room.min(1 + random.of_bits(17));
        if count > 0 {
            let range = self.written..self.written + count;
            let bytes: Vec<u8> = range.map(|offset| byte_at(offset, 7)).collect();
            stream.write(&bytes);
            self.written += count;
        }
        if self.written == self.total {
            stream.finish();
        }
    }

    /// Reads some of what is ready.
    fn read(&mut self, stream: &mut ByteStream, random: &mut Random) {
        let ready = stream.ready();
        let count = ready.len().min(random.of_bits(18));
        for (byte, offset) in ready[..count].iter().zip(self.read..) {
            assert_eq!(*byte, byte_at(offset, 7), "at {offset}");
        }
        self.read += count;
        stream.consume(count);
    }
}

struct World {
    now: Instant,
    random: Random,
    network: Network,
    server: ServerEngine<SocketAddr>,
    streams: ServerByteStreams<SocketAddr>,
    /// The number of the stream at the server, once it has begun.
    served: Option<u64>,
    openings: usize,
    handshake: Option<ByteStreamHandshake>,
    client: Option<Box<ByteStream>>,
    client_address: SocketAddr,
    failed: Option<Refused>,
}

impl World {
    fn new(seed: u64, faults: Faults, datagram: usize) -> Self {
        let now = Instant::now();
        let limits = ServerLimits {
            datagram_max: datagram,
            ..ServerLimits::default()
        };
        let preamble = Preamble::server(1 << 20, 8);
        let config = config(ByteOrder::Little, ConnectionConfig::client());
        let patience = RetransmitTimeouts::default();
        let secrets = server_secrets(1);
        Self {
            now,
            random: Random(seed),
            network: Network::new(faults),
            server: ServerEngine::new(preamble, limits, secrets, now),
            streams: ServerByteStreams::new(limits, secrets, now),
            served: None,
            openings: 0,
            handshake: Some(ByteStreamHandshake::new(
                &config, datagram, patience, 77, now,
            )),
            client: None,
            client_address: address(2, 5000),
            failed: None,
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &Buffer) {
        let datagram = Datagram {
            from,
            to,
            bytes: bytes.as_slice().to_vec(),
            is_tainted: false,
        };
        self.network.send(&mut self.random, self.now, datagram);
    }

    /// Sends all that the ends have to send.
    fn transmit(&mut self) {
        let (client, server) = (self.client_address, server_address());
        let mut out = Buffer::default();
        loop {
            out.clear();
            let has_one = match (&mut self.handshake, &mut self.client) {
                (Some(handshake), _) => handshake.poll_transmit(self.now, &mut out),
                (None, Some(stream)) => stream.poll_transmit(self.now, &mut out),
                (None, None) => false,
            };
            if !has_one {
                break;
            }
            assert!(out.len() <= DATAGRAM_HERE);
            self.send(client, server, &out);
        }
        loop {
            out.clear();
            let to = self.server.poll_transmit(self.now, &mut out);
            let Some(to) = to.or_else(|| self.streams.poll_transmit(self.now, &mut out)) else {
                break;
            };
            self.send(server, to, &out);
        }
    }

    fn receive(&mut self, datagram: &Datagram) {
        if datagram.to == server_address() {
            return self.receive_at_server(datagram);
        }
        if let Some(handshake) = &mut self.handshake {
            match handshake.handle_datagram(self.now, &datagram.bytes) {
                None => return,
                Some(Ok(stream)) => self.client = Some(stream),
                Some(Err(error)) => self.failed = Some(error),
            }
            self.handshake = None;
        } else if let Some(stream) = &mut self.client {
            // What is dropped comes again.
            let _ = stream.handle_datagram(self.now, &datagram.bytes);
        }
    }

    fn receive_at_server(&mut self, datagram: &Datagram) {
        let (now, bytes) = (self.now, &datagram.bytes);
        if !is_of_byte_stream(bytes) {
            let mut whole = ReassembledMessage::of(&ConnectionConfig::server(), Role::Server);
            let services = services();
            let call = (self.server).handle_datagram_into(
                now,
                datagram.from,
                bytes,
                &services,
                &mut whole,
            );
            assert!(call.is_none());
            return;
        }
        if let Ok(ByteStreamEvent::Opened(id, peer)) =
            self.streams.handle_datagram(now, datagram.from, bytes)
        {
            assert_eq!(peer, datagram.from);
            self.served = Some(id);
            self.openings += 1;
        }
    }

    /// Lets time pass until something happens, and takes it in.
    fn step(&mut self) {
        self.transmit();
        let handshake = self
            .handshake
            .as_ref()
            .map(ByteStreamHandshake::poll_timeout);
        let client = self
            .client
            .as_ref()
            .and_then(|stream| stream.poll_timeout());
        let timers = [handshake, client, self.streams.poll_timeout()];
        let next = timers
            .into_iter()
            .chain([self.network.next_arrival()])
            .flatten()
            .min();
        // Nothing is due where both ends have forgotten the stream.
        self.now = self.now.max(next.unwrap_or(self.now));
        while let Some(datagram) = self.network.receive(self.now) {
            self.receive(&datagram);
        }
        if let Some(stream) = &mut self.client {
            stream.handle_timeout(self.now);
        }
        while self.streams.handle_timeout(self.now).is_some() {}
    }
}

/// Moves so many bytes each way, until both ends have read all and know that the other has.
fn exchange(seed: u64, faults: Faults, datagram: usize, (up, down): (usize, usize)) {
    let mut world = World::new(seed, faults, datagram);
    let mut up = Direction {
        total: up,
        ..Direction::default()
    };
    let mut down = Direction {
        total: down,
        ..Direction::default()
    };
    let mut heard_at = world.now;
    loop {
        let before = (up.read, down.read, up.written, down.written);
        let mut random = Random(world.random.next());
        if let Some(stream) = &mut world.client {
            up.write(stream, &mut random);
            down.read(stream, &mut random);
        }
        if let Some(id) = world.served
            && let Some(stream) = world.streams.get_mut(id)
        {
            up.read(stream, &mut random);
            down.write(stream, &mut random);
            let is_over = stream.is_over();
            assert_eq!(stream.end(), None, "it ends in order");
            world.streams.touch(id);
            if is_over && up.read == up.total {
                assert!(world.streams.remove(id, world.now));
            }
        }
        let is_read = (up.read, down.read) == (up.total, down.total);
        let client = world.client.as_ref();
        if is_read && client.is_some_and(|stream| stream.is_over()) {
            break;
        }
        world.step();
        match before == (up.read, down.read, up.written, down.written) {
            true => assert!(
                world.now - heard_at < PATIENCE,
                "{up:?} {down:?} {:?}",
                world.client
            ),
            false => heard_at = world.now,
        }
    }
    assert_eq!(world.openings, 1, "one stream, whatever came twice");
}

#[test]
fn a_simulation_of_any_network_moves_all_bytes_once_and_in_order() {
    for seed in seeds(150) {
        let mut random = Random(seed ^ 0xb17e);
        let faults = Faults {
            loss: random.below(200) as u32,
            duplication: random.below(100) as u32,
            damage: random.below(50) as u32,
            ghosts: random.below(20) as u32,
            delay_us: random.of_bits(17),
        };
        let datagram = [DATAGRAM_DEFAULT, DATAGRAM_HERE][random.below(2)];
        let bytes = (random.of_bits(19), random.of_bits(19));
        let _shown = ShownOnFailure((seed, faults, datagram, bytes));
        exchange(seed, faults, datagram, bytes);
    }
}

#[test]
fn a_stream_without_bytes_ends() {
    exchange(1, Faults::default(), DATAGRAM_DEFAULT, (0, 0));
}

/// Begins a stream over a network without faults, and has both ends hear of each other.
fn begun() -> World {
    let mut world = World::new(3, Faults::default(), DATAGRAM_DEFAULT);
    while world.served.is_none() {
        if let Some(stream) = &mut world.client
            && stream.free() > 0
            && stream.ready().is_empty()
        {
            stream.write(b"hello");
        }
        world.step();
    }
    for _ in 0..6 {
        world.step();
    }
    world
}

#[test]
fn a_receiver_that_does_not_read_bounds_what_is_sent() {
    let mut world = begun();
    let mut written = 0;
    for _ in 0..20_000 {
        let stream = world.client.as_mut().unwrap();
        let room = stream.free().min(100_000);
        stream.write(&vec![1; room]);
        written += room;
        world.step();
    }
    // A megabyte at the receiver and a quarter of one at the sender, and the fragments that they were cut into.
    assert!(written < 2 << 20, "{written}");
    // When it reads, the rest comes.
    let id = world.served.unwrap();
    let mut read = 0;
    while read < written {
        let stream = world.streams.get_mut(id).unwrap();
        let ready = stream.ready().len();
        stream.consume(ready);
        read += ready;
        world.streams.touch(id);
        world.step();
    }
}

#[test]
fn a_silent_peer_is_noticed_though_nothing_is_to_be_sent() {
    let mut world = begun();
    let since = world.now;
    world.network = Network::new(Faults {
        loss: 1000,
        ..Faults::default()
    });
    while world.client.as_ref().unwrap().end().is_none() {
        world.step();
        assert!(world.now - since < PATIENCE);
    }
    assert_eq!(world.client.unwrap().end(), Some(ByteStreamEnd::Silent));
    let id = world.served.unwrap();
    while world.streams.get_mut(id).unwrap().end().is_none() {
        world.now = world.streams.poll_timeout().expect("it is looked at");
        while world.streams.handle_timeout(world.now).is_some() {}
    }
    assert_eq!(world.streams.poll_timeout(), None);
}

#[test]
fn what_is_sent_in_vain_is_known_to_be_before_the_peer_counts_as_gone() {
    let mut world = begun();
    let id = world.served.unwrap();
    // How long an answer takes is learnt from what is answered.
    world.streams.get_mut(id).unwrap().write(b"hello");
    world.streams.touch(id);
    for _ in 0..6 {
        world.step();
    }
    world.network = Network::new(Faults {
        loss: 1000,
        ..Faults::default()
    });
    let begun_at = world.now;
    let stream = world.streams.get_mut(id).unwrap();
    assert!(!stream.is_unanswered());
    stream.finish();
    world.streams.touch(id);
    while !world.streams.get_mut(id).unwrap().is_unanswered() {
        world.step();
    }
    let stream = world.streams.get_mut(id).unwrap();
    assert_eq!((stream.end(), stream.has_all_arrived()), (None, false));
    let waited = world.now - begun_at;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn a_stream_that_one_end_has_forgotten_ends_at_the_other() {
    let mut world = begun();
    assert!(world.streams.remove(world.served.unwrap(), world.now));
    assert!(world.streams.is_empty());
    while world.client.as_ref().unwrap().end().is_none() {
        world.step();
    }
    assert_eq!(world.client.unwrap().end(), Some(ByteStreamEnd::Reset));
}

#[test]
fn a_packet_that_began_a_stream_does_not_begin_it_again() {
    let mut world = World::new(5, Faults::default(), DATAGRAM_DEFAULT);
    while world.client.is_none() {
        world.step();
    }
    let mut opening = Buffer::default();
    let client = world.client.as_mut().unwrap();
    client.write(b"hello");
    assert!(client.poll_transmit(world.now, &mut opening));
    let (now, from) = (world.now, world.client_address);
    let come =
        |world: &mut World, from| world.streams.handle_datagram(now, from, opening.as_slice());
    let Ok(ByteStreamEvent::Opened(id, _)) = come(&mut world, from) else {
        panic!("it begins a stream");
    };
    assert_eq!(
        come(&mut world, address(9, 9)),
        Err(DropReason::OtherAddress)
    );
    assert_eq!(come(&mut world, from), Err(DropReason::Repeated));
    assert!(world.streams.remove(id, now));
    assert_eq!(come(&mut world, from), Err(DropReason::Stale));
    // From an address for which the cookie was not made.
    assert_eq!(come(&mut world, address(9, 9)), Err(DropReason::Stale));
    // A server that stops begins none.
    world.streams.close();
    assert!(world.streams.is_empty());
}

#[test]
fn a_server_that_stops_refuses_further_streams() {
    let mut world = World::new(1, Faults::default(), DATAGRAM_DEFAULT);
    world.server.send_close(CloseRecipients::ToIdle);
    while world.failed.is_none() {
        world.step();
    }
    let refused = world.failed.unwrap();
    assert_eq!(refused.reason, RefusalReason::STOPPING);
}
