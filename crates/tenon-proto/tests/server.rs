//! The server's side: who is served, who is refused and how exactly, who is not answered.

mod common;

use common::{Random, words};
use tenon_proto::onc::auth::{AuthStat, AuthSys, Credential};
use tenon_proto::onc::message::{Refused, Violation};
use tenon_proto::onc::record;
use tenon_proto::onc::server::{Call, Programs, Received, Reply, ServerCounters};
use tenon_wire::Buffer;

/// Program 300 in the versions 2 and 5, program 400 in version 1.
fn programs() -> Programs {
    let mut programs = Programs::default();
    assert_eq!(programs.add(300, 5), Some(0));
    assert_eq!(programs.add(300, 2), Some(1));
    assert_eq!(programs.add(400, 1), Some(2));
    programs
}

fn received(message: &[u8]) -> Received<'_> {
    programs().handle_message(message, &mut ServerCounters::default())
}

/// What is done with a message of these words.
fn refusal(message: &[u32]) -> (u32, Refused) {
    match received(&words(message)) {
        Received::Refuse(xid, refused) => (xid, refused),
        other => panic!("{other:?}"),
    }
}

fn authentication(stat: AuthStat) -> (u32, Refused) {
    (9, Refused::Authentication(stat))
}

#[test]
fn a_call_reaches_its_service_with_its_arguments() {
    let message = words(&[9, 0, 2, 300, 2, 7, 0, 0, 0, 0, 0xaaaa, 0xbbbb]);
    let call = Call {
        service: 1,
        xid: 9,
        program: 300,
        version: 2,
        procedure: 7,
        credential: Credential::None,
        arguments: &message[40..],
    };
    assert_eq!(received(&message), Received::Call(call));
}

#[test]
fn an_auth_sys_caller_is_known() {
    let mut message = words(&[9, 0, 2, 400, 1, 1, 1, 28, 3, 2, 0x6d65_0000, 10, 20, 1, 30]);
    message.extend(words(&[0, 0, 0xcccc]));
    let Received::Call(call) = received(&message) else {
        panic!("{:?}", received(&message));
    };
    let sys = AuthSys::new(b"me", 10, 20, &[30]).unwrap().with_stamp(3);
    assert_eq!(call.credential, Credential::Sys(sys));
    assert_eq!(call.arguments, words(&[0xcccc]));
}

#[test]
fn procedure_0_is_answered_in_every_version_that_is_there() {
    for (program, version) in [(300, 2), (300, 5), (400, 1)] {
        let message = words(&[9, 0, 2, program, version, 0, 0, 0, 0, 0]);
        assert_eq!(received(&message), Received::Ping(9));
    }
}

#[test]
fn another_version_of_rpc_is_refused_before_anything_else_is_looked_at() {
    let mismatch = Refused::RpcMismatch { low: 2, high: 2 };
    for version in [0, 1, 3, u32::MAX] {
        assert_eq!(refusal(&[9, 0, version]), (9, mismatch));
        assert_eq!(refusal(&[9, 0, version, 1, 1, 1, 99, 999]), (9, mismatch));
    }
}

#[test]
fn an_unknown_program_and_an_unknown_version_are_told_apart() {
    let call = |program, version| refusal(&[9, 0, 2, program, version, 1, 0, 0, 0, 0]).1;
    assert_eq!(call(301, 2), Refused::ProgramUnavailable);
    for version in [0, 1, 3, 4, 6, u32::MAX] {
        let (low, high) = (2, 5);
        assert_eq!(call(300, version), Refused::ProgramMismatch { low, high });
    }
    let (low, high) = (1, 1);
    assert_eq!(call(400, 2), Refused::ProgramMismatch { low, high });
    let ping = refusal(&[9, 0, 2, 300, 0, 0, 0, 0, 0, 0]).1;
    assert_eq!(
        ping,
        Refused::ProgramMismatch { low: 2, high: 5 },
        "as rpcinfo asks"
    );
}

#[test]
fn a_bad_credential_is_refused_and_not_a_reason_to_hang_up() {
    let too_long = [&[9, 0, 2, 300, 2, 1, 1, 401][..], &[0; 110]].concat();
    assert_eq!(refusal(&too_long), authentication(AuthStat::BAD_CRED));
    let cut_short = [9, 0, 2, 300, 2, 1, 0, 8, 0];
    assert_eq!(refusal(&cut_short), authentication(AuthStat::BAD_CRED));
    assert_eq!(
        refusal(&[9, 0, 2, 300, 2, 1]),
        authentication(AuthStat::BAD_CRED)
    );
}

#[test]
fn a_malformed_auth_sys_body_is_a_bad_credential() {
    let bodies: [&[u32]; 5] = [
        &[],
        &[0, 0, 10, 20],
        &[0, 0, 10, 20, 1],
        &[[0, 0, 10, 20, 17].as_slice(), &[0; 17]].concat(),
        &[[0, 256].as_slice(), &[0; 64], &[10, 20, 0]].concat(),
    ];
    for body in bodies {
        let head = [9, 0, 2, 300, 2, 1, 1, body.len() as u32 * 4];
        let message = [&head, body, &[0, 0]].concat();
        assert_eq!(
            refusal(&message),
            authentication(AuthStat::BAD_CRED),
            "{body:?}"
        );
    }
}

#[test]
fn a_flavor_that_is_not_served_is_rejected_even_for_a_ping() {
    for flavor in [2, 3, 6, 390_000] {
        for procedure in [0, 1] {
            let message = [9, 0, 2, 300, 2, procedure, flavor, 4, 0, 0, 0];
            assert_eq!(refusal(&message), authentication(AuthStat::REJECTED_CRED));
        }
    }
}

