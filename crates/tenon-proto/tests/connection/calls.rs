//! The calling end: numbers, answers, exceptions, cancellations, deadlines, limits, and the loss of the connection.

use std::collections::HashSet;
use std::time::Instant;

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{
    CallDraft, CallTimeout, Caller, Connection, Event, OutgoingCounters, StartError, WireProtocol,
};
use tenon_proto::lean::{ByteOrder, Exception, Extras, Status};
use tenon_proto::onc::auth::{AuthStat, Credential};
use tenon_proto::onc::message::{CallTemplate, Refused};
use tenon_wire::Buffer;

use crate::common::{Random, record, words};
use crate::ends::{self, FIRST_CALL};
use crate::fields::Field::Bytes;
use crate::fields::{bytes, head, kinds};
use crate::pair::{CALLS_MAX, Pair, SECOND, client_config, known, server_config, take_in, waiters};

const ORDER: ByteOrder = ByteOrder::Big;
const PROTOCOLS: [WireProtocol; 2] = [WireProtocol::Onc, WireProtocol::Lean];

/// A pair that speaks this protocol and has shaken hands, if it does.
fn pair(protocol: WireProtocol) -> Pair {
    match protocol {
        WireProtocol::Onc => Pair::onc(),
        WireProtocol::Lean => Pair::lean(ByteOrder::Little, ORDER),
    }
}

/// Makes calls that the server has and does not answer.
fn calls(pair: &mut Pair, protocol: WireProtocol, waiters: &[&'static str]) -> Vec<Caller> {
    for waiter in waiters {
        match protocol {
            WireProtocol::Onc => pair.call_onc(b"", waiter),
            WireProtocol::Lean => pair.call(&known(5), 1, b"", waiter),
        };
    }
    let callers: Vec<Caller> = pair.serve().iter().map(|call| call.caller).collect();
    assert_eq!(callers.len(), waiters.len());
    pair.take_answers();
    callers
}

/// Tries to start a lean call.
fn start(pair: &mut Pair) -> Result<u32, StartError> {
    let interface = known(5);
    let deadline = pair.now + SECOND;
    let of = (&interface, 1);
    let client = &mut pair.client;
    let call = client.call_lean(of, b"", &Extras::default(), deadline, "more")?;
    Ok(call.number)
}

/// A record of these words.
fn record_of(message: &[u32]) -> Vec<u8> {
    record(&words(message))
}

fn counters(pair: &Pair) -> OutgoingCounters {
    pair.client.connection.outgoing_counters()
}

// ---- Answers ----

#[test]
fn answers_find_their_calls_in_any_order() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol);
        let callers = calls(&mut pair, protocol, &["first", "second", "third"]);
        for (index, results) in [(1, b"2"), (2, b"3"), (0, b"1")] {
            pair.answer(callers[index], results);
        }
        assert_eq!(pair.take_answers(), ["second: 2", "third: 3", "first: 1"]);
        assert_eq!(pair.client.connection.in_flight(), 0);
        assert_eq!(counters(&pair).successes, 3);
    }
}

#[test]
fn every_exception_reaches_the_caller() {
    let cases = [
        (
            Exception::new(Status::FAILED, "no disk"),
            "call failed: the service failed: no disk",
        ),
        (
            Exception {
                details: b"123",
                ..Exception::new(Status::RAISED, "")
            },
            "call failed: the procedure raised an error (123)",
        ),
    ];
    for (exception, told) in cases {
        let mut pair = pair(WireProtocol::Lean);
        let caller = calls(&mut pair, WireProtocol::Lean, &["call"])[0];
        pair.refuse(caller, &exception);
        assert_eq!(pair.take_answers(), [told]);
        assert_eq!(counters(&pair).refusals, 1);
    }
}

#[test]
fn the_message_of_an_exception_is_cut_at_4096_bytes() {
    let mut pair = pair(WireProtocol::Lean);
    let caller = calls(&mut pair, WireProtocol::Lean, &["call"])[0];
    let long = "x".repeat(5000);
    pair.refuse(caller, &Exception::new(Status::FAILED, &long));
    let told = format!("call failed: the service failed: {}", &long[..4096]);
    assert_eq!(pair.take_answers(), [told]);
}

