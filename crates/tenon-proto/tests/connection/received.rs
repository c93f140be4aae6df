//! Calls that leave with the memory they were received in, and everything else, which is taken care of where it lies.

use std::time::Duration;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::ROOM_FIRST;
use tenon_proto::connection::{
    Caller, ConnectionError, Event, Received, ReceivedCall, ReplyError, WireProtocol,
};
use tenon_proto::lean::{ByteOrder, CloseReason, Extension, Extras, PIECE, Stamps, Status};
use tenon_proto::onc::auth::{AuthSys, Credential};
use tenon_proto::onc::message::CallTemplate;

use crate::common::{Random, seeds};
use crate::ends::End;
use crate::fields::{ORDERS, bytes, head, head_with, kinds};
use crate::pair::{Pair, SECOND, answer, client_config, known, server_config};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// What an end finds next in what it has received.
fn next<'e>(end: &'e mut End<&'static str>) -> Result<Received<'e, &'static str>, ConnectionError> {
    let End {
        connection,
        receiver,
        services,
        ..
    } = end;
    connection.next_received(receiver, services)
}

/// Receives everything, and returns the calls.
fn calls_in(end: &mut End<&'static str>, stream: &[u8]) -> Vec<ReceivedCall> {
    let mut calls = Vec::new();
    let mut at = 0;
    while at < stream.len() {
        at += end.receive(&stream[at..]).unwrap();
        loop {
            match next(end).unwrap() {
                Received::Nothing => break,
                Received::Call(call) => calls.push(call),
                Received::Handled => {}
                other => panic!("{other:?}"),
            }
        }
    }
    calls
}

/// Brings to the server what the client has to say.
fn serve(pair: &mut Pair) -> Vec<ReceivedCall> {
    let stream = pair.client.transmit_all();
    calls_in(&mut pair.server, &stream)
}

fn start(pair: &mut Pair, arguments: &[u8], waiter: &'static str) {
    match pair.client.connection.protocol() {
        Some(WireProtocol::Lean) => pair.call(&known(5), 1, arguments, waiter),
        _ => pair.call_onc(arguments, waiter),
    };
}

/// Pairs of which the service is bound, whose calls have the commonest form and another.
fn pairs() -> Vec<Pair> {
    let swapped = ORDERS.into_iter().find(|order| *order != ORDER).unwrap();
    let mut pairs = vec![
        Pair::onc(),
        Pair::lean(ORDER, ORDER),
        Pair::lean(swapped, ORDER),
    ];
    for pair in &mut pairs {
        start(pair, b"first", "first");
        let call = serve(pair).remove(0);
        answer(&mut pair.server, call.caller, b"");
        pair.server.receiver.reattach(call.message);
        assert_eq!(pair.take_answers(), ["first: "]);
    }
    pairs
}

#[test]
fn a_call_leaves_with_all_that_is_known_of_it() {
    for order in ORDERS {
        let mut pair = Pair::lean(order, ORDER);
        let extras = Extras {
            time_left: Some(SECOND),
            extensions: &[Stamps::REQUEST],
            ..Extras::default()
        };
        let number = pair
            .call_with(&known(5), 7, b"arguments", &extras, "call")
            .number;
        let [call] = &serve(&mut pair)[..] else {
            panic!("a call");
        };
        assert_eq!((call.service, call.procedure), (0, 7));
        assert_eq!((call.order, call.caller.number()), (order, number));
        assert_eq!((call.time_left, call.wants_stamps), (Some(SECOND), true));
        assert_eq!(call.deadline(pair.now), Some(pair.now + SECOND));
        assert_eq!(call.arguments(), b"arguments");
        assert_eq!(call.attachments().credential, Credential::None);
    }
}

