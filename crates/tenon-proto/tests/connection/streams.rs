//! Calls with streams: the bytes of their messages, what breaks the rules, limits, credit, order and ends.

use std::sync::Arc;
use std::time::Duration;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::FramingError;
use tenon_proto::connection::{
    ConnectionError, DeferredCallState, DeferredId, Event, PushError, StartError, StreamId,
    TransmitBatch, WireProtocol,
};
use tenon_proto::lean::{
    ByteOrder, CONNECTION_WINDOW, CallStreams, Exception, Extras, Fault, HEADER, ITEM_MAX,
    ITEM_PART, Kind, PIECE, STREAM_WINDOW, Status,
};
use tenon_wire::Buffer;

use crate::ends::End;
use crate::fields::Field::{self, Bytes, Word};
use crate::fields::{ORDERS, bytes, flags, head, head_with, kinds};
use crate::pair::{Pair, SECOND, Served, carry, client_config, known, server_config, take_in};

const ORDER: ByteOrder = ByteOrder::NATIVE;

const REVERSE: u32 = flags::REVERSE;

const ARGUMENT: CallStreams = CallStreams {
    argument: true,
    result: false,
};
const RESULT: CallStreams = CallStreams {
    argument: false,
    result: true,
};
const BOTH: CallStreams = CallStreams {
    argument: true,
    result: true,
};

type Side = End<&'static str>;

/// A pair whose ends grant so many calls with streams, and whose services are bound in both directions.
fn granting(client: ByteOrder, server: ByteOrder, streams: usize) -> Pair {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        incoming_streams_max: streams,
        ..client_config(client)
    };
    let server = ConnectionConfig {
        incoming_streams_max: streams,
        ..server_config(server)
    };
    bound(Pair::greeted(client, server))
}

fn bound(mut pair: Pair) -> Pair {
    let id = pair.call(&known(5), 0, b"", "to bind").number;
    assert_eq!(id, 1);
    carry(&mut pair.client, &mut pair.server);
    carry(&mut pair.server, &mut pair.client);
    if pair.client.config.incoming_calls_max > 0 {
        let of = (&known(5), 0);
        let deadline = pair.now + SECOND;
        let server = &mut pair.server;
        let bind = server.call_lean(of, b"", &Extras::default(), deadline, "to bind");
        assert_eq!(bind.unwrap().number, 0);
        carry(&mut pair.server, &mut pair.client);
        carry(&mut pair.client, &mut pair.server);
    }
    pair
}

fn side(pair: &mut Pair, is_server: bool) -> &mut Side {
    match is_server {
        true => &mut pair.server,
        false => &mut pair.client,
    }
}

fn pair() -> Pair {
    granting(ORDER, ORDER, 8)
}

fn extras(streams: CallStreams) -> Extras<'static> {
    Extras {
        streams,
        ..Extras::default()
    }
}

fn start(
    end: &mut Side,
    pair_now: std::time::Instant,
    streams: CallStreams,
) -> Result<StreamId, StartError> {
    let of = (&known(5), 7);
    let call = end.call_lean(of, b"", &extras(streams), pair_now + SECOND, "call")?;
    Ok(StreamId::own(call.number))
}

/// A call of the client that has reached the server, where it is deferred.
struct Open {
    /// As the client names it.
    own: StreamId,
    /// As the server names it.
    peer: StreamId,
    id: DeferredId,
    call: Served,
}

fn open(pair: &mut Pair, streams: CallStreams) -> Open {
    let now = pair.now;
    let own = start(&mut pair.client, now, streams).unwrap();
    let call = carry(&mut pair.client, &mut pair.server).calls.remove(0);
    let id = pair.server.connection.defer(&call.caller, None).unwrap();
    let peer = StreamId::of_peer(call.caller.number());
    Open {
        own,
        peer,
        id,
        call,
    }
}

/// Hands an item over that fits into one message; returns the bytes of that message.
fn push(end: &mut Side, id: StreamId, content: &[u8]) -> Result<usize, PushError> {
    let mut buffer = Buffer::default();
    let draft = end.connection.item_draft(id);
    draft.begin(&mut buffer);
    buffer.extend(content);
    assert!(draft.seal(&mut buffer));
    let length = buffer.len();
    end.connection.push_item(id, &mut buffer)?;
    assert!(buffer.is_empty());
    Ok(length)
}

/// The content of an item whose message has this many bytes.
fn content(message: usize) -> Vec<u8> {
    vec![7; message - HEADER]
}

fn finish(end: &mut Side, open: &Open, results: &[u8]) -> DeferredCallState {
    let mut reply = Side::reply(open.call.caller, results);
    let state = end.connection.answer_deferred(open.id, &mut reply);
    assert!(reply.is_empty());
    state.unwrap()
}

/// What an end was told, with items by their lengths.
fn take_short(end: &mut Side, bytes: &[u8]) -> Vec<String> {
    let shorten = |told: String| match told.split_once(": ") {
        Some((what, item)) if item.len() > 40 => format!("{what}: {}", item.len()),
        _ => told,
    };
    let told = take_in(end, bytes).unwrap().told;
    told.into_iter().map(shorten).collect()
}

fn check(name: &str, order: ByteOrder, got: &[u8], expected: &[&[Field]]) {
    assert_eq!(got, bytes(order, &expected.concat()), "{name}, {order:?}");
}

// ---- Bytes ----

#[test]
fn messages_of_a_clients_call() {
    for order in ORDERS {
        let mut pair = granting(order, order, 3);
        let now = pair.now;
        for (streams, flag) in [(ARGUMENT, 16), (RESULT, 32), (BOTH, 48)] {
            let id = start(&mut pair.client, now, streams).unwrap();
            let sent = pair.client.transmit_all();
            let expected = head_with(kinds::CALL, flag, id.number, (0, 7), 0);
            check("call", order, &sent, &[&expected]);
            let calls = take_in(&mut pair.server, &sent).unwrap().calls;
            assert_eq!(calls.len(), 1);
        }
        let (id, peer) = (StreamId::own(4), StreamId::of_peer(4));
        push(&mut pair.client, id, b"item").unwrap();
        push(&mut pair.client, id, b"").unwrap();
        pair.client.connection.end_stream(id);
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 4] = [
            &head(kinds::ITEMS, 4, 0, 0, 4),
            &[Bytes(b"item\0\0\0\0")],
            &head(kinds::ITEMS, 4, 0, 0, 0),
            &head(kinds::END, 4, 0, 0, 0),
        ];
        check("items and end", order, &sent, &expected);
        take_in(&mut pair.server, &sent).unwrap();

        push(&mut pair.server, peer, b"result").unwrap();
        let sent = pair.server.transmit_all();
        let expected: [&[Field]; 2] = [&head(kinds::ITEMS, 4, 0, 0, 6), &[Bytes(b"result\0\0")]];
        check("item of a result", order, &sent, &expected);
    }
}

