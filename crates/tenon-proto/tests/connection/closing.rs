//! How a lean connection is closed: what is still answered, what was not begun, and what may still be said.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{Caller, ConnectionError, Event, StartError, WireProtocol};
use tenon_proto::lean::{ByteOrder, CloseReason, Extras, Fault, Kind, PIECE, Violation};
use tenon_proto::onc::auth::Credential;
use tenon_proto::onc::message::CallTemplate;

use crate::fields::{ORDERS, bytes, head, kinds};
use crate::pair::{
    Pair, SECOND, answer, carry, client_config, known, server_config, take_in, waiters,
};

const ORDER: ByteOrder = ByteOrder::NATIVE;

fn pair() -> Pair {
    Pair::lean(ORDER, ORDER)
}

/// Makes calls that the server has and does not answer.
fn calls(pair: &mut Pair, waiters: &[&'static str]) -> Vec<Caller> {
    for waiter in waiters {
        pair.call(&known(5), 1, b"", waiter);
    }
    let callers = pair.serve().iter().map(|call| call.caller).collect();
    pair.take_answers();
    callers
}

fn start(pair: &mut Pair) -> Result<u32, StartError> {
    let interface = known(5);
    let deadline = pair.now + SECOND;
    let of = (&interface, 1);
    let client = &mut pair.client;
    let call = client.call_lean(of, b"", &Extras::default(), deadline, "more")?;
    Ok(call.number)
}

#[test]
fn a_server_that_closes_answers_what_it_accepted_and_the_rest_is_not_begun() {
    for order in ORDERS {
        let mut pair = Pair::lean(order, order);
        let accepted = calls(&mut pair, &["first", "second"]);
        for waiter in ["third", "fourth"] {
            pair.call(&known(5), 1, b"", waiter);
        }
        let server = &mut pair.server.connection;
        server.close(CloseReason::STOPPING, "maintenance");
        server.close(CloseReason::DONE, "only once");
        assert!(pair.serve().is_empty(), "they came too late");
        pair.answer(accepted[1], b"2");
        let id = accepted[1].number();
        let told = [
            format!(
                "closing behind Some({id}): it stops: maintenance; \
                 not begun: [\"third\", \"fourth\"]"
            ),
            "second: 2".to_owned(),
        ];
        assert_eq!(pair.take_answers(), told);
        assert!(pair.client.connection.is_peer_closing());
        assert_eq!(pair.client.connection.in_flight(), 1);
        pair.answer(accepted[0], b"1");
        assert_eq!(pair.take_answers(), ["first: 1"]);
        assert_eq!(start(&mut pair), Err(StartError::Closing));
    }
}

#[test]
fn a_close_before_any_call_leaves_all_of_them_not_begun() {
    let mut pair = pair();
    for waiter in ["a", "b"] {
        pair.call(&known(5), 1, b"", waiter);
    }
    pair.server.connection.close(CloseReason::IDLE, "");
    let told = "closing behind None: nothing was asked for too long; not begun: [\"a\", \"b\"]";
    assert_eq!(pair.take_answers(), [told]);
    assert_eq!(pair.client.connection.in_flight(), 0);
    assert_eq!(pair.client.connection.queued_bytes(), 32, "only the bind");
}

/// Calls that were sent and those that were not are told apart, and listed in the order in which they were sent.
#[test]
fn calls_that_were_not_begun_are_taken_out_of_what_waits_to_be_sent() {
    let mut pair = pair();
    calls(&mut pair, &["accepted"]);
    pair.call(&known(5), 1, b"sent", "sent");
    pair.client.transmit_all();
    pair.call(&known(5), 1, b"waits", "waits");
    pair.call(&known(5), 1, &[7; 3 * PIECE], "long");
    pair.server.connection.close(CloseReason::STOPPING, "");
    let close = pair.server.transmit_all();
    pair.client.receive(&close).unwrap();
    let frame = pair.client.receiver.next_frame().unwrap().unwrap();
    let connection = &mut pair.client.connection;
    let event = connection.handle_frame(frame, &pair.client.services);
    let Ok(Event::PeerClosing(closing)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(waiters(&closing.unbegun), ["sent", "waits", "long"]);
    let was_sent: Vec<bool> = closing.unbegun.iter().map(|call| call.was_sent).collect();
    assert_eq!(was_sent, [true, false, false]);
    assert_eq!(connection.queued_bytes(), 0);
}

/// The stream would otherwise end in the middle of a message.
#[test]
fn a_call_of_which_a_piece_was_sent_is_cancelled_when_the_server_closes() {
    let mut pair = pair();
    pair.call(&known(5), 1, &[7; 3 * PIECE], "long");
    let first = pair.client.transmit();
    assert_eq!(take_in(&mut pair.server, &first).unwrap().calls, []);
    pair.server.connection.close(CloseReason::STOPPING, "");
    let told = pair.take_answers();
    let expected = "closing behind None: it stops; not begun: [\"long\"]";
    assert_eq!(told, [expected]);
    assert!(pair.serve().is_empty());
    assert!(pair.server.receiver.is_between_frames());
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

/// It was accepted with its first piece, if a later call was.
#[test]
fn a_call_in_pieces_that_comes_before_the_last_accepted_is_carried_out() {
    let mut pair = pair();
    calls(&mut pair, &["to bind the service"]);
    pair.call(&known(5), 1, &[7; 2 * PIECE], "long");
    let first = pair.client.transmit();
    assert_eq!(take_in(&mut pair.server, &first).unwrap().calls, []);
    let short = pair.call(&known(5), 1, b"", "short").number;
    let batch = pair.client.transmit();
    let (message, rest) = batch.split_at(16);
    let [call] = &take_in(&mut pair.server, message).unwrap().calls[..] else {
        panic!("the short one");
    };
    assert_eq!(call.caller.number(), short);
    pair.server.connection.close(CloseReason::STOPPING, "");
    let told = pair.take_answers();
    assert!(told[0].ends_with("not begun: []"), "{told:?}");
    let calls = take_in(&mut pair.server, rest).unwrap().calls;
    assert_eq!(calls.len(), 1);
    pair.answer(calls[0].caller, b"done");
    assert_eq!(pair.take_answers(), ["long: done"]);
}

#[test]
fn behind_its_close_a_client_may_cancel_and_ping_but_not_call() {
    let mut pair = pair();
    let callers = calls(&mut pair, &["call"]);
    pair.server.connection.defer(&callers[0], None).unwrap();
    let client = &mut pair.client.connection;
    client.close(CloseReason::DONE, "");
    client.close(CloseReason::DONE, "once");
    client.cancel_call(callers[0].number()).unwrap();
    client.ping();
    assert_eq!(start(&mut pair), Err(StartError::Closing));
    let sent = pair.client.transmit_all();
    let mut told = take_in(&mut pair.server, &sent).unwrap().told;
    told.sort_unstable();
    let closing = "closing behind None: it needs the connection no longer; not begun: []";
    assert_eq!(told, ["cancelled", closing]);
    assert!(pair.server.connection.is_peer_closing());
}

#[test]
fn a_call_behind_a_close_breaks_the_protocol() {
    for (kind, message) in [
        (Kind::Call, head(kinds::CALL, 99, 0, 1, 0)),
        (Kind::Bind, head(kinds::BIND, 0, 1, 0, 0)),
        (Kind::Close, head(kinds::CLOSE, 0, 0, 0, 0)),
    ] {
        let mut pair = pair();
        calls(&mut pair, &["call"]);
        pair.client.connection.close(CloseReason::DONE, "");
        let sent = pair.client.transmit_all();
        take_in(&mut pair.server, &sent).unwrap();
        let at = pair.server.receiver.lean_reader().unwrap().received();
        let error = take_in(&mut pair.server, &bytes(ORDER, &message)).unwrap_err();
        let fault = Fault::AfterClose(kind);
        assert_eq!(error, ConnectionError::Lean(Violation { at, fault }));
    }
}

/// What an end is asked to do loses no call: those that cross the question are carried out.
#[test]
fn an_end_that_is_asked_to_go_away_begins_no_calls_and_is_answered_all() {
    for order in ORDERS {
        let mut pair = Pair::lean(order, order);
        let before = calls(&mut pair, &["before"]);
        assert!(pair.server.connection.go_away());
        let asked = pair.server.transmit_all();
        assert_eq!(asked, bytes(order, &head(kinds::GO_AWAY, 0, 0, 0, 0)));
        pair.call(&known(5), 1, b"", "crossing");
        let crossing = pair.serve().remove(0).caller;
        assert_eq!(take_in(&mut pair.client, &asked).unwrap().told, [""; 0]);
        assert_eq!(start(&mut pair), Err(StartError::Closing));
        assert!(!pair.client.connection.is_peer_closing());
        pair.answer(crossing, b"2");
        pair.answer(before[0], b"1");
        assert_eq!(pair.take_answers(), ["crossing: 2", "before: 1"]);
        // It holds for this connection alone.
        pair.renew();
        assert_ne!(start(&mut pair), Err(StartError::Closing));
    }
}

/// By ONC RPC, and before the client is known, there is no word for it; behind a close it says nothing.
#[test]
fn who_cannot_be_asked_to_go_away_is_not() {
    let mut onc = Pair::onc();
    onc.call_onc(b"", "call");
    onc.serve();
    assert!(!onc.server.connection.go_away());
    let config = (client_config(ORDER), server_config(ORDER));
    let mut silent = Pair::new(WireProtocol::Lean, config.0, config.1);
    assert!(!silent.server.connection.go_away());
    let mut closed = pair();
    closed.server.connection.close(CloseReason::DONE, "");
    assert!(!closed.server.connection.go_away());
}

/// Its last reply says it, which other clients ignore.
#[test]
fn a_client_of_onc_rpc_is_told_what_a_server_that_closes_has_not_begun() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "begun");
    let begun = pair.serve().remove(0);
    pair.call_onc(b"", "late");
    pair.server.connection.close(CloseReason::STOPPING, "");
    pair.answer(begun.caller, b"answered");
    pair.server.connection.push_close_notice();
    let told = [
        "begun: answered",
        "closing behind None: it stops; not begun: [\"late\"]",
    ];
    assert_eq!(pair.take_answers(), told);
    assert!(pair.client.connection.is_peer_closing());
    let template = CallTemplate::new(300, 5, &Credential::None);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let started = client.call_onc(&template, 1, b"", deadline, "more");
    assert_eq!(started, Err(StartError::Closing));
}

/// A lean client has been told already.
#[test]
fn a_lean_server_has_no_close_notice() {
    let mut pair = pair();
    pair.server.connection.push_close_notice();
    assert!(!pair.server.connection.has_transmit());
}

#[test]
fn a_close_waits_behind_the_calls_that_were_started_before() {
    let mut pair = pair();
    pair.call(&known(5), 1, b"before", "before");
    pair.client.connection.close(CloseReason::DONE, "");
    let received = carry(&mut pair.client, &mut pair.server);
    assert_eq!(received.calls[0].arguments, b"before");
    assert_eq!(received.told.len(), 1);
    pair.answer(received.calls[0].caller, b"answered");
    assert_eq!(pair.take_answers(), ["before: answered"]);
}

#[test]
fn a_violation_is_reported_to_the_end_that_made_it() {
    let mut pair = Pair::lean(ByteOrder::Little, ByteOrder::Big);
    let error = take_in(&mut pair.server, &[b'x'; 16]).unwrap_err();
    let server = &mut pair.server.connection;
    server.close(CloseReason::VIOLATION, &error.to_string());
    let told = "closing behind None: this end broke the protocol: byte 32 of the stream: out of \
                step: expected the sync word 0xd07e, got 0x7878; not begun: []";
    assert_eq!(pair.take_answers(), [told]);
}

/// Nothing is known of what was begun: the calls are left to the owner.
#[test]
fn calls_stay_in_flight_when_the_connection_is_closed_for_a_violation() {
    let mut pair = pair();
    calls(&mut pair, &["first", "second"]);
    pair.server.connection.close(CloseReason::VIOLATION, "");
    let told = pair.take_answers();
    assert!(told[0].ends_with("not begun: []"), "{told:?}");
    assert_eq!(pair.client.connection.in_flight(), 2);
    assert_eq!(pair.client.connection.abandon_all().len(), 2);
}

#[test]
fn a_client_that_closes_answers_the_calls_of_its_server() {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(ORDER)
    };
    let mut pair = Pair::greeted(client, server_config(ORDER));
    let deadline = pair.now + SECOND;
    let call_back = |pair: &mut Pair, waiter| {
        let interface = known(5);
        let of = (&interface, 1);
        let server = &mut pair.server;
        let call = server.call_lean(of, b"", &Extras::default(), deadline, waiter);
        call.unwrap();
        carry(&mut pair.server, &mut pair.client).calls
    };
    let accepted = call_back(&mut pair, "accepted").remove(0);
    pair.client.connection.close(CloseReason::DONE, "");
    assert_eq!(call_back(&mut pair, "late"), []);
    answer(&mut pair.client, accepted.caller, b"done");
    let told = carry(&mut pair.client, &mut pair.server).told;
    let expected = [
        "closing behind Some(0): it needs the connection no longer; not begun: [\"late\"]",
        "accepted: done",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_client_of_onc_rpc_that_closes_starts_no_further_calls() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "before");
    pair.client.connection.close(CloseReason::DONE, "not said");
    let template = CallTemplate::new(300, 5, &Credential::None);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let started = client.call_onc(&template, 1, b"", deadline, "late");
    assert_eq!(started, Err(StartError::Closing));
    let call = pair.serve().remove(0);
    pair.answer(call.caller, b"answered");
    assert_eq!(pair.take_answers(), ["before: answered"]);
}
