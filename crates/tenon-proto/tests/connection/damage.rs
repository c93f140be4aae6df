//! Damage: whatever is changed on the way is refused or harms no other call, and costs no memory.

use std::collections::HashSet;
use std::sync::Arc;

use tenon_proto::connection::framing::{Frame, ROOM_FIRST, Receiver};
use tenon_proto::connection::{Connection, ConnectionError, WireProtocol};
use tenon_proto::lean::{ByteOrder, CloseReason, HEADER, Interface, PREAMBLE};

use crate::common::{Random, seeds};
use crate::fields::ORDERS;
use crate::framing::messages::preamble;
use crate::framing::receive;
use crate::pair::{Pair, Received, answer, client_config, known, server_config, services, take_in};

/// Bits of a byte that are damaged: each alone, all, and those that make the length of one reply of the conversation
/// that of two.
const FLIPS: [u8; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff, 18 ^ 58];

/// Bytes of memory that an end may have: a damaged flag makes one message a piece of a longer one, which waits beside
/// the others.
const CAPACITY_MAX: usize = 2 * ROOM_FIRST;

/// A client that has said all that a client may say, and its server, which has read nothing yet.
fn speaking(client: ByteOrder, server: ByteOrder) -> Pair {
    let config = client_config(client);
    let mut pair = Pair::new(WireProtocol::Lean, config, server_config(server));
    for (procedure, waiter) in [(1, "one"), (2, "two"), (3, "three")] {
        pair.call(&known(5), procedure, b"arguments", waiter);
    }
    let other = Arc::new(Interface {
        fingerprint: 7,
        ..(*known(5)).clone()
    });
    let last = pair.call(&other, 1, b"", "other");
    // As if it was sent, so that its cancellation is said.
    pair.client.connection.mark_sent(&last);
    pair.client.connection.cancel_call(last.number).unwrap();
    pair.client.connection.ping();
    pair.client.connection.close(CloseReason::DONE, "done");
    pair
}

/// Answers calls with their arguments, twice.
fn answer_all(pair: &mut Pair, calls: &Received) {
    for call in &calls.calls {
        let results = [&call.arguments[..], &call.arguments].concat();
        answer(&mut pair.server, call.caller, &results);
    }
}

/// What a client and a server say to each other: everything that there is.
fn conversation(client: ByteOrder, server: ByteOrder) -> (Vec<u8>, Vec<u8>) {
    let mut pair = speaking(client, server);
    let from_client = pair.client.transmit_all();
    let calls = take_in(&mut pair.server, &from_client).unwrap();
    assert_eq!(calls.calls.len(), 3);
    answer_all(&mut pair, &calls);
    pair.server.connection.ping();
    pair.server.connection.close(CloseReason::DONE, "done");
    let from_server = pair.server.transmit_all();
    (from_client, from_server)
}

/// Results that a client is told when it receives this instead of the server's part of the [`conversation`], and how
/// the stream ended.
fn client_takes(stream: &[u8]) -> (Vec<(String, String)>, Result<(), ConnectionError>) {
    let mut pair = speaking(ByteOrder::NATIVE, ByteOrder::NATIVE);
    pair.client.transmit_all();
    let mut told = Vec::new();
    // One message after the other, so that what was told before a fault is known.
    let mut at = 0;
    let mut end = Ok(());
    while at < stream.len() && end.is_ok() {
        let step = 8.min(stream.len() - at);
        match take_in(&mut pair.client, &stream[at..at + step]) {
            Ok(received) => told.extend(received.told),
            Err(error) => end = Err(error),
        }
        at += step;
    }
    assert!(pair.client.receiver.capacity() <= CAPACITY_MAX);
    let results = told.iter().filter_map(|told| told.split_once(": "));
    let is_result = |(waiter, _): &(&str, &str)| ["one", "two", "three"].contains(waiter);
    let results = results.filter(is_result);
    let results = results.map(|(waiter, result)| (waiter.to_owned(), result.to_owned()));
    (results.collect(), end)
}

/// Where the headers of a stream are.
fn headers(stream: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut receiver = Receiver::lean(1 << 20);
    receive(&mut receiver, stream, usize::MAX, |frame| {
        if let Frame::Message(message) = frame {
            places.push(message.at as usize);
        }
    })
    .unwrap();
    places
}

#[test]
fn no_change_of_a_byte_hands_a_caller_a_result_that_is_not_its_own() {
    for order in ORDERS {
        let (_, stream) = conversation(ByteOrder::NATIVE, order);
        let (untouched, end) = client_takes(&stream);
        assert_eq!((untouched.len(), end), (3, Ok(())));
        let headers = headers(&stream);
        for at in (0..PREAMBLE).chain(headers.into_iter().flat_map(|at| at..at + HEADER)) {
            for flip in FLIPS {
                let mut damaged = stream.clone();
                damaged[at] ^= flip;
                let (results, end) = client_takes(&damaged);
                // A damaged length may cut a result short, and the next header gives that away, unless the end has
                // only moved within the padding. Or it may swallow whole messages behind it: the result is then too
                // long, and theirs never come.
                for (waiter, result) in results {
                    let own = "argumentsarguments";
                    let is_cut = result.len() <= 16 || !own.starts_with(&result);
                    let is_own = result.starts_with(own) || !is_cut;
                    assert!(is_own || end.is_err(), "{waiter} at {at}: {result:?}");
                }
            }
        }
    }
}

