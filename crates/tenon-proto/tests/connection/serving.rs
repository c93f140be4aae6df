//! The called end of the lean protocol: which calls reach a service, which are refused and how exactly, and what is
//! known of calls that are carried out elsewhere.

use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    Caller, Connection, ConnectionError, DeferredCallState, DeferredId, IncomingCounters,
    TransmitBatch,
};
use tenon_proto::lean::{ByteOrder, Exception, Extension, Extras, Fault, MESSAGE_MIN, Status};

use crate::fields::Field::{Double, Half, Word};
use crate::fields::{bytes, head, kinds};
use crate::pair::{Pair, SECOND, client_config, known, server_config, take_in};

const ORDER: ByteOrder = ByteOrder::Big;

fn pair() -> Pair {
    Pair::lean(ByteOrder::Little, ORDER)
}

/// What a client is told that calls procedure `procedure` with `extras`. The server returns arguments.
fn echo(procedure: u16, arguments: &[u8], extras: &Extras<'_>) -> Vec<String> {
    let mut pair = pair();
    pair.call_with(&known(5), procedure, arguments, extras, "call");
    for call in pair.serve() {
        pair.answer(call.caller, &call.arguments);
    }
    pair.take_answers()
}

// ---- Which calls reach a service ----

#[test]
fn procedure_0_is_answered_without_the_service() {
    let extras = Extras::default();
    assert_eq!(echo(0, b"arguments", &extras), ["call: "]);
    assert_eq!(echo(1, b"arguments", &extras), ["call: arguments"]);
}

#[test]
fn a_call_whose_time_is_over_is_not_begun() {
    let time_left = |micros| Extras {
        time_left: Some(Duration::from_micros(micros)),
        ..Extras::default()
    };
    let refused = ["call failed: the time of the call ran out: it had run out when the call came"];
    assert_eq!(echo(1, b"", &time_left(0)), refused);
    assert_eq!(echo(0, b"", &time_left(0)), refused);
    assert_eq!(echo(1, b"", &time_left(1)), ["call: "]);
}

#[test]
fn a_call_with_an_extension_that_must_be_understood_is_refused_and_others_are_skipped() {
    let extension = |kind| Extension {
        kind,
        content: b"abc",
    };
    let with = |extensions: &[Extension<'_>]| {
        let extras = Extras {
            extensions,
            ..Extras::default()
        };
        echo(1, b"arguments", &extras)
    };
    assert_eq!(with(&[extension(0x7fff)]), ["call: arguments"]);
    assert_eq!(with(&[extension(1), extension(4)]), ["call: arguments"]);
    let refused = ["call failed: the peer does not understand what the call demands"];
    assert_eq!(with(&[extension(0x8001)]), refused);
    assert_eq!(with(&[extension(4), extension(0xffff)]), refused);
}

#[test]
fn a_result_over_what_the_client_accepts_becomes_an_exception() {
    let most = MESSAGE_MIN as usize - 16;
    for (size, is_over) in [(most, false), (most + 1, true)] {
        let client = ConnectionConfig {
            receive_max: 0,
            ..client_config(ByteOrder::Little)
        };
        let mut pair = Pair::greeted(client, server_config(ORDER));
        pair.call(&known(5), 1, b"", "call");
        let call = pair.serve().remove(0);
        pair.answer(call.caller, &vec![b'x'; size]);
        let told = pair.take_answers().remove(0);
        if is_over {
            assert_eq!(
                told,
                "call failed: the result is larger than this end takes in: 65544 bytes, where \
                 65536 are the most"
            );
        } else {
            assert_eq!(told.len(), "call: ".len() + size);
        }
    }
}

#[test]
fn a_deadline_counts_from_when_the_call_came() {
    let now = Instant::now();
    for (time_left, micros, deadline) in [
        (SECOND, 1_000_000, Some(now + SECOND)),
        (Duration::MAX, u64::MAX, None),
    ] {
        let mut pair = pair();
        let extras = Extras {
            time_left: Some(time_left),
            ..Extras::default()
        };
        pair.call_with(&known(5), 1, b"", &extras, "call");
        let call = pair.serve().remove(0);
        let expected = Duration::from_micros(micros);
        assert_eq!(call.time_left, Some(expected));
        let found = call.time_left.and_then(|left| now.checked_add(left));
        let is_near = deadline.is_some();
        assert!(found == deadline || !is_near, "however far away");
    }
}

#[test]
fn numbers_of_calls_may_jump_and_wrap_around() {
    let mut pair = Pair::lean(ORDER, ORDER);
    pair.call(&known(5), 1, b"", "to bind the service");
    let mut last = pair.serve()[0].caller.number();
    for ahead in [1_u32, 5, 0x7fff_ffff, 0x7fff_ffff, 3, 1] {
        last = last.wrapping_add(ahead);
        let call = bytes(ORDER, &head(kinds::CALL, last, 0, 1, 0));
        let calls = take_in(&mut pair.server, &call).unwrap().calls;
        assert_eq!(calls[0].caller.number(), last);
    }
}

