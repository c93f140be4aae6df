//! Messages of the lean protocol that come in pieces, with others between them.

use std::collections::VecDeque;

use tenon_proto::connection::framing::{
    Frame, FramingError, PARTIAL_MESSAGES_MAX, ROOM_FIRST, Receiver,
};
use tenon_proto::lean::{ByteOrder, Fault, HEADER, Kind, PIECE, PREAMBLE, Violation};

use super::{fill, receive};
use crate::common::{Random, seeds};
use crate::fields::{ORDERS, bytes, flags, head, head_with, kinds};
use crate::framing::messages::{LIMIT, call, preamble};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A call of `id` in pieces of these bytes.
fn pieces(order: ByteOrder, id: u32, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let last = parts.len() - 1;
    let piece = |(index, part): (usize, &&[u8])| {
        let more = if index == last { 0 } else { flags::MORE };
        let length = part.len() as u32;
        let head = match index {
            0 => head_with(kinds::CALL, more, id, (0, 1), length),
            _ => head_with(kinds::PIECE, more, id, (0, 0), length),
        };
        let mut message = bytes(order, &head);
        message.extend(*part);
        message.resize(message.len().next_multiple_of(8), 0);
        message
    };
    parts.iter().enumerate().map(piece).collect()
}

fn ping(order: ByteOrder) -> Vec<u8> {
    bytes(order, &head(kinds::PING, 1, 0, 0, 0))
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    kind: Kind,
    id: u32,
    in_pieces: bool,
    body: Vec<u8>,
}

impl Found {
    fn call(id: u32, in_pieces: bool, body: &[u8]) -> Self {
        Self {
            kind: Kind::Call,
            id,
            in_pieces,
            body: body.to_vec(),
        }
    }
}

/// The messages that come behind a preamble.
fn found(receiver: &mut Receiver, stream: &[u8], step: usize) -> Result<Vec<Found>, FramingError> {
    let mut messages = Vec::new();
    receive(receiver, stream, step, |frame| {
        if let Frame::Message(message) = frame {
            let body = message.parts().unwrap().body;
            assert_eq!(body.as_ptr().align_offset(8), 0);
            messages.push(Found {
                kind: message.header.kind,
                id: message.header.id,
                in_pieces: message.in_pieces,
                body: body.to_vec(),
            });
        }
    })?;
    Ok(messages)
}

/// A receiver that has the preamble.
fn greeted(limit: usize, order: ByteOrder) -> Receiver {
    let mut receiver = Receiver::lean(limit);
    assert_eq!(found(&mut receiver, &preamble(order), 99), Ok(vec![]));
    receiver
}

#[test]
fn pieces_are_joined_however_they_arrive() {
    for order in ORDERS {
        let parts: [&[u8]; 3] = [b"pieces ", b"are join", b"ed"];
        let parts = [&b"12345678"[..], parts[1], parts[2]];
        let stream = [pieces(order, 5, &parts).concat(), call(order, 6, b"next")].concat();
        let expected = [
            Found::call(5, true, &parts.concat()),
            Found::call(6, false, b"next"),
        ];
        for step in 1..=stream.len() {
            let mut receiver = greeted(LIMIT, order);
            let found = found(&mut receiver, &stream, step).unwrap();
            assert_eq!(found, expected, "steps of {step}");
            assert!(receiver.is_between_frames());
        }
    }
}

#[test]
fn the_header_of_a_joined_message_is_that_of_a_whole_one() {
    let mut receiver = greeted(LIMIT, ORDER);
    let stream = pieces(ORDER, 5, &[&[1; 8], &[2; 3]]).concat();
    fill(&mut receiver, &stream).unwrap();
    let Some(Frame::Message(message)) = receiver.next_frame().unwrap() else {
        panic!("a message");
    };
    let (header, at) = (message.header, message.at);
    assert_eq!(
        (header.flags.0, header.length, at),
        (0, 11, PREAMBLE as u64)
    );
    let Some(Frame::Message(again)) = receiver.last_frame() else {
        panic!("the message");
    };
    assert_eq!(again.header, header);
    assert!(again.in_pieces);
    assert_eq!(again.parts().unwrap().body[8..], [2; 3]);
}