#[test]
fn a_call_of_onc_rpc_leaves_with_its_credential() {
    let mut pair = Pair::onc();
    let sys = AuthSys::new(b"host", 10, 20, &[30]).unwrap();
    let credential = Credential::Sys(sys);
    let template = CallTemplate::new(400, 1, &credential);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let call = client.call_onc(&template, 7, b"arguments", deadline, "call");
    call.unwrap();
    let [call] = &mut serve(&mut pair)[..] else {
        panic!("a call");
    };
    assert_eq!((call.service, call.procedure), (2, 7));
    assert_eq!(call.arguments(), b"arguments");
    assert_eq!(call.attachments().credential, credential);
    pair.server.receiver.compact(&mut call.message);
    assert_eq!(call.arguments(), b"arguments");
    assert_eq!(call.attachments().credential, credential);
    assert_eq!((call.time_left, call.order), (None, ByteOrder::Big));
    assert_eq!(call.deadline(pair.now), None);
}

#[test]
fn calls_stay_valid_while_others_are_received_and_answered() {
    for mut pair in pairs() {
        for (arguments, waiter) in [(&b"a"[..], "a"), (&[7; 5000], "b"), (b"c", "c")] {
            start(&mut pair, arguments, waiter);
        }
        let calls = serve(&mut pair);
        start(&mut pair, b"d", "d");
        let later = serve(&mut pair);
        let arguments: Vec<&[u8]> = calls.iter().map(ReceivedCall::arguments).collect();
        assert_eq!(arguments, [&b"a"[..], &[7; 5000], b"c"]);
        assert_eq!(later[0].arguments(), b"d");
        for call in calls.into_iter().chain(later).rev() {
            let length = call.arguments().len().to_string();
            answer(&mut pair.server, call.caller, length.as_bytes());
            pair.server.receiver.reattach(call.message);
        }
        assert_eq!(pair.take_answers(), ["d: 1", "c: 1", "b: 5000", "a: 1"]);
    }
}

#[test]
fn a_call_alone_is_not_copied() {
    for mut pair in pairs() {
        let place = pair.server.receiver.room().as_ptr_range();
        start(&mut pair, b"alone", "alone");
        let call = serve(&mut pair).remove(0);
        assert!(place.contains(&call.arguments().as_ptr()));
        assert_eq!(pair.server.receiver.capacity(), 0, "it has left with it");
        pair.server.receiver.reattach(call.message);
        assert_eq!(pair.server.receiver.room().as_ptr_range(), place);
    }
}

#[test]
fn a_short_call_that_is_kept_takes_no_more_memory_than_it_needs() {
    for mut pair in pairs() {
        let place = pair.server.receiver.room().as_ptr_range();
        start(&mut pair, b"kept", "kept");
        let mut call = serve(&mut pair).remove(0);
        assert_eq!(call.message.capacity(), ROOM_FIRST);
        pair.server.receiver.compact(&mut call.message);
        assert!(call.message.capacity() < 100);
        assert_eq!(call.arguments(), b"kept");
        assert_eq!(call.attachments().credential, Credential::None);
        // What it was in is received into next.
        assert_eq!(pair.server.receiver.room().as_ptr_range(), place);
        // A call that fills most of its memory stays there.
        let arguments = [7; ROOM_FIRST * 3 / 4];
        start(&mut pair, &arguments, "long");
        let mut long = serve(&mut pair).remove(0);
        pair.server.receiver.compact(&mut long.message);
        assert_eq!(long.message.capacity(), ROOM_FIRST);
        assert_eq!(long.arguments(), arguments);
        assert_eq!(call.arguments(), b"kept");
        for call in [call, long] {
            answer(&mut pair.server, call.caller, b"");
        }
        assert_eq!(pair.take_answers(), ["kept: ", "long: "]);
    }
}

#[test]
fn a_call_in_pieces_leaves_whole() {
    let mut pair = Pair::lean(ORDER, ORDER);
    let arguments = Random(1).bytes(3 * PIECE);
    start(&mut pair, b"in front", "in front");
    start(&mut pair, &arguments, "long");
    start(&mut pair, b"behind", "behind");
    let calls = serve(&mut pair);
    let received: Vec<&[u8]> = calls.iter().map(ReceivedCall::arguments).collect();
    assert!(received == [&b"in front"[..], b"behind", &arguments]);
}

