//! Many calls in flight: their order, more of them than a server takes, and those that are given up.

use std::thread;

use tenon::ServerLimits;

use crate::rows::{Client, Execution, Pending, rows, sized_rows, stream_rows};
use crate::service::{ECHO, HOLD, NOTE, Obliging};

/// Calls of a test.
const MANY: u32 = 200;

fn start_many(client: &Client, procedure: u16) -> Vec<(u32, Pending)> {
    let numbers = 0..MANY;
    let calls = numbers.map(|number| {
        let call = client.start(procedure, &number.to_be_bytes());
        (number, call.unwrap())
    });
    calls.collect()
}

#[test]
fn calls_of_a_service_that_keeps_order_are_carried_out_in_their_order() {
    for row in stream_rows() {
        let service = Obliging {
            keeps_order: true,
            ..Obliging::default()
        };
        let limits = ServerLimits {
            connection_calls: 1 << 10,
            ..ServerLimits::default()
        };
        let server = row.serve(&service, Execution::Inline, limits);
        let client = row.client(&server.address());
        // So that the server's preamble has come.
        client.call(ECHO, b"").unwrap();
        let sent: Vec<_> = (0..MANY)
            .map(|number| number.to_be_bytes().to_vec())
            .collect();
        for (echo, sent) in client.call_all(NOTE, &sent).into_iter().zip(&sent) {
            assert_eq!(&echo.unwrap(), sent, "{row}");
        }
        assert!(service.gate.noted() == sent, "{row}");
    }
}

#[test]
fn replies_find_their_callers_in_any_order() {
    for row in sized_rows() {
        let server = row.server(&Obliging::default(), Execution::Workers(4));
        let client = row.client(&server.address());
        let calls = start_many(&client, ECHO);
        // Those who wait last are answered first.
        for (number, call) in calls.into_iter().rev() {
            assert_eq!(call.wait().unwrap(), number.to_be_bytes(), "{row}");
        }
        assert_eq!(client.counters().in_flight, 0, "{row}");
    }
}

/// What a server does not take at a time waits: with the server by ONC RPC, with the client by lean.
#[test]
fn more_calls_than_the_server_takes_are_all_answered() {
    const LIMIT: usize = 16;
    for row in sized_rows() {
        let service = Obliging::default();
        let limits = ServerLimits {
            connection_calls: LIMIT,
            ..ServerLimits::default()
        };
        let server = row.serve(&service, Execution::Waiting, limits);
        let client = row.client(&server.address());
        client.call(ECHO, b"").unwrap();
        thread::scope(|scope| {
            let callers = (0..3 * LIMIT as u32).map(|number| {
                let client = &client;
                scope.spawn(move || {
                    let sent = number.to_be_bytes();
                    assert_eq!(client.call(HOLD, &sent).unwrap(), sent, "{row}");
                })
            });
            let callers: Vec<_> = callers.collect();
            service.gate.wait_for(LIMIT);
            service.gate.open();
            callers
                .into_iter()
                .for_each(|caller| caller.join().unwrap());
        });
        assert_eq!(service.gate.held_most(), LIMIT, "{row}");
    }
}

#[test]
fn a_call_that_is_given_up_does_not_get_its_reply_into_anothers_hands() {
    for row in rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let client = row.client(&server.address());
        client.call(ECHO, b"").unwrap();
        let given_up: Vec<_> = (0..8)
            .map(|_| client.start(HOLD, b"given up").unwrap())
            .collect();
        service.gate.wait_for(8);
        let kept = client.start(HOLD, b"kept").unwrap();
        service.gate.wait_for(9);
        given_up.into_iter().for_each(Pending::give_up);
        assert_eq!(
            client.call(ECHO, b"meanwhile").unwrap(),
            b"meanwhile",
            "{row}"
        );
        service.gate.open();
        assert_eq!(kept.wait().unwrap(), b"kept", "{row}");
        for number in 0..20_u32 {
            let sent = number.to_be_bytes();
            assert_eq!(client.call(ECHO, &sent).unwrap(), sent, "{row}");
        }
        assert_eq!(client.counters().in_flight, 0, "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}