#[test]
fn the_owner_may_refuse_a_call() {
    let mut pair = pair();
    pair.call(&known(5), 1, b"", "call");
    let Caller::Lean(caller) = pair.serve()[0].caller else {
        panic!("a lean call");
    };
    let exception = Exception::new(Status::OVERLOADED, "come back later");
    pair.server.connection.refuse_call(caller, &exception);
    let told = ["call failed: the peer has too many calls: come back later"];
    assert_eq!(pair.take_answers(), told);
}

#[test]
fn what_is_done_with_calls_is_counted() {
    let mut pair = pair();
    let late = Extras {
        time_left: Some(Duration::ZERO),
        ..Extras::default()
    };
    pair.call(&known(5), 1, b"", "call");
    pair.call(&known(5), 0, b"", "ping");
    pair.call(&known(4), 1, b"", "unbound");
    pair.call_with(&known(5), 1, b"", &late, "late");
    let served = pair.serve();
    let id = served[0].caller.number();
    pair.client.connection.cancel_call(id).unwrap();
    pair.serve();
    let expected = IncomingCounters {
        calls: 1,
        pings: 1,
        // The service, its call, and the late one.
        refusals: 3,
        cancellations: 1,
        violations: 0,
    };
    assert_eq!(pair.server.connection.incoming_counters(), expected);
}

// ---- Peers that ask for more than they take ----

#[test]
fn pings_without_end_are_not_answered_without_end() {
    let mut pair = pair();
    let ping = bytes(ORDER, &head(kinds::PING, 1, 0, 0, 0));
    let error = take_in(&mut pair.client, &ping.repeat(5000)).unwrap_err();
    let ConnectionError::Lean(violation) = error else {
        panic!("{error}");
    };
    assert_eq!(violation.fault, Fault::Flood);
    assert!(pair.client.transmit_all().len() < 70_000);
}

/// A client that is granted many calls may have many answers, and ask in the end whether the server is there.
#[test]
fn a_ping_behind_many_short_answers_is_no_flood() {
    let mut pair = Pair::lean(ORDER, ORDER);
    pair.call(&known(5), 0, b"", "to bind the service");
    pair.serve();
    let calls = (2..6002).map(|id| bytes(ORDER, &head(kinds::CALL, id, 0, 0, 0)));
    let mut stream: Vec<u8> = calls.flatten().collect();
    stream.extend(bytes(ORDER, &head(kinds::PING, 7, 0, 0, 0)));
    take_in(&mut pair.server, &stream).unwrap();
    let sent = pair.server.transmit_all();
    let pong = bytes(ORDER, &head(kinds::PONG, 7, 0, 0, 0));
    assert!(sent.ends_with(&pong));
}

/// The peer reads nothing: whatever is tried to be sent comes back.
#[test]
fn pings_whose_answers_are_put_back_are_a_flood_all_the_same() {
    let mut pair = pair();
    let ping = bytes(ORDER, &head(kinds::PING, 1, 0, 0, 0));
    let mut batch = TransmitBatch::default();
    let mut rounds = 0;
    while take_in(&mut pair.client, &ping.repeat(1000)).is_ok() {
        let client = &mut pair.client.connection;
        assert!(client.poll_transmit(&mut batch));
        assert!(client.put_back(&mut batch));
        rounds += 1;
        assert!(rounds < 100);
    }
    assert!(pair.client.connection.queued_bytes() < 70_000);
}

#[test]
fn pings_are_answered_again_once_answers_were_sent() {
    let mut pair = pair();
    let ping = bytes(ORDER, &head(kinds::PING, 1, 0, 0, 0));
    for _ in 0..10 {
        take_in(&mut pair.client, &ping.repeat(4000)).unwrap();
        assert_eq!(pair.client.transmit_all().len(), 4000 * 16);
    }
}

/// The owner takes no further calls when too many bytes wait to be sent.
#[test]
fn answers_that_no_service_gives_count_among_the_bytes_that_wait() {
    let mut pair = Pair::lean(ORDER, ORDER);
    pair.call(&known(5), 0, b"", "to bind the service");
    pair.serve();
    pair.server.transmit_all();
    assert_eq!(pair.server.connection.queued_bytes(), 0);
    let calls = (2..1002).map(|id| bytes(ORDER, &head(kinds::CALL, id, 0, 0, 0)));
    take_in(&mut pair.server, &calls.flatten().collect::<Vec<u8>>()).unwrap();
    assert_eq!(pair.server.connection.queued_bytes(), 16 * 1000);
    let unbound = (2000..2010).map(|id| bytes(ORDER, &head(kinds::CALL, id, 7, 1, 0)));
    take_in(&mut pair.server, &unbound.flatten().collect::<Vec<u8>>()).unwrap();
    let waiting = 16 * 1000 + 24 * 10;
    assert_eq!(pair.server.connection.queued_bytes(), waiting);
    assert_eq!(pair.server.transmit_all().len(), waiting);
    assert_eq!(pair.server.connection.queued_bytes(), 0);
}

// ---- Calls that are carried out elsewhere ----

