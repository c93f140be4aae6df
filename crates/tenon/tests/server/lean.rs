//! One port, both protocols: what a lean client meets at a live server, while ONC clients are served
//! beside it.

use std::sync::Arc;
use std::time::Duration;

use crate::common::caller;
use crate::common::caller::{
    Caller, PATIENCE, call, eventually, limited, listening, success, words,
};
use crate::common::gate;
use crate::common::lean_caller::{
    ECHO, FAIL, HOLD, LeanCaller, LeanObliging, PANIC, SLEEP, WHICH_ORDER, interface, lean_builder,
    lean_everywhere,
};
use tenon::Server;
use tenon::lean::{ByteOrder, Extras, Interface, Preamble, Versions};
use tenon::wire::Encoder;

fn streams(server: &Server) -> Vec<String> {
    let addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .filter(|address| !address.starts_with("udp"))
        .collect()
}

fn server() -> Server {
    lean_builder().start().unwrap()
}

#[test]
fn both_protocols_are_spoken_at_one_port() {
    let server = server();
    for address in streams(&server) {
        let mut lean = LeanCaller::connect(&address);
        let onc = tenon::Client::connect(&address, caller::PROGRAM, caller::VERSION).unwrap();
        for round in 0..10_u32 {
            let number = round.to_be_bytes();
            let told = lean.call(ECHO, &number);
            assert_eq!(told, format!("ECHO: {}", number.escape_ascii()));
            let put = |out: &mut Encoder<'_>| {
                out.put(round);
                Ok(())
            };
            let echoed = onc.onc().call(1, put, |input| input.get::<u32>());
            assert_eq!(echoed.unwrap(), round);
        }
    }
    let counters = server.counters();
    assert_eq!((counters.calls, counters.refusals), (40, 0));
    assert_eq!(counters.broken_connections, 0);
}

#[test]
fn whatever_becomes_of_a_call_the_caller_is_told() {
    let server = server();
    for address in streams(&server) {
        let mut lean = LeanCaller::connect(&address);
        assert_eq!(lean.call(0, b"ping"), "0: ");
        assert_eq!(
            lean.call(99, b""),
            "99 failed: the service does not have the procedure"
        );
        assert_eq!(lean.call(FAIL, b""), "FAIL failed: the service failed");
        assert_eq!(lean.call(PANIC, b""), "PANIC failed: the service failed");
        let short = lean.call(SLEEP, b"abc");
        assert!(
            short.starts_with("SLEEP failed: the peer cannot decode the arguments: "),
            "{short}"
        );
        assert_eq!(lean.call(ECHO, b"still there"), "ECHO: still there");
    }
    assert_eq!(server.counters().panics, 2);
}

#[test]
fn a_client_of_the_other_order_is_understood() {
    let server = lean_everywhere().start().unwrap();
    let addresses = server.addresses().iter().map(ToString::to_string);
    let connected = addresses.filter(|address| !address.starts_with("udp://"));
    for address in connected {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let preamble = Preamble {
                order,
                ..Preamble::client(1 << 20)
            };
            let mut lean = LeanCaller::connect_as(&address, &preamble);
            let expected = match order.is_swapped() {
                true => "WHICH_ORDER: swapped",
                false => "WHICH_ORDER: native",
            };
            assert_eq!(lean.call(WHICH_ORDER, b""), expected, "{address}");
            let long = [b'x'; 5000];
            let answer = lean.call(ECHO, &long);
            assert_eq!(
                answer,
                format!("ECHO: {}", long.escape_ascii()),
                "{address}"
            );
        }
    }
}

#[test]
fn an_interface_that_differs_is_refused_by_the_name_of_its_type() {
    let server = server();
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    let other = Interface {
        fingerprint: 99,
        parts: interface()
            .parts
            .into_iter()
            .map(|mut part| {
                part.fingerprint += 1;
                part
            })
            .collect(),
        ..interface()
    };
    let told = lean.call_of(&Arc::new(other), ECHO, b"", &Extras::default());
    assert_eq!(
        told,
        "ECHO unbound: the server was built from another interface: point differs"
    );
    let missing = Arc::new(Interface::unknown(7, 7));
    let told = lean.call_of(&missing, ECHO, b"", &Extras::default());
    assert_eq!(told, "ECHO unbound: the server does not have program 7");
    assert_eq!(lean.call(ECHO, b"but this works"), "ECHO: but this works");
}

#[test]
fn a_service_that_speaks_only_onc_is_not_there_for_a_lean_client() {
    let server = caller::builder().start().unwrap();
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    let told = lean.call(ECHO, b"");
    assert!(told.contains("does not have program"), "{told}");
}

