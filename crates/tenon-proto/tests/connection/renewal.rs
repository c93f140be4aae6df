//! A connection that goes on over another stream when the one before is lost.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{StartError, WireProtocol};
use tenon_proto::lean::{ByteOrder, CloseReason, Extras, Features};

use crate::ends::FIRST_CALL;
use crate::pair::{CALLS_MAX, Pair, SECOND, answer, carry, client_config, known, server_config};

const ORDER: ByteOrder = ByteOrder::NATIVE;

/// A pair whose client accepts calls, too.
fn pair() -> Pair {
    let client = ConnectionConfig {
        incoming_calls_max: 16,
        ..client_config(ORDER)
    };
    Pair::greeted(client, server_config(ORDER))
}

fn start(pair: &mut Pair) -> Result<u32, StartError> {
    let interface = known(5);
    let of = (&interface, 1);
    let deadline = pair.now + SECOND;
    let client = &mut pair.client;
    let call = client.call_lean(of, b"again", &Extras::default(), deadline, "again")?;
    Ok(call.number)
}

#[test]
fn a_renewed_lean_connection_begins_with_preamble_and_bindings() {
    let mut pair = pair();
    for waiter in ["lost", "given up"] {
        pair.call(&known(5), 1, b"", waiter);
    }
    let calls = pair.serve();
    pair.client.connection.cancel_call(calls[1].caller.number());
    pair.client.connection.close(CloseReason::DONE, "");
    assert_eq!(pair.client.connection.abandon_all().len(), 1);
    pair.renew();
    assert_eq!(pair.client.connection.peer(), None);
    assert_eq!(pair.client.connection.features(), Features::default());

    // No call is entrusted to a connection that no server may have accepted.
    let early = start(&mut pair);
    assert!(
        matches!(early, Err(StartError::AwaitsPreamble { .. })),
        "{early:?}"
    );
    assert!(pair.serve().is_empty() && pair.take_answers().is_empty());
    let number = start(&mut pair).unwrap();
    assert_eq!(number, FIRST_CALL + 2, "numbers go on");
    let call = pair.serve().remove(0);
    pair.answer(call.caller, &call.arguments);
    assert_eq!(pair.take_answers(), ["again: again"]);
    assert_eq!(pair.client.connection.features(), Features::all());
    let counters = pair.client.connection.outgoing_counters();
    assert_eq!((counters.calls, counters.successes), (3, 1));
}

#[test]
fn a_renewed_connection_of_onc_rpc_goes_on_at_once() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "lost");
    pair.client.transmit_all();
    assert_eq!(pair.client.connection.abandon_all().len(), 1);
    pair.renew();
    assert_eq!(pair.client.connection.protocol(), Some(WireProtocol::Onc));
    let number = pair.call_onc(b"again", "again").number;
    assert_eq!(number, FIRST_CALL + 1);
    let call = pair.serve().remove(0);
    pair.answer(call.caller, &call.arguments);
    assert_eq!(pair.take_answers(), ["again: again"]);
}

/// The answers that the server before has kept back will never come.
#[test]
fn calls_that_were_given_up_do_not_count_against_the_next_server() {
    let mut pair = pair();
    for _ in 0..CALLS_MAX {
        pair.call(&known(5), 1, b"", "call");
    }
    for call in pair.serve() {
        let number = call.caller.number();
        pair.client.connection.cancel_call(number).unwrap();
    }
    let limit = CALLS_MAX;
    assert_eq!(start(&mut pair), Err(StartError::TooManyCalls { limit }));
    pair.renew();
    assert!(pair.serve().is_empty() && pair.take_answers().is_empty());
    assert!(start(&mut pair).is_ok());
}

#[test]
fn what_waited_to_be_sent_is_not_sent_over_the_next_connection() {
    let mut pair = pair();
    pair.call(&known(5), 1, b"", "not sent");
    pair.client.connection.ping();
    let [call] = &pair.client.connection.abandon_all()[..] else {
        panic!("a call");
    };
    assert!(!call.was_sent);
    pair.renew();
    assert_eq!(pair.client.transmit_all().len(), 32, "the preamble");
}

#[test]
fn a_deferred_call_of_the_lost_connection_is_not_taken_for_one_of_the_next() {
    let mut pair = pair();
    let mut deferred = Vec::new();
    for round in 0..2 {
        let interface = known(5);
        let of = (&interface, 1);
        let deadline = pair.now + SECOND;
        let server = &mut pair.server;
        let call = server.call_lean(of, b"", &Extras::default(), deadline, "back");
        assert_eq!(call.unwrap().number, 0, "both servers begin with it");
        let calls = carry(&mut pair.server, &mut pair.client).calls;
        let client = &mut pair.client.connection;
        deferred.push(client.defer(&calls[0].caller, None).unwrap());
        if round == 1 {
            assert_eq!(client.finish_deferred(deferred[0]), None);
            assert!(client.finish_deferred(deferred[1]).is_some());
            answer(&mut pair.client, calls[0].caller, b"done");
            let told = carry(&mut pair.client, &mut pair.server).told;
            assert_eq!(told, ["back: done"]);
            return;
        }
        assert_eq!(client.abandon_all().len(), 0);
        pair.renew();
        assert_eq!(pair.client.connection.deferred(), 0);
        pair.serve();
        pair.take_answers();
    }
}

#[test]
#[should_panic(expected = "calls are in flight")]
fn a_connection_with_calls_in_flight_is_not_renewed() {
    let mut pair = pair();
    pair.call(&known(5), 1, b"", "call");
    pair.client.connection.renew(std::time::Instant::now());
}
