//! The reader: every way in which a stream may deliver what is in it.

use tenon_proto::ROOM_FIRST;
use tenon_proto::lean::server::{Received, Reply};
use tenon_proto::lean::{
    ByteOrder, Fault, HEADER, Header, Incoming, Kind, MessageReader, PREAMBLE, Violation,
};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::support::F::{B, H, W};
use crate::support::{LIMIT, ORDERS, Pair, bytes, client_preamble, known, messages, read};

/// A stream with messages of several kinds and sizes, its preamble included.
pub fn stream(order: ByteOrder) -> Vec<u8> {
    let mut stream = client_preamble(order).encode().to_vec();
    let mut pair = Pair::new(order, ByteOrder::NATIVE);
    for (procedure, length) in [(1, 0), (2, 1), (3, 8), (4, 23)] {
        let arguments = vec![procedure as u8; length];
        let (id, call) = pair.call(&known(5), procedure, &arguments, "call");
        stream.extend(call);
        if procedure == 3 {
            pair.client.cancel(id);
            pair.client.ping();
        }
    }
    stream
}

/// A call with a body of so many bytes.
fn call(order: ByteOrder, body: &[u8]) -> Vec<u8> {
    let header = [W(0xd07e_0100), W(1), H(0), H(1), W(body.len() as u32)];
    let mut message = bytes(order, &header);
    message.extend(body);
    message.resize(message.len().next_multiple_of(8), 0);
    message
}

#[test]
fn every_split_of_a_stream_delivers_the_same() {
    for order in ORDERS {
        let stream = stream(order);
        let expected = messages(&stream, usize::MAX).unwrap();
        let kinds: Vec<Kind> = expected.iter().map(|(header, _)| header.kind).collect();
        let calls = [Kind::Bind, Kind::Call, Kind::Call, Kind::Call];
        let rest = [Kind::Cancel, Kind::Ping, Kind::Call];
        assert_eq!(kinds, [&calls[..], &rest].concat());
        for split in 0..=stream.len() {
            let (one, two) = stream.split_at(split);
            let mut reader = MessageReader::new(LIMIT);
            let mut found = Vec::new();
            for piece in [one, two] {
                read(&mut reader, piece, usize::MAX, |incoming| {
                    if let Incoming::Message(message) = incoming {
                        found.push((message.header, message.parts()?.body.to_vec()));
                    }
                    Ok(())
                })
                .unwrap();
            }
            assert_eq!(found, expected, "split at {split}");
            assert!(reader.is_between_messages());
            assert_eq!(reader.received(), stream.len() as u64);
        }
        for piece in 1..40 {
            assert_eq!(messages(&stream, piece).unwrap(), expected);
        }
    }
}

#[test]
fn every_truncation_delivers_what_was_whole_and_is_noticed() {
    let stream = stream(ByteOrder::Big);
    let whole = messages(&stream, usize::MAX).unwrap();
    let mut ends = vec![0, PREAMBLE];
    for (header, _) in &whole {
        ends.push(ends[ends.len() - 1] + header.message_length() as usize);
    }
    for end in 0..stream.len() {
        let mut reader = MessageReader::new(LIMIT);
        let mut found = 0;
        read(&mut reader, &stream[..end], usize::MAX, |incoming| {
            found += usize::from(matches!(incoming, Incoming::Message(_)));
            Ok(())
        })
        .unwrap();
        let expected = ends.iter().filter(|at| **at <= end && **at > PREAMBLE);
        assert_eq!(found, expected.count());
        assert_eq!(reader.is_between_messages(), ends.contains(&end), "{end}");
        assert!(matches!(reader.next_message(), Ok(None)));
    }
}

