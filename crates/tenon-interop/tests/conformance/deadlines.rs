//! Time that runs out, and that travels with the call where the protocol carries it.

use std::thread;
use std::time::Duration;

use tenon::{CallError, Protocol};

use crate::rows::{Execution, rows};
use crate::service::{ECHO, HOLD, NOTE, Obliging};

/// Time that is meant to run out.
const SHORT: Duration = Duration::from_millis(60);

#[test]
fn time_runs_out_for_one_call_only() {
    for row in rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Waiting);
        let client = row.client(&server.address());
        client.call(ECHO, b"").unwrap();
        let patient = client.start(HOLD, b"patient").unwrap();
        service.gate.wait_for(1);
        let error = client
            .clone()
            .within(SHORT)
            .call(HOLD, b"hasty")
            .unwrap_err();
        let expected = CallError::TimedOut {
            limit: SHORT,
            may_have_executed: true,
            calls_max: None,
        };
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{row}");
        assert_eq!(client.call(ECHO, b"others").unwrap(), b"others", "{row}");
        service.gate.open();
        assert_eq!(patient.wait().unwrap(), b"patient", "{row}");
        assert_eq!(client.counters().connections, 1, "{row}");
    }
}

/// The only worker is held until the time of the call behind is over.
#[test]
fn a_server_does_not_begin_what_is_late_if_it_is_told() {
    for row in rows() {
        let service = Obliging::default();
        let server = row.server(&service, Execution::Workers(1));
        let client = row.client(&server.address());
        let holding = client.start(HOLD, b"").unwrap();
        service.gate.wait_for(1);
        let hasty = client.clone().within(SHORT);
        let error = hasty.call(NOTE, b"late").unwrap_err();
        assert!(
            matches!(error, CallError::TimedOut { .. }),
            "{row}: {error:?}"
        );
        if row.protocol == Protocol::Lean {
            // Procedure 0 is answered in its turn: so the server has the call behind which it came, and knows
            // that it was given up. A while after that the call is late for the server, too.
            client.call(0, b"").unwrap();
            thread::sleep(SHORT);
        }
        service.gate.open();
        holding.wait().unwrap();
        assert_eq!(client.call(NOTE, b"in time").unwrap(), b"in time", "{row}");
        let noted = service.gate.noted();
        match row.protocol {
            Protocol::Lean => assert_eq!(noted, [b"in time"], "{row}"),
            // By ONC RPC it is not told; a later call that comes in a datagram may overtake the late one.
            Protocol::Onc => assert!(noted.iter().any(|note| note == b"in time"), "{row}"),
        }
    }
}
