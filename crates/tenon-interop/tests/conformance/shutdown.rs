//! Servers that stop: what was begun is answered, what comes later is refused.

use std::thread;
use std::time::Duration;

use crate::rows::{Execution, rows, sized_rows};
use crate::service::{ECHO, HOLD, Obliging};

#[test]
fn calls_in_flight_are_answered_and_later_ones_refused() {
    for row in sized_rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let client = row.client(&server.address());
        client.call(ECHO, b"").unwrap();
        let calls: Vec<_> = (0..8_u32)
            .map(|number| client.start(HOLD, &number.to_be_bytes()).unwrap())
            .collect();
        service.gate.wait_for(8);
        thread::scope(|scope| {
            scope.spawn(|| server.shutdown());
            // Whether the server has begun to stop or not, it answers.
            service.gate.open();
            for (number, call) in (0..8_u32).zip(calls) {
                assert_eq!(call.wait().unwrap(), number.to_be_bytes(), "{row}");
            }
        });
        // A channel that was used just now does not look whether its peer has gone meanwhile.
        thread::sleep(Duration::from_millis(120));
        let late = client.within(Duration::from_millis(50));
        let error = late.call(ECHO, b"late").unwrap_err();
        // Who met a closed port cannot tell which of its packets did.
        if row.carrier.no_connection.is_none() {
            assert!(!error.may_have_executed(), "{row}: {error:?}");
        }
    }
}

#[test]
fn a_server_that_is_gone_is_missed() {
    for row in rows() {
        let server = row.server(&Obliging::default(), Execution::Inline);
        let client = row.client(&server.address());
        client.call(ECHO, b"").unwrap();
        server.shutdown();
        drop(server);
        let late = client.within(Duration::from_millis(50));
        assert!(late.call(ECHO, b"").is_err(), "{row}");
    }
}
