//! The server's side: who is served, who is refused and how exactly, and a client that does not keep
//! to the protocol.

use std::time::{Duration, Instant};

use crate::support::F::{self, D, H, W};
use crate::support::{ORDERS, Pair, SECOND, bytes, known};
use tenon_proto::lean::server::{Received, Reply};
use tenon_proto::lean::{
    ByteOrder, CallState, Calls, Draft, Extension, Extras, Fault, Kind, MESSAGE_MIN, Preamble,
    Reason, Violation,
};
use tenon_wire::Buffer;

/// What a client is told that calls procedure `procedure` with `extras`. The server echoes.
fn echo(procedure: u16, arguments: &[u8], extras: &Extras<'_>) -> Vec<String> {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Big);
    let (_, stream) = pair.call_with(&known(5), procedure, arguments, extras, "call");
    pair.send_to_server(&stream, |_, received, out| match received {
        Received::Call(call) => {
            let reply = Reply::begin(out, call.caller);
            out.extend(call.arguments);
            reply.seal(out);
        }
        other => panic!("{other:?}"),
    })
    .unwrap();
    let told = pair.take_answers();
    assert_eq!(told[0], "bound 0");
    told[1..].to_vec()
}

#[test]
fn procedure_0_is_answered_without_the_service() {
    assert_eq!(echo(0, b"arguments", &Extras::default()), ["call: "]);
    assert_eq!(
        echo(1, b"arguments", &Extras::default()),
        ["call: arguments"]
    );
}

#[test]
fn a_call_whose_time_is_over_is_not_begun() {
    let time_left = |micros| Extras {
        time_left: Some(Duration::from_micros(micros)),
        extensions: &[],
        ..Extras::default()
    };
    let refused = ["call failed: the time of the call ran out: it had run out when the call came"];
    assert_eq!(echo(1, b"", &time_left(0)), refused);
    assert_eq!(echo(0, b"", &time_left(0)), refused);
    assert_eq!(echo(1, b"", &time_left(1)), ["call: "]);
}

#[test]
fn an_extension_that_must_be_understood_is_refused_and_another_skipped() {
    let extension = |kind| Extension {
        kind,
        content: b"abc",
    };
    let with = |extensions: &[Extension<'_>]| {
        let extras = Extras {
            time_left: None,
            extensions,
            ..Extras::default()
        };
        echo(1, b"arguments", &extras)
    };
    assert_eq!(with(&[extension(0x7fff)]), ["call: arguments"]);
    assert_eq!(with(&[extension(1), extension(2)]), ["call: arguments"]);
    let refused = ["call failed: the peer does not understand what the call demands"];
    assert_eq!(with(&[extension(0x8001)]), refused);
    assert_eq!(with(&[extension(2), extension(0xffff)]), refused);
}