#[test]
fn messages_lie_where_they_were_received_and_at_a_multiple_of_8() {
    for piece in [1, 7, 100, usize::MAX] {
        let mut reader = MessageReader::new(LIMIT);
        let body = Random(7).bytes(5000);
        let mut stream = client_preamble(ByteOrder::NATIVE).encode().to_vec();
        for length in (0..5000).step_by(331) {
            stream.extend(call(ByteOrder::NATIVE, &body[..length]));
        }
        let mut lengths = Vec::new();
        read(&mut reader, &stream, piece, |incoming| {
            if let Incoming::Message(message) = incoming {
                let found = message.parts()?.body;
                assert_eq!(found.as_ptr().align_offset(8), 0);
                assert_eq!(found, &body[..found.len()]);
                lengths.push(found.len());
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(lengths, (0..5000).step_by(331).collect::<Vec<_>>());
    }
}

#[test]
fn the_last_message_can_be_looked_at_again() {
    let mut reader = MessageReader::new(LIMIT);
    assert!(reader.message().is_none());
    let stream = stream(ByteOrder::Little);
    let room = reader.room();
    room[..stream.len()].copy_from_slice(&stream);
    reader.filled(stream.len());
    assert!(matches!(
        reader.next_message(),
        Ok(Some(Incoming::Preamble(_)))
    ));
    assert!(reader.message().is_none());
    while let Some(Incoming::Message(message)) = reader.next_message().unwrap() {
        let (header, at) = (message.header, message.at);
        let body = message.parts().unwrap().body.to_vec();
        let again = reader.message().unwrap();
        assert_eq!((again.header, again.at), (header, at));
        assert_eq!(again.parts().unwrap().body, body);
    }
    reader.room();
    assert!(reader.message().is_none());
}

#[test]
fn what_makes_no_sense_is_named_with_its_place() {
    let good = bytes(
        ByteOrder::Little,
        &[W(0xd07e_0100), W(1), H(0), H(1), W(8), B(b"12345678")],
    );
    let at = |at, fault| Violation { at, fault };
    let next = (PREAMBLE + good.len()) as u64;
    let out_of_step = |got| Fault::OutOfStep {
        expected: 0xd07e,
        got,
    };
    let flags = |kind, flags| Fault::Flags { kind, flags };
    let too_long = |length| Fault::TooLong {
        length,
        limit: LIMIT as u64,
    };
    let cases: [(&[crate::support::F], Violation); 13] = [
        (&[W(0), W(0), W(0), W(0)], at(next, out_of_step(0))),
        (
            &[W(0xd07f_0100), W(0), W(0), W(0)],
            at(next, out_of_step(0xd07f)),
        ),
        // A sender that does not keep to the order that it announced.
        (
            &[W(0x0001_7ed0), W(0), W(0), W(0)],
            at(next, out_of_step(1)),
        ),
        (
            &[W(0xd07e_0000), W(0), W(0), W(0)],
            at(next, Fault::UnknownKind(0)),
        ),
        (
            &[W(0xd07e_0b00), W(0), W(0), W(0)],
            at(next, Fault::UnknownKind(11)),
        ),
        (
            &[W(0xd07e_0104), W(0), W(0), W(0)],
            at(next, flags(Kind::Call, 4)),
        ),
        (
            &[W(0xd07e_0201), W(0), W(0), W(0)],
            at(next, flags(Kind::Reply, 1)),
        ),
        (
            &[W(0xd07e_0883), W(0), W(0), W(0)],
            at(next, flags(Kind::Ping, 0x83)),
        ),
        (
            &[W(0xd07e_0400), W(0), H(1), H(0), W(0)],
            at(next + 8, Fault::NotZero(1)),
        ),
        (
            &[W(0xd07e_0a00), W(0), H(0), H(2), W(0)],
            at(next + 10, Fault::NotZero(2)),
        ),
        (
            &[W(0xd07e_0500), W(0), H(0), H(3), W(0)],
            at(next + 10, Fault::NotZero(3)),
        ),
        (
            &[W(0xd07e_0100), W(0), W(0), W(LIMIT as u32 - 15)],
            at(next + 12, too_long(LIMIT as u64 + 8)),
        ),
        (
            &[W(0xd07e_0100), W(0), W(0), W(u32::MAX)],
            at(next + 12, too_long(0x1_0000_0010)),
        ),
    ];
    for (header, violation) in cases {
        let preamble = client_preamble(ByteOrder::Little).encode().to_vec();
        let bad = bytes(ByteOrder::Little, header);
        let stream = [preamble, good.clone(), bad].concat();
        let mut reader = MessageReader::new(LIMIT);
        let mut found = 0;
        let outcome = read(&mut reader, &stream, usize::MAX, |_| {
            found += 1;
            Ok(())
        });
        assert_eq!(outcome, Err(violation));
        assert_eq!(found, 2, "what came before is delivered");
        let again = reader.next_message().map(|_| ());
        assert_eq!(again, Err(violation), "the same comes again");
        assert_eq!(reader.capacity(), ROOM_FIRST, "nothing is taken for it");
    }
}

#[test]
fn a_stranger_is_known_by_its_first_bytes() {
    for (stranger, length) in [
        (&b"\x80\0\0\x28"[..], 4),
        (b"G", 1),
        (b"\x7fTENON\r\n", 8),
        (b"\x7ftenon\r\r", 8),
    ] {
        let mut got = [0; 8];
        got[..length].copy_from_slice(stranger);
        let fault = Fault::NotLean { got, length };
        let outcome = messages(stranger, usize::MAX);
        assert_eq!(outcome, Err(Violation { at: 0, fault }));
    }
    for end in 0..8 {
        assert_eq!(messages(&b"\x7ftenon\r\n"[..end], 1), Ok(Vec::new()));
    }
}

#[test]
fn a_message_as_large_as_the_limit_is_taken_and_memory_follows_what_came() {
    let limit = 100_000;
    let body = Random(1).bytes(limit - HEADER);
    let stream = [
        client_preamble(ByteOrder::NATIVE).encode().to_vec(),
        call(ByteOrder::NATIVE, &body),
        call(ByteOrder::NATIVE, &body),
    ]
    .concat();
    for piece in [1000, 4097, usize::MAX] {
        let mut reader = MessageReader::new(limit);
        assert_eq!(reader.capacity(), 0);
        let mut left = &stream[..];
        let mut found = 0;
        while !left.is_empty() {
            let taken = piece.min(left.len());
            read(&mut reader, &left[..taken], usize::MAX, |incoming| {
                if let Incoming::Message(message) = incoming {
                    assert_eq!(message.parts()?.body, body);
                    found += 1;
                }
                Ok(())
            })
            .unwrap();
            left = &left[taken..];
            let came = reader.received() as usize;
            assert!(reader.capacity() <= (2 * came).max(ROOM_FIRST));
            assert!(reader.capacity() <= limit + 8);
        }
        assert_eq!(found, 2);
        reader.shrink_to(ROOM_FIRST);
        assert_eq!(reader.capacity(), 0);
        assert!(reader.message().is_none());
        read(&mut reader, &call(ByteOrder::NATIVE, b"x"), 5, |_| Ok(())).unwrap();
        assert_eq!(reader.capacity(), ROOM_FIRST);
    }
}

#[test]
fn any_messages_in_any_pieces_arrive_as_they_were_sent() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let sizes = [40, 2_000, 40_000][random.below(3)];
        let order = ORDERS[random.below(2)];
        let bodies: Vec<Vec<u8>> = (0..random.below(20) + 1)
            .map(|_| {
                let size = random.below(sizes);
                random.bytes(size)
            })
            .collect();
        let mut stream = client_preamble(order).encode().to_vec();
        bodies
            .iter()
            .for_each(|body| stream.extend(call(order, body)));
        let mut reader = MessageReader::new(40_016);
        let mut found = Vec::new();
        let mut left = &stream[..];
        while !left.is_empty() {
            let (piece, rest) = left.split_at((random.below(sizes) + 1).min(left.len()));
            let step = random.below(sizes) + 1;
            read(&mut reader, piece, step, |incoming| {
                if let Incoming::Message(message) = incoming {
                    found.push(message.parts()?.body.to_vec());
                }
                Ok(())
            })
            .unwrap();
            left = rest;
        }
        assert!(found == bodies, "seed {seed}");
        assert!(reader.is_between_messages());
    }
}

#[test]
fn replies_that_are_written_one_behind_the_other_are_read_one_behind_the_other() {
    let mut pair = Pair::new(ByteOrder::NATIVE, ByteOrder::NATIVE);
    let mut calls = Vec::new();
    for (length, waiter) in [(0, "a"), (5, "b"), (8, "c")] {
        let arguments = vec![b'x'; length];
        calls.extend(pair.call(&known(5), 1, &arguments, waiter).1);
    }
    let echo = |_: &mut _, received: Received<'_>, out: &mut Buffer| {
        let Received::Call(call) = received else {
            panic!("{received:?}");
        };
        let reply = Reply::begin(out, call.caller);
        out.extend(call.arguments);
        reply.seal(out);
    };
    pair.send_to_server(&calls, echo).unwrap();
    let told = pair.take_answers();
    assert_eq!(told, ["bound 0", "a: ", "b: xxxxx", "c: xxxxxxxx"]);
}

#[test]
fn a_header_says_how_long_its_message_is() {
    for (length, message) in [
        (0, 16),
        (1, 24),
        (8, 24),
        (9, 32),
        (u32::MAX, 0x1_0000_0010),
    ] {
        let header = Header {
            kind: Kind::Call,
            flags: Default::default(),
            id: 0,
            service: 0,
            procedure: 0,
            length,
        };
        assert_eq!(header.message_length(), message);
    }
}