/// Calls that reach no service, and what is said of the connection. Nothing of it needs a thread that carries out calls.
fn needless_of_services(pair: &mut Pair) -> Vec<&'static str> {
    let is_lean = pair.client.connection.protocol() == Some(WireProtocol::Lean);
    if !is_lean {
        let deadline = pair.now + SECOND;
        for (program, procedure) in [(300, 0), (301, 1)] {
            let template = CallTemplate::new(program, 5, &Credential::None);
            let client = &mut pair.client;
            let call = client.call_onc(&template, procedure, b"", deadline, "call");
            call.unwrap();
        }
        return vec![
            "call: ",
            "call refused: PROG_UNAVAIL: the peer does not have the program",
        ];
    }
    let late = Extras {
        time_left: Some(Duration::ZERO),
        ..Extras::default()
    };
    pair.client.connection.ping();
    pair.call(&known(5), 0, b"", "ping");
    pair.call(&known(4), 1, b"", "unbound");
    pair.call_with(&known(5), 1, b"", &late, "late");
    vec![
        "pong 1",
        "ping: ",
        "unbound unbound: the server has versions 2 to 5 of program 300, not 4",
        "late failed: the time of the call ran out: it had run out when the call came",
    ]
}

#[test]
fn what_no_service_is_needed_for_is_answered_and_its_memory_stays() {
    for mut pair in pairs() {
        let place = pair.server.receiver.room().as_ptr_range();
        let expected = needless_of_services(&mut pair);
        let mut stream = &pair.client.transmit_all()[..];
        let is_lean = pair.client.connection.protocol() == Some(WireProtocol::Lean);
        while !stream.is_empty() {
            // One message after the other.
            let header: [u8; 16] = *stream.first_chunk().unwrap();
            let length = if is_lean {
                let [.., a, b, c, d] = header;
                let length = match pair.client.config.byte_order {
                    ByteOrder::Little => u32::from_le_bytes([a, b, c, d]),
                    ByteOrder::Big => u32::from_be_bytes([a, b, c, d]),
                };
                16 + (length as usize).next_multiple_of(8)
            } else {
                let [_, a, b, c, ..] = header;
                4 + u32::from_be_bytes([0, a, b, c]) as usize
            };
            let (message, rest) = stream.split_at(length);
            assert!(calls_in(&mut pair.server, message).is_empty());
            let room = pair.server.receiver.room().as_ptr_range();
            assert_eq!(room, place, "the memory is where it was");
            stream = rest;
        }
        assert_eq!(pair.take_answers(), expected);
    }
}

#[test]
fn what_no_service_is_needed_for_is_answered_when_it_comes_together() {
    for mut pair in pairs() {
        let expected = needless_of_services(&mut pair);
        assert!(serve(&mut pair).is_empty());
        assert_eq!(pair.take_answers(), expected);
    }
}

#[test]
fn procedure_0_that_asks_for_stamps_leaves_as_a_call() {
    let mut pair = Pair::lean(ORDER, ORDER);
    let extras = Extras {
        extensions: &[Stamps::REQUEST],
        ..Extras::default()
    };
    pair.call_with(&known(5), 0, b"", &extras, "call");
    let calls = serve(&mut pair);
    assert_eq!((calls[0].procedure, calls[0].wants_stamps), (0, true));
}

#[test]
fn answers_are_handed_out_where_they_lie() {
    for mut pair in pairs() {
        start(&mut pair, b"call", "call");
        let call = serve(&mut pair).remove(0);
        answer(&mut pair.server, call.caller, b"results");
        let sent = pair.server.transmit_all();
        let place = pair.client.receiver.room().as_ptr_range();
        assert_eq!(pair.client.receive(&sent), Ok(sent.len()));
        let Ok(Received::Answered(answer)) = next(&mut pair.client) else {
            panic!("an answer");
        };
        assert_eq!(
            (answer.waiter, answer.outcome),
            ("call", Ok(&b"results"[..]))
        );
        let Ok(Received::Nothing) = next(&mut pair.client) else {
            panic!("it was the last");
        };
        let room = pair.client.receiver.room().as_ptr_range();
        assert_eq!(room, place);
    }
}

