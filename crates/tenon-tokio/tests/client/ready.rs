//! Calls of tasks to a server that is not there: they fail at once, or wait until it is, as they say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::restarts::{ECHO, PROGRAM, Place, VERSION, interface};
use crate::common::serving::{Serving, rest};
use tenon::{CallError, Protocol, Server};
use tenon_tokio::{CallOptions, ChannelOptions, Client};

/// More than any run of the tests takes: a call that waited until its time is over would never come back.
const HOURS: Duration = Duration::from_secs(10_000);

/// More than the end of a channel takes, and less than [`HOURS`].
const PATIENCE: Duration = Duration::from_secs(20);

fn now() -> CallOptions<'static> {
    CallOptions::new().timeout(HOURS)
}

fn when_ready() -> CallOptions<'static> {
    CallOptions::new().wait_for_ready(true)
}

async fn connect(address: &str, options: ChannelOptions) -> Client {
    let client = Client::connect_with(address, PROGRAM, VERSION, options).await;
    client.unwrap().with_interface(Arc::new(interface()))
}

async fn echo(
    client: &Client,
    options: CallOptions<'_>,
    bytes: &[u8],
) -> Result<Vec<u8>, CallError> {
    let view = client.with_options(options);
    match client.protocol() {
        Protocol::Onc => {
            let put = |out: &mut tenon::wire::Encoder<'_>| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            };
            let get = |input: &mut tenon::wire::Decoder<'_>| Ok(input.rest().to_vec());
            view.onc().call(ECHO.into(), put, get).await
        }
        Protocol::Lean => {
            let put = |out: &mut tenon::wire::Encoder<'_, tenon::wire::Lean>| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            };
            let get = |input: &mut tenon::LeanInput<'_>| Ok(rest(input).to_vec());
            view.lean().call(ECHO.into(), put, get).await
        }
    }
}

#[track_caller]
fn assert_unreachable(error: &CallError) {
    assert!(matches!(error, CallError::Connect(_)), "{error}");
    assert!(!error.may_have_executed());
    let text = error.to_string();
    let is_told = text.contains("refused") || text.contains("No such file");
    assert!(is_told && text.contains("cannot connect to"), "{text}");
}

async fn stop(server: Server) {
    let stopped = tokio::task::spawn_blocking(move || server.shutdown(Duration::from_secs(1)));
    stopped.await.unwrap();
    // A channel that was used just now does not look whether its peer has gone meanwhile.
    tokio::time::sleep(Duration::from_millis(150)).await;
}

#[tokio::test]
async fn a_refused_connection_is_an_error_at_once_however_often() {
    let place = Place::fresh();
    let server = place.start_echo();
    let mut clients = Vec::new();
    for address in place.every_way() {
        let client = connect(&address, ChannelOptions::default()).await;
        assert_eq!(echo(&client, now(), b"once").await.unwrap(), b"once");
        clients.push(client);
    }
    stop(server).await;
    for client in &clients {
        for _ in 0..50 {
            assert_unreachable(&echo(client, now(), b"dead").await.unwrap_err());
        }
    }
    let server = place.start_echo();
    // No failure is older than that.
    tokio::time::sleep(Duration::from_millis(10)).await;
    for client in &clients {
        assert_eq!(echo(client, now(), b"again").await.unwrap(), b"again");
        assert_eq!(client.channel().counters().connections, 2);
    }
    drop(server);
}

#[tokio::test]
async fn calls_that_wait_hold_up_none_that_would_fail() {
    let place = Place::fresh();
    for address in place.every_way() {
        let server = place.start_echo();
        let client = connect(&address, ChannelOptions::default()).await;
        assert_eq!(echo(&client, now(), b"once").await.unwrap(), b"once");
        stop(server).await;
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { echo(&client, when_ready(), b"waits").await.unwrap() }
        });
        // Its pauses are long by now.
        tokio::time::sleep(Duration::from_millis(700)).await;
        for _ in 0..5 {
            assert_unreachable(&echo(&client, now(), b"dead").await.unwrap_err());
        }
        assert!(!waiting.is_finished());
        let server = place.start_echo();
        assert_eq!(waiting.await.unwrap(), b"waits", "{address}");
        drop(server);
    }
}