#[test]
fn messages_of_a_servers_call() {
    for order in ORDERS {
        let mut pair = granting(order, order, 3);
        let now = pair.now;
        let id = start(&mut pair.server, now, BOTH).unwrap();
        push(&mut pair.server, id, b"forth").unwrap();
        pair.server.connection.end_stream(id);
        let sent = pair.server.transmit_all();
        let n = id.number;
        let expected: [&[Field]; 4] = [
            &head_with(kinds::CALL, REVERSE | 48, n, (0, 7), 0),
            &head_with(kinds::ITEMS, REVERSE, n, (0, 0), 5),
            &[Bytes(b"forth\0\0\0")],
            &head_with(kinds::END, REVERSE, n, (0, 0), 0),
        ];
        check("call, item, end", order, &sent, &expected);
        let received = take_in(&mut pair.client, &sent).unwrap();
        assert_eq!(received.calls.len(), 1);
        assert_eq!(
            received.told,
            [format!("item of {n}: forth"), format!("end of {n}")]
        );
        let peer = StreamId::of_peer(n);
        push(&mut pair.client, peer, b"backwards").unwrap();
        let sent = pair.client.transmit_all();
        let expected: [&[Field]; 2] = [
            &head_with(kinds::ITEMS, REVERSE, n, (0, 0), 9),
            &[Bytes(b"backwards\0\0\0\0\0\0\0")],
        ];
        check("item of a result", order, &sent, &expected);
    }
}

#[test]
fn a_long_item_goes_in_parts() {
    for order in ORDERS {
        let mut pair = granting(order, ORDER, 3);
        let open = open(&mut pair, ARGUMENT);
        let n = open.own.number;
        let item = vec![7; ITEM_MAX - HEADER + 3];
        let client = &mut pair.client.connection;
        let mut buffer = Buffer::default();
        let draft = client.item_draft(open.own);
        draft.begin(&mut buffer);
        buffer.extend(&item);
        assert_eq!(draft.content(&buffer), item);
        assert!(!draft.seal(&mut buffer), "too long for one");
        let mut messages = Buffer::default();
        let first = draft.split(&item, &mut messages);
        assert_eq!(first, ITEM_MAX - HEADER);
        assert_eq!(messages.len(), ITEM_MAX);
        client.push_item(open.own, &mut messages).unwrap();
        let sent = pair.client.transmit_all();
        let length = first as u32;
        let expected = head_with(kinds::ITEMS, flags::MORE, n, (0, 0), length);
        assert_eq!(sent[..HEADER], bytes(order, &expected));
        take_short(&mut pair.server, &sent);
        grant(&mut pair, &open, ITEM_MAX);
        let client = &mut pair.client.connection;
        assert_eq!(draft.split(&item[first..], &mut messages), 3);
        client.push_item(open.own, &mut messages).unwrap();
        let sent = pair.client.transmit_all();
        let rest = [
            &head(kinds::ITEMS, n, 0, 0, 3)[..],
            &[Bytes(b"\x07\x07\x07\0\0\0\0\0")],
        ];
        check("the last part", order, &sent, &rest);
    }
}

/// Has the server take so many bytes of a stream, and tell the client.
fn grant(pair: &mut Pair, open: &Open, bytes: usize) {
    pair.server.connection.give_back(open.peer, bytes as u64);
    carry(&mut pair.server, &mut pair.client);
    // The answer to the ping behind the credit.
    carry(&mut pair.client, &mut pair.server);
}

/// A message that is longer than the credit for it goes in two, as more may not come before something of it was taken.
#[test]
fn a_message_is_cut_where_credit_ends() {
    for order in ORDERS {
        let mut pair = granting(order, order, 3);
        let open = open(&mut pair, ARGUMENT);
        push(&mut pair.client, open.own, &content(ITEM_PART)).unwrap();
        carry(&mut pair.client, &mut pair.server);
        let item: Vec<u8> = (0..ITEM_MAX - HEADER).map(|at| (at / 8) as u8).collect();
        push(&mut pair.client, open.own, &item).unwrap();
        let part = pair.client.transmit_all();
        let length = ITEM_PART - HEADER;
        let header = head_with(
            kinds::ITEMS,
            flags::MORE,
            open.own.number,
            (0, 0),
            length as u32,
        );
        assert_eq!(part[..HEADER], bytes(order, &header));
        assert_eq!(part[HEADER..], item[..length]);
        take_short(&mut pair.server, &part);
        pair.server
            .connection
            .give_back(open.peer, 2 * ITEM_PART as u64);
        carry(&mut pair.server, &mut pair.client);
        let rest = pair.client.transmit_all().split_off(HEADER);
        let header = head(
            kinds::ITEMS,
            open.own.number,
            0,
            0,
            (item.len() - length) as u32,
        );
        assert_eq!(rest[..HEADER], bytes(order, &header));
        assert_eq!(rest[HEADER..], item[length..]);
    }
}

/// The items that such a sender has come behind the answer to a ping, which so does not say how much there is.
#[test]
fn a_window_grows_whose_sender_waits_for_credit() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    let mut window_behind_a_message = || {
        push(&mut pair.client, open.own, &content(ITEM_MAX)).unwrap();
        carry(&mut pair.client, &mut pair.server);
        grant(&mut pair, &open, ITEM_MAX);
        pair.server.connection.stream_window()
    };
    assert_eq!(window_behind_a_message(), 2 * STREAM_WINDOW);
    // Half of it was left to the sender this time.
    assert_eq!(window_behind_a_message(), 2 * STREAM_WINDOW);
}