#[test]
fn an_exception_and_a_close_are_handed_out() {
    let mut pair = Pair::lean(ORDER, ORDER);
    start(&mut pair, b"", "call");
    let Caller::Lean(caller) = serve(&mut pair)[0].caller else {
        panic!("a lean call");
    };
    start(&mut pair, b"", "late");
    let exception = tenon_proto::lean::Exception::new(Status::FAILED, "no disk");
    let server = &mut pair.server.connection;
    server.refuse_call(caller, &exception);
    server.close(CloseReason::STOPPING, "");
    let sent = pair.server.transmit_all();
    pair.client.receive(&sent).unwrap();
    let mut seen = Vec::new();
    loop {
        match next(&mut pair.client).unwrap() {
            Received::Nothing => break,
            Received::Answered(answer) => {
                let Err(ReplyError::Exception(exception)) = answer.outcome else {
                    panic!("{:?}", answer.outcome);
                };
                seen.push(format!("{} {exception}", answer.waiter));
            }
            Received::PeerClosing(closing) => {
                seen.push(format!("closing, {} not begun", closing.unbegun.len()));
            }
            Received::Handled => {}
            other => panic!("{other:?}"),
        }
    }
    let expected = ["call the service failed: no disk", "closing, 1 not begun"];
    assert_eq!(seen, expected);
}

#[test]
fn a_cancellation_of_a_deferred_call_is_handed_out() {
    let mut pair = Pair::lean(ORDER, ORDER);
    start(&mut pair, b"", "call");
    let call = serve(&mut pair).remove(0);
    let id = pair.server.connection.defer(&call.caller, None).unwrap();
    let number = call.caller.number();
    pair.client.connection.cancel_call(number).unwrap();
    let sent = pair.client.transmit_all();
    pair.server.receive(&sent).unwrap();
    let Ok(Received::Cancelled(cancelled)) = next(&mut pair.server) else {
        panic!("a cancellation");
    };
    assert_eq!(cancelled, id);
}

#[test]
fn a_cancellation_of_a_call_that_is_not_deferred_is_handed_out_by_its_number() {
    let mut pair = Pair::lean(ORDER, ORDER);
    start(&mut pair, b"", "call");
    let number = serve(&mut pair).remove(0).caller.number();
    pair.client.connection.cancel_call(number).unwrap();
    let sent = pair.client.transmit_all();
    pair.server.receive(&sent).unwrap();
    let Ok(Received::CancelledHere(cancelled)) = next(&mut pair.server) else {
        panic!("a cancellation");
    };
    assert_eq!(cancelled, number);
}

#[test]
fn an_error_comes_behind_all_that_came_before_it() {
    let mut pair = Pair::lean(ORDER, ORDER);
    start(&mut pair, b"", "call");
    let mut sent = pair.client.transmit_all();
    sent.extend([b'x'; 16]);
    pair.server.receive(&sent).unwrap();
    assert!(
        matches!(next(&mut pair.server), Ok(Received::Handled)),
        "the bind"
    );
    assert!(matches!(next(&mut pair.server), Ok(Received::Call(_))));
    for _ in 0..2 {
        let error = next(&mut pair.server).unwrap_err();
        assert!(matches!(error, ConnectionError::Framing(_)), "{error}");
    }
}

