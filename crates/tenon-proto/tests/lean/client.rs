//! The client's bookkeeping: numbers, answers, deadlines, cancellations, goodbyes, and a server
//! that does not keep to the protocol.

use std::collections::HashSet;

use tenon_proto::lean::client::{ClientEngine, NotStarted, Outgoing, Timeout};
use tenon_proto::lean::server::{Caller, Received, Reply};
use tenon_proto::lean::{ByteOrder, Exception, Fault, Kind, Reason, SYNC, Status, Violation};
use tenon_wire::Buffer;

use crate::support::F::{self, B, D, H, W};
use crate::support::{ORDERS, Pair, SECOND, bytes, client_preamble, known, server_preamble};

fn pair() -> Pair {
    Pair::new(ByteOrder::Little, ByteOrder::Big)
}

/// Makes calls with these waiters, none of which is answered yet.
fn calls(pair: &mut Pair, waiters: &[&'static str]) -> Vec<Caller> {
    let mut callers = Vec::new();
    for waiter in waiters {
        let (_, call) = pair.call(&known(5), 1, b"", waiter);
        pair.send_to_server(&call, |_, received, _| match received {
            Received::Call(call) => callers.push(call.caller),
            other => panic!("{other:?}"),
        })
        .unwrap();
    }
    pair.take_answers();
    callers
}

fn answer(pair: &mut Pair, caller: Caller, results: &[u8]) {
    let reply = Reply::begin(&mut pair.out, caller);
    pair.out.extend(results);
    reply.seal(&mut pair.out);
}

#[test]
fn answers_find_their_calls_in_any_order() {
    let mut pair = pair();
    let callers = calls(&mut pair, &["first", "second", "third"]);
    answer(&mut pair, callers[1], b"2");
    answer(&mut pair, callers[2], b"3");
    answer(&mut pair, callers[0], b"1");
    assert_eq!(pair.take_answers(), ["second: 2", "third: 3", "first: 1"]);
    assert_eq!(pair.client.in_flight(), 0);
    assert_eq!(pair.client.counters().successes, 3);
}

#[test]
fn every_exception_reaches_the_caller_in_words() {
    let cases = [
        (
            Status::FAILED,
            "no disk",
            "call failed: the service failed: no disk",
        ),
        (Status::FORBIDDEN, "", "call failed: the caller may not"),
        (Status(777), "odd", "call failed: status 777: odd"),
        (
            Status::FAILED,
            "\u{1b}[2Jgone\nOK: für dich",
            "call failed: the service failed: \\u{1b}[2Jgone\\nOK: für dich",
        ),
    ];
    for (status, message, told) in cases {
        let mut pair = pair();
        let caller = calls(&mut pair, &["call"])[0];
        let reply = Reply::begin(&mut pair.out, caller);
        let reply = reply.refuse(&mut pair.out, &Exception::new(status, message));
        reply.seal(&mut pair.out);
        assert_eq!(pair.take_answers(), [told]);
        assert_eq!(pair.client.counters().exceptions, 1);
    }
    let mut pair = pair();
    let caller = calls(&mut pair, &["call"])[0];
    let exception = Exception {
        details: b"123",
        ..Exception::new(Status::RAISED, "")
    };
    let reply = Reply::begin(&mut pair.out, caller);
    reply.refuse(&mut pair.out, &exception).seal(&mut pair.out);
    let told = "call failed: the procedure raised an exception (123)";
    assert_eq!(pair.take_answers(), [told]);
}

#[test]
fn whether_a_call_was_carried_out_is_known_where_it_can_be() {
    let not_begun = [1, 2, 3, 7, 8, 9, 10];
    for status in 0..20 {
        let expected = !not_begun.contains(&status);
        assert_eq!(Status(status).may_have_executed(), expected, "{status}");
    }
}

#[test]
fn a_message_over_its_length_is_cut() {
    let mut pair = pair();
    let caller = calls(&mut pair, &["call"])[0];
    let long = "x".repeat(5000);
    let reply = Reply::begin(&mut pair.out, caller);
    let reply = reply.refuse(&mut pair.out, &Exception::new(Status::FAILED, &long));
    reply.seal(&mut pair.out);
    let told = format!("call failed: the service failed: {}", &long[..4096]);
    assert_eq!(pair.take_answers(), [told]);
}

#[test]
fn a_cancelled_call_is_told_to_the_server_and_its_answer_ignored() {
    let mut pair = pair();
    let callers = calls(&mut pair, &["cancelled", "other"]);
    let id = callers[0].id;
    assert_eq!(pair.client.cancel(id), Some("cancelled"));
    assert_eq!(pair.client.cancel(id), None);
    let mut cancelled = Vec::new();
    pair.serve_owed(|_, received, _| match received {
        Received::Cancel(id) => cancelled.push(id),
        other => panic!("{other:?}"),
    });
    assert_eq!(cancelled, [id]);
    answer(&mut pair, callers[0], b"late");
    answer(&mut pair, callers[1], b"in time");
    assert_eq!(pair.take_answers(), ["other: in time"]);
    let counters = pair.client.counters();
    assert_eq!((counters.cancellations, counters.unmatched), (1, 1));
}

#[test]
fn a_call_whose_time_ran_out_is_given_up_and_cancelled() {
    let mut pair = pair();
    let id = calls(&mut pair, &["call"])[0].id;
    let deadline = pair.now + SECOND;
    assert_eq!(pair.client.next_timeout(id), Some(deadline));
    let early = pair.client.handle_timeout(id, pair.now);
    assert_eq!(early, Some(Timeout::Wait(deadline)));
    let late = pair.client.handle_timeout(id, deadline);
    assert_eq!(late, Some(Timeout::Expired("call")));
    assert_eq!(pair.client.handle_timeout(id, deadline), None);
    assert_eq!(pair.client.next_timeout(id), None);
    let mut cancelled = 0;
    pair.serve_owed(|_, received, _| {
        cancelled += usize::from(matches!(received, Received::Cancel(got) if got == id));
    });
    assert_eq!((cancelled, pair.client.counters().timeouts), (1, 1));
}

#[test]
fn calls_that_were_given_up_count_until_the_server_has_answered_them() {
    let mut pair = pair();
    let limit = server_preamble(ByteOrder::Big).calls_max as usize;
    let callers = calls(&mut pair, &vec!["call"; limit]);
    let outgoing = Outgoing {
        service: 0,
        procedure: 1,
        size: 16,
        deadline: pair.now,
    };
    let full = Err(NotStarted::TooManyCalls { limit });
    assert_eq!(pair.client.start(&outgoing, "more"), full);
    pair.client.cancel(callers[0].id);
    assert_eq!(pair.client.start(&outgoing, "more"), full);
    answer(&mut pair, callers[0], b"");
    assert!(pair.take_answers().is_empty());
    assert!(pair.client.start(&outgoing, "more").is_ok());
    assert_eq!(pair.client.start(&outgoing, "more"), full);
}

#[test]
fn numbers_ascend_around_the_end_and_never_meet_one_in_flight() {
    let mut client = ClientEngine::new(client_preamble(ByteOrder::NATIVE), u32::MAX - 100);
    let server = server_preamble(ByteOrder::NATIVE);
    client.handle_preamble(&server).unwrap();
    let outgoing = Outgoing {
        service: 0,
        procedure: 1,
        size: 16,
        deadline: std::time::Instant::now(),
    };
    let long = client.start(&outgoing, 0).unwrap();
    let (mut last, mut seen) = (long, HashSet::from([long]));
    for call in 1..1000 {
        let id = client.start(&outgoing, call).unwrap();
        assert!((1..1 << 31).contains(&id.wrapping_sub(last)));
        assert!(seen.insert(id));
        assert_eq!(client.withdraw(id), Some(call));
        last = id;
    }
    assert_eq!(client.in_flight(), 1);
    assert_eq!(client.withdraw(last), None);
}

#[test]
fn when_the_connection_is_lost_everybody_who_waits_is_found() {
    let mut pair = pair();
    calls(&mut pair, &["a", "b", "c"]);
    let mut left: Vec<_> = pair.client.cancel_all().map(|(_, waiter)| waiter).collect();
    left.sort_unstable();
    assert_eq!(left, ["a", "b", "c"]);
    assert_eq!(pair.client.in_flight(), 0);
    let outgoing = Outgoing {
        service: 0,
        procedure: 1,
        size: 16,
        deadline: pair.now,
    };
    let closed = pair.client.start(&outgoing, "more");
    assert_eq!(closed, Err(NotStarted::Closed));
}

#[test]
fn a_server_that_says_goodbye_answers_what_it_accepted_and_the_rest_is_unbegun() {
    for order in ORDERS {
        let mut pair = Pair::new(order, order);
        let accepted = calls(&mut pair, &["first", "second"]);
        let (_, late) = pair.call(&known(5), 1, b"", "third");
        let (_, later) = pair.call(&known(5), 1, b"", "fourth");
        pair.server
            .goodbye(Reason::STOPPING, "maintenance", &mut pair.out);
        pair.server
            .goodbye(Reason::DONE, "only once", &mut pair.out);
        for late in [late, later] {
            pair.send_to_server(&late, |_, received, _| panic!("{received:?}"))
                .unwrap();
        }
        answer(&mut pair, accepted[1], b"2");
        let id = accepted[1].id;
        let told = [
            format!("goodbye after Some({id}): it stops: maintenance"),
            "second: 2".to_owned(),
        ];
        assert_eq!(pair.take_answers(), told);
        let unbegun: Vec<_> = pair.client.take_unbegun();
        let unbegun: Vec<_> = unbegun.into_iter().map(|(_, waiter)| waiter).collect();
        assert_eq!(unbegun, ["third", "fourth"]);
        assert!(pair.client.take_unbegun().is_empty());
        answer(&mut pair, accepted[0], b"1");
        assert_eq!(pair.take_answers(), ["first: 1"]);
        let outgoing = Outgoing {
            service: 0,
            procedure: 1,
            size: 16,
            deadline: pair.now,
        };
        let closed = pair.client.start(&outgoing, "more");
        assert_eq!(closed, Err(NotStarted::Closed));
    }
}

#[test]
fn a_goodbye_before_any_call_leaves_all_of_them_unbegun() {
    let mut pair = pair();
    assert!(pair.client.take_unbegun().is_empty());
    for waiter in ["a", "b"] {
        pair.call(&known(5), 1, b"", waiter);
    }
    pair.server.goodbye(Reason::IDLE, "", &mut pair.out);
    let told = ["goodbye after None: nothing was asked for too long"];
    assert_eq!(pair.take_answers(), told);
    let unbegun = pair.client.take_unbegun().into_iter();
    assert_eq!(unbegun.map(|call| call.1).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_ping_is_answered_by_its_number() {
    let mut pair = pair();
    assert_eq!((pair.client.ping(), pair.client.ping()), (1, 2));
    pair.serve_owed(|_, _, _| panic!("the engine answers itself"));
    assert_eq!(pair.take_answers(), ["pong 1", "pong 2"]);

    pair.server.ping(77, &mut pair.out);
    assert!(pair.take_answers().is_empty());
    let mut pongs = Vec::new();
    pair.serve_owed(|_, received, _| match received {
        Received::Pong(number) => pongs.push(number),
        other => panic!("{other:?}"),
    });
    assert_eq!(pongs, [77]);
}

fn word(kind: Kind) -> F {
    W(u32::from(SYNC) << 16 | (kind as u32) << 8)
}

#[test]
fn a_server_that_breaks_the_protocol_is_named_with_the_place() {
    // One call is in flight: number 1 of procedure 1 of service 0, which is bound.
    let head = |kind, id, service, procedure, length| {
        [word(kind), W(id), H(service), H(procedure), W(length)]
    };
    let other = |got| Fault::OtherProcedure {
        id: 1,
        expected: (0, 1),
        got,
    };
    let short = |expected, got| Fault::Short { expected, got };
    let wrong_end = Fault::WrongEnd;
    let cases: Vec<(Vec<F>, u64, Fault)> = vec![
        (
            head(Kind::Call, 1, 0, 1, 0).into(),
            0,
            wrong_end(Kind::Call),
        ),
        (
            head(Kind::Cancel, 1, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Cancel),
        ),
        (
            head(Kind::Bind, 0, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Bind),
        ),
        (head(Kind::Reply, 1, 1, 1, 0).into(), 8, other((1, 1))),
        (head(Kind::Reply, 1, 0, 2, 0).into(), 8, other((0, 2))),
        (head(Kind::Exception, 1, 0, 1, 0).into(), 16, short(4, 0)),
        (
            head(Kind::Bound, 0, 0, 0, 8).into(),
            8,
            Fault::StrayService(0),
        ),
        (
            head(Kind::Bound, 0, 9, 0, 8).into(),
            8,
            Fault::StrayService(9),
        ),
        (
            head(Kind::Unbound, 0, 9, 0, 0).into(),
            8,
            Fault::StrayService(9),
        ),
        (head(Kind::Bound, 0, 0, 0, 4).into(), 16, short(8, 4)),
        (head(Kind::Ping, 0, 0, 0, 3).into(), 16, Fault::Long(3)),
        (head(Kind::Close, 1, 0, 0, 16).into(), 24, Fault::NotZero(1)),
        (
            [&head(Kind::Exception, 1, 0, 1, 8)[..], &[W(4), W(9), D(0)]].concat(),
            24,
            short(9, 0),
        ),
        (
            [
                &[W(0xd07e_0202), W(1), H(0), H(1), W(8)][..],
                &[H(0x8000), H(0), W(0)],
            ]
            .concat(),
            16,
            Fault::Extension(0x8000),
        ),
        (
            [
                &[W(0xd07e_0202), W(1), H(0), H(1), W(8)][..],
                &[H(1), H(2), W(0)],
            ]
            .concat(),
            20,
            Fault::NotZero(2),
        ),
        (
            [
                &[W(0xd07e_0202), W(1), H(0), H(1), W(8)][..],
                &[H(1), H(1), W(0)],
            ]
            .concat(),
            24,
            short(2, 0),
        ),
    ];
    for order in ORDERS {
        for (fields, offset, fault) in &cases {
            let mut pair = Pair::new(order, order);
            calls(&mut pair, &["call"]);
            let at = pair.client_reader.received() + offset;
            let mut stream = bytes(order, fields);
            stream.resize(stream.len() + 32, 0);
            let expected = Violation { at, fault: *fault };
            assert_eq!(pair.send_to_client(&stream), Err(expected), "{expected}");
        }
    }
}

#[test]
fn pings_without_end_are_not_answered_without_end() {
    let mut pair = pair();
    let ping = bytes(ByteOrder::Big, &[word(Kind::Ping), W(1), H(0), H(0), W(0)]);
    let outcome = pair.send_to_client(&ping.repeat(5000));
    assert_eq!(outcome.unwrap_err().fault, Fault::Flood);
    let mut out = Buffer::default();
    assert!(pair.client.has_transmit());
    pair.client.poll_transmit(&mut out);
    assert!(out.len() < 70_000);
    assert!(!pair.client.has_transmit());
}

#[test]
fn an_answer_to_nobody_is_counted() {
    let mut pair = pair();
    let stranger = [word(Kind::Reply), W(99), H(0), H(1), W(4), B(b"what")];
    let mut stranger = bytes(ByteOrder::Big, &stranger);
    stranger.resize(24, 0);
    assert_eq!(pair.send_to_client(&stranger), Ok(Vec::new()));
    assert_eq!(pair.client.counters().unmatched, 1);
}

#[test]
fn an_engine_goes_on_with_another_connection_as_if_it_were_new() {
    let mut pair = pair();
    let callers = calls(&mut pair, &["lost", "given up"]);
    pair.client.cancel(callers[1].id);
    pair.client.goodbye(Reason::DONE, "");
    assert_eq!(pair.client.cancel_all().count(), 1);
    pair.client.renew();
    assert_eq!(pair.client.peer(), None);

    let mut next = Pair::before_preambles(ByteOrder::Little, ByteOrder::Big);
    next.client = pair.client;
    let (id, call) = next.call(&known(5), 1, b"again", "again");
    assert!(callers.iter().all(|caller| caller.id < id), "an old number");
    next.send_to_server(&call, |_, received, out| match received {
        Received::Call(call) => Reply::begin(out, call.caller).seal(out),
        other => panic!("{other:?}"),
    })
    .unwrap();
    assert_eq!(next.take_answers(), ["bound 0", "again: "]);
    let counters = next.client.counters();
    assert_eq!((counters.calls, counters.successes), (3, 1));
}

#[test]
#[should_panic(expected = "calls in flight")]
fn an_engine_with_calls_in_flight_does_not_forget_them() {
    let mut pair = pair();
    calls(&mut pair, &["call"]);
    pair.client.renew();
}