#[test]
fn messages_between_pieces_come_first() {
    for order in ORDERS {
        let [first, second, third] = &pieces(order, 5, &[&[1; 16], &[2; 8], &[3; 8]])[..] else {
            panic!("three pieces");
        };
        let [other, rest] = &pieces(order, 7, &[&[4; 8], &[5; 24]])[..] else {
            panic!("two pieces");
        };
        let short = call(order, 8, b"short");
        let parts = [&first[..], &ping(order), other, &short, second, rest, third];
        let stream = parts.concat();
        let body = [&[1; 16][..], &[2; 8], &[3; 8]].concat();
        let other_body = [&[4; 8][..], &[5; 24]].concat();
        let expected = [
            Found::call(8, false, b"short"),
            Found::call(7, true, &other_body),
            Found::call(5, true, &body),
        ];
        for step in 1..=stream.len() {
            let mut receiver = greeted(LIMIT, order);
            let mut found = found(&mut receiver, &stream, step).unwrap();
            assert_eq!(found.remove(0).kind, Kind::Ping, "steps of {step}");
            assert_eq!(found, expected, "steps of {step}");
        }
    }
}

#[test]
fn a_stream_does_not_end_between_pieces() {
    let [first, last] = &pieces(ORDER, 5, &[&[1; 8], &[2; 8]])[..] else {
        panic!("two pieces");
    };
    let mut receiver = greeted(LIMIT, ORDER);
    found(&mut receiver, first, usize::MAX).unwrap();
    assert!(!receiver.is_between_frames());
    found(&mut receiver, &ping(ORDER), usize::MAX).unwrap();
    assert!(!receiver.is_between_frames(), "a message is suspended");
    receiver.shrink_to(0);
    assert!(receiver.kept() >= 24, "it is not forgotten");
    let found = found(&mut receiver, last, usize::MAX).unwrap();
    assert_eq!(found.len(), 1);
    assert!(receiver.is_between_frames());
}

#[test]
fn a_cancellation_drops_the_pieces_of_its_call() {
    let first = &pieces(ORDER, 5, &[&[1; 8], &[2; 8]])[0];
    let cancel = bytes(ORDER, &head(kinds::CANCEL, 5, 0, 0, 0));
    let mut receiver = greeted(LIMIT, ORDER);
    let stream = [&first[..], &cancel, &call(ORDER, 6, b"next")].concat();
    let found = found(&mut receiver, &stream, usize::MAX).unwrap();
    let kinds: Vec<Kind> = found.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [Kind::Cancel, Kind::Call]);
    assert!(receiver.is_between_frames(), "nothing is missing any more");
}

/// What came before pieces is not looked for in the memory that was changed for them.
#[test]
fn pieces_that_are_looked_at_make_the_message_before_them_the_last_no_longer() {
    let first = &pieces(ORDER, 5, &[&[1; 8], &[2; 8]])[0];
    for behind in [&ping(ORDER)[..4], &ping(ORDER)[..], &[]] {
        let mut receiver = greeted(LIMIT, ORDER);
        let before = call(ORDER, 4, &[7; 100]);
        let stream = [&before[..], first, behind].concat();
        assert_eq!(fill(&mut receiver, &stream), Ok(stream.len()));
        assert!(receiver.next_frame().unwrap().is_some());
        assert!(receiver.last_frame().is_some());
        let is_ping = receiver.next_frame().unwrap().is_some();
        assert_eq!(receiver.last_frame().is_some(), is_ping);
        assert_eq!(receiver.detach().is_some(), is_ping);
    }
}

