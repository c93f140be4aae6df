//! A program with ONC RPC alone, over streams and UDP.
//! `cargo test -p tenon-rpc --no-default-features --features threads,onc,udp --test onc_alone`
#![cfg(all(
    feature = "threads",
    feature = "onc",
    feature = "udp",
    not(any(feature = "lean", feature = "exchange", feature = "xdp"))
))]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use tenon::{CallInfo, Refusal, Server};

#[allow(dead_code, missing_docs, reason = "the example has more")]
mod greeter {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/greeter.rs"));
}
use greeter::{GreeterV1, GreeterV1Client, GreeterV1Service, Greeting, Visitor};

struct Host;

impl GreeterV1 for Host {
    fn greet(&self, _call: &CallInfo<'_>, visitor: Visitor) -> Result<Greeting, Refusal> {
        Ok(Greeting::Text(visitor.name))
    }
}

fn serve(address: &str) -> (Server, String) {
    let builder = Server::builder().listen(address).unwrap();
    let server = builder.service(GreeterV1Service(Host)).start().unwrap();
    let address = server.addresses()[0].to_string();
    (server, address)
}

fn greet(address: &str) -> Greeting {
    let client = GreeterV1Client::connect(address).unwrap();
    let name = "Ada".into();
    client.greet(&Visitor { name, visits: 1 }).unwrap()
}

fn host_and_port(address: &str) -> &str {
    address.split("://").last().unwrap()
}

#[test]
fn calls_go_over_streams_and_udp() {
    for anywhere in ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"] {
        let (_server, address) = serve(anywhere);
        assert_eq!(greet(&address), Greeting::Text("Ada".into()), "{address}");
    }
}

#[test]
fn clients_are_told_the_feature_that_is_lacking() {
    for (address, feature) in [
        ("lean+tcp://127.0.0.1:9", "lean"),
        ("lean+udp://127.0.0.1:9", "lean"),
        ("xdp://127.0.0.1:9", "lean"),
        ("onc+xdp://127.0.0.1:9", "xdp"),
    ] {
        let error = GreeterV1Client::connect(address).unwrap_err().to_string();
        let needed = format!("needs the feature `{feature}`");
        assert!(error.contains(&needed), "{address}: {error}");
    }
}

#[test]
fn packets_of_the_exchange_are_dropped() {
    let (_server, address) = serve("udp://127.0.0.1:0");
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut packet = [0; 64];
    packet[4..6].copy_from_slice(b"\x7fx");
    peer.send_to(&packet, host_and_port(&address)).unwrap();
    assert_eq!(greet(&address), Greeting::Text("Ada".into()));
}

#[test]
fn a_client_of_the_other_protocol_is_disconnected() {
    let (_server, address) = serve("tcp://127.0.0.1:0");
    let mut peer = TcpStream::connect(host_and_port(&address)).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    peer.write_all(&tenon::lean::Preamble::client(1 << 20).encode())
        .unwrap();
    let mut answer = Vec::new();
    // Closed with what it has sent unread, it may be reset.
    let _ = peer.read_to_end(&mut answer);
    assert_eq!(answer, []);
    assert_eq!(greet(&address), Greeting::Text("Ada".into()));
}