#[test]
fn requests_that_come_byte_by_byte_are_served() {
    let server = server();
    for address in streams(&server) {
        let mut lean = LeanCaller::connect(&address);
        lean.start(
            &Arc::new(interface()),
            ECHO,
            b"slow",
            &Extras::default(),
            "slow",
        );
        lean.send_byte_by_byte();
        assert_eq!(lean.answer(), "slow: slow");
    }
}

#[test]
fn calls_that_were_sent_together_are_answered_together() {
    let server = server();
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    let interface = Arc::new(interface());
    for _ in 0..10 {
        lean.start(&interface, ECHO, b"x", &Extras::default(), "call");
    }
    lean.send();
    for _ in 0..10 {
        assert_eq!(lean.answer(), "call: x");
    }
}

#[test]
fn who_speaks_no_common_version_is_told_which_there_are() {
    let server = server();
    let preamble = Preamble {
        versions: Versions { low: 2, high: 7 },
        ..Preamble::client(1 << 20)
    };
    let mut lean = LeanCaller::connect_silent(&streams(&server)[0]);
    lean.send_raw(&preamble.encode());
    let told = lean.answer();
    assert!(
        told.starts_with("refused: the server speaks version 1"),
        "{told}"
    );
    assert_eq!(lean.answer(), "closed");
}

#[test]
fn who_breaks_the_protocol_is_told_how_and_others_are_served() {
    let server = server();
    let address = &streams(&server)[0];
    let mut other = LeanCaller::connect(address);
    let mut lean = LeanCaller::connect(address);
    assert_eq!(lean.call(ECHO, b"fine"), "ECHO: fine");
    lean.send_raw(&[0; 16]);
    let told = lean.answer();
    assert!(
        told.starts_with("close after Some(1): this end broke the protocol: byte "),
        "{told}"
    );
    assert!(
        told.ends_with("expected the sync word 0xd07e, got 0x0000"),
        "{told}"
    );
    assert_eq!(lean.answer(), "closed");
    assert_eq!(other.call(ECHO, b"me"), "ECHO: me");
    assert_eq!(server.counters().broken_connections, 1);
}

#[test]
fn who_speaks_neither_is_hung_up_on() {
    let server = server();
    for address in streams(&server) {
        for stranger in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x02\0"] {
            let mut lean = LeanCaller::connect_silent(&address);
            lean.send_raw(stranger);
            assert_eq!(lean.answer(), "closed");
        }
    }
    assert_eq!(server.counters().broken_connections, 4);
}

#[test]
fn a_first_request_larger_than_a_reader_takes_at_once_is_served_in_both_protocols() {
    let server = server();
    for address in streams(&server) {
        let large = vec![b'x'; 60_000];
        let mut lean = LeanCaller::connect(&address);
        assert_eq!(lean.call(ECHO, &large).len(), "ECHO: ".len() + large.len());
    }
    for mut onc in Caller::on_all(&server).into_iter().take(2) {
        let large = words(&vec![7; 15_000]);
        onc.send(&call(1, 1, &large));
        assert!(onc.receive() == success(1, &large));
    }
}

#[test]
fn a_damaged_preamble_is_refused() {
    let server = server();
    let mut checked = Preamble::client(1 << 20).encode();
    checked[21] ^= 1;
    for damaged in [&b"\x7ften?"[..], &checked] {
        let mut lean = LeanCaller::connect_silent(&streams(&server)[0]);
        lean.send_raw(damaged);
        let told = "refused: the server found this client's preamble damaged";
        assert_eq!(lean.answer(), told);
        assert_eq!(lean.answer(), "closed");
    }
}

/// A server with threads for two handlers that take long.
fn with_two_threads(change: impl FnOnce(&mut tenon::ServerLimits)) -> Server {
    let limits = limited(|limits| {
        limits.threads = 2;
        change(limits);
    });
    let builder = listening().service(LeanObliging);
    builder.limits(limits).start().unwrap()
}

#[test]
fn calls_on_workers_overtake_each_other() {
    let server = with_two_threads(|_| {});
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    let interface = Arc::new(interface());
    let gate = gate::fresh_gate();
    let held = gate.to_ne_bytes();
    lean.start(&interface, HOLD, &held, &Extras::default(), "slow");
    lean.start(&interface, ECHO, b"", &Extras::default(), "fast");
    lean.send();
    assert_eq!(lean.answer(), "fast: ");
    gate::open(gate);
    assert_eq!(lean.answer(), "slow: held");
}

