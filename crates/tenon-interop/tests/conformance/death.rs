//! Peers that die in the middle of calls.

use std::io::Write;

use tenon::CallError;

use crate::relay::{Relay, Toward};
use crate::rows::{Client, Execution, Pending, Row, eventually, mortal_rows, plain_rows};
use crate::service::{ECHO, HOLD, Obliging};
use crate::sockets;

/// Calls that the service holds, all of them.
fn calls_that_are_held(client: &Client, service: &Obliging) -> Vec<Pending> {
    const CALLS: usize = 8;
    let calls = (0..CALLS).map(|_| client.start(HOLD, b"").unwrap());
    let calls = calls.collect();
    service.gate.wait_for(CALLS);
    calls
}

/// The call has come to nothing with its connection, and may have been carried out.
fn assert_may_have_executed(row: &Row, outcome: Result<Vec<u8>, CallError>) {
    let error = outcome.unwrap_err();
    let is_told = matches!(error, CallError::Disconnected { .. });
    assert!(is_told && error.may_have_executed(), "{row}: {error:?}");
}

/// Cut off behind nothing, within the header and within the result.
#[test]
fn a_server_that_dies_in_the_middle_of_a_reply_is_told_and_found_again() {
    for row in plain_rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let relay = Relay::default();
        let client = row.client(&relay.before(&server.address()));
        client.call(ECHO, b"").unwrap();
        for left in [0, 1, 10, 20] {
            relay.touch(Toward::Client, 0, move |bytes| bytes.truncate(left));
            assert_may_have_executed(&row, client.call(ECHO, &[7; 64]));
            let next = client.call(ECHO, b"next");
            assert_eq!(next.unwrap(), b"next", "{row}");
        }
        assert_eq!(client.counters().connections, 5, "{row}");
    }
}

#[test]
fn all_calls_in_flight_end_with_the_connection() {
    for row in plain_rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let relay = Relay::default();
        let client = row.client(&relay.before(&server.address()));
        client.call(ECHO, b"").unwrap();
        let calls = calls_that_are_held(&client, &service);
        relay.touch(Toward::Client, 0, |bytes| bytes.clear());
        // Its reply is the one that never comes whole.
        assert!(client.call(ECHO, b"").is_err(), "{row}");
        for call in calls {
            assert_may_have_executed(&row, call.wait());
        }
        service.gate.open();
        assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
    }
}

/// Whatever carried them, and in the middle of nothing: the process is gone.
#[test]
fn all_calls_in_flight_end_with_their_server() {
    for row in mortal_rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let relay = Relay::default();
        let client = row.client(&relay.before(&server.address()));
        client.call(ECHO, b"").unwrap();
        let calls = calls_that_are_held(&client, &service);
        relay.cut();
        for call in calls {
            assert_may_have_executed(&row, call.wait());
        }
        service.gate.open();
        // A port that is closed stays so.
        if row.carrier.no_connection.is_none() {
            assert_eq!(client.call(ECHO, b"next").unwrap(), b"next", "{row}");
        }
    }
}

/// Of calls that are carried out nobody waits for, nothing is left.
#[test]
fn clients_that_die_in_the_middle_of_calls_leave_nothing_behind() {
    for row in plain_rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let relay = Relay::default();
        let client = row.client(&relay.before(&server.address()));
        let calls = calls_that_are_held(&client, &service);
        // Half a message, and then nothing.
        relay.touch(Toward::Server, 0, |bytes| bytes.truncate(bytes.len() / 2));
        let _ = client.call(ECHO, b"half");
        drop(calls);
        drop(client);
        half_a_call(&server.address());
        service.gate.open();
        eventually("the end of all connections", || {
            server.counters().connections_open == 0
        });
        let client = row.client(&server.address());
        assert_eq!(client.call(ECHO, b"others").unwrap(), b"others", "{row}");
    }
}

/// The mark of a record that never comes.
fn half_a_call(address: &str) {
    let mut stream = sockets::connect(address).unwrap();
    stream.write_all(&[0x80, 0, 0, 40, 0]).unwrap();
}
