//! Peers that break the lean protocol: what is wrong, and at which byte of the stream.

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::framing::FramingError;
use tenon_proto::connection::{ConnectionError, WireProtocol};
use tenon_proto::lean::{ByteOrder, Extras, Fault, Kind, Violation};
use tenon_proto::onc::message::Violation as OncViolation;

use crate::common::{record, words};
use crate::fields::Field::{self, Double, Half, Word};
use crate::fields::{ORDERS, bytes, flags, head, head_with, kinds};
use crate::pair::{Pair, SECOND, carry, client_config, known, server_config, take_in};

/// Fields of a message, and where in it which fault is.
type Case = (Vec<Field>, u64, Fault);

fn short(expected: u64, got: u64) -> Fault {
    Fault::Short { expected, got }
}

/// A message of this kind and flag whose body begins with something else.
fn with(kind: u32, flag: u32, length: u32, body: &[Field]) -> Vec<Field> {
    let head = head_with(kind, flag, 1, (0, 1), length);
    [&head[..], body].concat()
}

/// The violation at which an end stops that receives these bytes.
fn violation(outcome: Result<(), ConnectionError>) -> Violation {
    match outcome {
        Err(ConnectionError::Lean(violation)) => violation,
        Err(ConnectionError::Framing(FramingError::Lean(violation))) => violation,
        other => panic!("{other:?}"),
    }
}

fn check(cases: Vec<Case>, mut receive: impl FnMut(ByteOrder, &[u8]) -> (u64, Violation)) {
    for order in ORDERS {
        for (fields, offset, fault) in &cases {
            let mut stream = bytes(order, fields);
            stream.resize(stream.len() + 32, 0);
            let (begin, violation) = receive(order, &stream);
            let expected = Violation {
                at: begin + offset,
                fault: *fault,
            };
            assert_eq!(violation, expected, "{fields:?}");
        }
    }
}

/// What stands in front of a body is checked at either end.
fn malformed_extensions(kind: u32) -> Vec<Case> {
    let extended = |body| with(kind, flags::EXTENSIONS, 8, body);
    vec![
        (
            extended(&[Half(1), Half(2), Word(0)]),
            20,
            Fault::NotZero(2),
        ),
        (extended(&[Half(1), Half(1), Word(0)]), 24, short(2, 0)),
        (extended(&[Half(1), Half(0), Word(1)]), 24, short(1, 0)),
    ]
}

#[test]
fn a_server_that_breaks_the_protocol_is_reported_with_the_place() {
    // One call is in flight: number 1 of procedure 1 of service 0, which is bound.
    let other = |got| Fault::OtherProcedure {
        id: 1,
        expected: (0, 1),
        got,
    };
    let stray = Fault::StrayService;
    let wrong = Fault::WrongEnd;
    let plain =
        |kind, id, service, procedure, length| head(kind, id, service, procedure, length).to_vec();
    let exception = plain(kinds::EXCEPTION, 1, 0, 1, 8);
    let mut cases: Vec<Case> = vec![
        (plain(kinds::CALL, 1, 0, 1, 0), 0, wrong(Kind::Call)),
        (plain(kinds::CANCEL, 1, 0, 0, 0), 0, wrong(Kind::Cancel)),
        (plain(kinds::BIND, 0, 0, 0, 0), 0, wrong(Kind::Bind)),
        (plain(kinds::REPLY, 1, 1, 1, 0), 8, other((1, 1))),
        (plain(kinds::REPLY, 1, 0, 2, 0), 8, other((0, 2))),
        (plain(kinds::EXCEPTION, 1, 0, 1, 0), 16, short(4, 0)),
        (plain(kinds::BOUND, 0, 0, 0, 8), 8, stray(0)),
        (plain(kinds::BOUND, 0, 9, 0, 8), 8, stray(9)),
        (plain(kinds::UNBOUND, 0, 9, 0, 0), 8, stray(9)),
        (plain(kinds::BOUND, 0, 0, 0, 4), 16, short(8, 4)),
        (plain(kinds::PING, 0, 0, 0, 3), 16, Fault::Long(3)),
        (plain(kinds::PONG, 0, 0, 0, 8), 16, Fault::Long(8)),
        (plain(kinds::CLOSE, 1, 0, 0, 16), 24, Fault::NotZero(1)),
        (
            [&exception[..], &[Word(4), Word(9), Double(0)]].concat(),
            24,
            short(9, 0),
        ),
        (
            with(
                kinds::REPLY,
                flags::EXTENSIONS,
                8,
                &[Half(0x8000), Half(0), Word(0)],
            ),
            16,
            Fault::Extension(0x8000),
        ),
    ];
    cases.extend(malformed_extensions(kinds::REPLY));
    check(cases, |order, stream| {
        let mut pair = Pair::lean(order, order);
        pair.call(&known(5), 1, b"", "call");
        assert_eq!(pair.serve().len(), 1);
        pair.take_answers();
        let begin = pair.client.receiver.lean_reader().unwrap().received();
        let outcome = take_in(&mut pair.client, stream).map(drop);
        (begin, violation(outcome))
    });
}