/// A call and a call in the other direction have numbers of their own.
#[test]
fn the_direction_tells_messages_of_the_same_number_apart() {
    let reversed = |kind, more, length| {
        let reverse = flags::REVERSE | more;
        bytes(ORDER, &head_with(kind, reverse, 5, (0, 0), length))
    };
    let [first, last] = &pieces(ORDER, 5, &[&[1; 8], &[2; 8]])[..] else {
        panic!("two pieces");
    };
    let reply = [reversed(kinds::REPLY, flags::MORE, 8), vec![3; 8]].concat();
    let rest = [reversed(kinds::PIECE, 0, 8), vec![4; 8]].concat();
    let stream = [&first[..], &reply, last, &rest].concat();
    let mut receiver = greeted(LIMIT, ORDER);
    let found = found(&mut receiver, &stream, usize::MAX).unwrap();
    let kinds: Vec<Kind> = found.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [Kind::Call, Kind::Reply]);
    assert_eq!(found[0].body, [[1; 8], [2; 8]].concat());
    assert_eq!(found[1].body, [[3; 8], [4; 8]].concat());
}

/// The message begins far behind the front of the memory that it is received in, which is as large as it may become.
#[test]
fn a_message_that_begins_behind_others_may_grow_to_the_limit() {
    let limit = 64 << 10;
    let body = Random(3).bytes(limit - HEADER);
    let parts: Vec<&[u8]> = body.chunks(4000).collect();
    for pings in [0, 1, 900, 3000] {
        let mut receiver = greeted(limit, ORDER);
        let whole = found(&mut receiver, &call(ORDER, 1, &body), usize::MAX);
        assert_eq!(whole.unwrap().len(), 1);
        let mut before = ping(ORDER).repeat(pings);
        let mut calls = Vec::new();
        for piece in pieces(ORDER, 5, &parts) {
            // Every read ends behind a piece and a ping.
            let read = [std::mem::take(&mut before), piece, ping(ORDER)].concat();
            let found = found(&mut receiver, &read, usize::MAX).unwrap();
            let found = found.into_iter();
            calls.extend(found.filter(|message| message.kind == Kind::Call));
        }
        assert_eq!(calls.len(), 1);
        assert!(calls[0].body == body, "behind {pings} pings");
        assert!(receiver.capacity() <= 2 * (limit + 24));
    }
}

/// As many pieces as one read may bring: the depth of the stack must not depend on their number.
#[test]
fn thousands_of_small_pieces_take_no_more_stack_than_a_few() {
    let body = Random(4).bytes(8 * 10_000);
    let parts: Vec<&[u8]> = body.chunks(8).collect();
    let pieces = pieces(ORDER, 5, &parts);
    let mut stream = pieces[0].clone();
    stream.extend(ping(ORDER));
    stream.extend(pieces[1..].concat());
    let on_a_small_stack = move || {
        let mut receiver = greeted(LIMIT, ORDER);
        let found = found(&mut receiver, &stream, usize::MAX).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[1].body == body);
    };
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    thread.spawn(on_a_small_stack).unwrap().join().unwrap();
}

#[test]
fn a_long_message_is_received_in_place() {
    let body = Random(5).bytes(10 * PIECE + 4321);
    let parts: Vec<&[u8]> = body.chunks(PIECE).collect();
    let stream = pieces(ORDER, 5, &parts).concat();
    let mut receiver = greeted(LIMIT, ORDER);
    let mut at = 0;
    while at < stream.len() {
        let kept = receiver.kept();
        at += fill(&mut receiver, &stream[at..]).unwrap();
        assert!(receiver.kept() > kept, "what has arrived stays");
        let capacity = receiver.capacity();
        assert!(
            capacity <= (2 * at).max(ROOM_FIRST) + 32,
            "{capacity} for {at}"
        );
        match receiver.next_frame().unwrap() {
            Some(Frame::Message(message)) => {
                assert!(at == stream.len() && message.parts().unwrap().body == body);
            }
            Some(other) => panic!("{other:?}"),
            None => assert!(at < stream.len()),
        }
    }
}