#[test]
fn credit_in_both_orders_and_directions() {
    for order in ORDERS {
        let mut pair = granting(order, order, 3);
        let open = open(&mut pair, BOTH);
        let n = open.own.number;
        let half = STREAM_WINDOW as usize / 2;
        push(&mut pair.client, open.own, &content(half)).unwrap();
        push(&mut pair.server, open.peer, &content(half)).unwrap();
        let now = pair.now;
        let back = start(&mut pair.server, now, ARGUMENT).unwrap();
        push(&mut pair.server, back, &content(half)).unwrap();
        carry(&mut pair.client, &mut pair.server);
        carry(&mut pair.server, &mut pair.client);
        let reverse = StreamId::of_peer(back.number);
        let sides = [
            (true, open.peer, 0, n),
            (false, open.own, 0, n),
            (false, reverse, REVERSE, back.number),
        ];
        for (at_server, id, flag, n) in sides {
            let end = side(&mut pair, at_server);
            let third = STREAM_WINDOW.div_ceil(3);
            end.connection.give_back(id, u64::from(third) - 1);
            assert_eq!(end.transmit_all(), [], "less than a third of the window");
            end.connection.give_back(id, 1);
            let sent = end.transmit_all();
            let credit = [Word(third), Word(third)];
            let head = head_with(kinds::CREDIT, flag, n, (0, 0), 8);
            check("credit", order, &sent[..24], &[&head, &credit]);
        }
    }
}

// ---- Violations ----

/// Checks at which byte of a message that an end receives which fault is.
fn violates(pair: &mut Pair, at_server: bool, fields: &[Field], offset: u64, fault: Fault) {
    let mut stream = bytes(ORDER, fields);
    stream.resize(stream.len() + HEADER, 0);
    let end = side(pair, at_server);
    let begin = end.receiver.lean_reader().unwrap().received();
    let violation = match take_in(end, &stream) {
        Err(ConnectionError::Lean(violation)) => violation,
        Err(ConnectionError::Framing(FramingError::Lean(violation))) => violation,
        other => panic!("{fault:?}: {other:?}"),
    };
    assert_eq!((violation.at - begin, violation.fault), (offset, fault));
}

#[test]
fn items_and_ends_of_no_stream_are_violations() {
    let item = |n| head(kinds::ITEMS, n, 0, 0, 0);
    let end = |n| head(kinds::END, n, 0, 0, 0);
    let stray = Fault::StrayItem;
    // Of a number that was never used, with and without a call with streams.
    for has_call in [false, true] {
        for (at_server, fields) in [(true, item(99)), (true, end(99)), (false, item(99))] {
            let mut pair = pair();
            if has_call {
                open(&mut pair, BOTH);
            }
            violates(&mut pair, at_server, &fields, 4, stray(99));
        }
    }
    // Of a call in flight that has no stream, or another.
    let mut plain = pair();
    let n = plain.call(&known(5), 7, b"", "call").number;
    violates(&mut plain, false, &item(n), 4, stray(n));
    for (streams, at_server) in [(ARGUMENT, false), (RESULT, true)] {
        let mut pair = pair();
        let n = open(&mut pair, streams).own.number;
        violates(&mut pair, at_server, &item(n), 4, stray(n));
    }
    let mut other = pair();
    let n = open(&mut other, RESULT).own.number;
    violates(&mut other, true, &end(n), 4, stray(n));
    // Of an end that grants none.
    let mut none = granting(ORDER, ORDER, 0);
    for fields in [item(1), end(1)] {
        violates(&mut none, true, &fields, 4, stray(1));
        none = granting(ORDER, ORDER, 0);
    }
    let credit = [&head(kinds::CREDIT, 1, 0, 0, 8)[..], &[Word(1), Word(1)]].concat();
    violates(&mut none, true, &credit, 4, stray(1));
}

#[test]
fn nothing_of_a_stream_comes_behind_its_end() {
    for kind in [Kind::Items, Kind::End] {
        let mut pair = pair();
        let open = open(&mut pair, ARGUMENT);
        pair.client.connection.end_stream(open.own);
        let told = carry(&mut pair.client, &mut pair.server).told;
        assert_eq!(told, ["end of 2"]);
        let fields = head(kind as u32, 2, 0, 0, 0);
        violates(
            &mut pair,
            true,
            &fields,
            4,
            Fault::BehindEnd { id: 2, kind },
        );
    }
}

#[test]
fn ends_come_from_the_caller() {
    let wrong = Fault::WrongEnd(Kind::End);
    let mut first = pair();
    let n = open(&mut first, BOTH).own.number;
    violates(&mut first, false, &head(kinds::END, n, 0, 0, 0), 0, wrong);
    let mut second = pair();
    let now = second.now;
    let n = start(&mut second.server, now, BOTH).unwrap().number;
    let fields = head_with(kinds::END, REVERSE, n, (0, 0), 0);
    violates(&mut second, true, &fields, 0, wrong);
}

#[test]
fn items_over_the_credit_are_violations() {
    let message = |n, length: usize| {
        let mut message = bytes(
            ORDER,
            &head(kinds::ITEMS, n, 0, 0, (length - HEADER) as u32),
        );
        message.resize(length, 0);
        message
    };
    let mut one = pair();
    let n = open(&mut one, ARGUMENT).own.number;
    let most = message(n, STREAM_WINDOW as usize - 24);
    take_in(&mut one.server, &most).unwrap();
    let fault = |length, credit| Fault::NoCredit {
        id: n,
        length,
        credit,
    };
    let fields = [&head(kinds::ITEMS, n, 0, 0, 9)[..], &[Bytes(&[0; 16])]].concat();
    violates(&mut one, true, &fields, 4, fault(32, 24));

    // Five streams have more than the connection.
    let mut five = pair();
    let calls: Vec<u32> = (0..5)
        .map(|_| open(&mut five, ARGUMENT).own.number)
        .collect();
    for n in &calls[..4] {
        take_in(&mut five.server, &message(*n, STREAM_WINDOW as usize)).unwrap();
    }
    let n = calls[4];
    let fault = Fault::NoCredit {
        id: n,
        length: 16,
        credit: 0,
    };
    violates(&mut five, true, &head(kinds::ITEMS, n, 0, 0, 0), 4, fault);
}

