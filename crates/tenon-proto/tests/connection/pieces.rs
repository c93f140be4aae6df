//! Long messages in pieces, and what goes between them.

use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::PARTIAL_MESSAGES_MAX;
use tenon_proto::connection::{ConnectionError, Event, WireProtocol};
use tenon_proto::lean::{ByteOrder, Fault, Features, Flags, HEADER, Header, Kind, PIECE, PREAMBLE};

use crate::ends::{End, pair};

fn lean() -> (End, End) {
    let server = ConnectionConfig {
        receive_max: 64 << 20,
        ..ConnectionConfig::server()
    };
    let (mut client, mut server) = pair(WireProtocol::Lean, ConnectionConfig::client(), server);
    let bytes = client.transmit_all();
    server.receive(&bytes).unwrap();
    take_all(&mut server);
    let bytes = server.transmit_all();
    client.receive(&bytes).unwrap();
    take_all(&mut client);
    (client, server)
}

/// What a message that was taken in meant.
#[derive(Debug, PartialEq, Eq)]
enum TakenEvent {
    Call(Vec<u8>),
    Reply(u32, Vec<u8>),
    Other,
}

fn take_all(end: &mut End) -> Vec<TakenEvent> {
    let mut taken = Vec::new();
    while let Some(frame) = end.receiver.next_frame().unwrap() {
        let event = end.connection.handle_frame(frame, &end.services).unwrap();
        taken.push(match event {
            Event::Called(call) => {
                let arguments = call.arguments.to_vec();
                let mut reply = End::<u32>::reply(call.caller, call.arguments);
                end.connection.push_reply(&mut reply);
                TakenEvent::Call(arguments)
            }
            Event::Answered(answer) => {
                TakenEvent::Reply(answer.waiter, answer.outcome.unwrap().to_vec())
            }
            _ => TakenEvent::Other,
        });
    }
    taken
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn number(value: u32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn long(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 7) >> 3) as u8).collect()
}

fn receive_all(end: &mut End, bytes: &[u8]) -> Vec<TakenEvent> {
    let mut taken = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at += end.receive(&bytes[at..]).unwrap();
        taken.extend(take_all(end));
    }
    taken
}

#[test]
fn a_long_message_is_sent_in_pieces_of_64_kib() {
    for length in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 10 * PIECE + 4321] {
        let (mut client, mut server) = lean();
        let arguments = long(length);
        client
            .call(WireProtocol::Lean, &arguments, deadline(), 1)
            .unwrap();
        let mut batches = 0;
        let mut bytes = Vec::new();
        loop {
            let batch = client.transmit();
            if batch.is_empty() {
                break;
            }
            assert!(batch.len() <= 200 + HEADER + PIECE);
            batches += 1;
            bytes.extend(batch);
        }
        assert_eq!(batches, length.div_ceil(PIECE));
        let taken = receive_all(&mut server, &bytes);
        assert_eq!(
            taken,
            [TakenEvent::Other, TakenEvent::Call(arguments.clone())]
        );
        let bytes = server.transmit_all();
        let taken = receive_all(&mut client, &bytes);
        assert_eq!(taken, [TakenEvent::Other, TakenEvent::Reply(1, arguments)]);
    }
}

/// What is said while a long message is being sent waits for one piece of it at most.
#[test]
fn what_is_short_overtakes_what_is_long() {
    let (mut client, mut server) = lean();
    let arguments = long(64 * PIECE);
    client
        .call(WireProtocol::Lean, &arguments, deadline(), 1)
        .unwrap();
    let first = client.transmit();
    assert!(first.len() <= 200 + HEADER + PIECE);
    let mut taken = receive_all(&mut server, &first);
    assert_eq!(taken, [TakenEvent::Other], "the service is bound");

    let ping = client.connection.ping();
    client
        .call(WireProtocol::Lean, b"short", deadline(), 2)
        .unwrap();
    let second = client.transmit();
    taken = receive_all(&mut server, &second);
    assert_eq!(
        taken,
        [TakenEvent::Other, TakenEvent::Call(b"short".to_vec())]
    );
    let answers = server.transmit_all();
    assert!(answers.len() < 1000);
    let mut at = 0;
    let mut has_pong = false;
    while at < answers.len() {
        at += client.receive(&answers[at..]).unwrap();
        while let Some(frame) = client.receiver.next_frame().unwrap() {
            let event = client.connection.handle_frame(frame, &client.services);
            has_pong |= matches!(event.unwrap(), Event::Pong(number) if number == ping);
        }
    }
    assert!(has_pong);

    let rest = client.transmit_all();
    taken = receive_all(&mut server, &rest);
    assert_eq!(taken, [TakenEvent::Call(arguments)]);
}

#[test]
fn long_messages_take_turns() {
    let (mut client, mut server) = lean();
    let lengths = [20 * PIECE, 3 * PIECE, 10 * PIECE];
    for (waiter, length) in lengths.iter().enumerate() {
        let mut arguments = number(waiter as u32);
        arguments.extend(long(*length));
        client
            .call(WireProtocol::Lean, &arguments, deadline(), waiter as u32)
            .unwrap();
    }
    let bytes = client.transmit_all();
    let taken = receive_all(&mut server, &bytes);
    let order: Vec<u8> = taken
        .iter()
        .filter_map(|taken| match taken {
            TakenEvent::Call(arguments) => Some(arguments[3]),
            _ => None,
        })
        .collect();
    assert_eq!(order, [1, 2, 0], "the shortest is complete first");
}

