//! Clients in tasks, and names with several addresses.

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::hosts::{self, Hosts, NAME, PORT, SilentListener};
use crate::common::obliging::{ECHO, PATIENCE, PROGRAM, VERSION, call, interface, serving_at};
use tenon::{ChannelOptions, ConnectError, ServerLimits};
use tenon_tokio::{Client, Server};

#[test]
fn with_hosts_of_its_own() {
    hosts::run_with_own("addresses::inside");
}

#[tokio::test]
#[ignore = "not a test of its own: it wants a private network and a file of hosts"]
async fn inside() {
    let hosts = Hosts::replace();
    a_silent_address_does_not_keep_a_connection_from_the_next(&hosts).await;
    datagrams_go_to_the_first_address_that_answers(&hosts).await;
    all_addresses_are_told_with_their_causes(&hosts).await;
    a_name_is_asked_for_again_when_the_connection_is_made_again(&hosts).await;
}

async fn serving(address: &str) -> Server {
    let limits = ServerLimits::default();
    let echo = |_: u32, arguments: &[u8]| Ok(arguments.to_vec());
    serving_at(address, limits, echo).start().await.unwrap()
}

/// A client of the name.
async fn connect_by_name(scheme: &str, limit: Duration) -> Result<Client, ConnectError> {
    let address = format!("{scheme}://{NAME}:{PORT}");
    // A server that has gone is to be found out soon.
    let (first, most) = (Duration::from_millis(20), Duration::from_millis(100));
    let options = ChannelOptions::default()
        .retransmission(first, most)
        .connect_timeout(limit);
    let client = Client::connect_with(&address, PROGRAM, VERSION, options).await?;
    Ok(client.with_interface(interface().into()))
}

async fn a_silent_address_does_not_keep_a_connection_from_the_next(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    let _silent = SilentListener::open("127.0.0.2");
    // Nothing listens at 127.0.0.3.
    let server = serving(&format!("tcp://127.0.0.4:{PORT}")).await;
    for scheme in ["tcp", "lean+tcp"] {
        let client = connect_by_name(scheme, PATIENCE).await.unwrap();
        assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
    }
    assert_eq!(server.counters().connections_accepted, 2);
    server.shutdown(PATIENCE).await;
}

async fn datagrams_go_to_the_first_address_that_answers(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    let silent = UdpSocket::bind(("127.0.0.2", PORT)).unwrap();
    let server = serving(&format!("udp://127.0.0.4:{PORT}")).await;
    for scheme in ["udp", "lean+udp"] {
        let client = connect_by_name(scheme, PATIENCE).await.unwrap();
        assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
    }
    silent.set_nonblocking(true).unwrap();
    assert!(silent.recv(&mut [0; 2048]).is_ok(), "it was tried, too");
    server.shutdown(PATIENCE).await;
}

async fn all_addresses_are_told_with_their_causes(hosts: &Hosts) {
    hosts.set(&["127.0.0.2", "127.0.0.3"]);
    let _silent = UdpSocket::bind(("127.0.0.2", PORT)).unwrap();
    // Machines were seen that stood still for half a second in the middle of a system call.
    let limit = Duration::from_millis(2500);
    for scheme in ["tcp", "udp", "lean+udp"] {
        let told = connect_by_name(scheme, limit).await;
        let text = told.err().unwrap().to_string();
        for address in ["127.0.0.2:2049: ", "127.0.0.3:2049: Connection refused"] {
            assert!(text.contains(address), "{scheme}: {text}");
        }
    }
}

async fn a_name_is_asked_for_again_when_the_connection_is_made_again(hosts: &Hosts) {
    for scheme in ["tcp", "lean+tcp", "udp", "lean+udp"] {
        let transport = scheme.trim_start_matches("lean+");
        hosts.set(&["127.0.0.5"]);
        let first = serving(&format!("{transport}://127.0.0.5:{PORT}")).await;
        let client = connect_by_name(scheme, PATIENCE).await.unwrap();
        let client = client.with_timeout(Duration::from_secs(2));
        assert_eq!(call(&client, ECHO, b"four").await.unwrap(), b"four");
        first.shutdown(PATIENCE).await;
        hosts.set(&["127.0.0.6"]);
        let second = serving(&format!("{transport}://127.0.0.6:{PORT}")).await;
        // The first may find out that the server has gone.
        let end = tokio::time::Instant::now() + PATIENCE;
        while call(&client, ECHO, b"next").await.is_err() {
            assert!(tokio::time::Instant::now() < end, "{scheme}");
        }
        assert!(second.counters().calls > 0, "{scheme}");
        second.shutdown(PATIENCE).await;
    }
}