#[test]
fn pieces_that_make_no_message_are_refused_with_the_place() {
    let head = |kind, more, id, length| bytes(ORDER, &head_with(kind, more, id, (0, 0), length));
    let first = [head(kinds::CALL, flags::MORE, 1, 8), vec![0; 8]].concat();
    let many: Vec<u8> = (1..=PARTIAL_MESSAGES_MAX as u32 + 1)
        .flat_map(|id| [head(kinds::CALL, flags::MORE, id, 8), vec![0; 8]].concat())
        .collect();
    let long = head(kinds::PIECE, 0, 1, LIMIT as u32 - 16);
    let whole = LIMIT as u64 + 8;
    let too_long = Fault::TooLong {
        length: whole,
        limit: LIMIT as u64,
    };
    let cases = [
        (head(kinds::PIECE, 0, 9, 8), 4, Fault::StrayPiece(9)),
        (
            head(kinds::CALL, flags::MORE, 1, 12),
            12,
            Fault::PieceLength(12),
        ),
        (
            head(kinds::CALL, flags::MORE, 1, 0),
            12,
            Fault::PieceLength(0),
        ),
        (
            [&first[..], &head(kinds::PIECE, flags::MORE, 1, 4)].concat(),
            24 + 12,
            Fault::PieceLength(4),
        ),
        (
            [&first[..], &first].concat(),
            24 + 4,
            Fault::PiecesMissing(1),
        ),
        (
            [&first[..], &head(kinds::PIECE, 0, 2, 8)].concat(),
            24 + 4,
            Fault::StrayPiece(2),
        ),
        (many, 24 * 16, Fault::TooManyPartial),
        ([&first[..], &long].concat(), 24 + 12, too_long),
    ];
    for (stream, offset, fault) in cases {
        for step in [1, 16, usize::MAX] {
            let mut receiver = greeted(LIMIT, ORDER);
            let at = PREAMBLE as u64 + offset;
            let expected = FramingError::Lean(Violation { at, fault });
            let outcome = found(&mut receiver, &stream, step);
            assert_eq!(outcome, Err(expected), "steps of {step}");
            let again = receiver.next_frame().map(|_| ());
            assert_eq!(again, Err(expected), "the same comes again");
        }
    }
}

/// Messages that are sent at the same time, whole and in pieces, each of which is complete behind its last piece.
#[test]
fn random_messages_in_random_pieces_and_steps_arrive_as_they_were_sent() {
    for seed in seeds(300) {
        let mut random = Random(seed);
        let order = ORDERS[random.below(2)];
        let limit = 70_000;
        let mut stream = Vec::new();
        let mut under_way: Vec<(VecDeque<Vec<u8>>, Found)> = Vec::new();
        let mut expected = Vec::new();
        let mut started = 0;
        while started < 40 || !under_way.is_empty() {
            let may_start = started < 40 && under_way.len() < PARTIAL_MESSAGES_MAX - 1;
            if may_start && (under_way.is_empty() || random.below(3) == 0) {
                started += 1;
                let length = random.of_bits(16).min(limit - HEADER);
                let body = random.bytes(length);
                if length <= 8 || random.below(3) == 0 {
                    stream.extend(call(order, started, &body));
                    expected.push(Found::call(started, false, &body));
                    continue;
                }
                let size = ((8 + random.below(length)) & !7)
                    .min((length - 1) & !7)
                    .max(8);
                let parts: Vec<&[u8]> = body.chunks(size).collect();
                let in_pieces = parts.len() > 1;
                let pieces = pieces(order, started, &parts);
                under_way.push((pieces.into(), Found::call(started, in_pieces, &body)));
                continue;
            }
            let index = random.below(under_way.len());
            stream.extend(under_way[index].0.pop_front().unwrap());
            if under_way[index].0.is_empty() {
                expected.push(under_way.swap_remove(index).1);
            }
        }
        let mut receiver = greeted(limit, order);
        let mut received = Vec::new();
        let mut left = &stream[..];
        while !left.is_empty() {
            let (part, rest) = left.split_at((random.of_bits(18) + 1).min(left.len()));
            let step = random.of_bits(17) + 1;
            received.extend(found(&mut receiver, part, step).unwrap());
            left = rest;
        }
        let ids = |messages: &[Found]| messages.iter().map(|call| call.id).collect::<Vec<_>>();
        assert_eq!(ids(&received), ids(&expected), "seed {seed}");
        assert!(received == expected, "seed {seed}");
        assert!(receiver.is_between_frames());
    }
}
