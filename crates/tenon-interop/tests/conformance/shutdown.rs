//! Servers that stop: what was begun is answered, what comes later is refused.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use tenon::Protocol;
use tenon_proto::onc::reply::CLOSE_NOTICE;

use crate::rows::{End, Execution, Row, plain_rows, rows, sized_rows};
use crate::service::{ECHO, HOLD, Obliging, PROGRAM, VERSION};
use crate::sockets;

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

/// Its last reply is one to no call, of which clients that know it take that nothing else was carried out.
#[test]
fn clients_of_onc_rpc_get_a_close_notice_behind_their_replies() {
    let is_tried = |row: &Row| row.protocol == Protocol::Onc && row.client == End::Threads;
    for row in plain_rows().into_iter().filter(is_tried) {
        for is_idle in [false, true] {
            let server = row.server(&Obliging::default(), Execution::Inline);
            let mut stream = sockets::connect(&server.address()).unwrap();
            let words = [0_u32, 2, PROGRAM, VERSION, 0, 0, 0, 0, 0];
            let call = [
                &7_u32.to_be_bytes()[..],
                &words.map(u32::to_be_bytes).concat(),
            ]
            .concat();
            stream.write_all(&record(&call)).unwrap();
            let reply = [7_u32, 1, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
            let mut got = vec![0; reply.len() + 4];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(got, record(&reply), "{row}");
            if is_idle {
                // It is told, too, though it is not waited for.
                thread::sleep(Duration::from_millis(1200));
            }
            let mut rest = Vec::new();
            thread::scope(|scope| {
                scope.spawn(|| server.shutdown());
                stream.read_to_end(&mut rest).unwrap();
                drop(stream);
            });
            assert_eq!(rest, record(&CLOSE_NOTICE), "{row}");
        }
    }
}

fn record(message: &[u8]) -> Vec<u8> {
    let mark = 1 << 31 | message.len() as u32;
    [&mark.to_be_bytes(), message].concat()
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
