//! How many system calls the calls of tasks take, as strace counts them.

use crate::common::counting::{Counts, all, count, expect_system_calls, orders};
use crate::common::obliging::{ECHO, call, connect, every_way, listening, obliging};

/// Calls that one task makes at the same time.
const TOGETHER: u32 = 64;

fn run(calls: impl AsyncFn(&tenon_tokio::Client, u32)) {
    let Some(orders) = orders() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = connect(&orders.address).await;
        calls(&client, orders.calls).await;
    });
}

#[test]
fn child_one_at_a_time() {
    run(async |client, count| {
        // Not the future that the run time blocks on, for whose sake it asks the poller once more.
        let client = client.clone();
        let calls = tokio::spawn(async move {
            for _ in 0..count {
                call(&client, ECHO, b"four").await.unwrap();
            }
        });
        calls.await.unwrap();
    });
}

#[test]
fn child_many_at_a_time() {
    run(async |client, count| {
        for _ in 0..count.div_ceil(TOGETHER) {
            let mut calls = tokio::task::JoinSet::new();
            for _ in 0..TOGETHER {
                let client = client.clone();
                calls.spawn(async move { call(&client, ECHO, b"four").await.unwrap() });
            }
            calls.join_all().await;
        }
    });
}

/// Those that send.
fn sends(counts: &Counts) -> u64 {
    let names = ["sendto", "sendmsg"];
    names.map(|name| count(counts, name)).iter().sum()
}

#[test]
fn one_call_sends_receives_and_waits_once() {
    const CALLS: u32 = 1000;
    let server = listening().service(obliging()).start().unwrap();
    for address in every_way(server.addresses()) {
        // One to send, one to receive, one to wait; and what the clock and the poller need now and
        // then.
        let most = u64::from(CALLS) * 32 / 10;
        expect_system_calls(
            "system_calls::child_one_at_a_time",
            &address,
            CALLS,
            |counts| sends(counts) == u64::from(CALLS) && all(counts) <= most,
        );
    }
}

/// What there is of packets only a receive in vain says.
#[test]
fn one_call_in_packets_receives_once_more() {
    const CALLS: u32 = 1000;
    let builder = tenon::Server::builder()
        .listen("udp://127.0.0.1:0")
        .unwrap();
    let server = builder.service(obliging()).start().unwrap();
    for address in every_way(server.addresses()) {
        let most = u64::from(CALLS) * 42 / 10;
        expect_system_calls(
            "system_calls::child_one_at_a_time",
            &address,
            CALLS,
            |counts| sends(counts) == u64::from(CALLS) && all(counts) <= most,
        );
    }
}

#[test]
fn calls_that_are_ready_together_are_sent_together() {
    const ROUNDS: u32 = 20;
    let server = listening().service(obliging()).start().unwrap();
    for address in every_way(server.addresses()) {
        // The first of a round goes alone, the others together.
        let most = 3 * u64::from(ROUNDS + 2);
        let calls = ROUNDS * TOGETHER;
        expect_system_calls(
            "system_calls::child_many_at_a_time",
            &address,
            calls,
            |counts| sends(counts) <= most,
        );
    }
}
