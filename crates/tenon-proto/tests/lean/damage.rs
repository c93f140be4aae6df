//! Damage: whatever is changed on the way is refused or harms nobody, and costs no memory.

use tenon_proto::ROOM_FIRST;
use tenon_proto::lean::client::Event;
use tenon_proto::lean::server::{Received, Reply};
use tenon_proto::lean::{
    ByteOrder, HEADER, Incoming, Interface, MessageReader, PREAMBLE, Reason, Violation,
};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::support::{LIMIT, ORDERS, Pair, known, read};
use std::sync::Arc;

/// Bits of a byte that are damaged: each alone, all, and those that make the length of one reply of
/// the conversation that of two.
const FLIPS: [u8; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff, 18 ^ 58];

/// What a client and a server say to each other: everything that there is.
fn conversation(client: ByteOrder, server: ByteOrder) -> (Vec<u8>, Vec<u8>) {
    let mut pair = Pair::before_preambles(client, server);
    let mut calls = Vec::new();
    for (procedure, waiter) in [(1, "one"), (2, "two"), (3, "three")] {
        calls.extend(pair.call(&known(5), procedure, b"arguments", waiter).1);
    }
    let other = Arc::new(Interface {
        fingerprint: 7,
        ..(*known(5)).clone()
    });
    let (last, call) = pair.call(&other, 1, b"", "other");
    calls.extend(call);
    pair.client.cancel(last);
    pair.client.ping();
    pair.client.goodbye(Reason::DONE, "done");
    let mut owed = Buffer::default();
    pair.client.poll_transmit(&mut owed);
    calls.extend(owed.as_slice());
    pair.send_to_server(&calls, serve).unwrap();
    pair.server.ping(1, &mut pair.out);
    pair.server.goodbye(Reason::DONE, "done", &mut pair.out);
    (calls, pair.out.as_slice().to_vec())
}

/// Answers a call by its arguments, twice.
fn serve(
    _: &mut tenon_proto::lean::server::ServerEngine,
    received: Received<'_>,
    out: &mut Buffer,
) {
    if let Received::Call(call) = received {
        let reply = Reply::begin(out, call.caller);
        out.extend(call.arguments);
        out.extend(call.arguments);
        reply.seal(out);
    }
}

/// A client that has sent its part of the [`conversation`].
fn client_that_waits(order: ByteOrder) -> Pair {
    let mut pair = Pair::before_preambles(order, ByteOrder::NATIVE);
    for (procedure, waiter) in [(1, "one"), (2, "two"), (3, "three")] {
        pair.call(&known(5), procedure, b"arguments", waiter);
    }
    let other = Arc::new(Interface {
        fingerprint: 7,
        ..(*known(5)).clone()
    });
    let (last, _) = pair.call(&other, 1, b"", "other");
    pair.client.cancel(last);
    pair.client.ping();
    pair
}