#[test]
fn every_refusal_of_onc_rpc_reaches_the_caller_with_its_exact_status() {
    let cases: [(&[u32], Refused); 7] = [
        (&[1, 0, 2, 3], Refused::RpcMismatch { low: 2, high: 3 }),
        (&[1, 1, 5], Refused::Authentication(AuthStat::TOO_WEAK)),
        (&[0, 0, 0, 1], Refused::ProgramUnavailable),
        (
            &[0, 0, 0, 2, 2, 4],
            Refused::ProgramMismatch { low: 2, high: 4 },
        ),
        (&[0, 0, 0, 3], Refused::ProcedureUnavailable),
        (&[0, 0, 0, 4], Refused::GarbageArguments),
        (&[0, 0, 0, 5], Refused::SystemError),
    ];
    for (status, refused) in cases {
        let mut pair = pair(WireProtocol::Onc);
        let xid = pair.call_onc(b"", "call").number;
        let reply = record_of(&[&[xid, 1], status].concat());
        let received = take_in(&mut pair.client, &reply).unwrap();
        assert_eq!(received.told, [format!("call refused: {refused}")]);
        assert_eq!(counters(&pair).refusals, 1);
    }
}

#[test]
fn a_verifier_in_a_reply_does_not_hide_its_results() {
    let mut pair = pair(WireProtocol::Onc);
    let xid = pair.call_onc(b"", "call").number;
    let reply = record_of(&[xid, 1, 0, 2, 5, 0x6162_6364, 0x6500_0000, 0, 0x6162_6364]);
    let received = take_in(&mut pair.client, &reply).unwrap();
    assert_eq!(received.told, ["call: abcd"]);
}

#[test]
fn unsolicited_and_second_replies_are_counted_and_ignored() {
    let mut onc = pair(WireProtocol::Onc);
    let xid = onc.call_onc(b"", "call").number;
    let mut told = Vec::new();
    for number in [xid + 1, xid + 16, xid, xid] {
        let reply = record_of(&[number, 1, 0, 0, 0, 0]);
        told.extend(take_in(&mut onc.client, &reply).unwrap().told);
    }
    assert_eq!(told, ["call: "]);
    assert_eq!(counters(&onc).unmatched, 3);

    let mut lean = pair(WireProtocol::Lean);
    calls(&mut lean, WireProtocol::Lean, &["call"]);
    let mut reply = bytes(ORDER, &head(kinds::REPLY, 99, 0, 1, 4));
    reply.extend(bytes(ORDER, &[Bytes(b"what\0\0\0\0")]));
    let received = take_in(&mut lean.client, &reply).unwrap();
    assert_eq!(received.told, [""; 0]);
    assert_eq!(counters(&lean).unmatched, 1);
}

#[test]
fn the_owner_may_find_a_reply_itself() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol);
        let number = calls(&mut pair, protocol, &["call"])[0].number();
        let connection = &mut pair.client.connection;
        assert!(!connection.finish_call(number, |waiter| *waiter == "other"));
        assert_eq!(connection.in_flight(), 1);
        assert!(connection.finish_call(number, |waiter| *waiter == "call"));
        assert!(!connection.finish_call(number, |_| true));
        assert_eq!((connection.in_flight(), counters(&pair).successes), (0, 1));
    }
}

// ---- Cancellations and deadlines ----

#[test]
fn a_cancelled_lean_call_is_reported_to_the_server_and_its_answer_ignored() {
    let mut pair = pair(WireProtocol::Lean);
    let callers = calls(&mut pair, WireProtocol::Lean, &["cancelled", "other"]);
    let id = callers[0].number();
    let cancelled = pair.client.connection.cancel_call(id).unwrap();
    assert_eq!((cancelled.number, cancelled.waiter), (id, "cancelled"));
    assert!(cancelled.was_sent && cancelled.unsent.is_none());
    assert!(pair.client.connection.cancel_call(id).is_none());
    let sent = pair.client.transmit_all();
    let cancel = head(kinds::CANCEL, id, 0, 0, 0);
    assert_eq!(sent, bytes(ByteOrder::Little, &cancel));
    pair.answer(callers[0], b"late");
    pair.answer(callers[1], b"in time");
    assert_eq!(pair.take_answers(), ["other: in time"]);
    let counters = counters(&pair);
    assert_eq!((counters.cancellations, counters.unmatched), (1, 1));
}