#[test]
fn more_credit_than_there_may_be_is_a_violation() {
    let most = i32::MAX as u32;
    let credit = |stream, connection| {
        let head = head(kinds::CREDIT, 2, 0, 0, 8);
        [&head[..], &[Word(stream), Word(connection)]].concat()
    };
    for at_server in [false, true] {
        let full = bytes(
            ORDER,
            &credit(most - STREAM_WINDOW, most - CONNECTION_WINDOW),
        );
        for over in [credit(1, 0), credit(0, 1)] {
            let mut pair = pair();
            open(&mut pair, BOTH);
            let end = side(&mut pair, at_server);
            take_in(end, &full).unwrap();
            let fault = Fault::CreditOverflow(1 << 31);
            violates(&mut pair, at_server, &over, 4, fault);
        }
    }
}

#[test]
fn malformed_messages_of_streams_are_violations() {
    let flagged = |kind, flags| Fault::Flags { kind, flags };
    let cases = [
        (
            head_with(kinds::ITEMS, 4, 2, (0, 0), 0),
            12,
            Fault::ItemLength(0),
        ),
        (
            head_with(kinds::ITEMS, 4, 2, (0, 0), 12),
            12,
            Fault::ItemLength(12),
        ),
        (
            head_with(kinds::ITEMS, 2, 2, (0, 0), 8),
            0,
            flagged(Kind::Items, 2),
        ),
        (
            head_with(kinds::ITEMS, 16, 2, (0, 0), 8),
            0,
            flagged(Kind::Items, 16),
        ),
        (
            head_with(kinds::END, 4, 2, (0, 0), 8),
            0,
            flagged(Kind::End, 4),
        ),
        (head_with(kinds::END, 0, 2, (0, 0), 8), 16, Fault::Long(8)),
        (
            head_with(kinds::CREDIT, 4, 2, (0, 0), 8),
            0,
            flagged(Kind::Credit, 4),
        ),
        (
            head_with(kinds::CREDIT, 0, 2, (0, 0), 4),
            20,
            Fault::Short {
                expected: 4,
                got: 0,
            },
        ),
        (
            head_with(kinds::CANCEL, 16, 2, (0, 0), 0),
            0,
            flagged(Kind::Cancel, 16),
        ),
        (
            head_with(kinds::CALL, 64, 3, (0, 7), 0),
            0,
            flagged(Kind::Call, 64),
        ),
    ];
    for (fields, offset, fault) in cases {
        let mut pair = pair();
        open(&mut pair, BOTH);
        violates(&mut pair, true, &fields, offset, fault);
    }
    let mut reply = pair();
    let n = open(&mut reply, BOTH).own.number;
    let fields = head_with(kinds::REPLY, 32, n, (0, 7), 0);
    violates(&mut reply, false, &fields, 0, flagged(Kind::Reply, 32));
}

// ---- Beginning and limits ----

#[test]
fn a_peer_that_grants_no_streams_gets_none() {
    let mut pair = granting(ORDER, ORDER, 0);
    let now = pair.now;
    for end in [&mut pair.client, &mut pair.server] {
        assert!(matches!(
            start(end, now, RESULT),
            Err(StartError::NoStreams)
        ));
    }
}

#[test]
fn calls_with_streams_have_a_limit_of_their_own() {
    let mut pair = granting(ORDER, ORDER, 2);
    let now = pair.now;
    let first = open(&mut pair, BOTH);
    let second = open(&mut pair, ARGUMENT);
    let refused = |end: &mut Side| {
        let refused = start(end, now, RESULT);
        matches!(refused, Err(StartError::TooManyStreams { limit: 2 }))
    };
    assert!(refused(&mut pair.client));
    // Those of the other direction count for themselves, and calls without streams too.
    start(&mut pair.server, now, BOTH).unwrap();
    let limit = crate::pair::CALLS_MAX;
    for _ in 0..limit {
        pair.call(&known(5), 7, b"", "plain");
    }
    assert_eq!(pair.client.connection.full_at(), Some(limit));
    let calls = carry(&mut pair.client, &mut pair.server).calls;
    for call in &calls {
        let id = pair.server.connection.defer(&call.caller, None);
        assert!(id.is_some(), "they are granted beside those with streams");
    }
    // A call that was given up counts until it is answered.
    let client = &mut pair.client.connection;
    client.cancel_call(first.own.number).unwrap();
    assert!(refused(&mut pair.client));
    carry(&mut pair.client, &mut pair.server);
    let state = finish(&mut pair.server, &first, b"");
    assert_eq!(state, DeferredCallState::Cancelled);
    carry(&mut pair.server, &mut pair.client);
    let third = open(&mut pair, ARGUMENT);
    assert!(refused(&mut pair.client));
    for open in [&second, &third] {
        finish(&mut pair.server, open, b"");
    }
    carry(&mut pair.server, &mut pair.client);
    for _ in 0..2 {
        open(&mut pair, BOTH);
    }
}

#[test]
fn a_callee_refuses_calls_with_streams_beyond_its_limit() {
    let mut pair = granting(ORDER, ORDER, 1);
    open(&mut pair, BOTH);
    let over = bytes(ORDER, &head_with(kinds::CALL, 48, 3, (0, 7), 0));
    let item = bytes(ORDER, &head(kinds::ITEMS, 3, 0, 0, 0));
    let end = bytes(ORDER, &head(kinds::END, 3, 0, 0, 0));
    let received = take_in(&mut pair.server, &[over, item, end].concat()).unwrap();
    assert_eq!((received.calls.len(), received.told.len()), (0, 0));
    let sent = pair.server.transmit_all();
    let text = b"too many calls with streams\0\0\0\0\0";
    let expected: [&[Field]; 2] = [
        &head(kinds::EXCEPTION, 3, 0, 7, 40),
        &[Word(7), Word(27), Bytes(text)],
    ];
    check("exception", ORDER, &sent, &expected);
}

/// The callee knows no stream when the items of its first call with streams come, which it has refused.
#[test]
fn items_of_a_call_that_is_refused_are_dropped() {
    let mut pair = pair();
    let late = Extras {
        time_left: Some(Duration::ZERO),
        ..extras(ARGUMENT)
    };
    let id = pair.call_with(&known(5), 7, b"", &late, "late").number;
    let id = StreamId::own(id);
    push(&mut pair.client, id, b"item").unwrap();
    pair.client.connection.end_stream(id);
    let received = carry(&mut pair.client, &mut pair.server);
    assert_eq!((received.calls.len(), received.told.len()), (0, 0));
    let told = pair.take_answers();
    let text = "late failed: the time of the call ran out: it had run out when the call came";
    assert_eq!(told, [text]);
    assert_eq!(push(&mut pair.client, id, b""), Err(PushError::Over));
}

