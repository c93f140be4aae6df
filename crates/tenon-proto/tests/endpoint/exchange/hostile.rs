//! Packets of unknown and of hostile peers.

use std::time::{Duration, Instant};

use tenon_proto::exchange::server::{ExchangeServerCounters, ServerEngine, ServerLimits};
use tenon_proto::exchange::{DropReason, is_packet};
use tenon_proto::lean::{ByteOrder, Flags, Header, Kind, Preamble};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::exchange::support::{Fields, Pair, address, message, packet, server_of, services};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// Bytes that a request of several packets takes at first.
const ROOM_FIRST: usize = 16 << 10;

/// Everything that a server has to send: bytes to each address.
fn answers(server: &mut ServerEngine<std::net::SocketAddr>, now: Instant) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| {
        let mut out = Buffer::default();
        server.poll_transmit(now, &mut out)?;
        Some(out.as_slice().to_vec())
    })
    .collect()
}

fn facts() -> Vec<u8> {
    let client = Preamble {
        order: ORDER,
        ..Preamble::client(1 << 20)
    };
    [&client.encode()[..], &1448_u32.to_be_bytes()].concat()
}

#[test]
fn onc_rpc_is_told_apart() {
    let mut call = [0xff; 64];
    for direction in [0, 1] {
        call[4..8].copy_from_slice(&u32::to_be_bytes(direction));
        assert!(!is_packet(&call));
    }
    assert!(!is_packet(&[0; 31]));
    assert!(!is_packet(b"abcd\x7fx"));
}

#[test]
fn a_client_that_has_not_proven_its_address_gets_no_more_bytes_than_it_sends() {
    let now = Instant::now();
    let mut server = server_of(ORDER, ServerLimits::default(), 1, now);
    let hello = [facts(), vec![0; 28]].concat();
    let opening = [&[5; 16][..], &facts(), &[0; 4]].concat();
    let call = message(ORDER, 7, b"x");
    let packets: [(Fields, &[&[u8]]); 6] = [
        ((1, 0, 7, 0, 0, 1, 0, 0), &[&hello]),
        ((3, 0, 7, 0, 0, 1, 0, 1), &[call.as_slice()]),
        ((3, 1, 7, 0, 0, 1, 0, 1), &[&opening, call.as_slice()]),
        ((3, 3, 7, 0, 0, 1, 0, 9), &[&opening, &[0; 1200]]),
        ((6, 0, 7, 0, 0, 1, 0, 0), &[]),
        ((7, 1, 7, 0, 0, 1, 0, 0), &[&opening]),
    ];
    for (index, (fields, body)) in packets.into_iter().enumerate() {
        let datagram = packet(fields, body);
        let from = address(9, 9);
        let request = server.handle_datagram(now, from, &datagram, &services());
        assert!(request.is_none(), "packet {index}");
        let answers = answers(&mut server, now);
        let bytes: usize = answers.iter().map(Vec::len).sum();
        assert!(answers.len() == 1, "packet {index}");
        assert!(bytes <= datagram.len(), "packet {index}: {bytes}");
        assert_eq!((server.conversations(), server.bytes()), (0, 0));
    }
    for length in 0..hello.len() {
        let datagram = packet((1, 0, 7, 0, 0, 1, 0, 0), &[&hello[..length]]);
        server.handle_datagram(now, address(9, 9), &datagram, &services());
        assert!(answers(&mut server, now).is_empty(), "a hello of {length}");
    }
}

#[test]
fn a_cookie_is_for_one_address_one_run_and_a_while() {
    let now = Instant::now();
    let limits = ServerLimits::default();
    let hello = packet((1, 0, 7, 0, 0, 1, 0, 0), &[&facts(), &[0; 28]]);
    let client = address(2, 5);
    // Which server, when, and from where the opening comes; whether it is taken.
    let cases = [
        (1, 0, client, true),
        (1, 9_999, client, true),
        (1, 10_000, client, false),
        (2, 0, client, false),
        (1, 0, address(2, 6), false),
        (1, 0, address(3, 5), false),
    ];
    for (incarnation, later_ms, from, is_taken) in cases {
        let mut first = server_of(ORDER, limits, 1, now);
        first.handle_datagram(now, client, &hello, &services());
        let welcome = answers(&mut first, now).remove(0);
        let opening = [&welcome[72..88], &facts()[..], &[0; 4]].concat();
        let datagram = packet((7, 1, 7, 0, 0, 1, 0, 0), &[&opening]);
        let mut server = match incarnation {
            1 => first,
            other => server_of(ORDER, limits, other, now),
        };
        let later = now + Duration::from_millis(later_ms);
        server.handle_datagram(later, from, &datagram, &services());
        let got = server.conversations() == 1;
        assert_eq!(got, is_taken, "{incarnation} {later_ms} {from}");
    }
}