#[test]
fn a_cancelled_call_of_onc_rpc_is_given_up_in_silence() {
    let mut pair = pair(WireProtocol::Onc);
    let callers = calls(&mut pair, WireProtocol::Onc, &["cancelled"]);
    let connection = &mut pair.client.connection;
    assert!(connection.cancel_call(callers[0].number()).is_some());
    assert_eq!(pair.client.transmit_all(), []);
    pair.answer(callers[0], b"late");
    assert_eq!(pair.take_answers(), [""; 0]);
    assert_eq!(counters(&pair).unmatched, 1);
}

#[test]
fn a_call_whose_time_ran_out_is_given_up() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol);
        let id = calls(&mut pair, protocol, &["call"])[0].number();
        let (now, deadline) = (pair.now, pair.now + SECOND);
        let connection = &mut pair.client.connection;
        assert_eq!(connection.call_deadline(id), Some(deadline));
        assert_eq!(connection.poll_timeout(), Some(deadline));
        let early = connection.handle_call_timeout(id, now);
        assert!(matches!(early, Some(CallTimeout::Wait(at)) if at == deadline));
        let Some(CallTimeout::Expired(call)) = connection.handle_call_timeout(id, deadline) else {
            panic!("its time has run out");
        };
        assert_eq!(
            (call.number, call.waiter, call.was_sent),
            (id, "call", true)
        );
        assert!(connection.handle_call_timeout(id, deadline).is_none());
        assert_eq!(connection.call_deadline(id), None);
        assert_eq!(connection.poll_timeout(), None);
        let says_so = !pair.client.transmit_all().is_empty();
        assert_eq!(says_so, protocol == WireProtocol::Lean);
        assert_eq!(counters(&pair).timeouts, 1);
    }
}

#[test]
fn late_calls_are_found_one_after_the_other() {
    let mut pair = pair(WireProtocol::Lean);
    let began = pair.now;
    for (seconds, waiter) in [(3, "third"), (1, "first"), (2, "second")] {
        pair.now = began + seconds * SECOND;
        pair.call(&known(5), 1, b"", waiter);
    }
    let connection = &mut pair.client.connection;
    for (seconds, waiter) in [(2, "first"), (3, "second"), (4, "third")] {
        let due = began + seconds * SECOND;
        assert_eq!(connection.poll_timeout(), Some(due));
        assert!(connection.poll_late_call(due - SECOND / 2).is_none());
        let call = connection.poll_late_call(due).unwrap();
        assert_eq!(call.waiter, waiter);
        assert!(connection.poll_late_call(due).is_none());
    }
    assert_eq!(counters(&pair).timeouts, 3);
}

#[test]
fn calls_that_were_given_up_count_until_the_server_has_answered_them() {
    let mut pair = pair(WireProtocol::Lean);
    let limit = CALLS_MAX;
    let callers = calls(&mut pair, WireProtocol::Lean, &vec!["call"; limit]);
    let full = Err(StartError::TooManyCalls { limit });
    assert_eq!(start(&mut pair), full);
    let id = callers[0].number();
    pair.client.connection.cancel_call(id).unwrap();
    assert_eq!(start(&mut pair), full);
    pair.answer(callers[0], b"");
    assert_eq!(pair.take_answers(), [""; 0]);
    assert!(start(&mut pair).is_ok());
    assert_eq!(start(&mut pair), full);
}

#[test]
fn a_call_that_was_not_sent_is_given_up_without_a_trace() {
    let mut pair = pair(WireProtocol::Lean);
    let limit = CALLS_MAX;
    calls(&mut pair, WireProtocol::Lean, &vec!["call"; limit - 1]);
    let id = start(&mut pair).unwrap();
    let full = Err(StartError::TooManyCalls { limit });
    assert_eq!(start(&mut pair), full);
    let abandoned = pair.client.connection.cancel_call(id).unwrap();
    assert!(!abandoned.was_sent);
    assert_eq!(pair.client.transmit_all(), []);
    assert!(start(&mut pair).is_ok(), "the server has nothing to answer");
}

