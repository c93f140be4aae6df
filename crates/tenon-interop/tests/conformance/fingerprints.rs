//! Ends that were built from different interfaces.

use tenon::{CallError, Protocol};

use crate::rows::{Execution, Pending, rows};
use crate::service::{ECHO, NOTE, Obliging, interface_with, interface_with_echo};

#[test]
fn a_client_of_another_interface_is_told_which_type_differs() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        let other = client.clone().of(interface_with(8));
        match (row.protocol, other.call(ECHO, b"what")) {
            // ONC RPC compares nothing.
            (Protocol::Onc, Ok(echo)) => assert_eq!(echo, b"what", "{row}"),
            (Protocol::Lean, Err(error @ CallError::Unbound(_))) => {
                assert!(!error.may_have_executed(), "{row}");
                let error = error.to_string();
                // The line differs, too, but because of its points.
                assert!(error.contains("point differs"), "{row}: {error}");
            }
            (_, outcome) => panic!("{row}: {outcome:?}"),
        }
        // Others on the same connection are not concerned.
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}

/// Calls that are sent before the server has answered, some of which it refuses, and calls after it has.
#[test]
fn procedures_that_agree_are_called_and_others_are_not_carried_out() {
    for row in rows()
        .into_iter()
        .filter(|row| row.protocol == Protocol::Lean)
    {
        let service = Obliging {
            interface: Some(interface_with_echo(1)),
            ..Obliging::default()
        };
        let server = row.server(&service, Execution::Inline);
        let client = row.client(&server.address()).of(interface_with_echo(2));
        let started: Vec<_> = (0..24)
            .map(|number| {
                let procedure = if number % 3 == 2 { ECHO } else { NOTE };
                (procedure, number, client.start(procedure, &[number]))
            })
            .collect();
        for (procedure, number, call) in started {
            // What is known of the server by then is told at once.
            match (procedure, call.and_then(Pending::wait)) {
                (NOTE, Ok(answer)) => assert_eq!(answer, [number], "{row}"),
                (ECHO, Err(error @ CallError::Unbound(_))) => {
                    assert!(!error.may_have_executed(), "{row}");
                    let error = error.to_string();
                    assert!(
                        error.ends_with("interface: procedure ECHO differs"),
                        "{row}: {error}"
                    );
                }
                (_, outcome) => panic!("{row}: {outcome:?}"),
            }
        }
        assert_eq!(client.call(NOTE, b"later").unwrap(), b"later", "{row}");
        client.call(ECHO, b"later").unwrap_err();
        let mut noted = service.gate.noted();
        noted.sort();
        let mut expected: Vec<Vec<u8>> = (0..24).filter(|n| n % 3 != 2).map(|n| vec![n]).collect();
        expected.push(b"later".to_vec());
        assert_eq!(noted, expected, "{row}: once each");
        assert_eq!(client.counters().in_flight, 0, "{row}");
    }
}