#[test]
fn many_clients_with_many_calls_each_are_all_answered_with_their_own_results() {
    for server in [server(), with_two_threads(|_| {})] {
        let address = &streams(&server)[0];
        std::thread::scope(|scope| {
            for client in 0..6 {
                scope.spawn(move || call_again_and_again(address, client));
            }
        });
        assert_eq!(server.counters().calls, 6 * 20 * 16);
    }
}

/// Keeps 16 calls in flight, twenty times over, each time on a connection of its own.
fn call_again_and_again(address: &str, client: usize) {
    let interface = Arc::new(interface());
    for round in 0..20 {
        let mut lean = LeanCaller::connect(address);
        let argument = |call| format!("client {client}, round {round}, call {call}");
        for call in 0..16 {
            let argument = argument(call);
            let extras = Extras::default();
            lean.start(&interface, ECHO, argument.as_bytes(), &extras, "echo");
            if call % 5 == client % 5 {
                lean.send();
            }
        }
        lean.send();
        let mut told: Vec<String> = (0..16).map(|_| lean.answer()).collect();
        let mut expected: Vec<_> = (0..16).map(|c| format!("echo: {}", argument(c))).collect();
        told.sort();
        expected.sort();
        assert_eq!(told, expected);
    }
}

#[test]
fn a_call_that_waits_for_a_thread_is_not_begun_once_it_is_cancelled_or_late() {
    let server = with_two_threads(|_| {});
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    let interface = Arc::new(interface());
    let gate = gate::fresh_gate();
    let held = gate.to_ne_bytes();
    for waiter in ["one", "two"] {
        lean.start(&interface, HOLD, &held, &Extras::default(), waiter);
    }
    let id = lean.start(&interface, PANIC, b"", &Extras::default(), "cancelled");
    let limit = Duration::from_millis(1);
    let soon = Extras {
        time_left: Some(limit),
        extensions: &[],
        ..Extras::default()
    };
    lean.start(&interface, PANIC, b"", &soon, "late");
    lean.cancel(id);
    // Procedure 0 is answered by no handler: behind its answer the server knows all that was said before.
    assert_eq!(lean.call(0, b""), "0: ");
    std::thread::sleep(limit);
    gate::open(gate);
    let mut told: Vec<String> = (0..3).map(|_| lean.answer()).collect();
    told.sort();
    let late = "late failed: the time of the call ran out: it was not begun";
    assert_eq!(told, [late, "one: held", "two: held"]);
    assert_eq!(lean.call(ECHO, b""), "ECHO: ");
    assert_eq!(server.counters().panics, 0);
}

#[test]
fn more_calls_than_were_granted_are_refused_one_by_one() {
    let server = with_two_threads(|limits| limits.connection_calls = 1);
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    assert_eq!(lean.call(ECHO, b""), "ECHO: ");
    assert_eq!(lean.granted(), 16, "the least that a server takes");
}

#[test]
fn a_server_that_stops_says_goodbye_to_idle_and_busy_clients_and_answers_what_it_accepted() {
    let server = with_two_threads(|_| {});
    let address = streams(&server)[0].clone();
    let mut idle = LeanCaller::connect(&address);
    assert_eq!(idle.call(ECHO, b""), "ECHO: ");
    let mut busy = LeanCaller::connect(&address);
    let interface = Arc::new(interface());
    let gate = gate::fresh_gate();
    let held = gate.to_ne_bytes();
    busy.start(&interface, HOLD, &held, &Extras::default(), "busy");
    busy.send();
    eventually("the calls arrive", || server.counters().calls == 2);
    // Most often long enough for both connections to be parked; if not, the test proves less.
    std::thread::sleep(Duration::from_millis(200));
    std::thread::scope(|scope| {
        scope.spawn(|| server.shutdown(PATIENCE));
        assert_eq!(idle.answer(), "close after Some(1): it stops");
        assert_eq!(idle.answer(), "closed");
        assert_eq!(busy.answer(), "close after Some(1): it stops");
        gate::open(gate);
        assert_eq!(busy.answer(), "busy: held");
        assert_eq!(busy.answer(), "closed");
    });
}

#[test]
fn a_silent_client_is_told_why_it_is_hung_up_on() {
    // Long enough for a client that waits for a core not to be taken for a silent one.
    let limits = limited(|limits| limits.idle_timeout = Some(Duration::from_secs(2)));
    let server = lean_builder().limits(limits).start().unwrap();
    let mut lean = LeanCaller::connect(&streams(&server)[0]);
    assert_eq!(lean.call(ECHO, b""), "ECHO: ");
    let told = lean.answer();
    assert_eq!(told, "close after Some(1): nothing was asked for too long");
    assert_eq!(lean.answer(), "closed");
}