// ---- Numbers ----

#[test]
fn numbers_wrap_around_and_none_in_flight_is_taken() {
    let mut random = Random(7);
    let config = client_config(ByteOrder::NATIVE);
    let first = u32::MAX - 100;
    let (mut connection, _) = Connection::client(config, WireProtocol::Onc, first);
    let template = CallTemplate::new(300, 5, &Credential::None);
    let deadline = Instant::now() + SECOND;
    let mut in_flight = HashSet::new();
    for _ in 0..10_000 {
        let mut message = Buffer::default();
        template.begin(&mut message, 1);
        let call = connection.start_call(&CallDraft::Onc, &mut message, deadline, ());
        let xid = call.unwrap().number;
        assert_eq!(message.as_slice()[4..8], xid.to_be_bytes());
        assert!(in_flight.insert(xid), "{xid} is in flight");
        if in_flight.len() > random.below(200) {
            let done: Vec<u32> = in_flight.iter().copied().take(random.below(100)).collect();
            for xid in done {
                assert!(connection.finish_call(xid, |()| true));
                in_flight.remove(&xid);
            }
        }
        assert_eq!(connection.in_flight(), in_flight.len());
    }
}

#[test]
fn numbers_of_lean_calls_ascend_beside_one_that_stays_in_flight() {
    let mut pair = pair(WireProtocol::Lean);
    let long = start(&mut pair).unwrap();
    let mut last = long;
    for _ in 0..1000 {
        let id = start(&mut pair).unwrap();
        assert!((1..1 << 31).contains(&id.wrapping_sub(last)));
        pair.client.connection.cancel_call(id).unwrap();
        last = id;
    }
    assert_eq!(pair.client.connection.in_flight(), 1);
    assert!(pair.client.connection.cancel_call(last).is_none());
    assert_eq!(long, FIRST_CALL);
}

/// Answered in another order, some of them cancelled before.
#[test]
fn thousands_of_calls_in_flight_are_told_apart() {
    const CALLS: u32 = 8000;
    for protocol in PROTOCOLS {
        let mut random = Random(11);
        let granting = ConnectionConfig {
            incoming_calls_max: CALLS as usize,
            ..server_config(ORDER)
        };
        let (mut client, mut server) = ends::pair(protocol, client_config(ORDER), granting);
        let deadline = Instant::now() + SECOND;
        let mut callers = Vec::new();
        for waiter in 0..CALLS {
            if waiter == 1 {
                // What the server grants is known with its first answer.
                deliver(&mut server, &mut client, |_| {});
            }
            let arguments = waiter.to_be_bytes();
            client.call(protocol, &arguments, deadline, waiter).unwrap();
            deliver(&mut client, &mut server, |event| {
                if let Event::Called(call) = event {
                    callers.push((call.caller, call.arguments.to_vec()));
                }
            });
        }
        assert_eq!((callers.len(), client.connection.in_flight()), (8000, 8000));
        let mut cancelled = HashSet::new();
        for _ in 0..500 {
            let number = FIRST_CALL + random.below(CALLS as usize) as u32;
            let call = client.connection.cancel_call(number);
            cancelled.extend(call.map(|call| call.waiter));
        }
        let mut answered = HashSet::new();
        while !callers.is_empty() {
            let (caller, arguments) = callers.swap_remove(random.below(callers.len()));
            let mut reply = ends::End::<u32>::reply(caller, &arguments);
            server.connection.push_reply(&mut reply);
            deliver(&mut server, &mut client, |event| {
                if let Event::Answered(answer) = event {
                    assert_eq!(answer.outcome, Ok(&answer.waiter.to_be_bytes()[..]));
                    assert!(answered.insert(answer.waiter));
                }
            });
        }
        assert_eq!(answered.len() + cancelled.len(), CALLS as usize);
        assert!(answered.is_disjoint(&cancelled));
        assert_eq!(client.connection.in_flight(), 0);
    }
}

