//! The processor time that a connection in shared memory takes that only waits.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::caller::{eventually, fresh_path};
use crate::common::gate;
use crate::common::lean_caller::{ECHO, HOLD, LeanCaller, LeanObliging, interface};
use tenon::lean::Extras;
use tenon::{Server, ServerLimits};

/// The time that this process has taken of processors.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<_> = behind_name.split_ascii_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
    // A tick is ten milliseconds.
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Waits until almost no processor time is taken, as nothing happens.
fn expect_rest() {
    eventually("a second of rest", || {
        let before = processor_time();
        thread::sleep(Duration::from_secs(1));
        processor_time() - before < Duration::from_millis(300)
    });
}

/// Memory says nothing by itself: a server that looked at what it cannot receive now would look for ever.
pub fn a_connection_in_memory_that_waits_costs_nothing() {
    let address = format!("shm://{}", fresh_path().display());
    let builder = Server::builder().listen(&address).unwrap();
    // However long it takes until there is rest.
    let limits = ServerLimits {
        send_timeout: None,
        receive_timeout: None,
        ..ServerLimits::default()
    };
    let builder = builder.limits(limits);
    let server = builder.service(LeanObliging).start().unwrap();
    a_peer_that_has_gone_while_its_call_is_carried_out(&address);
    replies_that_are_not_received(server, &address);
}

fn a_peer_that_has_gone_while_its_call_is_carried_out(address: &str) {
    let mut lean = LeanCaller::connect(address);
    let gate = gate::fresh_gate();
    let (interface, extras) = (Arc::new(interface()), Extras::default());
    lean.start(&interface, HOLD, &gate.to_ne_bytes(), &extras, "held");
    lean.start(&interface, ECHO, b"fast", &extras, "echo");
    lean.send();
    assert_eq!(lean.answer(), "echo: fast");
    drop(lean);
    expect_rest();
    gate::open(gate);
}

/// One ring fills with replies, and the other with requests that are not received for that.
fn replies_that_are_not_received(server: Server, address: &str) {
    const CALLS: u64 = 15;
    let mut lean = LeanCaller::connect(address);
    let (interface, extras) = (Arc::new(interface()), Extras::default());
    assert_eq!(lean.call(ECHO, b"first"), "ECHO: first");
    let large = vec![7; 600_000];
    for _ in 0..CALLS {
        lean.start(&interface, ECHO, &large, &extras, "echo");
    }
    thread::scope(|scope| {
        // It ends with the server.
        scope.spawn(|| lean.send());
        expect_rest();
        assert_eq!(server.counters().slow_readers, 0);
        assert!(server.counters().calls < CALLS);
        server.shutdown(Duration::ZERO);
    });
}