#[test]
fn items_of_a_call_behind_the_close_of_its_callee_are_dropped() {
    let mut pair = pair();
    let now = pair.now;
    let id = start(&mut pair.client, now, ARGUMENT).unwrap();
    push(&mut pair.client, id, b"item").unwrap();
    pair.client.connection.end_stream(id);
    let server = &mut pair.server.connection;
    server.close(tenon_proto::lean::CloseReason::DONE, "");
    let received = carry(&mut pair.client, &mut pair.server);
    assert_eq!((received.calls.len(), received.told.len()), (0, 0));
    let told = pair.take_answers();
    assert!(told[0].contains("not begun: [\"call\"]"), "{told:?}");
    assert_eq!(push(&mut pair.client, id, b""), Err(PushError::Over));
}

#[test]
fn a_call_that_the_owner_refuses_is_over() {
    let mut pair = granting(ORDER, ORDER, 1);
    for _ in 0..3 {
        let now = pair.now;
        let id = start(&mut pair.client, now, BOTH).unwrap();
        push(&mut pair.client, id, b"item").unwrap();
        let call = carry(&mut pair.client, &mut pair.server).calls.remove(0);
        let tenon_proto::connection::Caller::Lean(caller) = call.caller else {
            panic!("a lean call");
        };
        let exception = Exception::new(Status::OVERLOADED, "");
        pair.server.connection.refuse_call(caller, &exception);
        let peer = StreamId::of_peer(id.number);
        assert_eq!(push(&mut pair.server, peer, b""), Err(PushError::Over));
        assert_eq!(
            pair.take_answers(),
            ["call failed: the peer has too many calls"]
        );
    }
}

#[test]
fn a_call_with_streams_waits_for_the_preamble_and_its_service() {
    let mut pair = Pair::new(
        WireProtocol::Lean,
        client_config(ORDER),
        server_config(ORDER),
    );
    let now = pair.now;
    let begin = |pair: &mut Pair| start(&mut pair.client, now, BOTH);
    let awaits_preamble = |error| matches!(error, Err(StartError::AwaitsPreamble { .. }));
    let awaits_binding = |error| matches!(error, Err(StartError::AwaitsBinding { .. }));
    assert!(awaits_preamble(begin(&mut pair)));
    pair.serve();
    pair.take_answers();
    assert!(awaits_binding(begin(&mut pair)), "it is asked for");
    pair.serve();
    assert!(
        awaits_binding(begin(&mut pair)),
        "it is not asked for twice"
    );
    pair.take_answers();
    begin(&mut pair).unwrap();
    assert_eq!(pair.serve().len(), 1);
}

/// The service is bound for some procedures only, at the second try.
#[test]
fn a_call_with_streams_waits_for_a_service_that_is_narrowed() {
    let mut interface = (*known(5)).clone();
    interface.fingerprint = 99;
    let interface = Arc::new(interface);
    let mut pair = Pair::lean(ORDER, ORDER);
    let deadline = pair.now + SECOND;
    let begin = |pair: &mut Pair| {
        let of = (&interface, 7);
        let client = &mut pair.client;
        client.call_lean(of, b"", &extras(BOTH), deadline, "call")
    };
    for _ in 0..2 {
        let error = begin(&mut pair);
        assert!(matches!(error, Err(StartError::AwaitsBinding { .. })));
        pair.serve();
        pair.take_answers();
    }
    begin(&mut pair).unwrap();
    assert_eq!(pair.serve().len(), 1);
}

#[test]
fn a_client_may_grant_calls_with_streams_alone() {
    let client = ConnectionConfig {
        incoming_streams_max: 1,
        ..client_config(ORDER)
    };
    let mut pair = Pair::greeted(client, server_config(ORDER));
    let now = pair.now;
    let error = start(&mut pair.server, now, BOTH);
    assert!(matches!(error, Err(StartError::AwaitsBinding { .. })));
    carry(&mut pair.server, &mut pair.client);
    carry(&mut pair.client, &mut pair.server);
    let id = start(&mut pair.server, now, BOTH).unwrap();
    push(&mut pair.server, id, b"forth").unwrap();
    pair.server.connection.end_stream(id);
    let received = carry(&mut pair.server, &mut pair.client);
    assert_eq!(received.told, ["item of 0: forth", "end of 0"]);
    let caller = received.calls[0].caller;
    let deferred = pair.client.connection.defer(&caller, None).unwrap();
    push(&mut pair.client, StreamId::of_peer(0), b"back").unwrap();
    let mut reply = Side::reply(caller, b"done");
    pair.client
        .connection
        .answer_deferred(deferred, &mut reply)
        .unwrap();
    let told = carry(&mut pair.client, &mut pair.server).told;
    assert_eq!(told, ["item of 0: back", "call: done"]);
    // Without streams it takes none.
    let of = (&known(5), 7);
    let extras = Extras::default();
    let server = &mut pair.server;
    let error = server.call_lean(of, b"", &extras, now + SECOND, "plain");
    assert!(matches!(error, Err(StartError::TooManyCalls { limit: 0 })));
}

// ---- Order ----

#[test]
fn a_reply_waits_for_the_items_that_wait_for_credit() {
    let mut pair = pair();
    let open = open(&mut pair, RESULT);
    for _ in 0..2 {
        push(&mut pair.server, open.peer, &content(ITEM_PART)).unwrap();
    }
    let first = pair.server.transmit_all();
    push(&mut pair.server, open.peer, b"last").unwrap();
    finish(&mut pair.server, &open, b"reply");
    assert_eq!(push(&mut pair.server, open.peer, b""), Err(PushError::Over));
    assert_eq!(pair.server.transmit_all(), [], "no credit is left");
    assert_eq!(take_short(&mut pair.client, &first).len(), 2);
    let half = ITEM_PART as u64;
    pair.client.connection.give_back(open.own, half);
    carry(&mut pair.client, &mut pair.server);
    let told = pair.take_answers();
    assert_eq!(told, ["pong 1", "item of 2: last", "call: reply"]);
}

