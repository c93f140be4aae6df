//! Servers of tasks, called from tasks and from threads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging::{
    ECHO, FAIL, InOrder, PANIC, PATIENCE, PROGRAM, Patient, VERSION, call, call_blocking, connect,
    connect_blocking, eventually, every_way, hold, in_time, interface, listening_in_tasks,
    obliging, sizes, sleep,
};
use crate::common::raw::first_call;
use tenon::{Address, CallError, ServerLimits};
use tenon_tokio::Server;
use tokio::task::{JoinSet, spawn_blocking};

/// One server of each kind of execution, and its name.
async fn servers() -> Vec<(&'static str, Server)> {
    let limits = ServerLimits {
        message_bytes: 16 << 20,
        ..ServerLimits::default()
    };
    let builder = || listening_in_tasks().limits(limits.clone());
    let builders = [
        ("functions", builder().sync_service(obliging())),
        (
            "functions in order",
            builder().sync_service(InOrder(obliging())),
        ),
        ("tasks", builder().service(Patient::default())),
        (
            "tasks in order",
            builder().service(InOrder(Patient::default())),
        ),
    ];
    let mut servers = Vec::new();
    for (kind, builder) in builders {
        servers.push((kind, builder.start().await.unwrap()));
    }
    servers
}

#[tokio::test]
async fn tasks_are_answered_over_every_stream() {
    for (kind, server) in servers().await {
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            for size in sizes() {
                let bytes = vec![size as u8; size.next_multiple_of(4)];
                let echoed = in_time(call(&client, ECHO, &bytes)).await.unwrap();
                assert!(echoed == bytes, "{kind}, {address}: {size}");
            }
        }
        in_time(server.shutdown(PATIENCE)).await;
        assert_eq!(server.counters().connections_open, 0, "{kind}");
        assert_eq!(server.counters().broken_connections, 0, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_answered_over_every_stream() {
    for (kind, server) in servers().await {
        let addresses = every_way(server.addresses());
        let threads = spawn_blocking(move || {
            for address in addresses {
                let client = connect_blocking(&address);
                for size in sizes() {
                    let bytes = vec![size as u8; size.next_multiple_of(4)];
                    let echoed = call_blocking(&client, ECHO, &bytes).unwrap();
                    assert!(echoed == bytes, "{kind}, {address}: {size}");
                }
                std::thread::scope(|scope| {
                    for thread in 0..8_u32 {
                        let client = client.clone();
                        scope.spawn(move || {
                            for round in 0..50 {
                                let bytes = [thread, round].map(u32::to_be_bytes).concat();
                                let echoed = call_blocking(&client, ECHO, &bytes).unwrap();
                                assert_eq!(echoed, bytes);
                            }
                        });
                    }
                });
            }
        });
        in_time(threads).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_are_in_flight_over_one_connection() {
    for (kind, server) in servers().await {
        for address in every_way(server.addresses()) {
            let client = connect(&address).await.with_timeout(PATIENCE);
            let mut calls = JoinSet::new();
            for task in 0..100_usize {
                let client = client.clone();
                calls.spawn(async move {
                    for round in 0..10 {
                        let bytes = [task as u8, round, 7, 7].repeat(1 + task * 13 % 600);
                        assert_eq!(call(&client, ECHO, &bytes).await.unwrap(), bytes);
                    }
                });
            }
            in_time(calls.join_all()).await;
            let successes = client.channel().counters().calls.successes;
            assert_eq!(successes, 1000, "{kind}, {address}");
        }
    }
}

/// Whether a kind of execution carries the calls of one connection out at the same time.
fn is_parallel(kind: &str) -> bool {
    matches!(kind, "functions" | "tasks")
}

#[tokio::test]
async fn calls_of_one_connection_run_at_the_same_time() {
    let servers = servers().await.into_iter();
    for (kind, server) in servers.filter(|(kind, _)| is_parallel(kind)) {
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            let (gate, before) = (fresh_gate(), server.counters().calls);
            let held = tokio::spawn({
                let client = client.clone();
                async move { hold(&client, gate).await }
            });
            eventually("the call arrives", || server.counters().calls > before).await;
            let other = in_time(call(&client, ECHO, b"four")).await;
            assert_eq!(other.unwrap(), b"four", "{kind}, {address}");
            assert!(!held.is_finished(), "{kind}, {address}");
            open(gate);
            in_time(held).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn calls_of_one_connection_run_in_order_where_that_is_asked_for() {
    let servers = servers().await.into_iter();
    for (kind, server) in servers.filter(|(kind, _)| !is_parallel(kind)) {
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            let mut calls = JoinSet::new();
            for millis in [50, 1] {
                let client = client.clone();
                calls.spawn(async move {
                    sleep(&client, millis).await.unwrap();
                    millis
                });
                // So that the longer one is sent first.
                tokio::task::yield_now().await;
            }
            let first = calls.join_next().await.unwrap().unwrap();
            assert_eq!(first, 50, "{kind}, {address}");
        }
    }
}

/// Returns how many addresses clients may write for those of a server.
fn count_ways(addresses: &[Address]) -> u64 {
    every_way(addresses).len() as u64
}

#[tokio::test]
async fn failures_are_told_and_harm_nobody_else() {
    for (kind, server) in servers().await {
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            for procedure in [FAIL, PANIC, 99] {
                let error = in_time(call(&client, procedure, b"four"))
                    .await
                    .unwrap_err();
                let is_refusal = matches!(error, CallError::Refused(_) | CallError::Exception(_));
                assert!(is_refusal, "{kind}, {address}: {error:?}");
                assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
            }
        }
        let (counters, ways) = (server.counters(), count_ways(server.addresses()));
        assert_eq!(
            (counters.panics, counters.service_refusals),
            (ways, 2 * ways),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_lean_call_that_is_given_up_ends_where_it_waits() {
    let patient = Patient::default();
    let held = Arc::clone(&patient.held);
    let gate = fresh_gate();
    let server = listening_in_tasks().service(patient).start().await.unwrap();
    // Calls whose client is gone are let go by either protocol.
    let mut clients = Vec::new();
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        let given_up = tokio::time::timeout(Duration::from_millis(30), hold(&client, gate));
        assert!(given_up.await.is_err());
        assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
        clients.push(client);
    }
    let over = |count| held.over.load(Ordering::SeqCst) == count;
    let addresses = server.addresses().len();
    eventually("the lean calls end", || over(addresses)).await;
    open(gate);
    // Those over ONC RPC are held to the end: there is no way to tell.
    eventually("the others end", || over(2 * addresses)).await;
    assert_eq!(held.to_the_end.load(Ordering::SeqCst), addresses);
}

#[tokio::test]
async fn a_lean_call_whose_time_has_run_out_leaves_its_room_to_others() {
    let patient = Patient::default();
    let held = Arc::clone(&patient.held);
    let limits = ServerLimits {
        calls: 1,
        ..ServerLimits::default()
    };
    let builder = listening_in_tasks().limits(limits);
    let server = builder.service(patient).start().await.unwrap();
    let gate = fresh_gate();
    for address in server.addresses() {
        let client = connect(&format!("lean+{address}")).await;
        let before = server.counters().calls;
        let late = tokio::spawn({
            let client = client.clone().with_timeout(Duration::from_millis(500));
            async move { hold(&client, gate).await }
        });
        eventually("the call arrives", || server.counters().calls > before).await;
        // Behind this one it is not heard that nobody waits for the other any more.
        let client = client.with_timeout(PATIENCE);
        let echoed = in_time(call(&client, ECHO, b"four")).await;
        assert_eq!(echoed.unwrap(), b"four", "{address}");
        let late = in_time(late).await.unwrap().unwrap_err();
        assert!(
            matches!(late, CallError::TimedOut { .. }),
            "{address}: {late:?}"
        );
    }
    assert_eq!(held.over.load(Ordering::SeqCst), server.addresses().len());
    assert_eq!(held.to_the_end.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn time_that_has_run_out_is_told() {
    for (kind, server) in servers().await {
        for address in every_way(server.addresses()) {
            let client = connect(&address)
                .await
                .with_timeout(Duration::from_millis(40));
            let gate = fresh_gate();
            let late = in_time(hold(&client, gate)).await.unwrap_err();
            assert!(
                matches!(late, CallError::TimedOut { .. }),
                "{kind}, {address}: {late:?}"
            );
            open(gate);
            let client = client.with_timeout(PATIENCE);
            assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_down_answers_what_was_begun() {
    for (kind, server) in servers().await {
        let server = Arc::new(server);
        let gate = fresh_gate();
        let mut calls = JoinSet::new();
        for address in every_way(server.addresses()) {
            calls.spawn(async move {
                let client = connect(&address).await;
                let held = hold(&client, gate).await;
                let after = call(&client.with_timeout(Duration::from_millis(50)), ECHO, b"").await;
                (address, held, after)
            });
        }
        let ways = count_ways(server.addresses());
        eventually("the calls arrive", || server.counters().calls == ways).await;
        let stopping = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.shutdown(PATIENCE).await }
        });
        let place = server.addresses()[0].to_string();
        let place = &place["tcp://".len()..];
        eventually("nobody listens", || TcpStream::connect(place).is_err()).await;
        assert!(!stopping.is_finished(), "{kind}: it waits for calls");
        open(gate);
        in_time(stopping).await.unwrap();
        for (address, held, after) in in_time(calls.join_all()).await {
            assert!(held.is_ok(), "{kind}, {address}: {held:?}");
            assert!(after.is_err(), "{kind}, {address}");
        }
        assert_eq!(server.counters().connections_open, 0, "{kind}");
    }
}

#[tokio::test]
async fn shutting_down_waits_no_longer_than_it_is_told() {
    let builder = listening_in_tasks();
    let server = builder.service(Patient::default()).start().await.unwrap();
    let mut calls = JoinSet::new();
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        calls.spawn(async move { sleep(&client, 60_000).await });
    }
    let ways = count_ways(server.addresses());
    eventually("the calls arrive", || server.counters().calls == ways).await;
    in_time(server.shutdown(Duration::from_millis(20))).await;
    for ended in in_time(calls.join_all()).await {
        let error = ended.unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
        assert!(error.may_have_executed());
    }
}

/// Sends bytes and reads whatever comes until the end, or until nothing more comes.
fn converse(address: &str, bytes: &[u8]) -> Vec<u8> {
    let limit = Some(PATIENCE);
    let mut answered = Vec::new();
    match address.split_once("://").unwrap() {
        ("tcp", place) => {
            let mut stream = TcpStream::connect(place).unwrap();
            stream.set_read_timeout(limit).unwrap();
            // The server may have gone already.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut answered);
        }
        (_, path) => {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.set_read_timeout(limit).unwrap();
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut answered);
        }
    }
    answered
}

/// What a client sends for a first call, in either protocol.
fn first_calls() -> [Vec<u8>; 2] {
    let words = [
        (40 + 4) | (1 << 31),
        7,
        0,
        2,
        PROGRAM,
        VERSION,
        1,
        0,
        0,
        0,
        0,
        0x5a5a_5a5a,
    ];
    let onc = words.map(u32::to_be_bytes).concat();
    [onc, first_call(interface())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bytes_end_their_own_connection_only() {
    for (kind, server) in servers().await {
        let addresses = server.addresses().to_vec();
        let talk = spawn_blocking(move || {
            let mut seed = 0x9e37_79b9_u32;
            for address in addresses.iter().map(ToString::to_string) {
                for first in first_calls() {
                    assert!(!converse(&address, &first).is_empty(), "{address}");
                    for cut in 0..first.len() {
                        converse(&address, &first[..cut]);
                    }
                    for round in 0..200 {
                        let mut damaged = first.clone();
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let place = seed as usize % damaged.len();
                        damaged[place] ^= 1 << (round % 8);
                        converse(&address, &damaged);
                    }
                }
                converse(&address, b"GET / HTTP/1.1\r\n\r\n");
            }
        });
        in_time(talk).await.unwrap();
        for address in every_way(server.addresses()) {
            let client = connect(&address).await;
            let echoed = in_time(call(&client, ECHO, b"four")).await;
            assert_eq!(echoed.unwrap(), b"four", "{kind}");
        }
        assert!(server.counters().broken_connections > 0, "{kind}");
    }
}

#[tokio::test]
async fn limits_hold() {
    let limits = ServerLimits {
        connections: 2,
        // Long enough for a client that waits for a core not to be taken for a silent one.
        idle_timeout: Some(Duration::from_secs(2)),
        calls: 3,
        connection_calls: 2,
        ..ServerLimits::default()
    };
    let builder = listening_in_tasks().limits(limits);
    let server = builder.service(Patient::default()).start().await.unwrap();
    let addresses = every_way(server.addresses());
    let (first, second) = (connect(&addresses[0]).await, connect(&addresses[1]).await);
    let mut calls = JoinSet::new();
    for client in [&first, &second] {
        for _ in 0..8 {
            let client = client.clone();
            calls.spawn(async move { sleep(&client, 20).await });
        }
    }
    for slept in in_time(calls.join_all()).await {
        slept.unwrap();
    }
    let third = connect(&addresses[0])
        .await
        .with_timeout(Duration::from_millis(100));
    let refused = in_time(call(&third, ECHO, b"")).await.unwrap_err();
    assert!(!matches!(refused, CallError::Refused(_)), "{refused:?}");
    eventually("one is refused", || {
        server.counters().connections_refused > 0
    })
    .await;
    eventually("the others are silent", || {
        server.counters().idle_connections >= 2
    })
    .await;
}