#[test]
fn a_client_that_takes_calls_receives_them_and_answers() {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(ORDER)
    };
    let mut pair = Pair::greeted(client, server_config(ORDER));
    start(&mut pair, b"forth", "forth");
    let call = serve(&mut pair).remove(0);
    answer(&mut pair.server, call.caller, b"done");
    let interface = known(5);
    let of = (&interface, 1);
    let deadline = pair.now + SECOND;
    let server = &mut pair.server;
    let call = server.call_lean(of, b"back", &Extras::default(), deadline, "back");
    call.unwrap();
    let sent = pair.server.transmit_all();
    pair.client.receive(&sent).unwrap();
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    loop {
        match next(&mut pair.client).unwrap() {
            Received::Nothing => break,
            Received::Call(call) => calls.push(call.arguments().to_vec()),
            Received::Answered(answer) => answers.push(answer.waiter),
            Received::Handled => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((calls, answers), (vec![b"back".to_vec()], vec!["forth"]));
}

// ---- The same as frame by frame ----

/// Messages of a client, good and bad.
fn any_stream(random: &mut Random) -> (ByteOrder, Vec<u8>) {
    let order = ORDERS[random.below(2)];
    let mut pair = Pair::new(
        WireProtocol::Lean,
        client_config(order),
        server_config(ORDER),
    );
    pair.call(&known(5), 1, b"first", "call");
    let mut stream = pair.client.transmit_all();
    let mut id = 1;
    for _ in 0..random.below(30) {
        id += 1 + random.below(3) as u32;
        let length = random.of_bits(12);
        let procedure = random.below(3) as u16;
        let message = match random.below(12) {
            0 => bytes(order, &head(kinds::PING, id, 0, 0, 0)),
            1 => bytes(order, &head(kinds::CANCEL, id - 1, 0, 0, 0)),
            2 => bytes(order, &head(kinds::CALL, id, 9, 1, 0)),
            3 => bytes(order, &head(kinds::CLOSE, 0, 0, 0, 16)),
            4 => {
                let first = head_with(kinds::CALL, 4, id, (0, procedure), 8);
                let last = head(kinds::PIECE, id, 0, 0, 8);
                let parts = [bytes(order, &first), vec![1; 8], bytes(order, &last)];
                [parts.concat(), vec![2; 8]].concat()
            }
            _ => {
                let head = head(kinds::CALL, id, 0, procedure, length as u32);
                let mut call = bytes(order, &head);
                call.extend(random.bytes(length));
                call.resize(call.len().next_multiple_of(8), 0);
                call
            }
        };
        stream.extend(message);
    }
    (order, stream)
}

/// What a server has made of a stream: its calls, what it has sent, and how it ended.
type Made = (Vec<(u32, Vec<u8>)>, Vec<u8>, Option<ConnectionError>);

fn frame_by_frame(server: &mut End<&'static str>, stream: &[u8]) -> Made {
    let mut calls = Vec::new();
    let mut at = 0;
    let mut outcome = Ok(());
    while at < stream.len() && outcome.is_ok() {
        at += server.receive(&stream[at..]).unwrap();
        outcome = loop {
            let frame = match server.receiver.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            };
            match server.connection.handle_frame(frame, &server.services) {
                Ok(Event::Called(call)) => {
                    calls.push((call.procedure, call.arguments.to_vec()));
                }
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
    }
    (calls, server.transmit_all(), outcome.err())
}

fn call_by_call(server: &mut End<&'static str>, stream: &[u8]) -> Made {
    let mut calls = Vec::new();
    let mut at = 0;
    let mut outcome = Ok(());
    while at < stream.len() && outcome.is_ok() {
        at += server.receive(&stream[at..]).unwrap();
        outcome = loop {
            let detached = match next(server) {
                Ok(Received::Nothing) => break Ok(()),
                Ok(Received::Call(call)) => call,
                Ok(_) => continue,
                Err(error) => break Err(error),
            };
            calls.push((detached.procedure, detached.arguments().to_vec()));
            server.receiver.reattach(detached.message);
        };
    }
    (calls, server.transmit_all(), outcome.err())
}

#[test]
fn calls_are_found_as_they_are_frame_by_frame() {
    for seed in seeds(500) {
        let (_, stream) = any_stream(&mut Random(seed));
        let server = || {
            let config = client_config(ORDER);
            Pair::new(WireProtocol::Lean, config, server_config(ORDER)).server
        };
        let expected = frame_by_frame(&mut server(), &stream);
        let made = call_by_call(&mut server(), &stream);
        assert!(
            made == expected,
            "seed {seed}: {:?} {:?}",
            made.2,
            expected.2
        );
    }
}

#[test]
fn an_extension_that_must_be_understood_is_refused_without_a_service() {
    let mut pair = Pair::lean(ORDER, ORDER);
    let extras = Extras {
        extensions: &[Extension {
            kind: 0x8001,
            content: b"",
        }],
        ..Extras::default()
    };
    pair.call_with(&known(5), 1, b"", &extras, "call");
    assert!(serve(&mut pair).is_empty());
    let told = ["call failed: the peer does not understand what the call demands"];
    assert_eq!(pair.take_answers(), told);
    assert!(pair.server.receiver.capacity() <= ROOM_FIRST);
}
