//! What is refused, and why, is told; the connection serves on.

use tenon::lean::Status;
use tenon::{CallError, Protocol, Refused};
use tenon_interop::compiled::torture::Drawing;

use crate::rows::{Client, Execution, Row, rows};
use crate::service::{ECHO, FAIL, GARBAGE, Obliging, PANIC, PROGRAM, RAISE, VERSION, details};

/// A call that is refused, and what it is told by either protocol.
type Case = (u16, Refused, Status);

const CASES: [Case; 5] = [
    (99, Refused::ProcedureUnavailable, Status::NO_PROCEDURE),
    (GARBAGE, Refused::GarbageArguments, Status::ARGUMENTS),
    (FAIL, Refused::SystemError, Status::FAILED),
    (RAISE, Refused::SystemError, Status::RAISED),
    (PANIC, Refused::SystemError, Status::FAILED),
];

fn check_case(row: &Row, client: &Client, (procedure, onc, status): Case) {
    let error = client.call(procedure, b"").unwrap_err();
    match (row.protocol, &error) {
        (Protocol::Onc, CallError::Refused(refused)) => assert_eq!(*refused, onc, "{row}"),
        (Protocol::Lean, CallError::Exception(exception)) => {
            assert_eq!(exception.status, status, "{row}: {exception}");
            // Only errors of the interface have details.
            assert_eq!(exception.details.is_empty(), procedure != RAISE, "{row}");
            let found = exception.raised_as::<Drawing>().ok();
            assert_eq!(found, (procedure == RAISE).then(details), "{row}");
        }
        (_, other) => panic!("{row}: {other:?}"),
    }
    assert_eq!(
        error.may_have_executed(),
        status.may_have_executed(),
        "{row}"
    );
}

#[test]
fn refusals_say_why() {
    for row in rows() {
        for execution in [Execution::Inline, Execution::Workers(2), Execution::Waiting] {
            let server = row.server(&Obliging::default(), execution);
            let client = row.client(&server.address());
            for case in CASES {
                check_case(&row, &client, case);
                assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
            }
            assert_eq!(client.counters().connections, 1, "{row}");
            assert_eq!(server.counters().panics, 1, "{row}");
        }
    }
}

#[test]
fn programs_and_versions_that_are_not_there_are_told() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        for (program, version, words) in [(PROGRAM + 1, VERSION, ""), (PROGRAM, VERSION + 1, "3")] {
            let other = client.over(program, version);
            let error = other.call(ECHO, b"").unwrap_err();
            match (row.protocol, &error) {
                (Protocol::Onc, CallError::Refused(_))
                | (Protocol::Lean, CallError::Unbound(_)) => {}
                (_, error) => panic!("{row}: {error:?}"),
            }
            // Which versions there are is said.
            assert!(error.to_string().contains(words), "{row}: {error}");
            assert!(!error.may_have_executed(), "{row}");
        }
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}