#[test]
fn numbers_of_fragments_cost_nothing() {
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    let hello = pair.start(&message(ORDER, 7, b"to learn the name"));
    let call = pair.take_from_client();
    pair.client.cancel(hello);
    let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
    let count = u32::MAX;
    let send = |pair: &mut Pair, lane, fragment, length: usize| {
        let fields = (3, 0, conversation, lane, 0, 9, fragment, count);
        let datagram = packet(fields, &[&vec![1; length]]);
        assert!(pair.bring_to_server(&datagram).is_none());
    };
    let before = pair.server.bytes();
    for fragment in [1024, count - 1, count] {
        send(&mut pair, 5, fragment, 1400);
        assert_eq!(pair.server.bytes(), before, "out of the window");
    }
    send(&mut pair, 5, 3, 1000);
    assert_eq!(pair.server.bytes(), before, "too small");
    send(&mut pair, 5, 1023, 1400);
    send(&mut pair, 5, 0, 1400);
    let came = before + 1400 + ROOM_FIRST;
    assert_eq!(pair.server.bytes(), came, "what came, and room for more");
    send(&mut pair, 64, 0, 1400);
    assert_eq!(pair.server.bytes(), came, "no such lane");
    // Another number of fragments, a whole message where one is begun.
    for (fragment, fragments) in [(1, 7), (0, 1)] {
        let fields = (3, 0, conversation, 5, 0, 9, fragment, fragments);
        assert!(
            pair.bring_to_server(&packet(fields, &[&[1; 1400]]))
                .is_none()
        );
        assert_eq!(pair.server.bytes(), came, "contradictions");
    }
}

#[test]
fn one_host_does_not_take_all_conversations() {
    one_host_of_several(address);
}

/// As a socket that takes both sees clients of IPv4.
#[test]
fn one_host_of_ipv4_in_ipv6_does_not_take_all_conversations() {
    one_host_of_several(|host, port| {
        let mapped = std::net::Ipv4Addr::new(10, 0, 0, host).to_ipv6_mapped();
        (mapped, port).into()
    });
}

fn one_host_of_several(address: impl Fn(u8, u16) -> std::net::SocketAddr) {
    let now = Instant::now();
    let limits = ServerLimits {
        conversations: 6,
        conversations_of_host: 4,
        ..ServerLimits::default()
    };
    let mut server = server_of(ORDER, limits, 1, now);
    let mut open = |host, port: u16| {
        let from = address(host, port);
        let id = u64::from(port);
        let hello = packet((1, 0, id, 0, 0, 1, 0, 0), &[&facts(), &[0; 28]]);
        server.handle_datagram(now, from, &hello, &services());
        let welcome = answers(&mut server, now).remove(0);
        let opening = [&welcome[72..88], &facts()[..], &[0; 4]].concat();
        let datagram = packet((7, 1, id, 0, 0, 1, 0, 0), &[&opening]);
        server.handle_datagram(now, from, &datagram, &services());
        let is_answered = !answers(&mut server, now).is_empty();
        (is_answered, welcome[32 + 13])
    };
    for port in 0..4 {
        assert_eq!(open(2, port), (true, 0));
    }
    assert_eq!(open(2, 4), (false, 2), "busy");
    assert_eq!(open(3, 5), (true, 0));
    assert_eq!(open(4, 6), (true, 0));
    assert_eq!(open(5, 7), (false, 2), "busy");
    assert_eq!(server.counters().ignored.of(DropReason::Full), 2);
    server.handle_timeout(now + Duration::from_secs(100));
    assert_eq!(server.conversations(), 0);
}

/// Pieces, and calls of the accepting end, are for streams.
#[test]
fn messages_with_flags_that_only_streams_have_are_malformed() {
    for flag in [Flags::MORE, Flags::REVERSE] {
        let mut pair = Pair::new(ORDER, ORDER);
        pair.call(b"warm up");
        let id = pair.start(&message(ORDER, 7, b"to learn the name"));
        let call = pair.take_from_client();
        pair.client.cancel(id);
        let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
        let header = Header {
            kind: Kind::Call,
            flags: Flags(flag),
            id: 9,
            service: 0,
            procedure: 7,
            length: 8,
        };
        let body = [&header.encode(ORDER)[..], b"contents"].concat();
        let fields = (3, 0, conversation, 5, 0, 9, 0, 1);
        let before = pair.server.counters();
        let taken = pair.bring_to_server(&packet(fields, &[&body]));
        assert!(taken.is_none(), "flag {flag}");
        let after = pair.server.counters();
        let malformed =
            |counters: ExchangeServerCounters| counters.ignored.of(DropReason::Malformed);
        assert_eq!(malformed(after), malformed(before) + 1, "flag {flag}");
        assert_eq!(after.calls, before.calls);
    }
}

#[test]
fn damaged_and_invented_packets_change_nothing() {
    let mut random = Random(1);
    let mut pair = Pair::new(ORDER, ORDER);
    pair.call(b"warm up");
    for _ in 0..3000 {
        let kind = random.below(10) as u8;
        let fields = (
            kind,
            random.below(5) as u8,
            random.next(),
            random.of_bits(16) as u16,
            random.of_bits(16) as u16,
            random.word(),
            random.word(),
            random.word(),
        );
        let length = random.of_bits(8);
        let mut datagram = packet(fields, &[&random.bytes(length)]);
        if random.per_mille(300) {
            let at = random.below(datagram.len());
            datagram[at] ^= 1 << random.below(8);
        }
        assert!(pair.bring_to_server(&datagram).is_none());
        pair.bring_to_client(&datagram);
        let _ = answers(&mut pair.server, pair.now);
    }
    assert!(pair.failures.is_empty());
    assert_eq!(pair.server.conversations(), 1);
    assert_eq!(pair.call(b"and on"), 2);
    assert!(pair.client.counters().ignored.of(DropReason::Damaged) > 0);
}