/// A call of this number, as its server knows it.
fn caller(pair: &mut Pair) -> Caller {
    pair.call(&known(5), 1, b"", "call");
    pair.serve()[0].caller
}

fn state(connection: &Connection<&'static str>, id: DeferredId) -> Option<DeferredCallState> {
    connection.deferred_state(id)
}

#[test]
fn deferred_calls_are_known_until_they_are_finished() {
    let server = ConnectionConfig {
        incoming_calls_max: 3,
        ..server_config(ORDER)
    };
    let mut pair = Pair::greeted(client_config(ORDER), server);
    let now = pair.now;
    let callers: Vec<Caller> = (0..4).map(|_| caller(&mut pair)).collect();
    let server = &mut pair.server.connection;
    let first = server.defer(&callers[0], None).unwrap();
    let second = server.defer(&callers[1], Some(now + 2 * SECOND)).unwrap();
    let third = server.defer(&callers[2], Some(now + SECOND)).unwrap();
    assert_eq!(server.defer(&callers[3], None), None, "three are granted");
    assert_eq!(server.deferred(), 3);

    assert_eq!(server.poll_timeout(), Some(now + SECOND));
    assert_eq!(server.poll_expired(now), None);
    assert_eq!(server.poll_expired(now + SECOND), Some(third));
    assert_eq!(server.poll_expired(now + SECOND), None, "said once");
    assert_eq!(server.poll_timeout(), Some(now + 2 * SECOND));
    let states = [first, second, third].map(|id| state(server, id));
    let (awaited, expired) = (
        Some(DeferredCallState::Awaited),
        Some(DeferredCallState::Expired),
    );
    assert_eq!(states, [awaited, awaited, expired]);

    let number = callers[1].number();
    pair.client.connection.cancel_call(number).unwrap();
    let cancel = pair.client.transmit_all();
    let told = take_in(&mut pair.server, &cancel).unwrap().told;
    assert_eq!(told, ["cancelled"]);
    let server = &mut pair.server.connection;
    assert_eq!(server.poll_timeout(), None, "it is not waited for");
    assert_eq!(
        server.finish_deferred(second),
        Some(DeferredCallState::Cancelled)
    );
    assert_eq!(server.finish_deferred(second), None);
    assert_eq!(state(server, second), None);
    assert_eq!(server.finish_deferred(third), expired);
    assert!(server.defer(&callers[3], None).is_some());
    assert_eq!(server.finish_deferred(first), awaited);
}

/// The number of a call comes round while the call is still carried out: the second one is to be refused.
#[test]
fn a_call_with_the_number_of_a_deferred_one_is_not_deferred() {
    let mut pair = Pair::lean(ORDER, ORDER);
    let first = caller(&mut pair);
    let number = first.number();
    let id = pair.server.connection.defer(&first, None).unwrap();
    let mut last = number;
    for _ in 0..3 {
        // Three steps that are each ahead, around the circle.
        last = match last.wrapping_sub(number) {
            0 => number.wrapping_add(0x7fff_ffff),
            0x7fff_ffff => number.wrapping_add(0xffff_fffe),
            _ => number,
        };
        let call = bytes(ORDER, &head(kinds::CALL, last, 0, 1, 0));
        let calls = take_in(&mut pair.server, &call).unwrap().calls;
        let deferred = pair.server.connection.defer(&calls[0].caller, None);
        assert_eq!(deferred.is_none(), last == number, "call {last}");
    }
    assert_eq!(last, number);
    let server = &mut pair.server.connection;
    assert_eq!(server.finish_deferred(id), Some(DeferredCallState::Awaited));
    assert!(server.defer(&first, None).is_some());
}

#[test]
fn a_cancellation_of_a_call_that_is_not_deferred_means_nothing() {
    let mut pair = pair();
    let number = caller(&mut pair).number();
    pair.client.connection.cancel_call(number).unwrap();
    assert!(pair.serve().is_empty());
    let counters = pair.server.connection.incoming_counters();
    assert_eq!(counters.cancellations, 1);
}

#[test]
fn calls_of_onc_rpc_with_the_same_xid_are_deferred_side_by_side() {
    let mut pair = Pair::onc();
    pair.call_onc(b"", "call");
    let caller = pair.serve()[0].caller;
    let server = &mut pair.server.connection;
    let ids = [0, 1].map(|_| server.defer(&caller, None).unwrap());
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        assert_eq!(server.finish_deferred(id), Some(DeferredCallState::Awaited));
    }
}

/// Words in front of the body are read in the order of the sender.
#[test]
fn the_time_of_a_call_is_read_in_its_senders_order() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut pair = Pair::lean(order, ByteOrder::NATIVE);
        let number = caller(&mut pair).number() + 1;
        let fields = [
            Word(0xd07e_0101),
            Word(number),
            Half(0),
            Half(1),
            Word(8),
            Double(123_456),
        ];
        let calls = take_in(&mut pair.server, &bytes(order, &fields)).unwrap();
        let time_left = calls.calls[0].time_left;
        assert_eq!(time_left, Some(Duration::from_micros(123_456)));
    }
}