#[test]
fn more_long_messages_than_may_be_begun_wait() {
    let (mut client, mut server) = lean();
    let calls = 3 * PARTIAL_MESSAGES_MAX as u32;
    for waiter in 0..calls {
        let arguments = long(2 * PIECE + waiter as usize);
        client
            .call(WireProtocol::Lean, &arguments, deadline(), waiter)
            .unwrap();
    }
    let bytes = client.transmit_all();
    let taken = receive_all(&mut server, &bytes);
    let calls_taken = taken
        .iter()
        .filter(|taken| matches!(taken, TakenEvent::Call(_)));
    assert_eq!(calls_taken.count(), calls as usize);
}

#[test]
fn a_peer_that_takes_no_pieces_gets_none() {
    let client = ConnectionConfig {
        features: Features::STAMPS,
        ..ConnectionConfig::client()
    };
    let (mut client, mut server) = pair(WireProtocol::Lean, client, ConnectionConfig::server());
    let hello = client.transmit_all();
    server.receive(&hello).unwrap();
    take_all(&mut server);
    let hello = server.transmit_all();
    client.receive(&hello).unwrap();
    take_all(&mut client);
    client
        .call(WireProtocol::Lean, &long(5 * PIECE), deadline(), 1)
        .unwrap();
    let bytes = client.transmit();
    assert!(bytes.len() > 5 * PIECE);
    assert!(client.transmit().is_empty());
}

#[test]
fn a_call_that_ends_while_it_is_sent_is_cancelled_behind_its_last_piece() {
    let (mut client, mut server) = lean();
    let call = client
        .call(WireProtocol::Lean, &long(4 * PIECE), deadline(), 1)
        .unwrap();
    let first = client.transmit();
    let abandoned = client.connection.cancel_call(call.number).unwrap();
    assert!(
        !abandoned.was_sent,
        "the peer cannot have the whole of it yet"
    );
    let rest = client.transmit_all();
    receive_all(&mut server, &first);
    receive_all(&mut server, &rest);
    assert!(server.receiver.is_between_frames(), "nothing is missing");
}

#[test]
fn a_call_that_is_not_sent_at_all_is_taken_back() {
    let (mut client, _) = lean();
    for length in [100, 2 * PIECE, 300] {
        let call = client
            .call(WireProtocol::Lean, &long(length), deadline(), 1)
            .unwrap();
        let keeper = client
            .call(WireProtocol::Lean, b"stays", deadline(), 2)
            .unwrap();
        let abandoned = client.connection.cancel_call(call.number).unwrap();
        assert!(!abandoned.was_sent);
        let bytes = client.transmit_all();
        let stays = bytes.windows(5).filter(|window| window == b"stays");
        assert_eq!(stays.count(), 1);
        assert!(bytes.len() < 200, "{}", bytes.len());
        assert!(
            client
                .connection
                .cancel_call(keeper.number)
                .unwrap()
                .was_sent
        );
        client.transmit_all();
    }
}

/// A header of a message to the server.
fn header(kind: Kind, flags: u8, id: u32, length: usize) -> [u8; HEADER] {
    Header {
        kind,
        flags: Flags(flags),
        id,
        service: 0,
        procedure: if kind == Kind::Call { 1 } else { 0 },
        length: length as u32,
    }
    .encode(ByteOrder::NATIVE)
}

fn fault(bytes: &[u8]) -> Fault {
    let (_, mut server) = lean();
    let mut at = 0;
    loop {
        at += match server.receive(&bytes[at..]) {
            Ok(step) => step,
            Err(error) => panic!("{error}"),
        };
        match server.receiver.next_frame().map_err(ConnectionError::from) {
            Err(ConnectionError::Framing(error)) => match error {
                tenon_proto::connection::framing::FramingError::Lean(violation) => {
                    assert!(violation.at >= PREAMBLE as u64);
                    return violation.fault;
                }
                other => panic!("{other}"),
            },
            Err(other) => panic!("{other}"),
            Ok(Some(_)) => {}
            Ok(None) => assert!(at < bytes.len(), "nothing is wrong"),
        }
    }
}

#[test]
fn pieces_that_make_no_message_are_refused() {
    let more = Flags::MORE;
    let first = header(Kind::Call, more, 1, 8);
    let content = [0; 8];

    assert_eq!(fault(&header(Kind::Piece, 0, 9, 8)), Fault::StrayPiece(9));
    assert_eq!(
        fault(&header(Kind::Call, more, 1, 12)),
        Fault::PieceLength(12)
    );
    assert_eq!(
        fault(&header(Kind::Call, more, 1, 0)),
        Fault::PieceLength(0)
    );
    let again = [&first[..], &content, &first].concat();
    assert_eq!(fault(&again), Fault::PiecesMissing(1));

    let mut many = Vec::new();
    for id in 1..=PARTIAL_MESSAGES_MAX as u32 + 1 {
        many.extend(header(Kind::Call, more, id, 8));
        many.extend(content);
    }
    assert_eq!(fault(&many), Fault::TooManyPartial);

    let mut endless = header(Kind::Call, more, 1, 32 << 20).to_vec();
    endless.extend(vec![0; 32 << 20]);
    endless.extend(header(Kind::Piece, more, 1, 32 << 20));
    assert!(matches!(fault(&endless), Fault::TooLong { .. }));
}