fn cut_off(end: &mut Side, open: &Open, results: &[u8]) {
    let mut reply = Side::reply(open.call.caller, results);
    let state = end.connection.cut_off_deferred(open.id, &mut reply);
    assert!(state.is_some() && reply.is_empty());
}

#[test]
fn a_reply_that_cuts_a_stream_off_follows_the_items_that_have_credit() {
    let mut pair = pair();
    let open = open(&mut pair, RESULT);
    push(&mut pair.server, open.peer, &content(ITEM_PART)).unwrap();
    let first = pair.server.transmit_all();
    for _ in 0..2 {
        push(&mut pair.server, open.peer, &content(ITEM_PART)).unwrap();
    }
    cut_off(&mut pair.server, &open, b"end");
    assert_eq!(push(&mut pair.server, open.peer, b""), Err(PushError::Over));
    assert_eq!(take_short(&mut pair.client, &first).len(), 1);
    let rest = pair.server.transmit_all();
    let told = take_short(&mut pair.client, &rest);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], "call: end");
    assert!(!pair.server.connection.has_peer_streams());
}

#[test]
fn replies_that_cut_streams_off_share_the_credit_of_the_connection() {
    let mut pair = pair();
    let opens: Vec<Open> = (0..6).map(|_| open(&mut pair, RESULT)).collect();
    for open in &opens {
        for _ in 0..2 {
            push(&mut pair.server, open.peer, &content(ITEM_PART)).unwrap();
        }
    }
    for open in &opens {
        cut_off(&mut pair.server, open, b"end");
    }
    let sent = pair.server.transmit_all();
    let told = take_short(&mut pair.client, &sent);
    let ends = told.iter().filter(|told| *told == "call: end").count();
    assert_eq!((told.len() - ends, ends), (8, 6), "{told:?}");
    assert!(!pair.server.connection.has_peer_streams());
}

#[test]
fn a_reply_follows_items_in_a_batch_of_its_own_or_behind_them() {
    let mut pair = pair();
    let open = open(&mut pair, RESULT);
    push(&mut pair.server, open.peer, b"one").unwrap();
    let mut batch = TransmitBatch::default();
    assert!(pair.server.connection.poll_transmit(&mut batch));
    // While they are being sent.
    finish(&mut pair.server, &open, b"reply");
    let mut sent = batch.slices().concat();
    batch.advance(sent.len());
    pair.server.connection.handle_transmitted(&mut batch);
    sent.extend(pair.server.transmit_all());
    let told = take_short(&mut pair.client, &sent);
    assert_eq!(told, ["item of 2: one", "call: reply"]);
}

/// A peer may grant bytes of a stream and of the connection by different messages.
#[test]
fn credit_for_a_stream_alone_lets_it_go_on() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    for _ in 0..2 {
        push(&mut pair.client, open.own, &content(ITEM_PART)).unwrap();
    }
    pair.client.transmit_all();
    push(&mut pair.client, open.own, b"more").unwrap();
    assert_eq!(pair.client.transmit_all(), []);
    let credit = [&head(kinds::CREDIT, 2, 0, 0, 8)[..], &[Word(24), Word(0)]].concat();
    take_in(&mut pair.client, &bytes(ORDER, &credit)).unwrap();
    assert_eq!(pair.client.transmit_all().len(), 24);
}

#[test]
fn small_items_share_a_batch() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    for _ in 0..1000 {
        push(&mut pair.client, open.own, b"12345678").unwrap();
    }
    pair.client.connection.end_stream(open.own);
    assert_eq!(pair.client.transmit().len(), 1000 * 24 + HEADER);
    assert!(!pair.client.connection.has_transmit());
}

#[test]
fn items_may_be_handed_over_before_their_call_was_sent() {
    for length in [0, 3 * PIECE] {
        let mut pair = pair();
        let of = (&known(5), 7);
        let deadline = pair.now + SECOND;
        let arguments = vec![7; length];
        let client = &mut pair.client;
        let call = client.call_lean(of, &arguments, &extras(ARGUMENT), deadline, "call");
        let id = StreamId::own(call.unwrap().number);
        push(&mut pair.client, id, b"item").unwrap();
        pair.client.connection.end_stream(id);
        let received = carry(&mut pair.client, &mut pair.server);
        assert_eq!(received.calls[0].arguments.len(), length);
        assert_eq!(received.told, ["item of 2: item", "end of 2"]);
        assert!(!pair.client.connection.has_transmit());
    }
}

/// Two streams and a long message: what is said while all of them have more to send waits for one piece, or the items of
/// one stream, at most; and none of the three is left out.
#[test]
fn streams_and_long_messages_take_turns() {
    let mut pair = pair();
    let opens = [open(&mut pair, ARGUMENT), open(&mut pair, ARGUMENT)];
    let arguments = vec![7; 12 * PIECE];
    pair.call(&known(5), 7, &arguments, "long");
    let mut shares = [0_usize; 3];
    let mut is_complete = false;
    for round in 0..40 {
        for open in &opens {
            while push(&mut pair.client, open.own, &content(ITEM_PART)).is_ok() {}
        }
        let ping = pair.client.connection.ping();
        let batch = pair.client.transmit();
        let expected = bytes(ORDER, &head(kinds::PING, ping, 0, 0, 0));
        // Behind a pong, as the window of the server grows.
        let control = batch.chunks(HEADER).take(2);
        let is_there = control.into_iter().any(|message| message == expected);
        assert!(is_there, "it goes with the next batch");
        assert!(batch.len() <= 3 * HEADER + PIECE, "{}", batch.len());
        let mut at = 0;
        while at < batch.len() {
            at += pair.server.receive(&batch[at..]).unwrap();
            while let Some(frame) = pair.server.receiver.next_frame().unwrap() {
                let services = &pair.server.services;
                let item = match pair
                    .server
                    .connection
                    .handle_frame(frame, services)
                    .unwrap()
                {
                    Event::Items(item) => (item.id, item.size),
                    Event::Called(_) => {
                        is_complete = true;
                        continue;
                    }
                    _ => continue,
                };
                let index = opens.iter().position(|open| open.peer == item.0).unwrap();
                shares[index] += 1;
                pair.server.connection.give_back(item.0, item.1);
            }
        }
        if !is_complete && batch.len() > ITEM_PART {
            shares[2] += 1;
        }
        let back = pair.server.transmit_all();
        take_in(&mut pair.client, &back).unwrap();
        assert!(round < 30 || is_complete, "the long call is held up");
    }
    assert!(shares[0] > 10 && shares[1] > 10, "{shares:?}");
    assert!(shares[0].abs_diff(shares[1]) <= 4, "{shares:?}");
}

