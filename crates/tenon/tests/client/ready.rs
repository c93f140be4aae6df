//! Calls to a server that is not there: they fail at once, or wait until it is, as they say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::restarts;
use crate::common::restarts::{Place, client, echo};
use crate::common::serving::Serving;
use tenon::{CallError, CallOptions, ChannelOptions, Server};

/// More than any run of the tests takes: a call that waited until its time is over would never come back.
const HOURS: Duration = Duration::from_secs(10_000);

fn now() -> CallOptions<'static> {
    CallOptions::new().timeout(HOURS)
}

fn when_ready() -> CallOptions<'static> {
    CallOptions::new().wait_for_ready(true)
}

#[track_caller]
fn assert_unreachable(error: &CallError) {
    assert!(matches!(error, CallError::Connect(_)), "{error}");
    assert!(!error.may_have_executed());
    let text = error.to_string();
    let is_told = text.contains("refused") || text.contains("No such file");
    assert!(is_told && text.contains("cannot connect to"), "{text}");
}

fn stop(server: Server) {
    server.shutdown(Duration::from_secs(1));
    drop(server);
    // A channel that was used just now does not look whether its peer has gone meanwhile.
    thread::sleep(Duration::from_millis(150));
}

#[test]
fn a_refused_connection_is_an_error_at_once_however_often() {
    let place = Place::fresh();
    let server = place.start_echo();
    let clients = place
        .every_way()
        .map(|address| client(&address, ChannelOptions::default()));
    for client in &clients {
        assert_eq!(echo(client, now(), b"once").unwrap(), b"once");
    }
    stop(server);
    for client in &clients {
        for _ in 0..50 {
            assert_unreachable(&echo(client, now(), b"dead").unwrap_err());
        }
    }
    let server = place.start_echo();
    // No failure is older than that.
    thread::sleep(Duration::from_millis(10));
    for client in &clients {
        assert_eq!(echo(client, now(), b"again").unwrap(), b"again");
        assert_eq!(client.channel().counters().connections, 2);
    }
    drop(server);
}

#[test]
fn calls_that_wait_hold_up_none_that_would_fail() {
    let place = Place::fresh();
    for address in place.every_way() {
        let server = place.start_echo();
        let client = client(&address, ChannelOptions::default());
        assert_eq!(echo(&client, now(), b"once").unwrap(), b"once");
        stop(server);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| echo(&client, when_ready(), b"waits").unwrap());
            // Its pauses are long by now.
            thread::sleep(Duration::from_millis(700));
            for _ in 0..5 {
                assert_unreachable(&echo(&client, now(), b"dead").unwrap_err());
            }
            assert!(!waiting.is_finished());
            let server = place.start_echo();
            assert_eq!(waiting.join().unwrap(), b"waits", "{address}");
            drop(server);
        });
    }
}

#[test]
fn a_channel_may_decide_for_its_calls() {
    let place = Place::fresh();
    let options = ChannelOptions::default()
        .connect_lazily(true)
        .wait_for_ready(true);
    let client = client(&place.tcp, options);
    let hasty = CallOptions::new().wait_for_ready(false);
    assert_unreachable(&echo(&client, hasty, b"dead").unwrap_err());
    let short = CallOptions::new().timeout(Duration::from_millis(100));
    let begun = Instant::now();
    assert_unreachable(&echo(&client, short, b"dead").unwrap_err());
    assert!(begun.elapsed() >= Duration::from_millis(100));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| echo(&client, now(), b"waits").unwrap());
        thread::sleep(Duration::from_millis(50));
        let server = place.start_echo();
        assert_eq!(waiting.join().unwrap(), b"waits");
        drop(server);
    });
}

#[test]
fn a_lazy_channel_connects_with_its_first_call() {
    let place = Place::fresh();
    for address in place.every_way() {
        let client = client(&address, ChannelOptions::default().connect_lazily(true));
        assert_eq!(client.channel().counters().connections, 0);
        assert_unreachable(&echo(&client, now(), b"dead").unwrap_err());
        let server = place.start_echo();
        thread::sleep(Duration::from_millis(10));
        assert_eq!(echo(&client, now(), b"first").unwrap(), b"first");
        assert_eq!(client.channel().counters().connections, 1, "{address}");
        drop(server);
    }
}

#[test]
fn a_lazy_channel_of_packets_greets_with_its_first_call() {
    let place = Place::fresh();
    let address = place.tcp.replace("tcp://", "lean+udp://");
    let client = client(&address, ChannelOptions::default().connect_lazily(true));
    let error = echo(&client, CallOptions::new(), b"dead").unwrap_err();
    assert!(!error.may_have_executed(), "{error}");
    let server = start_datagrams(&place);
    assert_eq!(
        echo(&client, CallOptions::new(), b"first").unwrap(),
        b"first"
    );
    drop(server);
}

/// Starts a server of datagrams at the port of a place.
fn start_datagrams(place: &Place) -> Server {
    let listen = place.tcp.replace("tcp://", "udp://");
    let builder = Server::builder().listen(&listen).unwrap();
    let body = |_: u32, arguments: &[u8]| Ok(arguments.to_vec());
    let interface = restarts::interface();
    builder
        .service(Serving { interface, body })
        .start()
        .unwrap()
}

#[test]
fn calls_in_datagrams_wait_for_their_server() {
    for scheme in ["udp://", "lean+udp://"] {
        let place = Place::fresh();
        let address = place.tcp.replace("tcp://", scheme);
        let client = client(&address, ChannelOptions::default().connect_lazily(true));
        assert!(echo(&client, now(), b"dead").is_err());
        thread::scope(|scope| {
            let call = || echo(&client, when_ready().timeout(HOURS), b"waits").unwrap();
            let waiting = [scope.spawn(call), scope.spawn(call)];
            thread::sleep(Duration::from_millis(100));
            assert!(waiting.iter().all(|call| !call.is_finished()), "{scheme}");
            let server = start_datagrams(&place);
            for call in waiting {
                assert_eq!(call.join().unwrap(), b"waits", "{scheme}");
            }
            drop(server);
        });
    }
}

#[test]
fn calls_that_wait_do_not_see_a_server_stop() {
    let place = Place::fresh();
    let mut server = place.start_echo();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for address in place.every_way() {
            let client = client(&address, ChannelOptions::default().wait_for_ready(true));
            for _ in 0..2 {
                let (client, is_over) = (client.clone(), &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(echo(&client, now(), b"again").unwrap(), b"again");
                    }
                });
            }
        }
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(20));
            server.shutdown(Duration::from_secs(5));
            server = place.start_echo();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drop(server);
}