/// A result and its waiter.
type Handed = (&'static str, Vec<u8>);

/// Results that a client is handed from a stream, and how the stream ended.
fn client_takes(stream: &[u8]) -> (Vec<Handed>, Result<(), Violation>) {
    let mut pair = client_that_waits(ByteOrder::NATIVE);
    let mut reader = MessageReader::new(LIMIT);
    let mut results = Vec::new();
    let mut is_refused = false;
    let end = read(&mut reader, stream, usize::MAX, |incoming| {
        match incoming {
            Incoming::Preamble(theirs) => {
                is_refused = pair.client.handle_preamble(&theirs).is_err();
            }
            Incoming::Message(message) => {
                if let Event::Answer(answer) = pair.client.handle_message(&message)?
                    && let Ok(result) = answer.outcome
                {
                    results.push((answer.waiter, result.to_vec()));
                }
            }
        }
        Ok(())
    });
    assert!(reader.capacity() <= ROOM_FIRST, "memory for nothing");
    (results, end)
}

/// Where the headers of a stream are.
fn headers(stream: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    read(
        &mut MessageReader::new(LIMIT),
        stream,
        usize::MAX,
        |incoming| {
            if let Incoming::Message(message) = incoming {
                places.push(message.at as usize);
            }
            Ok(())
        },
    )
    .unwrap();
    places
}

#[test]
fn no_change_of_a_byte_hands_anybody_a_result_that_is_not_its_own() {
    for order in ORDERS {
        let (_, stream) = conversation(ByteOrder::NATIVE, order);
        let (untouched, end) = client_takes(&stream);
        assert_eq!(end, Ok(()));
        assert_eq!(untouched.len(), 3);
        let headers = headers(&stream);
        for at in (0..PREAMBLE).chain(headers.into_iter().flat_map(|at| at..at + HEADER)) {
            for flip in FLIPS {
                let mut damaged = stream.clone();
                damaged[at] ^= flip;
                let (results, end) = client_takes(&damaged);
                // A damaged length may cut a result short, and the next header gives that away,
                // unless the end has only moved within the padding. Or it may swallow whole
                // messages behind it: the result is then too long, and theirs never come.
                for (waiter, result) in results {
                    let own = b"argumentsarguments";
                    let is_cut = result.len() <= 16 || !own.starts_with(&result);
                    let is_own = result.starts_with(own) || !is_cut;
                    assert!(is_own || end.is_err(), "{waiter} at {at}: {result:?}");
                }
            }
        }
    }
}

#[test]
fn what_keeps_a_reader_in_step_is_noticed_wherever_it_is_damaged() {
    for order in ORDERS {
        let (_, stream) = conversation(ByteOrder::NATIVE, order);
        for header in headers(&stream) {
            for at in 0..2 {
                let at = header + at + 2 * usize::from(order == ByteOrder::Little);
                for flip in FLIPS {
                    let mut damaged = stream.clone();
                    damaged[at] ^= flip;
                    let (_, end) = client_takes(&damaged);
                    assert_eq!(end.unwrap_err().at, header as u64);
                }
            }
        }
    }
}

#[test]
fn a_server_survives_every_change_of_a_byte_and_begins_nothing_twice() {
    for order in ORDERS {
        let (stream, _) = conversation(order, ByteOrder::NATIVE);
        for at in 0..stream.len() {
            for flip in FLIPS {
                let mut damaged = stream.clone();
                damaged[at] ^= flip;
                let mut pair = Pair::before_preambles(order, ByteOrder::NATIVE);
                let mut ids = Vec::new();
                let mut is_refused = false;
                let Pair {
                    server,
                    catalog,
                    server_reader,
                    out,
                    ..
                } = &mut pair;
                let end = read(server_reader, &damaged, usize::MAX, |incoming| {
                    match incoming {
                        Incoming::Preamble(theirs) => {
                            is_refused = server.handle_preamble(&theirs, out).is_err();
                        }
                        Incoming::Message(message) => {
                            if let Received::Call(call) =
                                server.handle_message(catalog, &message, out)?
                            {
                                ids.push(call.caller.id);
                            }
                        }
                    }
                    Ok(())
                });
                assert!(server_reader.capacity() <= ROOM_FIRST);
                assert!(at >= PREAMBLE || end.is_err() && ids.is_empty());
                let begun = ids.len();
                ids.dedup();
                assert_eq!(ids.len(), begun);
                assert!(!is_refused, "the check comes first");
            }
        }
    }
}

#[test]
fn whatever_bytes_arrive_both_sides_survive_them() {
    for seed in 0..3000 {
        let mut random = Random(seed);
        let (from_client, from_server) =
            conversation(ORDERS[random.below(2)], ORDERS[random.below(2)]);
        for stream in [from_client, from_server] {
            let mut stream = stream;
            for _ in 0..random.below(6) {
                damage(&mut random, &mut stream);
            }
            let _ = client_takes(&stream);
            let mut pair = Pair::before_preambles(ByteOrder::NATIVE, ByteOrder::NATIVE);
            let mut out = Buffer::default();
            let _ = read(&mut MessageReader::new(LIMIT), &stream, 9, |incoming| {
                if let Incoming::Message(message) = incoming {
                    pair.server
                        .handle_message(&pair.catalog, &message, &mut out)?;
                }
                Ok(())
            });
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
