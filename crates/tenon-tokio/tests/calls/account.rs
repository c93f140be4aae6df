//! Accounts of calls that tasks make, of servers of threads and of tasks: that they are known at both ends,
//! and that no nanosecond is missing.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
#[cfg(all(target_os = "linux", not(tenon_portable)))]
use std::time::{Duration, Instant};

use crate::common::obliging::{
    ECHO, FAIL, PROGRAM, Patient, SLEEP, VERSION, call, connect, every_way, in_time, listening,
    listening_in_tasks, obliging,
};
use tenon::{CallProfile, Part, Protocol, Trace, Way};
#[cfg(all(target_os = "linux", not(tenon_portable)))]
use tenon::{FollowedPackets, Leg, PacketCosts, PacketCoverage, PacketStep, Summary, Transport};
use tokio::task::JoinSet;

fn check_sum(trace: &Trace) {
    let sum: u64 = trace.parts().map(|(_, nanos)| nanos).sum();
    assert_eq!(sum, trace.round_trip(), "{trace:?}");
}

fn nanos(trace: &Trace, wanted: Part) -> u64 {
    let mut parts = trace.parts();
    parts.find(|(part, _)| *part == wanted).unwrap().1
}

/// Checks an account of `calls` at this address.
async fn check(address: &str, calls: usize) {
    let client = connect(address).await;
    // So that the server's preamble has come.
    call(&client, ECHO, b"").await.unwrap();
    let way = match client.protocol() {
        Protocol::Onc => Way::Client,
        Protocol::Lean => Way::Whole,
    };
    let account = CallProfile::of_every_call();
    let followed = client.with_profile(&account);
    call(&followed, 0, b"").await.unwrap();
    let slept = 20_u32;
    call(&followed, SLEEP, &slept.to_be_bytes()).await.unwrap();
    call(&followed, FAIL, b"").await.unwrap_err();
    let [null, sleep] = &account.traces()[..] else {
        panic!("{address}: {:?}", account.traces());
    };
    assert_eq!((null.way(), sleep.way()), (way, way), "{address}");
    let waited = match way {
        Way::Whole | Way::TwoClocks => Part::Serve,
        Way::Client => Part::Wait,
    };
    let slept = u64::from(slept) * 1_000_000;
    // A part of it counts elsewhere if this thread is held up between two stamps.
    assert!(nanos(sleep, waited) >= slept / 2);
    account.clear();
    let mut tasks = JoinSet::new();
    for _ in 0..calls {
        let client = followed.clone();
        tasks.spawn(async move { call(&client, ECHO, b"abcd").await.unwrap() });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let traces = account.traces();
    assert_eq!(traces.len(), calls);
    for trace in &traces {
        check_sum(trace);
        assert_eq!(trace.way(), way, "{address}: {trace:?}");
    }
    let summary = account.summary().unwrap();
    assert_eq!((summary.calls, summary.left_out), (calls, 0), "{address}");
    // A call that is given up has no result to account for.
    account.clear();
    {
        let mut dropped = pin!(call(&followed, SLEEP, &[0, 0, 0, 9]));
        let begun = poll_fn(|cx| Poll::Ready(dropped.as_mut().poll(cx)));
        assert!(begun.await.is_pending());
    }
    call(&client, ECHO, b"").await.unwrap();
    assert_eq!(account.traces(), []);
}

#[tokio::test]
async fn calls_of_tasks_are_accounted_for_at_a_server_of_threads() {
    let builder = listening().listen("udp://127.0.0.1:0").unwrap();
    let server = builder.service(obliging()).start().unwrap();
    for address in every_way(server.addresses()) {
        in_time(check(&address, 50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_tasks_are_accounted_for_at_a_server_of_tasks() {
    let listening = || listening_in_tasks().listen("udp://127.0.0.1:0").unwrap();
    for builder in [
        listening().sync_service(obliging()),
        listening().service(Patient::default()),
    ] {
        let server = builder.start().await.unwrap();
        for address in every_way(server.addresses()) {
            in_time(check(&address, 50)).await;
        }
    }
}

/// The client is one of threads: those of tasks do not follow their packets.
#[cfg(all(target_os = "linux", not(tenon_portable)))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_tasks_says_when_its_kernel_had_the_packets_of_a_call() {
    let listening = || listening_in_tasks().listen("udp://127.0.0.1:0").unwrap();
    for builder in [
        listening().sync_service(obliging()),
        listening().service(Patient::default()),
    ] {
        let server = builder.start().await.unwrap();
        let udp = server
            .addresses()
            .iter()
            .find(|address| address.transport() == Transport::Udp);
        let address = format!("lean+{}", udp.unwrap());
        let account = tokio::task::spawn_blocking(move || follow_packets(&address));
        let summary = in_time(account).await.unwrap();
        assert_eq!(
            (summary.way, summary.packets),
            (Way::Whole, PacketCoverage::Both)
        );
        for leg in [Leg::Call, Leg::Reply] {
            for step in [PacketStep::Headers, PacketStep::Wire, PacketStep::WakeUp] {
                let mut parts = summary.parts.iter();
                let wanted = Part::Packet(leg, step);
                assert!(parts.any(|part| part.part == wanted), "{summary:?}");
            }
        }
    }
}

/// Calls procedure 0 many times, and returns the account of the packets.
#[cfg(all(target_os = "linux", not(tenon_portable)))]
fn follow_packets(address: &str) -> Summary {
    let account = CallProfile::of_packets(50, PacketCosts::default());
    let client = tenon::Client::connect(address, PROGRAM, VERSION).unwrap();
    let client = client.with_profile(&account);
    let channel = client.channel();
    client.ping().unwrap();
    channel.follow_packets(FollowedPackets::All).unwrap();
    // The kernel begins to stamp in its own time, and the latest calls are kept.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        for _ in 0..200 {
            let null = client.lean().call(0, |_| Ok(()), |_| Ok(()));
            null.unwrap();
            account.note_packets(channel.take_packet_stamps());
        }
        let summary = account.summary().unwrap();
        if summary.packets == PacketCoverage::Both || Instant::now() > until {
            account.traces().iter().for_each(check_sum);
            return summary;
        }
    }
}
