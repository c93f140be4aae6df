//! Whole messages of the lean protocol in a stream.

use tenon_proto::connection::framing::{Frame, FramingError, ROOM_FIRST, Receiver};
use tenon_proto::lean::{ByteOrder, Fault, HEADER, Header, Kind, PREAMBLE, Preamble, Violation};

use super::{fill, receive};
use crate::common::{Random, seeds};
use crate::fields::Field::{self, Double, Half, Word};
use crate::fields::{ORDERS, bytes, first_word, flags, head, kinds};

pub const LIMIT: usize = 1 << 20;

/// The preamble of a client.
pub fn preamble(order: ByteOrder) -> Vec<u8> {
    let preamble = Preamble {
        order,
        ..Preamble::client(LIMIT as u32)
    };
    preamble.encode().to_vec()
}

/// A call with this body.
pub fn call(order: ByteOrder, id: u32, body: &[u8]) -> Vec<u8> {
    let mut message = bytes(order, &head(kinds::CALL, id, 0, 1, body.len() as u32));
    message.extend(body);
    message.resize(message.len().next_multiple_of(8), 0);
    message
}

/// A stream with messages of several kinds and sizes behind its preamble.
fn stream(order: ByteOrder) -> Vec<u8> {
    let bind = [Word(300), Word(5), Double(7)];
    let bind = [&head(kinds::BIND, 0, 0, 0, 16)[..], &bind].concat();
    let messages = [
        preamble(order),
        bytes(order, &bind),
        call(order, 1, b""),
        call(order, 2, b"x"),
        call(order, 3, b"12345678"),
        bytes(order, &head(kinds::CANCEL, 3, 0, 0, 0)),
        bytes(order, &head(kinds::PING, 1, 0, 0, 0)),
        call(order, 4, &[7; 23]),
    ];
    messages.concat()
}

/// The headers and bodies of a stream.
fn messages(stream: &[u8], step: usize) -> Result<Vec<(Header, Vec<u8>)>, FramingError> {
    let mut found = Vec::new();
    take(&mut Receiver::lean(LIMIT), stream, step, &mut found)?;
    Ok(found)
}

fn take(
    receiver: &mut Receiver,
    stream: &[u8],
    step: usize,
    found: &mut Vec<(Header, Vec<u8>)>,
) -> Result<(), FramingError> {
    receive(receiver, stream, step, |frame| match frame {
        Frame::Message(message) => {
            let body = message.parts().unwrap().body;
            found.push((message.header, body.to_vec()));
        }
        Frame::Preamble(_) => assert!(found.is_empty(), "the preamble is the first"),
        Frame::Record(_) => panic!("no record was sent"),
    })
}

