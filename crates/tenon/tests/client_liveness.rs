//! Peers over TCP that fall silent are found out by the kernel, as the options say.
#![allow(clippy::unwrap_used)]

#[path = "common/restarts.rs"]
mod restarts;

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use restarts::{Place, client, echo};
use tenon::{CallError, CallOptions, ChannelOptions};

/// Which timer of the kernel runs for each connection to `peer`: 2 is that of the keepalive.
fn timers_of_connections_to(peer: SocketAddr) -> Vec<String> {
    let SocketAddr::V4(peer) = peer else {
        panic!("a table of IPv4");
    };
    let address = u32::from_ne_bytes(peer.ip().octets());
    let remote = format!("{address:08X}:{:04X}", peer.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|row| row.get(2) == Some(&remote.as_str()));
    rows.map(|row| row[5].to_owned()).collect()
}

#[test]
fn an_idle_connection_is_asked_whether_its_peer_is_there() {
    let place = Place::fresh();
    let server = place.start_echo();
    let peer = place.tcp["tcp://".len()..].parse().unwrap();
    for (keep_alive, timer) in [(Some(Duration::from_secs(7)), "02:"), (None, "00:")] {
        let client = client(&place.tcp, ChannelOptions::default().keep_alive(keep_alive));
        echo(&client, CallOptions::new(), b"").unwrap();
        let timers = timers_of_connections_to(peer);
        assert!(
            timers.iter().any(|timers| timers.starts_with(timer)),
            "{keep_alive:?}: {timers:?}"
        );
    }
    drop(server);
}

#[test]
fn a_peer_that_takes_nothing_is_given_up() {
    // Its backlog connects, and nothing reads.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let options = ChannelOptions::default().peer_timeout(Some(Duration::from_millis(300)));
    let client = client(&address, options);
    let begun = Instant::now();
    let error = echo(&client, CallOptions::new(), &vec![7; 32 << 20]).unwrap_err();
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    assert!(matches!(error, CallError::CutOff { .. }), "{error}");
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(client.channel().counters().connections, 2);
}
