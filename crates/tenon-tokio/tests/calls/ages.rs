//! Connections that end by their age: lean clients lose no call by it, and calls that take too long behind it are told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging::*;
use crate::common::place::{fresh_host, fresh_path};
use tenon::{CallErrorKind, Client, ServerCounters, ServerLimits};

/// Age of the connections here.
const AGE: Duration = Duration::from_millis(60);

/// A server of threads or of tasks.
enum Server {
    Threads(tenon::Server),
    Tasks {
        server: tenon_tokio::Server,
        _runtime: tokio::runtime::Runtime,
    },
}

impl Server {
    fn both(listen: impl Fn() -> String, limits: &ServerLimits) -> [Self; 2] {
        let threads = tenon::Server::builder().limits(limits.clone());
        let threads = threads.listen(&listen()).unwrap().service(obliging());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let tasks = tenon_tokio::Server::builder().limits(limits.clone());
        let tasks = tasks.listen(&listen()).unwrap().service(Patient::default());
        let tasks = runtime.block_on(tasks.start()).unwrap();
        [
            Self::Threads(threads.start().unwrap()),
            Self::Tasks {
                server: tasks,
                _runtime: runtime,
            },
        ]
    }

    fn address(&self) -> String {
        match self {
            Self::Threads(server) => server.addresses()[0].to_string(),
            Self::Tasks { server, .. } => server.addresses()[0].to_string(),
        }
    }

    fn counters(&self) -> ServerCounters {
        match self {
            Self::Threads(server) => server.counters(),
            Self::Tasks { server, .. } => server.counters(),
        }
    }
}

fn places() -> [fn() -> String; 3] {
    [
        || format!("tcp://{}:0", fresh_host()),
        || format!("unix://{}", fresh_path().display()),
        || format!("shm://{}", fresh_path().display()),
    ]
}

fn lean(address: &str) -> Client {
    match address.starts_with("shm") {
        true => connect_blocking(address),
        false => connect_blocking(&format!("lean+{address}")),
    }
}

fn echo(client: &Client, bytes: &[u8]) -> Vec<u8> {
    call_blocking(client, ECHO, bytes).unwrap()
}

/// Callers that never pause, and one that does, go through many connections.
#[test]
fn a_lean_client_loses_no_call_by_the_age_of_its_connections() {
    let limits = ServerLimits {
        connection_age: Some(AGE),
        ..ServerLimits::default()
    };
    for place in places() {
        for server in Server::both(place, &limits) {
            let address = server.address();
            let client = lean(&address);
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for caller in 0..3_u32 {
                    let (client, is_over, address) = (&client, &is_over, &address);
                    scope.spawn(move || {
                        let mut calls = 0_u32;
                        while !is_over.load(Ordering::Relaxed) {
                            let sent = [caller.to_be_bytes(), calls.to_be_bytes()].concat();
                            let echoed = echo(client, &sent);
                            assert_eq!(echoed, sent, "{address}: call {calls}");
                            calls += 1;
                            if caller == 0 {
                                std::thread::sleep(AGE / 7);
                            }
                        }
                    });
                }
                let begun = Instant::now();
                while client.channel().counters().connections < 6 {
                    assert!(begun.elapsed() < PATIENCE, "{address}");
                    std::thread::sleep(AGE / 10);
                }
                is_over.store(true, Ordering::Relaxed);
            });
            assert!(server.counters().aged_connections >= 4, "{address}");
        }
    }
}

/// By ONC RPC a connection ends in a silence behind its age, and the next call makes another.
#[test]
fn a_connection_of_onc_rpc_ends_in_a_silence() {
    let limits = ServerLimits {
        connection_age: Some(AGE),
        ..ServerLimits::default()
    };
    for place in &places()[..2] {
        for server in Server::both(place, &limits) {
            let address = server.address();
            let client = connect_blocking(&address);
            assert_eq!(echo(&client, b"first"), b"first");
            let begun = Instant::now();
            while server.counters().aged_connections == 0 {
                assert!(begun.elapsed() < PATIENCE, "{address}");
                std::thread::sleep(AGE);
            }
            assert_eq!(echo(&client, b"second"), b"second");
            assert_eq!(client.channel().counters().connections, 2, "{address}");
        }
    }
}

/// A call that runs on is cancelled when its connection has had its grace.
#[test]
fn a_call_that_outlives_the_grace_is_told_that_its_connection_is_lost() {
    let limits = ServerLimits {
        connection_age: Some(AGE),
        connection_grace: Some(AGE),
        ..ServerLimits::default()
    };
    for place in places() {
        for server in Server::both(place, &limits) {
            let address = server.address();
            let gate = fresh_gate();
            let client = lean(&address);
            let error = call_blocking(&client, HOLD, &gate.to_be_bytes()).unwrap_err();
            assert_eq!(
                error.kind(),
                CallErrorKind::Disconnected,
                "{address}: {error}"
            );
            assert!(error.may_have_executed(), "{address}: {error}");
            open(gate);
            assert_eq!(echo(&client, b"next"), b"next", "{address}");
        }
    }
}
