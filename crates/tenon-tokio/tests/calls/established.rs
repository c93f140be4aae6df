//! Channels and servers over streams that the program has established itself, and destinations that move.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging::*;
use crate::common::place::fresh_host;
use tenon::resolve::Resolver;
use tenon::{Address, CallError, ChannelOptions, ConnectError, Protocol, ServerLimits};
use tenon_tokio::{Channel, Client, Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream, UnixStream};

const BOTH: [Protocol; 2] = [Protocol::Onc, Protocol::Lean];

/// Bytes of the largest messages here.
const LARGE: usize = 64 << 20;

async fn unlistening() -> Server {
    let limits = ServerLimits {
        message_bytes: LARGE + 4096,
        ..ServerLimits::default()
    };
    let builder = Server::builder().no_listener().sync_service(obliging());
    builder.limits(limits).start().await.unwrap()
}

fn client<S>(stream: S, protocol: Protocol) -> Client
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = ChannelOptions::default()
        .send_max(LARGE + 4096)
        .receive_max(LARGE + 4096);
    let channel = Channel::over(stream, protocol, options).unwrap();
    let client = Client::over(channel, PROGRAM, VERSION).with_timeout(PATIENCE);
    client.with_interface(Arc::new(interface()))
}

#[tokio::test]
async fn calls_of_both_protocols_go_over_every_kind_of_stream() {
    let server = unlistening().await;
    for protocol in BOTH {
        let (one, other) = tenon_tokio::memory().unwrap();
        server.serve_stream(other).unwrap();
        let over_memory = client(one, protocol);
        let (one, other) = duplex(1000);
        server.serve_stream(other).unwrap();
        let over_duplex = client(one, protocol);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        server
            .serve_stream(listener.accept().await.unwrap().0)
            .unwrap();
        let over_tcp = client(one, protocol);
        for client in [over_memory, over_duplex, over_tcp] {
            for length in [0, 4, 1000, 65_536, 1 << 20] {
                let sent = vec![0x5a; length];
                let echoed = in_time(call(&client, ECHO, &sent)).await.unwrap();
                assert!(echoed == sent, "{protocol}, {length}");
            }
        }
    }
    in_time(server.shutdown(PATIENCE)).await;
}

#[tokio::test]
async fn a_client_of_tasks_and_a_server_of_threads_share_memory() {
    let builder = tenon::Server::builder().no_listener().service(obliging());
    let server = builder.start().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    server.serve_stream(theirs.into_std().unwrap()).unwrap();
    let client = client(ours, Protocol::Lean);
    assert_eq!(
        in_time(call(&client, ECHO, b"four")).await.unwrap(),
        b"four"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_messages_pass() {
    let server = unlistening().await;
    let sent: Vec<u8> = (0..LARGE).map(|index| (index / 7) as u8).collect();
    for protocol in BOTH {
        let (one, other) = duplex(1 << 20);
        server.serve_stream(other).unwrap();
        let client = client(one, protocol);
        let echoed = in_time(call(&client, ECHO, &sent)).await.unwrap();
        assert!(echoed == sent, "{protocol}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_or_late_does_not_hold_the_others() {
    let server = unlistening().await;
    for protocol in BOTH {
        let (one, other) = duplex(4096);
        server.serve_stream(other).unwrap();
        let client = client(one, protocol);
        let gate = fresh_gate();
        let hurried = client.with_timeout(Duration::from_millis(50));
        let error = in_time(hold(&hurried, gate)).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        let dropped = tokio::time::timeout(Duration::from_millis(20), hold(&client, gate)).await;
        assert!(dropped.is_err());
        assert_eq!(
            in_time(call(&client, ECHO, b"four")).await.unwrap(),
            b"four"
        );
        open(gate);
    }
}

#[tokio::test]
async fn the_end_of_the_peer_is_told_and_the_connection_is_not_made_again() {
    for protocol in BOTH {
        let (one, other) = duplex(4096);
        let client = client(one, protocol);
        drop(other);
        let mut error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
        while !matches!(
            error,
            CallError::Connect(ConnectError::NotReconnected { .. })
        ) {
            error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
        }
        assert!(
            error.to_string().contains("the program supplied it"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_shutdown_answers_what_was_begun_and_ends_the_connection() {
    for protocol in BOTH {
        let server = unlistening().await;
        let (one, other) = duplex(4096);
        server.serve_stream(other).unwrap();
        let client = client(one, protocol);
        let gate = fresh_gate();
        let held = tokio::spawn({
            let client = client.clone();
            async move { hold(&client, gate).await }
        });
        eventually("it has begun", || server.counters().calls_handed_over > 0).await;
        tokio::join!(in_time(server.shutdown(PATIENCE)), async { open(gate) });
        assert_eq!(in_time(held).await.unwrap().unwrap(), gate.to_be_bytes());
        let refused = server.serve_stream(duplex(1).0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotConnected);
        in_time(call(&client, ECHO, b"four")).await.unwrap_err();
    }
}

/// The stream ends when the channel does, even if its peer says nothing.
#[tokio::test]
async fn closing_a_channel_drops_the_stream() {
    let (one, mut other) = duplex(4096);
    let client = client(one, Protocol::Onc);
    let call = tokio::time::timeout(Duration::from_millis(50), client.ping());
    assert!(call.await.is_err());
    client.channel().close().await;
    let mut sent = Vec::new();
    in_time(other.read_to_end(&mut sent)).await.unwrap();
    assert!(!sent.is_empty());
    // Its reading half is dropped, too.
    let refused = async {
        while other.write_all(b"more").await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    in_time(refused).await;
}

/// Tells the place that a test has set last.
#[derive(Debug)]
struct Directory(Mutex<Option<Address>>);

impl Resolver for Directory {
    fn resolve(
        &self,
        _address: &Address,
        _program: u32,
        _version: u32,
        _timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

async fn ping_until_it_succeeds(client: &Client) {
    let succeeds = async {
        while client.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(succeeds).await;
}

#[tokio::test]
async fn the_resolver_is_asked_again_when_the_connection_is_made_again() {
    for scheme in ["tcp", "lean+tcp", "udp", "lean+udp"] {
        let transport = scheme.trim_start_matches("lean+");
        let host = fresh_host();
        let start = || {
            let builder = tenon::Server::builder().service(obliging());
            let builder = builder.listen(&format!("{transport}://{host}:0"));
            builder.unwrap().start().unwrap()
        };
        let first = start();
        let directory = Arc::new(Directory(Mutex::new(Some(first.addresses()[0].clone()))));
        let options = ChannelOptions::default()
            .resolver(Arc::<Directory>::clone(&directory))
            .retransmission(Duration::from_millis(20), Duration::from_millis(100));
        let client = connect_with(&format!("{scheme}://{host}"), options).await;
        let client = client.with_timeout(Duration::from_secs(2));
        in_time(client.ping()).await.unwrap();

        let second = start();
        drop(first);
        *directory.0.lock().unwrap() = Some(second.addresses()[0].clone());
        ping_until_it_succeeds(&client).await;
        let port = |address: &Address| address.host().unwrap().port;
        let located = client.channel().located();
        assert_eq!(port(&located), port(&second.addresses()[0]), "{scheme}");

        *directory.0.lock().unwrap() = None;
        drop(second);
        let is_told = async {
            loop {
                let error = client.ping().await.unwrap_err();
                if matches!(
                    error,
                    CallError::Connect(ConnectError::NotRegistered { .. })
                ) {
                    return;
                }
            }
        };
        in_time(is_told).await;
    }
}