#[test]
fn a_client_that_breaks_the_protocol_is_reported_with_the_place() {
    // Service 0 is bound, and call 1 was the last.
    let behind = |got| Fault::CallBehind { last: 1, got };
    let number = |expected, got| Fault::ServiceNumber { expected, got };
    let wrong = Fault::WrongEnd;
    let plain =
        |kind, id, service, procedure, length| head(kind, id, service, procedure, length).to_vec();
    let close = |body: &[Field]| [&plain(kinds::CLOSE, 0, 0, 0, 16)[..], body].concat();
    let half_circle = 1 << 31 | 1;
    let mut cases: Vec<Case> = vec![
        (plain(kinds::REPLY, 1, 0, 0, 0), 0, wrong(Kind::Reply)),
        (
            plain(kinds::EXCEPTION, 1, 0, 0, 0),
            0,
            wrong(Kind::Exception),
        ),
        (plain(kinds::BOUND, 0, 0, 0, 0), 0, wrong(Kind::Bound)),
        (plain(kinds::UNBOUND, 0, 0, 0, 0), 0, wrong(Kind::Unbound)),
        (plain(kinds::CALL, 1, 0, 1, 0), 4, behind(1)),
        (plain(kinds::CALL, 0, 0, 1, 0), 4, behind(0)),
        (
            plain(kinds::CALL, half_circle, 0, 1, 0),
            4,
            behind(half_circle),
        ),
        (plain(kinds::CANCEL, 1, 0, 0, 8), 16, Fault::Long(8)),
        (plain(kinds::BIND, 0, 1, 0, 12), 24, short(8, 4)),
        (plain(kinds::BIND, 0, 1, 0, 24), 40, short(8, 0)),
        (
            [
                &plain(kinds::BIND, 0, 1, 0, 32)[..],
                &[Double(1), Double(2), Word(1), Word(3)],
            ]
            .concat(),
            40,
            Fault::NotZero(3),
        ),
        (plain(kinds::BIND, 0, 5, 0, 16), 8, number(1, 5)),
        (plain(kinds::CLOSE, 0, 0, 0, 0), 16, short(4, 0)),
        (close(&[Word(0), Word(2), Double(0)]), 24, Fault::NotZero(2)),
        (close(&[Word(0), Word(0), Word(3)]), 28, Fault::NotZero(3)),
        (
            head_with(kinds::CALL, flags::TIME, 2, (0, 1), 7).to_vec(),
            16,
            short(8, 7),
        ),
        (
            [
                &head_with(kinds::CALL, flags::TIME | flags::EXTENSIONS, 2, (0, 1), 12)[..],
                &[Double(9), Half(1), Half(0)],
            ]
            .concat(),
            28,
            short(4, 0),
        ),
        (
            [
                &head_with(kinds::CANCEL, flags::EXTENSIONS, 2, (0, 0), 8)[..],
                &[Half(0x8001), Half(0), Word(0)],
            ]
            .concat(),
            16,
            Fault::Extension(0x8001),
        ),
    ];
    cases.extend(malformed_extensions(kinds::CALL));
    check(cases, |order, stream| {
        let mut pair = Pair::lean(order, ByteOrder::NATIVE);
        let id = pair.call(&known(5), 1, b"", "call").number;
        assert_eq!((id, pair.serve().len()), (1, 1));
        let begin = pair.server.receiver.lean_reader().unwrap().received();
        let outcome = take_in(&mut pair.server, stream).map(|received| {
            panic!("{received:?}");
        });
        (begin, violation(outcome))
    });
}

/// A pair whose client grants `calls` calls.
fn granting(order: ByteOrder, calls: usize) -> Pair {
    let client = ConnectionConfig {
        incoming_calls_max: calls,
        ..client_config(order)
    };
    Pair::greeted(client, server_config(order))
}