/// Brings to an end what the other has to say.
fn deliver(from: &mut ends::End, to: &mut ends::End, mut each: impl FnMut(Event<'_, u32>)) {
    let bytes = from.transmit_all();
    let mut at = 0;
    while at < bytes.len() {
        at += to.receive(&bytes[at..]).unwrap();
        while let Some(frame) = to.receiver.next_frame().unwrap() {
            each(to.connection.handle_frame(frame, &to.services).unwrap());
        }
    }
}

// ---- Calls that cannot be started, and the loss of the connection ----

#[test]
fn a_call_is_not_started_over_a_connection_of_the_other_protocol() {
    let mut onc = pair(WireProtocol::Onc);
    assert_eq!(start(&mut onc), Err(StartError::OtherProtocol));
    let mut lean = pair(WireProtocol::Lean);
    let template = CallTemplate::new(300, 5, &Credential::None);
    let deadline = lean.now + SECOND;
    let client = &mut lean.client;
    let started = client.call_onc(&template, 1, b"", deadline, "call");
    assert_eq!(started, Err(StartError::OtherProtocol));
    let mut unknown = Pair::onc();
    let deadline = unknown.now + SECOND;
    let server = &mut unknown.server;
    let started = server.call_onc(&template, 1, b"", deadline, "call");
    assert_eq!(started, Err(StartError::OtherProtocol), "not known yet");
}

/// Errors are returned before anything is changed: the next call has the number that this one would have had.
#[test]
fn a_call_that_is_not_started_leaves_no_trace() {
    let order = ByteOrder::NATIVE;
    let mut pair = Pair::new(
        WireProtocol::Lean,
        client_config(order),
        server_config(order),
    );
    let interface = known(5);
    let of = (&interface, 1);
    let deadline = pair.now + SECOND;
    let extras = Extras::default();
    let client = &mut pair.client;
    let large = client.call_lean(of, &[0; 70_000], &extras, deadline, "large");
    assert!(matches!(large, Err(StartError::AwaitsPreamble { .. })));
    assert_eq!(client.transmit_all().len(), 32, "no service is asked for");
    assert_eq!(start(&mut pair), Ok(FIRST_CALL));
}

#[test]
fn when_the_connection_is_lost_every_waiter_is_found() {
    for protocol in PROTOCOLS {
        let mut pair = pair(protocol);
        calls(&mut pair, protocol, &["a", "b", "c"]);
        let mut abandoned = pair.client.connection.abandon_all();
        abandoned.sort_unstable_by_key(|call| call.number);
        assert_eq!(waiters(&abandoned), ["a", "b", "c"]);
        assert!(abandoned.iter().all(|call| call.was_sent));
        assert_eq!(pair.client.connection.in_flight(), 0);
        assert_eq!(counters(&pair).cancellations, 3);
        if protocol == WireProtocol::Lean {
            assert_eq!(start(&mut pair), Err(StartError::Closing));
        }
    }
}

#[test]
fn what_is_said_to_a_server_that_is_lost_is_not_kept() {
    let mut pair = pair(WireProtocol::Lean);
    calls(&mut pair, WireProtocol::Lean, &["sent"]);
    start(&mut pair).unwrap();
    pair.client.connection.ping();
    let mut abandoned = pair.client.connection.abandon_all();
    abandoned.sort_unstable_by_key(|call| call.number);
    let was_sent: Vec<bool> = abandoned.iter().map(|call| call.was_sent).collect();
    assert_eq!(was_sent, [true, false]);
    assert_eq!(pair.client.transmit_all(), []);
    assert_eq!(pair.client.connection.queued_bytes(), 0);
}

#[test]
fn a_ping_is_answered_by_its_number() {
    let mut pair = pair(WireProtocol::Lean);
    let client = &mut pair.client.connection;
    assert_eq!((client.ping(), client.ping()), (1, 2));
    assert!(pair.serve().is_empty());
    assert_eq!(pair.take_answers(), ["pong 1", "pong 2"]);
    assert_eq!(pair.server.connection.incoming_counters().pings, 2);
    assert_eq!(pair.server.connection.ping(), 1);
    assert_eq!(pair.take_answers(), [""; 0]);
    let sent = pair.client.transmit_all();
    let received = take_in(&mut pair.server, &sent).unwrap();
    assert_eq!(received.told, ["pong 1"]);
}