#[test]
fn a_bad_verifier_is_refused_and_any_good_one_accepted() {
    let too_long = [&[9, 0, 2, 300, 2, 1, 0, 0, 0, 401][..], &[0; 110]].concat();
    assert_eq!(refusal(&too_long), authentication(AuthStat::BAD_VERF));
    let missing = [9, 0, 2, 300, 2, 1, 0, 0, 0];
    assert_eq!(refusal(&missing), authentication(AuthStat::BAD_VERF));
    let message = words(&[9, 0, 2, 300, 2, 1, 0, 0, 7, 5, 0, 0]);
    assert!(matches!(received(&message), Received::Call(call) if call.arguments.is_empty()));
}

#[test]
fn who_calls_is_looked_at_before_what_is_called() {
    let message = [9, 0, 2, 999, 2, 1, 6, 0, 0, 0];
    assert_eq!(refusal(&message), authentication(AuthStat::REJECTED_CRED));
}

#[test]
fn what_is_no_call_or_too_short_to_be_one_is_not_answered() {
    let unanswerable = |message: &[u8]| match received(message) {
        Received::Unanswerable(violation) => violation,
        other => panic!("{other:?}"),
    };
    let call = words(&[9, 0, 2, 300, 2, 1]);
    for end in 0..call.len() {
        let at = end / 4 * 4;
        assert_eq!(unanswerable(&call[..end]), Violation::Truncated(at));
    }
    let reply = words(&[9, 1, 0, 0, 0, 0]);
    assert_eq!(unanswerable(&reply), Violation::NotACall(1));
    assert_eq!(unanswerable(&words(&[9, 2])), Violation::NotACall(2));
}

/// A call with an AUTH_SYS credential, arguments left out.
fn sys_call() -> Vec<u8> {
    let name = [6, 0x6d61_6368, 0x696e_0000];
    let credential = [&[1, 40, 3][..], &name, &[10, 20, 3, 30, 31, 32]].concat();
    words(&[&[9, 0, 2, 400, 1, 1], &credential[..], &[0, 0]].concat())
}

#[test]
fn wherever_a_call_is_cut_off_behind_its_procedure_the_caller_hears_of_it() {
    let call = sys_call();
    assert!(matches!(received(&call), Received::Call(_)));
    for end in 24..call.len() {
        let in_verifier = end >= call.len() - 8;
        let stat = if in_verifier {
            AuthStat::BAD_VERF
        } else {
            AuthStat::BAD_CRED
        };
        let refused = Refused::Authentication(stat);
        assert_eq!(
            received(&call[..end]),
            Received::Refuse(9, refused),
            "{end}"
        );
    }
}

#[test]
fn whatever_byte_is_wrong_in_a_call_it_is_served_or_refused_or_dropped() {
    let mut random = Random(8);
    let mut call = sys_call();
    for at in 0..call.len() {
        for _ in 0..100 {
            let right = std::mem::replace(&mut call[at], random.next() as u8);
            match received(&call) {
                Received::Call(call) => assert_eq!((call.program, call.version), (400, 1)),
                Received::Unanswerable(violation) => {
                    assert!(matches!(violation, Violation::NotACall(_)) && (4..8).contains(&at));
                }
                Received::Ping(xid) | Received::Refuse(xid, _) => assert!(xid == 9 || at < 4),
            }
            call[at] = right;
        }
    }
}

#[test]
fn a_version_is_added_once() {
    assert_eq!(programs().add(300, 2), None);
}

#[test]
fn what_is_done_is_counted() {
    let programs = programs();
    let mut counters = ServerCounters::default();
    let messages: [&[u32]; 5] = [
        &[9, 0, 2, 300, 2, 1, 0, 0, 0, 0],
        &[9, 0, 2, 300, 2, 0, 0, 0, 0, 0],
        &[9, 0, 3],
        &[9, 0, 3],
        &[9],
    ];
    for message in messages {
        programs.handle_message(&words(message), &mut counters);
    }
    let expected = ServerCounters {
        calls: 1,
        pings: 1,
        refusals: 2,
        violations: 1,
    };
    assert_eq!(counters, expected);
}

#[test]
fn a_reply_is_a_header_and_the_results_behind() {
    let mut buffer = Buffer::default();
    let reply = Reply::begin(&mut buffer, 9);
    buffer.extend(b"result");
    let expected = [words(&[9, 1, 0, 0, 0, 0]), b"result".to_vec()].concat();
    assert_eq!(record::message(&buffer), expected);
    reply.seal(&mut buffer, 99);
    assert_eq!(buffer.as_slice()[..4], [0x80, 0, 0, 30]);
}

#[test]
fn a_refusal_replaces_the_results_and_leaves_the_replies_before_alone() {
    let mut buffer = Buffer::default();
    Reply::begin(&mut buffer, 8).seal(&mut buffer, 99);
    let before = buffer.as_slice().to_vec();
    let table: [(Refused, &[u32]); 4] = [
        (Refused::GarbageArguments, &[9, 1, 0, 0, 0, 4]),
        (Refused::ProcedureUnavailable, &[9, 1, 0, 0, 0, 3]),
        (Refused::SystemError, &[9, 1, 0, 0, 0, 5]),
        (
            Refused::Authentication(AuthStat::TOO_WEAK),
            &[9, 1, 1, 1, 5],
        ),
    ];
    for (refused, expected) in table {
        buffer.truncate(before.len());
        let reply = Reply::begin(&mut buffer, 9);
        buffer.extend(&[0xee; 5000]);
        reply.refuse(&mut buffer, refused).seal(&mut buffer, 99);
        let mark = 0x8000_0000 + expected.len() as u32 * 4;
        let expected = [before.clone(), words(&[mark]), words(expected)].concat();
        assert_eq!(buffer.as_slice(), expected, "{refused:?}");
    }
}