#[test]
fn messages_of_a_direction_come_from_the_end_that_sends_them() {
    let reverse = |kind| head_with(kind, flags::REVERSE, 1, (0, 0), 0).to_vec();
    let wrong = Fault::WrongEnd;
    let of_calling_end = [
        (reverse(kinds::REPLY), 0, wrong(Kind::Reply)),
        (reverse(kinds::EXCEPTION), 0, wrong(Kind::Exception)),
        (reverse(kinds::BOUND), 0, wrong(Kind::Bound)),
        (reverse(kinds::UNBOUND), 0, wrong(Kind::Unbound)),
    ];
    check(of_calling_end.to_vec(), |order, stream| {
        let mut pair = granting(order, 16);
        (32, violation(take_in(&mut pair.client, stream).map(drop)))
    });
    let of_called_end = [
        (reverse(kinds::CALL), 0, wrong(Kind::Call)),
        (reverse(kinds::CANCEL), 0, wrong(Kind::Cancel)),
        (reverse(kinds::BIND), 0, wrong(Kind::Bind)),
    ];
    check(of_called_end.to_vec(), |order, stream| {
        let mut pair = granting(order, 16);
        (32, violation(take_in(&mut pair.server, stream).map(drop)))
    });
}

#[test]
fn a_server_does_not_call_a_client_that_grants_no_calls() {
    let call = head_with(kinds::CALL, flags::REVERSE, 1, (0, 1), 0).to_vec();
    check(vec![(call, 0, Fault::NotGranted)], |order, stream| {
        let mut pair = granting(order, 0);
        (32, violation(take_in(&mut pair.client, stream).map(drop)))
    });
}

/// One call beyond what was granted is for the owner to refuse, not for the protocol.
#[test]
fn numbers_of_calls_ascend_in_each_direction_by_themselves() {
    let mut pair = granting(ByteOrder::NATIVE, 16);
    let interface = known(5);
    let deadline = pair.now + SECOND;
    for _ in 0..3 {
        pair.call(&known(5), 1, b"", "forth");
        let of = (&interface, 1);
        let server = &mut pair.server;
        let call = server.call_lean(of, b"", &Extras::default(), deadline, "back");
        call.unwrap();
    }
    let forth = carry(&mut pair.client, &mut pair.server).calls;
    let back = carry(&mut pair.server, &mut pair.client).calls;
    let numbers = |calls: &[crate::pair::Served]| -> Vec<u32> {
        calls.iter().map(|call| call.caller.number()).collect()
    };
    assert_eq!(
        (numbers(&forth), numbers(&back)),
        (vec![1, 2, 3], vec![0, 1, 2])
    );
}

// ---- ONC RPC ----

#[test]
fn a_malformed_reply_of_onc_rpc_ends_its_call_and_a_stray_message_the_connection() {
    let onc = |outcome: Result<crate::pair::Received, ConnectionError>| match outcome {
        Err(ConnectionError::Onc(violation)) => violation,
        other => panic!("{other:?}"),
    };
    let mut pair = Pair::onc();
    let xid = pair.call_onc(b"", "call").number;
    let cut = record(b"ab");
    let truncated = onc(take_in(&mut pair.client, &cut));
    assert_eq!(truncated, OncViolation::Truncated(0));
    let call = record(&words(&[xid, 0, 2, 1, 1, 0, 0, 0, 0, 0]));
    let stray = onc(take_in(&mut pair.client, &call));
    assert_eq!(stray, OncViolation::NotAReply(0));

    let malformed = record(&words(&[xid, 1, 0, 0, 0, 6]));
    let told = take_in(&mut pair.client, &malformed).unwrap().told;
    assert_eq!(told, ["call ended by a violation: unknown accept_stat 6"]);
    let again = onc(take_in(&mut pair.client, &malformed));
    assert_eq!(again, OncViolation::UnknownAcceptStat(6), "of no call");
    assert_eq!(pair.client.connection.outgoing_counters().violations, 4);
}

#[test]
fn a_record_over_the_limit_ends_the_connection() {
    let order = ByteOrder::NATIVE;
    let client = ConnectionConfig {
        receive_max: 100,
        ..client_config(order)
    };
    let mut pair = Pair::new(WireProtocol::Onc, client, server_config(order));
    pair.call_onc(b"", "call");
    let call = pair.serve().remove(0);
    pair.answer(call.caller, &[7; 100]);
    let sent = pair.server.transmit_all();
    let error = take_in(&mut pair.client, &sent).unwrap_err();
    let text = "a record of at least 124 bytes is over the limit of 100";
    assert_eq!(error.to_string(), text);
}
