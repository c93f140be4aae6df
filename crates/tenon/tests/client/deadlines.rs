//! Deadlines of blocking calls are kept as well as a thread that sleeps is woken.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use tenon::{CallError, ChannelOptions, Client, Waiting};

use crate::common::caller::{PROGRAM, VERSION};
use crate::common::onc_peer::{Peer, start};

/// Returns how late the quickest of several calls comes back, and the latest of as many sleeps beside them: a busy machine
/// wakes any thread late.
fn lateness(client: &Client, limit: Duration) -> (Duration, Duration) {
    let hasty = client.with_timeout(limit);
    let call = || {
        let begun = Instant::now();
        let error = start(&hasty, 1).wait().unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        let took = begun.elapsed();
        assert!(took >= limit, "{took:?} of {limit:?}");
        took - limit
    };
    let sleep = || {
        let begun = Instant::now();
        thread::sleep(limit);
        begun.elapsed() - limit
    };
    let pairs: Vec<_> = (0..10).map(|_| (call(), sleep())).collect();
    let quickest = pairs.iter().map(|(call, _)| *call).min();
    let latest = pairs.iter().map(|(_, sleep)| *sleep).max();
    quickest.zip(latest).unwrap()
}

/// Checks that calls whose server is silent come back in time. Limits a little over a power of two milliseconds are those
/// that the kernel's coarse timers end late.
fn comes_back_in_time(client: &Client) {
    for millis in [1, 10, 25, 50, 67, 100, 104] {
        let (late, slept) = lateness(client, Duration::from_millis(millis));
        assert!(
            late < slept + Duration::from_millis(2),
            "{late:?} after {millis} ms, where sleeps are {slept:?} late"
        );
    }
}

#[test]
fn a_call_to_a_silent_server_comes_back_in_time() {
    let (client, peer) = Peer::with_one_line(|mut line| while line.call().is_some() {});
    comes_back_in_time(&client);
    drop(client);
    peer.join();
}

#[test]
fn a_call_to_a_silent_socket_comes_back_in_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", silent.local_addr().unwrap());
    for waiting in [Waiting::Block, Waiting::default()] {
        let options = ChannelOptions::default().waiting(waiting);
        let client = Client::connect_with(&address, PROGRAM, VERSION, options).unwrap();
        comes_back_in_time(&client);
    }
}