/// The credit of the connection is shared: a stream that has waited longest goes first.
#[test]
fn streams_that_wait_for_credit_take_turns() {
    let mut pair = pair();
    let opens: Vec<Open> = (0..6).map(|_| open(&mut pair, ARGUMENT)).collect();
    for open in &opens {
        for _ in 0..2 {
            push(&mut pair.client, open.own, &content(ITEM_PART)).unwrap();
        }
    }
    let sent = pair.client.transmit_all();
    assert_eq!(sent.len(), CONNECTION_WINDOW as usize);
    for open in &opens {
        let _ = push(&mut pair.client, open.own, &content(ITEM_PART));
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let grants = [Word(ITEM_PART as u32), Word(ITEM_PART as u32)];
        let credit = [&head(kinds::CREDIT, 9999, 0, 0, 8)[..], &grants].concat();
        take_in(&mut pair.client, &bytes(ORDER, &credit)).unwrap();
        let sent = pair.client.transmit_all();
        assert_eq!(sent.len(), ITEM_PART);
        order.push(u32::from_ne_bytes(*sent[4..].first_chunk().unwrap()));
    }
    let last: Vec<u32> = opens[4..].iter().map(|open| open.own.number).collect();
    assert_eq!(order, [last[0], last[1], last[0], last[1]]);
}

// ---- Room ----

#[test]
fn a_writer_waits_for_room() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    let client = &mut pair.client;
    for _ in 0..2 {
        push(client, open.own, &content(ITEM_PART)).unwrap();
    }
    assert_eq!(push(client, open.own, b""), Err(PushError::Full));
    assert_eq!(client.connection.poll_writable(), None);
    client.transmit();
    assert_eq!(client.connection.poll_writable(), Some(open.own));
    assert_eq!(client.connection.poll_writable(), None);
    // Without credit nothing of it goes out, and there is no room.
    for _ in 0..2 {
        push(client, open.own, &content(ITEM_PART)).unwrap();
    }
    assert_eq!(push(client, open.own, b""), Err(PushError::Full));
    assert_eq!(client.transmit(), []);
    assert_eq!(client.connection.poll_writable(), None);
    // An end needs none.
    client.connection.end_stream(open.own);
    assert_eq!(push(client, open.own, b""), Err(PushError::Over));
    assert_eq!(push(client, StreamId::own(77), b""), Err(PushError::Over));
    assert_eq!(push(client, open.peer, b""), Err(PushError::Over));
}

// ---- Ends ----

#[test]
fn a_cancel_drops_what_waits_and_the_reply_goes_out_at_once() {
    let mut pair = pair();
    let open = open(&mut pair, BOTH);
    for end in [(&mut pair.server, open.peer), (&mut pair.client, open.own)] {
        for _ in 0..2 {
            push(end.0, end.1, &content(ITEM_PART)).unwrap();
        }
        end.0.transmit_all();
        push(end.0, end.1, b"waits").unwrap();
    }
    finish(&mut pair.server, &open, b"reply");
    assert_eq!(pair.server.transmit_all(), []);
    let client = &mut pair.client.connection;
    client.cancel_call(open.own.number).unwrap();
    let cancel = pair.client.transmit_all();
    check(
        "cancel",
        ORDER,
        &cancel,
        &[&head(kinds::CANCEL, 2, 0, 0, 0)],
    );
    assert_eq!(push(&mut pair.client, open.own, b""), Err(PushError::Over));
    take_in(&mut pair.server, &cancel).unwrap();
    let reply = pair.server.transmit_all();
    let expected: [&[Field]; 2] = [&head(kinds::REPLY, 2, 0, 7, 5), &[Bytes(b"reply\0\0\0")]];
    check("reply", ORDER, &reply, &expected);
    assert_eq!(take_short(&mut pair.client, &reply), [""; 0]);
}

#[test]
fn a_call_that_is_cancelled_is_answered_all_the_same() {
    let mut pair = pair();
    let open = open(&mut pair, BOTH);
    push(&mut pair.server, open.peer, b"waits").unwrap();
    let client = &mut pair.client.connection;
    client.cancel_call(open.own.number).unwrap();
    let told = carry(&mut pair.client, &mut pair.server).told;
    assert_eq!(told, ["cancelled"]);
    assert_eq!(push(&mut pair.server, open.peer, b""), Err(PushError::Over));
    assert_eq!(pair.server.transmit_all(), []);
    let state = finish(&mut pair.server, &open, b"");
    assert_eq!(state, DeferredCallState::Cancelled);
    assert_eq!(pair.server.transmit_all().len(), HEADER);
}

/// Items that come too late cost the connection nothing: it could go on like this for ever.
#[test]
fn late_items_return_their_credit() {
    let mut pair = pair();
    // The callee has answered, or the caller has given up.
    for at_client in [false, true] {
        let mut total = 0;
        while total < 4 * CONNECTION_WINDOW as usize {
            let open = open(&mut pair, BOTH);
            if at_client {
                pair.client.connection.cancel_call(open.own.number).unwrap();
            } else {
                finish(&mut pair.server, &open, b"reply");
            }
            let (from, to, id) = match at_client {
                true => (&mut pair.server, &mut pair.client, open.peer),
                false => (&mut pair.client, &mut pair.server, open.own),
            };
            for _ in 0..2 {
                total += push(from, id, &content(ITEM_PART)).unwrap();
            }
            let sent = from.transmit_all();
            assert_eq!(sent.len(), 2 * ITEM_PART, "there is credit");
            assert_eq!(take_short(to, &sent), [""; 0], "they are dropped");
            for _ in 0..2 {
                carry(&mut pair.client, &mut pair.server);
                carry(&mut pair.server, &mut pair.client);
            }
            if at_client {
                finish(&mut pair.server, &open, b"");
                carry(&mut pair.server, &mut pair.client);
            }
        }
    }
}