#[tokio::test]
async fn a_channel_may_decide_for_its_calls() {
    let place = Place::fresh();
    let options = ChannelOptions::default()
        .connect_lazily(true)
        .wait_for_ready(true);
    let client = connect(&place.tcp, options).await;
    let hasty = CallOptions::new().wait_for_ready(false);
    assert_unreachable(&echo(&client, hasty, b"dead").await.unwrap_err());
    let short = CallOptions::new().timeout(Duration::from_millis(100));
    let begun = Instant::now();
    assert_unreachable(&echo(&client, short, b"dead").await.unwrap_err());
    assert!(begun.elapsed() >= Duration::from_millis(100));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { echo(&client, now(), b"waits").await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let server = place.start_echo();
    assert_eq!(waiting.await.unwrap(), b"waits");
    drop(server);
}

#[tokio::test]
async fn a_lazy_channel_connects_with_its_first_call() {
    let place = Place::fresh();
    for address in place.every_way() {
        let client = connect(&address, ChannelOptions::default().connect_lazily(true)).await;
        assert_eq!(client.channel().counters().connections, 0);
        assert_unreachable(&echo(&client, now(), b"dead").await.unwrap_err());
        let server = place.start_echo();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(echo(&client, now(), b"first").await.unwrap(), b"first");
        assert_eq!(client.channel().counters().connections, 1, "{address}");
        drop(server);
    }
}

/// Lazily made channels that are never used end with their last clone.
#[tokio::test]
async fn a_lazy_channel_may_be_closed_unused() {
    let place = Place::fresh();
    let client = connect(&place.tcp, ChannelOptions::default().connect_lazily(true)).await;
    let closed = tokio::time::timeout(PATIENCE, client.channel().close()).await;
    closed.unwrap();
}

/// Starts a server of datagrams at the port of a place.
fn start_datagrams(place: &Place) -> Server {
    let listen = place.tcp.replace("tcp://", "udp://");
    let builder = Server::builder().listen(&listen).unwrap();
    let body = |_: u32, arguments: &[u8]| Ok(arguments.to_vec());
    let interface = interface();
    builder
        .service(Serving { interface, body })
        .start()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_datagrams_wait_for_their_server() {
    for scheme in ["udp://", "lean+udp://"] {
        let place = Place::fresh();
        let address = place.tcp.replace("tcp://", scheme);
        let client = connect(&address, ChannelOptions::default().connect_lazily(true)).await;
        assert!(echo(&client, now(), b"dead").await.is_err());
        let waiting = [(); 2].map(|()| {
            let client = client.clone();
            tokio::spawn(async move { echo(&client, when_ready().timeout(HOURS), b"waits").await })
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(waiting.iter().all(|call| !call.is_finished()), "{scheme}");
        let server = start_datagrams(&place);
        for call in waiting {
            assert_eq!(call.await.unwrap().unwrap(), b"waits", "{scheme}");
        }
        drop(server);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_do_not_see_a_server_stop() {
    let place = Place::fresh();
    let mut server = place.start_echo();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for address in place.every_way() {
        let client = connect(&address, ChannelOptions::default().wait_for_ready(true)).await;
        for _ in 0..2 {
            let (client, is_over) = (client.clone(), Arc::clone(&is_over));
            callers.push(tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(echo(&client, now(), b"again").await.unwrap(), b"again");
                }
            }));
        }
    }
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        tokio::task::block_in_place(|| server.shutdown(Duration::from_secs(5)));
        server = place.start_echo();
    }
    is_over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    drop(server);
}
