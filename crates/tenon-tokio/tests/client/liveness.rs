//! Peers that fall silent are found out by a channel of tasks: by pings while calls wait or when idle, by calls whose time
//! runs out, and by the kernel over TCP, as the options say.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::common::obliging;
use crate::common::obliging::{
    ECHO, call, connect_with, listening, listening_in_tasks, obliging, sleep,
};
use crate::common::swallowing::SwallowingRelay;
use tenon::{CallError, ChannelOptions, Transport};
use tenon_tokio::Client;

/// Far more than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// By both protocols, over TCP.
const PROTOCOLS: [&str; 2] = ["", "lean+"];

fn pinging() -> ChannelOptions {
    let often = ChannelOptions::default().ping_interval(Some(Duration::from_millis(100)));
    often.ping_timeout(Duration::from_millis(200))
}

/// Stands in front of a server of threads.
fn relay_before(server: &tenon::Server) -> SwallowingRelay {
    let mut addresses = server.addresses().iter();
    let tcp = addresses.find(|address| address.transport() == Transport::Tcp);
    SwallowingRelay::before(tcp.unwrap().to_string()["tcp://".len()..].parse().unwrap())
}

async fn connect_to(relay: &SwallowingRelay, protocol: &str, options: ChannelOptions) -> Client {
    let address = format!("{protocol}tcp://{}", relay.address);
    connect_with(&address, options).await.with_timeout(LONG)
}

#[tokio::test]
async fn calls_to_a_peer_that_answers_no_ping_end_and_the_next_one_connects_again() {
    let server = listening().service(obliging()).start().unwrap();
    for protocol in PROTOCOLS {
        for callers in [1, 4] {
            let relay = relay_before(&server);
            let client = connect_to(&relay, protocol, pinging()).await;
            assert_eq!(call(&client, ECHO, b"before").await.unwrap(), b"before");
            relay.swallow();
            let calls: Vec<_> = (0..callers)
                .map(|_| {
                    let client = client.clone();
                    tokio::spawn(async move { call(&client, ECHO, b"silent").await })
                })
                .collect();
            for call in calls {
                let error = call.await.unwrap().unwrap_err();
                assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
                assert!(error.may_have_executed(), "{error}");
                let text = error.to_string();
                assert!(text.contains("no reply to a ping for 200ms"), "{text}");
            }
            assert_eq!(call(&client, ECHO, b"after").await.unwrap(), b"after");
            let counters = client.channel().counters();
            assert_eq!(counters.connections, 2, "{protocol}");
            assert_eq!(counters.calls.unmatched, 0);
        }
    }
}

#[tokio::test]
async fn a_peer_whose_handler_takes_long_answers_pings() {
    const HANDLER: u32 = 6000;
    let threads = listening().service(obliging()).start().unwrap();
    let tasks = listening_in_tasks().sync_service(obliging());
    let tasks = tasks.start().await.unwrap();
    let mut calls = Vec::new();
    for addresses in [threads.addresses(), tasks.addresses()] {
        for address in obliging::every_way(addresses) {
            calls.push(tokio::spawn(async move {
                let options = pinging().ping_timeout(Duration::from_millis(2500));
                let client = connect_with(&address, options).await.with_timeout(LONG);
                sleep(&client, HANDLER).await.unwrap();
                let counters = client.channel().counters();
                assert_eq!(counters.connections, 1, "{address}");
                assert_eq!(counters.calls.unmatched, 0, "{address}");
            }));
        }
    }
    for call in calls {
        call.await.unwrap();
    }
    // By all four ways.
    assert!(
        threads.counters().pings >= 4,
        "{}",
        threads.counters().pings
    );
    assert!(tasks.counters().pings >= 4, "{}", tasks.counters().pings);
}

#[tokio::test]
async fn a_peer_is_asked_when_idle_if_that_is_wanted() {
    let server = listening().service(obliging()).start().unwrap();
    for protocol in PROTOCOLS {
        let relay = relay_before(&server);
        let idle = connect_to(&relay, protocol, pinging()).await;
        assert_eq!(call(&idle, ECHO, b"").await.unwrap(), b"");
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = server.counters().pings;
        let options = pinging().ping_when_idle(true);
        let asking = connect_to(&relay, protocol, options).await;
        while server.counters().pings < before + 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        relay.swallow();
        // The one that asks finds out without a call, and connects again when it has one.
        while relay.ended() < 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(call(&asking, ECHO, b"after").await.unwrap(), b"after");
        assert_eq!(asking.channel().counters().connections, 2, "{protocol}");
        assert_eq!(idle.channel().counters().connections, 1, "{protocol}");
    }
}

/// By default a peer by ONC RPC is not asked.
#[tokio::test]
async fn a_connection_over_which_calls_run_out_of_time_one_after_the_other_is_given_up() {
    let server = listening().service(obliging()).start().unwrap();
    for protocol in PROTOCOLS {
        let relay = relay_before(&server);
        let options = ChannelOptions::default().ping_timeout(Duration::from_millis(300));
        let client = connect_to(&relay, protocol, options).await;
        assert_eq!(call(&client, ECHO, b"before").await.unwrap(), b"before");
        relay.swallow();
        let hurried = client.with_timeout(Duration::from_millis(100));
        let mut late = 0;
        while client.channel().counters().connections == 1 {
            match call(&hurried, ECHO, b"late").await {
                Err(CallError::TimedOut { .. }) => late += 1,
                // The next connection has begun.
                other => assert_eq!(client.channel().counters().connections, 2, "{other:?}"),
            }
            assert!(late < 1000, "{protocol}");
        }
        assert!(late >= 3, "{late}");
        assert_eq!(call(&client, ECHO, b"after").await.unwrap(), b"after");
    }
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_given_up() {
    // Its backlog connects, and nothing reads.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let options = ChannelOptions::default().peer_timeout(Some(Duration::from_millis(300)));
    let client = connect_with(&address, options).await;
    let begun = Instant::now();
    let error = call(&client, ECHO, &vec![7; 32 << 20]).await.unwrap_err();
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    assert!(matches!(error, CallError::CutOff { .. }), "{error}");
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(client.channel().counters().connections, 2);
}