#[test]
fn a_reader_that_has_stopped_holds_its_own_stream_up_alone() {
    let mut pair = pair();
    for _ in 0..20 {
        let open = open(&mut pair, ARGUMENT);
        pair.server.connection.stop_receiving(open.peer);
        for _ in 0..2 {
            push(&mut pair.client, open.own, &content(ITEM_PART)).unwrap();
        }
        let told = carry(&mut pair.client, &mut pair.server).told;
        assert_eq!(told, [""; 0]);
        carry(&mut pair.server, &mut pair.client);
        push(&mut pair.client, open.own, b"no credit").unwrap();
        assert_eq!(pair.client.transmit_all(), []);
        finish(&mut pair.server, &open, b"early");
        assert_eq!(pair.take_answers(), ["call: early"]);
        assert_eq!(push(&mut pair.client, open.own, b""), Err(PushError::Over));
    }
    let open = open(&mut pair, ARGUMENT);
    pair.server.connection.stop_receiving(open.peer);
    pair.client.connection.end_stream(open.own);
    let told = carry(&mut pair.client, &mut pair.server).told;
    assert_eq!(told, [""; 0], "its end is of no interest");
}

/// Items that were read and given back after their call was over count for the connection.
#[test]
fn bytes_that_are_given_back_after_the_end_are_granted_again() {
    let mut pair = pair();
    for _ in 0..20 {
        let open = open(&mut pair, ARGUMENT);
        let sent = push(&mut pair.client, open.own, &content(ITEM_PART)).unwrap();
        carry(&mut pair.client, &mut pair.server);
        finish(&mut pair.server, &open, b"");
        let server = &mut pair.server.connection;
        server.give_back(open.peer, sent as u64);
        carry(&mut pair.server, &mut pair.client);
    }
}

#[test]
fn a_lost_connection_starts_no_call_with_streams_again() {
    let mut pair = pair();
    let now = pair.now;
    open(&mut pair, BOTH);
    let unsent = start(&mut pair.client, now, ARGUMENT).unwrap();
    push(&mut pair.client, unsent, b"item").unwrap();
    pair.call(&known(5), 7, b"", "plain");
    let calls = pair.abandon_all();
    let found: Vec<_> = calls
        .iter()
        .map(|call| (call.was_sent, call.unsent.is_some()))
        .collect();
    assert_eq!(found, [(true, false), (false, false), (false, true)]);
    assert_eq!(push(&mut pair.client, unsent, b""), Err(PushError::Over));
    pair.client.connection.end_stream(unsent);
    pair.client.connection.give_back(unsent, 99);
    pair.renew();
    pair.serve();
    pair.take_answers();
    assert!(!pair.client.connection.has_transmit());
    let error = start(&mut pair.client, now, BOTH);
    assert!(matches!(error, Err(StartError::AwaitsBinding { .. })));
    pair.serve();
    pair.take_answers();
    open(&mut pair, BOTH);
}

#[test]
fn a_batch_with_items_is_not_put_back() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    push(&mut pair.client, open.own, b"item").unwrap();
    pair.client.connection.ping();
    let mut batch = pair.poll_batch();
    let client = &mut pair.client.connection;
    assert!(!client.put_back(&mut batch));
    assert_eq!(batch.remaining(), HEADER + 24);
    batch.advance(20);
    client.handle_transmit_failed(&mut batch);
    let calls = pair.abandon_all();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].unsent.is_none());
}

#[test]
fn a_call_that_is_taken_back_takes_its_items_along() {
    let mut pair = pair();
    let now = pair.now;
    let id = start(&mut pair.client, now, BOTH).unwrap();
    push(&mut pair.client, id, b"item").unwrap();
    let call = pair.client.connection.cancel_call(id.number).unwrap();
    assert!(!call.was_sent);
    assert_eq!(pair.client.transmit_all(), []);
    assert!(!pair.client.connection.has_transmit());
}

// ---- Windows ----

/// Sends items as fast as they are taken; returns the most bytes that were under way. What one end sends reaches the
/// other `delay` rounds later.
fn most_under_way(delay: usize, rounds: usize) -> usize {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    let mut forth = vec![Vec::new(); delay];
    let mut back = vec![Vec::new(); delay];
    let mut most = 0;
    for _ in 0..rounds {
        let mut sent = Vec::new();
        loop {
            while push(&mut pair.client, open.own, &content(ITEM_PART)).is_ok() {}
            let batch = pair.client.transmit();
            if batch.is_empty() {
                break;
            }
            sent.extend(batch);
        }
        forth.push(sent);
        most = most.max(forth.iter().map(Vec::len).sum());
        let arrived = forth.remove(0);
        let mut at = 0;
        while at < arrived.len() {
            at += pair.server.receive(&arrived[at..]).unwrap();
            while let Some(frame) = pair.server.receiver.next_frame().unwrap() {
                let services = &pair.server.services;
                let event = pair.server.connection.handle_frame(frame, services);
                let Event::Items(item) = event.unwrap() else {
                    continue;
                };
                let (id, size) = (item.id, item.size);
                pair.server.connection.give_back(id, size);
            }
        }
        back.push(pair.server.transmit_all());
        let arrived = back.remove(0);
        take_in(&mut pair.client, &arrived).unwrap();
    }
    most
}

#[test]
fn windows_grow_with_the_delay_of_the_connection() {
    let far = most_under_way(4, 200);
    let max = ConnectionConfig::STREAM_WINDOW_MAX as usize;
    assert!(far > max / 2 && far <= max, "{far}");
}

/// A reader that takes one item at a time from a stream whose sender answers at once needs no larger window.
#[test]
fn windows_do_not_grow_without_need() {
    let mut pair = pair();
    let open = open(&mut pair, ARGUMENT);
    for _ in 0..200 {
        let size = push(&mut pair.client, open.own, &content(8 << 10)).unwrap();
        carry(&mut pair.client, &mut pair.server);
        let server = &mut pair.server.connection;
        server.give_back(open.peer, size as u64);
        carry(&mut pair.server, &mut pair.client);
        carry(&mut pair.client, &mut pair.server);
    }
    let mut under_way = 0;
    while let Ok(size) = push(&mut pair.client, open.own, &content(8 << 10)) {
        under_way += size;
        if pair.client.transmit_all().is_empty() {
            break;
        }
    }
    assert!(
        under_way <= STREAM_WINDOW as usize + (8 << 10),
        "{under_way}"
    );
}