#[test]
fn a_damaged_sync_word_is_noticed_at_its_header() {
    for order in ORDERS {
        let (_, stream) = conversation(ByteOrder::NATIVE, order);
        for header in headers(&stream) {
            for at in 0..2 {
                let at = header + at + 2 * usize::from(order == ByteOrder::Little);
                for flip in FLIPS {
                    let mut damaged = stream.clone();
                    damaged[at] ^= flip;
                    let (_, end) = client_takes(&damaged);
                    let text = end.unwrap_err().to_string();
                    let expected = format!("byte {header} of the stream: out of step");
                    assert!(text.starts_with(&expected), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_server_survives_the_change_of_any_byte_and_begins_no_call_twice() {
    for order in ORDERS {
        let (stream, _) = conversation(order, ByteOrder::NATIVE);
        for at in 0..stream.len() {
            for flip in FLIPS {
                let mut damaged = stream.clone();
                damaged[at] ^= flip;
                let config = client_config(order);
                let server = server_config(ByteOrder::NATIVE);
                let mut pair = Pair::new(WireProtocol::Lean, config, server);
                let mut numbers = Vec::new();
                let mut end = Ok(());
                for part in damaged.chunks(8) {
                    match take_in(&mut pair.server, part) {
                        Ok(received) => {
                            let calls = received.calls.iter();
                            numbers.extend(calls.map(|call| call.caller.number()));
                        }
                        Err(error) => {
                            end = Err(error);
                            break;
                        }
                    }
                }
                assert!(pair.server.receiver.capacity() <= CAPACITY_MAX);
                assert!(at >= PREAMBLE || end.is_err() && numbers.is_empty());
                let is_refused = matches!(end, Err(ConnectionError::Refused(_)));
                assert!(!is_refused, "the check of the preamble comes first");
                let different: HashSet<u32> = numbers.iter().copied().collect();
                assert_eq!(different.len(), numbers.len(), "byte {at}");
            }
        }
    }
}

fn damage(random: &mut Random, stream: &mut Vec<u8>) {
    if stream.len() <= PREAMBLE {
        return;
    }
    let at = PREAMBLE + random.below(stream.len() - PREAMBLE);
    match random.below(5) {
        0 => stream.truncate(at),
        1 => {
            let more = random.below(40);
            stream.splice(at..at, random.bytes(more));
        }
        2 => {
            let end = (at + random.below(40)).min(stream.len());
            stream.drain(at..end);
        }
        _ => stream[at] ^= 1 << random.below(8),
    }
}

#[test]
fn both_ends_survive_random_damage() {
    for seed in seeds(2000) {
        let mut random = Random(seed);
        let orders = [ORDERS[random.below(2)], ORDERS[random.below(2)]];
        let (from_client, from_server) = conversation(orders[0], orders[1]);
        for mut stream in [from_client, from_server] {
            for _ in 0..random.below(6) {
                damage(&mut random, &mut stream);
            }
            let _ = client_takes(&stream);
            let mut pair = speaking(ByteOrder::NATIVE, ByteOrder::NATIVE);
            let _ = take_in(&mut pair.server, &stream);
            let answers = pair.server.transmit_all();
            let _ = take_in(&mut pair.client, &answers);
        }
    }
}

/// A long call and a long reply in pieces, with short ones between them.
fn conversation_in_pieces(order: ByteOrder) -> Vec<u8> {
    let mut pair = Pair::lean(order, order);
    pair.call(&known(5), 1, &[7; 70_000], "long");
    pair.call(&known(5), 1, b"short", "short");
    let mut stream = preamble(order);
    stream.extend(pair.client.transmit_all());
    stream
}

#[test]
fn a_server_survives_random_damage_to_pieces() {
    let streams = ORDERS.map(conversation_in_pieces);
    for seed in seeds(300) {
        let mut random = Random(seed);
        let mut stream = streams[random.below(2)].clone();
        for header in headers(&stream) {
            if random.below(2) == 0 {
                let at = header + random.below(HEADER);
                stream[at] ^= 1 << random.below(8);
            }
        }
        for _ in 0..random.below(3) {
            damage(&mut random, &mut stream);
        }
        let (mut connection, mut receiver) =
            Connection::<()>::server(server_config(ByteOrder::NATIVE));
        let services = services();
        let mut at = 0;
        while at < stream.len() {
            let room = receiver.room();
            let step = room
                .len()
                .min(stream.len() - at)
                .min(1 + random.of_bits(17));
            room[..step].copy_from_slice(&stream[at..at + step]);
            if receiver.handle_received(step).is_err() {
                break;
            }
            at += step;
            let outcome = loop {
                match receiver.next_frame().map_err(ConnectionError::from) {
                    Ok(Some(frame)) => {
                        if let Err(error) = connection.handle_frame(frame, &services) {
                            break Err(error);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if outcome.is_err() {
                break;
            }
        }
        assert!(receiver.capacity() <= 4 * (1 << 20));
    }
}

/// Records that are nearly right: small words, so that marks, lengths and statuses are plausible.
fn hostile_records(random: &mut Random) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..random.below(400) {
        let mut word = (random.of_bits(9) as u32).to_be_bytes();
        if random.per_mille(200) {
            word[0] = 0x80;
        }
        if random.per_mille(10) {
            word[random.below(4)] = random.next() as u8;
        }
        stream.extend(word);
    }
    stream
}

#[test]
fn both_ends_of_onc_rpc_survive_hostile_records() {
    for seed in seeds(2000) {
        let mut random = Random(seed);
        let stream = hostile_records(&mut random);
        let mut pair = Pair::onc();
        pair.call_onc(b"", "call");
        for end in [&mut pair.client, &mut pair.server] {
            let mut at = 0;
            while at < stream.len() {
                let step = (1 + random.of_bits(12)).min(stream.len() - at);
                if take_in(end, &stream[at..at + step]).is_err() {
                    break;
                }
                at += step;
            }
            assert!(end.receiver.capacity() <= ROOM_FIRST);
        }
    }
}