#[test]
fn a_result_over_what_the_client_takes_becomes_an_exception() {
    for over in [false, true] {
        let mut pair = Pair::before_preambles(ByteOrder::Little, ByteOrder::Big);
        pair.client = tenon_proto::lean::client::ClientEngine::new(
            Preamble {
                order: ByteOrder::Little,
                ..Preamble::client(0)
            },
            1,
        );
        let (_, stream) = pair.call(&known(5), 1, b"", "call");
        let size = MESSAGE_MIN as usize - 16 + usize::from(over);
        pair.send_to_server(&stream, |_, received, out| match received {
            Received::Call(call) => {
                let reply = Reply::begin(out, call.caller);
                out.extend(&vec![b'x'; size]);
                reply.seal(out);
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
        let told = pair.take_answers();
        match over {
            false => assert_eq!(told[1].len(), "call: ".len() + size),
            true => assert_eq!(
                told[1],
                "call failed: the result is larger than this end takes in: 65544 bytes, where \
                 65536 are the most"
            ),
        }
    }
}

#[test]
fn a_client_that_breaks_the_protocol_is_named_with_the_place() {
    // Service 0 is bound, and call 1 was the last.
    let head = |kind: Kind, id, service, procedure, length| {
        let word = W(0xd07e_0000 | (kind as u32) << 8);
        [word, W(id), H(service), H(procedure), W(length)]
    };
    let behind = |got| Fault::CallBehind { last: 1, got };
    let wrong_end = Fault::WrongEnd;
    let short = |expected, got| Fault::Short { expected, got };
    let number = |expected, got| Fault::ServiceNumber { expected, got };
    let cases: Vec<(Vec<F>, u64, Fault)> = vec![
        (
            head(Kind::Reply, 1, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Reply),
        ),
        (
            head(Kind::Exception, 1, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Exception),
        ),
        (
            head(Kind::Bound, 0, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Bound),
        ),
        (
            head(Kind::Unbound, 0, 0, 0, 0).into(),
            0,
            wrong_end(Kind::Unbound),
        ),
        (head(Kind::Call, 1, 0, 1, 0).into(), 4, behind(1)),
        (head(Kind::Call, 0, 0, 1, 0).into(), 4, behind(0)),
        (
            head(Kind::Call, 1 << 31 | 1, 0, 1, 0).into(),
            4,
            behind(1 << 31 | 1),
        ),
        (head(Kind::Cancel, 1, 0, 0, 8).into(), 16, Fault::Long(8)),
        (head(Kind::Bind, 0, 1, 0, 12).into(), 24, short(8, 4)),
        (head(Kind::Bind, 0, 1, 0, 24).into(), 32, Fault::Long(8)),
        (head(Kind::Bind, 0, 5, 0, 16).into(), 8, number(1, 5)),
        (head(Kind::Close, 0, 0, 0, 0).into(), 16, short(4, 0)),
        (
            [&head(Kind::Close, 0, 0, 0, 16)[..], &[W(0), W(2), D(0)]].concat(),
            24,
            Fault::NotZero(2),
        ),
        (
            [&head(Kind::Close, 0, 0, 0, 16)[..], &[W(0), W(0), W(3)]].concat(),
            28,
            Fault::NotZero(3),
        ),
        (
            vec![W(0xd07e_0101), W(2), H(0), H(1), W(7)],
            16,
            short(8, 7),
        ),
        (
            vec![W(0xd07e_0103), W(2), H(0), H(1), W(12), D(9), H(1), H(0)],
            28,
            short(4, 0),
        ),
        (
            vec![W(0xd07e_0102), W(2), H(0), H(1), W(8), H(1), H(0), W(1)],
            24,
            short(1, 0),
        ),
        (
            vec![W(0xd07e_0402), W(2), W(0), W(8), H(0x8001), H(0), W(0)],
            16,
            Fault::Extension(0x8001),
        ),
    ];
    for order in ORDERS {
        for (fields, offset, fault) in &cases {
            let mut pair = Pair::new(order, ByteOrder::NATIVE);
            let (id, call) = pair.call(&known(5), 1, b"", "call");
            assert_eq!(id, 1);
            pair.send_to_server(&call, |_, _, _| {}).unwrap();
            let at = pair.server_reader.received() + offset;
            let mut stream = bytes(order, fields);
            stream.resize(stream.len() + 32, 0);
            let expected = Violation { at, fault: *fault };
            let outcome = pair.send_to_server(&stream, |_, received, _| panic!("{received:?}"));
            assert_eq!(outcome, Err(expected), "{expected}");
        }
    }
}

#[test]
fn numbers_of_calls_may_jump_and_run_around() {
    let mut pair = Pair::new(ByteOrder::Big, ByteOrder::Big);
    pair.client.bind(&known(5)).unwrap();
    pair.serve_owed(|_, _, _| {});
    let mut last = 0;
    for ahead in [1_u32, 5, 0x7fff_ffff, 0x7fff_ffff, 3, 1] {
        last = u32::wrapping_add(last, ahead);
        let fields = [W(0xd07e_0100), W(last), H(0), H(1), W(0)];
        let mut ids = Vec::new();
        pair.send_to_server(&bytes(ByteOrder::Big, &fields), |_, received, _| {
            if let Received::Call(call) = received {
                ids.push(call.caller.id);
            }
        })
        .unwrap();
        assert_eq!(ids, [last]);
    }
}

#[test]
fn behind_its_goodbye_a_client_may_cancel_and_ping_but_not_call() {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Little);
    let (id, call) = pair.call(&known(5), 1, b"", "call");
    pair.send_to_server(&call, |_, _, _| {}).unwrap();
    pair.client.goodbye(Reason::DONE, "");
    pair.client.goodbye(Reason::DONE, "once");
    pair.client.cancel(id);
    pair.client.ping();
    let mut received_in_order = Vec::new();
    pair.serve_owed(|_, received, _| {
        received_in_order.push(match received {
            Received::Goodbye(goodbye) => format!("goodbye: {goodbye}"),
            Received::Cancel(id) => format!("cancel {id}"),
            other => panic!("{other:?}"),
        });
    });
    let expected = ["goodbye: it needs the connection no longer", "cancel 1"];
    assert_eq!(received_in_order, expected);
    assert!(pair.server.is_left());
    let at = pair.server_reader.received();
    let (_, call) = {
        let mut other = Pair::new(ByteOrder::Little, ByteOrder::Little);
        other.call(&known(5), 1, b"", "first");
        other.call(&known(5), 1, b"", "second")
    };
    let outcome = pair.send_to_server(&call, |_, _, _| {});
    let fault = Fault::AfterClose(Kind::Call);
    assert_eq!(outcome, Err(Violation { at, fault }));
}

#[test]
fn a_violation_can_be_told_to_who_made_it() {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Big);
    pair.out.clear();
    let nonsense = [b'x'; 16];
    let violation = pair
        .send_to_server(&nonsense, |_, _, _| panic!("nothing"))
        .unwrap_err();
    let message = violation.to_string();
    pair.server
        .goodbye(Reason::VIOLATION, &message, &mut pair.out);
    let told = "goodbye after None: this end broke the protocol: byte 32 of the stream: out of \
                step: expected the sync word 0xd07e, got 0x7878";
    assert_eq!(pair.take_answers(), [told]);
}

#[test]
fn calls_that_are_carried_out_elsewhere_are_known_until_they_are_finished() {
    let now = Instant::now();
    let mut calls = Calls::new(3);
    assert_eq!(calls.begin(1, None, "one"), Ok(()));
    assert_eq!(calls.begin(2, Some(now + 2 * SECOND), ""), Ok(()));
    *calls.worker(2).unwrap() = "two";
    assert_eq!(calls.begin(3, Some(now + SECOND), "three"), Ok(()));
    assert_eq!(calls.begin(4, None, "four"), Err("four"));
    assert_eq!(calls.begin(1, None, "another one"), Err("another one"));
    assert_eq!(calls.next_timeout(), Some(now + SECOND));
    assert_eq!(calls.poll_expired(now), None);
    assert_eq!(calls.poll_expired(now + SECOND), Some((3, &mut "three")));
    assert_eq!(calls.poll_expired(now + SECOND), None, "said once");
    assert_eq!(calls.next_timeout(), Some(now + 2 * SECOND));
    assert_eq!(calls.cancel(2), Some(&mut "two"));
    assert_eq!(calls.cancel(9), None);
    assert_eq!(calls.next_timeout(), None);
    assert_eq!(calls.state(1), Some(CallState::Awaited));
    assert_eq!(calls.finish(3), Some(("three", CallState::Expired)));
    assert_eq!(calls.finish(2), Some(("two", CallState::Cancelled)));
    assert_eq!(calls.finish(2), None);
    assert_eq!(calls.worker(2), None);
    assert_eq!(calls.state(2), None);
    assert_eq!(calls.in_flight(), 1);
    assert_eq!(calls.begin(1, None, "another one"), Err("another one"));
    assert_eq!(calls.finish(1), Some(("one", CallState::Awaited)));
    assert_eq!(calls.begin(1, None, "another one"), Ok(()));
    assert_eq!(calls.begin(4, None, "four"), Ok(()));
}

#[test]
fn a_deadline_counts_from_when_the_call_came() {
    let mut pair = Pair::new(ByteOrder::Little, ByteOrder::Big);
    let extras = Extras {
        time_left: Some(SECOND),
        extensions: &[],
        ..Extras::default()
    };
    let (_, stream) = pair.call_with(&known(5), 1, b"", &extras, "call");
    let now = pair.now;
    let mut deadlines = Vec::new();
    pair.send_to_server(&stream, |_, received, _| {
        if let Received::Call(call) = received {
            deadlines.push(call.deadline(now));
        }
    })
    .unwrap();
    assert_eq!(deadlines, [Some(now + SECOND)]);
    let longest = Extras {
        time_left: Some(Duration::MAX),
        extensions: &[],
        ..Extras::default()
    };
    let (_, stream) = pair.call_with(&known(5), 1, b"", &longest, "call");
    pair.send_to_server(&stream, |_, received, _| {
        if let Received::Call(call) = received {
            assert_eq!(call.time_left, Some(Duration::from_micros(u64::MAX)));
            deadlines.push(call.deadline(now));
        }
    })
    .unwrap();
    assert_eq!(deadlines.len(), 2, "however far away");
}

#[test]
fn a_call_that_waited_to_be_sent_says_what_is_left_of_its_time() {
    let written = |order, before: Option<Duration>, left: Option<Duration>| {
        let mut buffer = Buffer::default();
        buffer.extend(b"in front");
        let extras = Extras {
            time_left: before,
            extensions: &[],
            ..Extras::default()
        };
        let draft = Draft::call(&mut buffer, order, 1, &extras);
        buffer.extend(b"arguments");
        draft.seal(&mut buffer);
        if let Some(left) = left {
            draft.set_time_left(&mut buffer, left);
        }
        buffer.as_slice().to_vec()
    };
    for order in ORDERS {
        let waited = written(order, Some(SECOND), Some(SECOND / 7));
        assert_eq!(waited, written(order, Some(SECOND / 7), None));
        let endless = written(order, None, Some(SECOND));
        assert_eq!(endless, written(order, None, None), "it has none to tell");
    }
}
