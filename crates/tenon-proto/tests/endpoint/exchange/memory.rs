//! The memory that requests and answers take of a server, and which calls are refused when there is none left.

use std::time::Duration;

use tenon_proto::exchange::client::ClientLimits;
use tenon_proto::exchange::server::{CallKey, ServerLimits};
use tenon_proto::lean::ByteOrder;
use tenon_wire::Buffer;

use crate::exchange::support::{Pair, address, client_of, message, packet};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// Bytes that a request of several packets takes at first.
const ROOM_FIRST: usize = 16 << 10;

/// A pair that has talked, and the name of its conversation.
fn acquainted(limits: ServerLimits) -> (Pair, u64) {
    let mut pair = Pair::with_limits(ORDER, ORDER, limits);
    pair.call(b"warm up");
    let id = pair.start(&message(ORDER, 7, b"to learn the name"));
    let call = pair.take_from_client();
    pair.client.cancel(id);
    pair.settle(|_| true);
    let conversation = u64::from_be_bytes(call[8..16].try_into().unwrap());
    (pair, conversation)
}

/// Goes on with a client of another host, which has talked.
fn move_to(pair: &mut Pair, host: u8) {
    pair.client = client_of(ORDER, ClientLimits::default(), host.into());
    pair.address = address(host, 2000);
    // What there is to say to the one before.
    while pair
        .server
        .poll_transmit(pair.now, &mut Buffer::default())
        .is_some()
    {}
    pair.call(b"warm up");
}

/// The first of so many fragments of a request.
fn begin_request(pair: &mut Pair, conversation: u64, lane: u16, count: u32) {
    let fields = (3, 0, conversation, lane, 0, 9, 0, count);
    let datagram = packet(fields, &[&[1; 1400]]);
    assert!(pair.bring_to_server(&datagram).is_none());
}

/// A request of so many bytes comes whole.
fn request(pair: &mut Pair, bytes: usize) -> CallKey {
    pair.start(&message(ORDER, 7, &vec![1; bytes]));
    loop {
        while let Some(datagram) = pair.poll_client() {
            if let Some(key) = pair.bring_to_server(&datagram) {
                return key;
            }
        }
        while let Some(datagram) = pair.poll_server() {
            pair.bring_to_client(&datagram);
        }
    }
}

#[test]
fn memory_that_a_large_request_leaves_behind_is_counted_when_it_is_used_again() {
    let (mut pair, conversation) = acquainted(ServerLimits::default());
    for _ in 0..3 {
        let key = request(&mut pair, 2_200_000);
        pair.answer(key, b"taken");
        pair.settle(|_| true);
    }
    assert_eq!(pair.server.bytes(), 0);
    begin_request(&mut pair, conversation, 40, 3);
    assert_eq!(pair.server.bytes(), ROOM_FIRST, "as much as it needs");
    begin_request(&mut pair, conversation, 41, 3000);
    let bytes = pair.server.bytes() - ROOM_FIRST;
    assert!((2_200_000..=4 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_short_answer_leaves_the_memory_of_a_long_one_to_the_next() {
    let (mut pair, _) = acquainted(ServerLimits::default());
    let mut answer = Buffer::default();
    answer.extend(&vec![0; 1 << 20]);
    answer.clear();
    let capacity = answer.capacity();
    let key = request(&mut pair, 10);
    pair.answer_with(key, b"short", &mut answer);
    assert_eq!((answer.len(), answer.capacity()), (0, capacity));
    pair.settle(|_| true);
    assert_eq!(pair.results.last().unwrap(), b"short");
    let key = request(&mut pair, 10);
    pair.answer_with(key, &[7; 10_000], &mut answer);
    assert_eq!(pair.server.bytes(), capacity, "it is kept for the answer");
    pair.settle(|_| true);
    assert_eq!(pair.server.bytes(), 0);
}

#[test]
fn one_host_does_not_take_all_memory() {
    let limits = ServerLimits {
        bytes_of_host: 100_000,
        bytes: 200_000,
        ..ServerLimits::default()
    };
    let (mut pair, conversation) = acquainted(limits);
    for lane in 20..60 {
        begin_request(&mut pair, conversation, lane, 2);
    }
    assert!(pair.server.bytes() < 100_000 + ROOM_FIRST);
    // Another client of the same host is refused, one of another host is not.
    for (host, is_refused) in [(2, true), (3, false)] {
        move_to(&mut pair, host);
        pair.start(&message(ORDER, 7, &[1; 30_000]));
        let mut key = None;
        while let Some(datagram) = pair.poll_client() {
            key = key.or(pair.bring_to_server(&datagram));
            while let Some(datagram) = pair.poll_server() {
                pair.bring_to_client(&datagram);
            }
        }
        assert_eq!(key.is_none(), is_refused, "host {host}");
        assert_eq!(pair.failures.len(), 1, "only the first");
    }
}

/// Answers calls until one is refused for want of room; nothing of the answers arrives. Returns what they take.
fn fill_with_answers(pair: &mut Pair, bytes: usize) -> usize {
    let begin = pair.server.bytes();
    loop {
        let before = pair.server.bytes();
        let key = request(pair, 10);
        pair.answer(key, &vec![7; bytes]);
        while pair.poll_server().is_some() {}
        if pair.server.bytes() == before {
            return before - begin;
        }
    }
}

/// Each host may have as much as is free behind it.
#[test]
fn no_number_of_hosts_takes_all_memory() {
    const ALL: usize = 1 << 20;
    const ANSWER: usize = ALL / 20;
    let limits = ServerLimits {
        bytes_of_host: ALL / 2,
        bytes: ALL,
        ..ServerLimits::default()
    };
    let mut pair = Pair::with_limits(ORDER, ORDER, limits);
    for host in 2..6 {
        move_to(&mut pair, host);
        let taken = fill_with_answers(&mut pair, ANSWER);
        let free = ALL - pair.server.bytes();
        assert!(taken >= ANSWER, "host {host} has {taken}");
        // An answer is let in by its length, and may lie in twice as much memory.
        let most = free + 2 * ANSWER;
        assert!(taken <= most, "host {host} has {taken} and leaves {free}");
    }
}

#[test]
fn a_call_that_was_carried_out_has_room_for_a_short_answer() {
    let limits = ServerLimits {
        bytes: 50_000,
        ..ServerLimits::default()
    };
    let (mut pair, conversation) = acquainted(limits);
    for lane in 20..60 {
        begin_request(&mut pair, conversation, lane, 2);
    }
    pair.settle(|_| true);
    let before = pair.server.bytes();
    assert!(before > 49_000);
    assert_eq!(pair.call(&[5; 1000]), 2);
    assert_eq!(pair.results.last().unwrap(), &[5; 1000]);
    assert_eq!(pair.server.bytes(), before);
}

#[test]
fn requests_of_which_nothing_comes_any_more_are_dropped() {
    let (mut pair, conversation) = acquainted(ServerLimits::default());
    begin_request(&mut pair, conversation, 20, 2);
    assert_eq!(pair.server.bytes(), ROOM_FIRST);
    for _ in 0..4 {
        pair.now += Duration::from_secs(12);
        pair.server.handle_timeout(pair.now);
        assert_eq!(pair.call(b"the conversation is used"), 2);
    }
    assert_eq!((pair.server.bytes(), pair.server.conversations()), (0, 1));
}
