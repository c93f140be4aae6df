//! A program with the lean protocol alone: what is there works, and what was left out says which feature it needs.
//! `cargo test -p tenon-rpc --no-default-features --features threads,lean --test left_out`
#![cfg(feature = "threads")]
#![cfg(not(any(
    feature = "onc",
    feature = "udp",
    feature = "exchange",
    feature = "shm",
    feature = "xdp",
    feature = "rpcbind",
    feature = "account"
)))]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tenon::{CallInfo, Channel, ChannelOptions, Protocol, Refusal, Server};

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

fn serve() -> Server {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    builder.service(GreeterV1Service(Host)).start().unwrap()
}

/// Returns the error of a client of `address`.
fn refused_client(address: &str) -> String {
    GreeterV1Client::connect(address).unwrap_err().to_string()
}

/// Returns the error of a server at `address`.
fn refused_server(address: &str) -> String {
    let builder = Server::builder().listen(address).unwrap();
    builder.start().unwrap_err().to_string()
}

#[test]
fn lean_calls_go_over_streams() {
    let server = serve();
    let address = format!("lean+{}", server.addresses()[0]);
    let client = GreeterV1Client::connect(&address).unwrap();
    let visitor = Visitor {
        name: "Ada".into(),
        visits: 1,
    };
    assert_eq!(
        client.greet(&visitor).unwrap(),
        Greeting::Text("Ada".into())
    );
}

#[test]
fn clients_are_told_the_feature_that_is_lacking() {
    for (address, feature) in [
        ("tcp://127.0.0.1:9", "onc"),
        ("unix:///nowhere", "onc"),
        ("udp://127.0.0.1:9", "onc"),
        ("onc+xdp://127.0.0.1:9", "onc"),
        ("lean+udp://127.0.0.1:9", "exchange"),
        ("xdp://127.0.0.1:9", "exchange"),
        ("shm:///nowhere", "shm"),
        ("lean+tcp://127.0.0.1", "rpcbind"),
    ] {
        let error = refused_client(address);
        assert!(
            error.contains(&format!("needs the feature `{feature}`")),
            "{error}"
        );
        assert!(
            error.contains(address.split("://").last().unwrap()),
            "{error}"
        );
    }
    let (ours, _theirs) = tenon::memory().unwrap();
    let over = Channel::over(ours, Protocol::Onc, ChannelOptions::default());
    let error = over.unwrap_err().to_string();
    assert!(error.contains("needs the feature `onc`"), "{error}");
}

#[test]
fn servers_are_told_the_feature_that_is_lacking() {
    for (address, feature) in [
        ("udp://127.0.0.1:0", "onc"),
        ("onc+xdp://127.0.0.1:0", "onc"),
        ("xdp://127.0.0.1:0", "exchange"),
        ("shm:///tmp/left-out.sock", "shm"),
    ] {
        let error = refused_server(address);
        assert!(
            error.contains(&format!("needs the feature `{feature}`")),
            "{error}"
        );
        assert!(error.contains(address), "{error}");
    }
}

#[test]
fn a_client_of_the_other_protocol_is_disconnected() {
    let server = serve();
    let address = server.addresses()[0].to_string();
    let mut peer = TcpStream::connect(address.strip_prefix("tcp://").unwrap()).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // A record of ONC RPC with a call of procedure 0.
    let words = [0x8000_0028_u32, 1, 0, 2, 0x2000_1234, 1, 0, 0, 0, 0, 0];
    let record: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    peer.write_all(&record).unwrap();
    let mut answer = Vec::new();
    // Closed with what it has sent unread, it may be reset.
    let _ = peer.read_to_end(&mut answer);
    assert_eq!(answer, []);
}
