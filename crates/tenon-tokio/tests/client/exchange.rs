//! Clients in tasks that call by the packet exchange, through a relay that does to real datagrams what
//! networks do, and at servers that go.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::gate::fresh_gate;
use crate::common::obliging::{
    ECHO, PATIENCE, call, connect, connect_with, eventually, hold, in_time, obliging,
};
use crate::common::relay::{Faults, Relay};
use tenon::{CallError, ChannelOptions, ConnectError, Server};
use tenon_tokio::Channel;
use tokio::task::JoinSet;

fn server() -> Server {
    let builder = Server::builder().listen("udp://127.0.0.1:0").unwrap();
    let builder = builder.service(obliging());
    builder.start().unwrap()
}

fn at(server: &Server) -> SocketAddr {
    let address = server.addresses()[0].to_string();
    address["udp://".len()..].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_through_a_relay_that_loses_doubles_delays_and_reorders() {
    const TASKS: usize = 8;
    const CALLS: usize = 20;
    let server = server();
    let faults = Faults {
        loss: 50,
        duplication: 100,
        delay_us: 2000,
    };
    let relay = Relay::before(at(&server), faults);
    let address = format!("lean+udp://{}", relay.address);
    let client = connect(&address).await.with_timeout(PATIENCE);
    let mut calls = JoinSet::new();
    for task in 0..TASKS {
        let client = client.clone();
        calls.spawn(async move {
            for number in 0..CALLS {
                let size = match number % 10 {
                    0 => 100_000,
                    5 => 9000,
                    _ => 100 * number,
                };
                let sent = vec![(task * CALLS + number) as u8; size];
                assert!(call(&client, ECHO, &sent).await.unwrap() == sent);
            }
        });
    }
    in_time(calls.join_all()).await;
    assert!(relay.lost() > 0);
    let counters = client.channel().counters();
    assert_eq!(counters.calls.successes, (TASKS * CALLS) as u64);
    assert_eq!((counters.connections, counters.in_flight), (1, 0));
    assert_eq!(
        server.counters().calls,
        (TASKS * CALLS) as u64,
        "at most once"
    );
}

/// The first hello of a channel, and then the first welcome, do not arrive.
#[tokio::test]
async fn a_greeting_that_is_lost_is_sent_again() {
    const HELLO: u8 = 1;
    const WELCOME: u8 = 2;
    let server = server();
    let faultless = Faults {
        loss: 0,
        duplication: 0,
        delay_us: 0,
    };
    let relay = Relay::losing(&[HELLO, WELCOME], at(&server), faultless);
    let client = connect(&format!("lean+udp://{}", relay.address)).await;
    assert_eq!(relay.lost(), 2);
    let echoed = in_time(call(&client, ECHO, b"four")).await.unwrap();
    assert_eq!(echoed, b"four");
}

#[tokio::test]
async fn what_is_no_server_is_found_out_when_a_channel_is_made() {
    let place = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("lean+udp://{}", place.local_addr().unwrap());
    let options = ChannelOptions::default().connect_timeout(Duration::from_secs(1));
    let address = address.parse().unwrap();
    let unreachable = async || {
        let connected = Channel::connect_with(&address, options.clone());
        match in_time(connected).await.unwrap_err() {
            ConnectError::Unreachable { cause, .. } => cause.kind(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(unreachable().await, ErrorKind::TimedOut);
    drop(place);
    assert_eq!(unreachable().await, ErrorKind::ConnectionRefused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_in_the_middle_of_a_call_says_so() {
    let first = server();
    let client = connect(&format!("lean+udp://{}", at(&first))).await;
    assert_eq!(
        in_time(call(&client, ECHO, b"four")).await.unwrap(),
        b"four"
    );
    let held = tokio::spawn({
        let client = client.clone();
        async move { hold(&client, fresh_gate()).await }
    });
    eventually("the call", || first.counters().calls == 2).await;
    tokio::task::spawn_blocking(move || first.shutdown(Duration::ZERO))
        .await
        .unwrap();
    match in_time(held).await.unwrap().unwrap_err() {
        CallError::Disconnected {
            cause,
            may_have_executed,
        } => {
            assert_eq!(cause.kind(), ErrorKind::ConnectionAborted);
            assert!(may_have_executed);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn calls_fail_at_once_while_nobody_listens_and_go_on_when_somebody_does() {
    let first = server();
    let place = at(&first);
    let address = format!("lean+udp://{place}");
    let client = connect_with(&address, ChannelOptions::default()).await;
    assert_eq!(
        in_time(call(&client, ECHO, b"four")).await.unwrap(),
        b"four"
    );
    drop(first);
    for _ in 0..5 {
        let error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
        assert!(!error.may_have_executed(), "{error:?}");
    }
    let mut second = None;
    eventually("the port", || {
        let builder = Server::builder().listen(&format!("udp://{place}")).unwrap();
        second = builder.service(obliging()).start().ok();
        second.is_some()
    })
    .await;
    assert_eq!(
        in_time(call(&client, ECHO, b"four")).await.unwrap(),
        b"four"
    );
    assert_eq!(client.channel().counters().connections, 1);
}

/// More clients than a host may have conversations, one after the other: each closes its own.
#[tokio::test]
async fn short_lived_clients_leave_no_conversations_behind() {
    let server = server();
    let address = format!("lean+udp://{}", at(&server));
    for number in 0..600_u32 {
        let client = connect(&address).await;
        let bytes = number.to_be_bytes();
        assert_eq!(in_time(call(&client, ECHO, &bytes)).await.unwrap(), bytes);
    }
}

/// When nothing was in flight for some time, the driver of a channel has no alarm set; it has to set one for the packet
/// that is sent then, as that may be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_a_pause_is_over_in_time_if_its_packets_are_lost() {
    let server = server();
    let faultless = Faults {
        loss: 0,
        duplication: 0,
        delay_us: 0,
    };
    let relay = Relay::before(at(&server), faultless);
    let client = connect(&format!("lean+udp://{}", relay.address)).await;
    let client = client.with_timeout(Duration::from_millis(100));
    for _ in 0..3 {
        in_time(call(&client, ECHO, b"four")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.lead_to(silent.local_addr().unwrap());
    let error = in_time(call(&client, ECHO, b"lost")).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
}