/// Why a stream cannot be read on.
fn violation(receiver: &mut Receiver, stream: &[u8]) -> (usize, Violation) {
    let mut found = Vec::new();
    match take(receiver, stream, usize::MAX, &mut found) {
        Err(FramingError::Lean(violation)) => (found.len(), violation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_delivers_the_same_wherever_it_is_split() {
    for order in ORDERS {
        let stream = stream(order);
        let expected = messages(&stream, usize::MAX).unwrap();
        let kinds: Vec<Kind> = expected.iter().map(|(header, _)| header.kind).collect();
        let calls = [Kind::Bind, Kind::Call, Kind::Call, Kind::Call];
        assert_eq!(kinds[..4], calls);
        assert_eq!(kinds[4..], [Kind::Cancel, Kind::Ping, Kind::Call]);
        for split in 0..=stream.len() {
            let (one, two) = stream.split_at(split);
            let mut receiver = Receiver::lean(LIMIT);
            let mut found = Vec::new();
            take(&mut receiver, one, usize::MAX, &mut found).unwrap();
            take(&mut receiver, two, usize::MAX, &mut found).unwrap();
            assert_eq!(found, expected, "split at {split}");
            assert!(receiver.is_between_frames());
            let received = receiver.lean_reader().unwrap().received();
            assert_eq!(received, stream.len() as u64);
        }
        for step in 1..40 {
            assert_eq!(messages(&stream, step).unwrap(), expected);
        }
    }
}

#[test]
fn a_truncated_stream_delivers_what_is_whole_and_does_not_end_between_messages() {
    let stream = stream(ByteOrder::Big);
    let whole = messages(&stream, usize::MAX).unwrap();
    let mut ends = vec![0, PREAMBLE];
    for (header, _) in &whole {
        ends.push(ends[ends.len() - 1] + header.message_length() as usize);
    }
    for end in 0..stream.len() {
        let mut receiver = Receiver::lean(LIMIT);
        let mut found = Vec::new();
        take(&mut receiver, &stream[..end], usize::MAX, &mut found).unwrap();
        let expected = ends.iter().filter(|at| **at <= end && **at > PREAMBLE);
        assert_eq!(found.len(), expected.count());
        assert_eq!(receiver.is_between_frames(), ends.contains(&end), "{end}");
        assert!(receiver.next_frame().unwrap().is_none());
    }
}

#[test]
fn bodies_lie_where_they_were_received_and_at_a_multiple_of_8() {
    for step in [1, 7, 100, usize::MAX] {
        let body = Random(7).bytes(5000);
        let lengths: Vec<usize> = (0..5000).step_by(331).collect();
        let mut stream = preamble(ByteOrder::NATIVE);
        for (id, length) in lengths.iter().enumerate() {
            stream.extend(call(ByteOrder::NATIVE, id as u32, &body[..*length]));
        }
        let mut found = Vec::new();
        receive(&mut Receiver::lean(LIMIT), &stream, step, |frame| {
            if let Frame::Message(message) = frame {
                let bytes = message.parts().unwrap().body;
                assert_eq!(bytes.as_ptr().align_offset(8), 0);
                assert_eq!(bytes, &body[..bytes.len()]);
                found.push(bytes.len());
            }
        })
        .unwrap();
        assert_eq!(found, lengths);
    }
}

#[test]
fn the_last_message_can_be_looked_at_again_until_something_is_received() {
    let mut receiver = Receiver::lean(LIMIT);
    assert!(receiver.last_frame().is_none());
    fill(&mut receiver, &stream(ByteOrder::Little)).unwrap();
    let first = receiver.next_frame();
    assert!(matches!(first, Ok(Some(Frame::Preamble(_)))));
    assert!(receiver.last_frame().is_none());
    let mut count = 0;
    while let Some(Frame::Message(message)) = receiver.next_frame().unwrap() {
        count += 1;
        let (header, at) = (message.header, message.at);
        let body = message.parts().unwrap().body.to_vec();
        let Some(Frame::Message(again)) = receiver.last_frame() else {
            panic!("the message");
        };
        assert_eq!((again.header, again.at), (header, at));
        assert_eq!(again.parts().unwrap().body, body);
        assert_eq!(receiver.lean_reader().unwrap().last_body(), body);
    }
    assert_eq!(count, 7);
    receiver.room();
    assert!(receiver.last_frame().is_none());
}

#[test]
fn the_commonest_messages_are_found_by_their_headers_alone() {
    for order in ORDERS {
        let mut receiver = Receiver::lean(LIMIT);
        let stream = [
            preamble(order),
            call(order, 1, b"common"),
            bytes(order, &head(kinds::PING, 1, 0, 0, 0)),
            call(order, 2, b"cut off")[..20].to_vec(),
        ];
        fill(&mut receiver, &stream.concat()).unwrap();
        assert!(receiver.find_common().is_none(), "the preamble comes first");
        receiver.next_frame().unwrap();
        let header = receiver.find_common();
        assert_eq!(header.is_some(), order == ByteOrder::NATIVE);
        if let Some(header) = header {
            assert!(header.is_call() && header.id() == 1);
            let reader = receiver.lean_reader().unwrap();
            reader.take_common(header);
            assert_eq!(reader.last_body(), b"common");
            assert_eq!(reader.last_body(), b"common");
        } else {
            receiver.next_frame().unwrap();
        }
        assert!(receiver.find_common().is_none(), "a ping");
        receiver.next_frame().unwrap();
        assert!(receiver.find_common().is_none(), "it is not complete");
    }
}

#[test]
fn a_malformed_header_is_reported_with_its_place() {
    let good = call(ByteOrder::Little, 1, b"12345678");
    let next = (PREAMBLE + good.len()) as u64;
    let at = |offset, fault| Violation {
        at: next + offset,
        fault,
    };
    let out_of_step = |got| Fault::OutOfStep {
        expected: 0xd07e,
        got,
    };
    let flagged = |kind, flags| Fault::Flags { kind, flags };
    let too_long = |length| Fault::TooLong {
        length,
        limit: LIMIT as u64,
    };
    let head = |first, names, length| [first, Word(0), names, Word(length)];
    let plain = |first| head(first, Word(0), 0);
    let cases: Vec<([Field; 4], Violation)> = vec![
        (plain(Word(0)), at(0, out_of_step(0))),
        (plain(Word(0xd07f_0100)), at(0, out_of_step(0xd07f))),
        // A sender that does not keep to the order that it announced.
        (plain(Word(0x0001_7ed0)), at(0, out_of_step(1))),
        (plain(first_word(0, 0)), at(0, Fault::UnknownKind(0))),
        (plain(first_word(16, 0)), at(0, Fault::UnknownKind(16))),
        (
            plain(first_word(kinds::CALL, 64)),
            at(0, flagged(Kind::Call, 64)),
        ),
        (
            plain(first_word(kinds::REPLY, flags::TIME)),
            at(0, flagged(Kind::Reply, 1)),
        ),
        (
            plain(first_word(kinds::PING, 0x83)),
            at(0, flagged(Kind::Ping, 0x83)),
        ),
        (
            plain(first_word(kinds::CLOSE, flags::REVERSE)),
            at(0, flagged(Kind::Close, 8)),
        ),
        (
            plain(first_word(kinds::CANCEL, flags::MORE)),
            at(0, flagged(Kind::Cancel, 4)),
        ),
        (
            plain(first_word(kinds::PIECE, flags::EXTENSIONS)),
            at(0, flagged(Kind::Piece, 2)),
        ),
        (
            head(first_word(kinds::CALL, 0), Word(0), LIMIT as u32 - 15),
            at(12, too_long(LIMIT as u64 + 8)),
        ),
        (
            head(first_word(kinds::CALL, 0), Word(0), u32::MAX),
            at(12, too_long(0x1_0000_0010)),
        ),
    ];
    let named = [
        (kinds::CANCEL, Half(1), Half(0), 8, 1),
        (kinds::CLOSE, Half(0), Half(2), 10, 2),
        (kinds::BIND, Half(0), Half(3), 10, 3),
        (kinds::PIECE, Half(4), Half(0), 8, 4),
    ];
    let named = named.map(|(kind, service, procedure, offset, number)| {
        let fields = [first_word(kind, 0), Word(0), service, procedure, Word(0)];
        (fields.to_vec(), at(offset, Fault::NotZero(number)))
    });
    let cases = cases.into_iter();
    let cases = cases.map(|(fields, violation)| (fields.to_vec(), violation));
    for (fields, expected) in cases.chain(named) {
        let bad = bytes(ByteOrder::Little, &fields);
        let stream = [preamble(ByteOrder::Little), good.clone(), bad].concat();
        let mut receiver = Receiver::lean(LIMIT);
        let (found, violation) = self::violation(&mut receiver, &stream);
        assert_eq!(violation, expected);
        assert_eq!(found, 1, "what came before is delivered");
        let again = receiver.next_frame().map(|_| ());
        assert_eq!(again, Err(expected.into()), "the same comes again");
        assert_eq!(receiver.capacity(), ROOM_FIRST, "nothing is taken for it");
    }
}

#[test]
fn a_stream_of_another_protocol_is_known_by_its_first_bytes() {
    let cases = [
        (&b"\x80\0\0\x28"[..], 4),
        (b"G", 1),
        (b"\x7fTENON\r\n", 8),
        (b"\x7ftenon\r\r", 8),
    ];
    for (stream, length) in cases {
        let mut got = [0; 8];
        got[..length].copy_from_slice(stream);
        let fault = Fault::NotLean { got, length };
        let (_, violation) = violation(&mut Receiver::lean(LIMIT), stream);
        assert_eq!(violation, Violation { at: 0, fault });
    }
    for end in 0..8 {
        assert_eq!(messages(&b"\x7ftenon\r\n"[..end], 1), Ok(Vec::new()));
    }
}

#[test]
fn a_message_of_the_limit_is_accepted_and_memory_follows_what_has_arrived() {
    let limit = 100_000;
    let body = Random(1).bytes(limit - HEADER);
    let stream = [
        preamble(ByteOrder::NATIVE),
        call(ByteOrder::NATIVE, 1, &body),
        call(ByteOrder::NATIVE, 2, &body),
    ]
    .concat();
    for step in [1000, 4097, usize::MAX] {
        let mut receiver = Receiver::lean(limit);
        assert_eq!(receiver.capacity(), 0);
        let mut found = Vec::new();
        for part in stream.chunks(step.min(stream.len())) {
            take(&mut receiver, part, usize::MAX, &mut found).unwrap();
            let received = receiver.lean_reader().unwrap().received() as usize;
            assert!(receiver.capacity() <= (2 * received).max(ROOM_FIRST));
            assert!(receiver.capacity() <= limit + 8 + HEADER);
        }
        assert!(found.iter().all(|(_, found)| *found == body));
        assert_eq!(found.len(), 2);
        receiver.shrink_to(ROOM_FIRST);
        assert_eq!(receiver.capacity(), 0);
        assert!(receiver.last_frame().is_none());
        let next = call(ByteOrder::NATIVE, 3, b"x");
        take(&mut receiver, &next, 5, &mut found).unwrap();
        assert_eq!(receiver.capacity(), ROOM_FIRST);
    }
}

#[test]
fn memory_that_may_not_be_had_is_not_taken() {
    let mut receiver = Receiver::lean(LIMIT);
    assert!(receiver.room_within(|_| false).is_none());
    assert_eq!(receiver.capacity(), 0);
    let body = Random(2).bytes(30_000);
    let order = ByteOrder::NATIVE;
    let stream = [preamble(order), call(order, 1, &body)].concat();
    let mut found = Vec::new();
    let mut at = 0;
    while receiver.room_within(|bytes| bytes <= ROOM_FIRST).is_some() {
        at += fill(&mut receiver, &stream[at..]).unwrap();
        while let Some(frame) = receiver.next_frame().unwrap() {
            assert!(matches!(frame, Frame::Preamble(_)));
        }
    }
    assert_eq!(receiver.capacity(), ROOM_FIRST);
    take(&mut receiver, &stream[at..], usize::MAX, &mut found).unwrap();
    assert_eq!(found[0].1, body, "nothing was lost");
}

#[test]
fn random_messages_in_random_steps_arrive_as_they_were_sent() {
    for seed in seeds(300) {
        let mut random = Random(seed);
        let sizes = [40, 2_000, 40_000][random.below(3)];
        let order = ORDERS[random.below(2)];
        let bodies: Vec<Vec<u8>> = (0..random.below(20) + 1)
            .map(|_| {
                let size = random.below(sizes);
                random.bytes(size)
            })
            .collect();
        let mut stream = preamble(order);
        for (id, body) in bodies.iter().enumerate() {
            stream.extend(call(order, id as u32, body));
        }
        let mut receiver = Receiver::lean(40_016);
        let mut found = Vec::new();
        let mut left = &stream[..];
        while !left.is_empty() {
            let (part, rest) = left.split_at((random.below(sizes) + 1).min(left.len()));
            let step = random.below(sizes) + 1;
            take(&mut receiver, part, step, &mut found).unwrap();
            left = rest;
        }
        let found: Vec<Vec<u8>> = found.into_iter().map(|(_, body)| body).collect();
        assert!(found == bodies, "seed {seed}");
        assert!(receiver.is_between_frames());
    }
}
