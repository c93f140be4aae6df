//! Peers that fall silent are found out: by pings while calls wait, by calls whose time runs out, and by the kernel over
//! TCP, as the options say.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::restarts::{Place, client, echo};
use crate::common::swallowing::SwallowingRelay;
use tenon::{CallError, CallOptions, ChannelOptions, Client, Server};

/// Far more than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// By both protocols, over TCP.
const PROTOCOLS: [&str; 2] = ["", "lean+"];

/// A server behind a relay.
struct Relayed {
    server: Server,
    relay: SwallowingRelay,
}

impl Relayed {
    /// The server sleeps for the milliseconds that its arguments begin with, if they are 4 bytes, and echoes them.
    fn start() -> Self {
        let place = Place::fresh();
        let server = place.start(|_, arguments| {
            if let Ok(millis) = arguments.try_into() {
                thread::sleep(Duration::from_millis(u32::from_be_bytes(millis).into()));
            }
            Ok(arguments.to_vec())
        });
        let relay = SwallowingRelay::before(place.tcp["tcp://".len()..].parse().unwrap());
        Self { server, relay }
    }

    fn client(&self, protocol: &str, options: ChannelOptions) -> Client {
        client(&format!("{protocol}tcp://{}", self.relay.address), options)
    }
}

fn pinging() -> ChannelOptions {
    let often = ChannelOptions::default().ping_interval(Some(Duration::from_millis(100)));
    often.ping_timeout(Duration::from_millis(200))
}

/// Asserts that a call ended as its peer has not answered a ping, and not for lack of time.
fn assert_given_up(error: &CallError) {
    assert!(matches!(error, CallError::Disconnected { .. }), "{error}");
    assert!(error.may_have_executed(), "{error}");
    let text = error.to_string();
    assert!(text.contains("no reply to a ping for 200ms"), "{text}");
}

#[test]
fn calls_to_a_peer_that_answers_no_ping_end_and_the_next_one_connects_again() {
    let patient = CallOptions::new().timeout(LONG);
    for protocol in PROTOCOLS {
        for callers in [1, 4] {
            let relayed = Relayed::start();
            let client = relayed.client(protocol, pinging());
            assert_eq!(echo(&client, patient, b"before").unwrap(), b"before");
            relayed.relay.swallow();
            thread::scope(|scope| {
                for _ in 0..callers {
                    scope.spawn(|| {
                        assert_given_up(&echo(&client, patient, b"silent").unwrap_err());
                    });
                }
            });
            assert_eq!(echo(&client, patient, b"after").unwrap(), b"after");
            let connections = client.channel().counters().connections;
            // A caller that comes late finds the next connection.
            assert_eq!(connections, 2, "{protocol}");
            assert_eq!(client.channel().counters().calls.unmatched, 0);
        }
    }
}

/// The connection that follows the lost one is silent from the beginning, too.
#[test]
fn a_call_that_waits_for_a_silent_server_to_say_what_it_takes_ends() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::fresh();
    let server = place.start_echo();
    let relay = SwallowingRelay::before(place.tcp["tcp://".len()..].parse().unwrap());
    let address = format!("lean+tcp://{}", relay.address);
    let client = client(&address, pinging());
    let patient = CallOptions::new().timeout(LONG);
    assert_eq!(echo(&client, patient, b"before").unwrap(), b"before");
    relay.lead_to(silent.local_addr().unwrap());
    relay.swallow();
    assert_given_up(&echo(&client, patient, b"silent").unwrap_err());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| echo(&client, patient, b"waits"));
        // One connection after the other is given up until the server is back.
        while client.channel().counters().connections < 4 {
            thread::sleep(Duration::from_millis(10));
        }
        relay.lead_to(place.tcp["tcp://".len()..].parse().unwrap());
        assert_eq!(waiting.join().unwrap().unwrap(), b"waits");
    });
    drop(server);
}

#[test]
fn a_peer_whose_handler_takes_long_answers_pings() {
    const HANDLER: u32 = 6000;
    thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let relayed = Relayed::start();
                let options = pinging().ping_timeout(Duration::from_millis(2500));
                let client = relayed.client(protocol, options);
                let patient = CallOptions::new().timeout(LONG);
                let millis = HANDLER.to_be_bytes();
                assert_eq!(echo(&client, patient, &millis).unwrap(), millis);
                assert!(relayed.server.counters().pings > 0);
                assert_eq!(client.channel().counters().connections, 1);
                assert_eq!(client.channel().counters().calls.unmatched, 0);
            });
        }
    });
}

#[test]
fn no_ping_is_sent_in_the_first_seconds_of_a_call() {
    let relayed = Relayed::start();
    for protocol in PROTOCOLS {
        let client = relayed.client(protocol, ChannelOptions::default());
        let millis = 1500_u32.to_be_bytes();
        assert_eq!(echo(&client, CallOptions::new(), &millis).unwrap(), millis);
    }
    assert_eq!(relayed.server.counters().pings, 0);
}

/// By default a peer by ONC RPC is not asked.
#[test]
fn a_connection_over_which_calls_run_out_of_time_one_after_the_other_is_given_up() {
    for protocol in PROTOCOLS {
        let relayed = Relayed::start();
        let options = ChannelOptions::default().ping_timeout(Duration::from_millis(300));
        let client = relayed.client(protocol, options);
        let hurried = CallOptions::new().timeout(Duration::from_millis(100));
        let patient = CallOptions::new().timeout(LONG);
        assert_eq!(echo(&client, patient, b"before").unwrap(), b"before");
        relayed.relay.swallow();
        let mut late = 0;
        while client.channel().counters().connections == 1 {
            match echo(&client, hurried, b"late") {
                Err(CallError::TimedOut { .. }) => late += 1,
                // The next connection has begun.
                other => assert_eq!(client.channel().counters().connections, 2, "{other:?}"),
            }
            assert!(late < 1000, "{protocol}");
        }
        assert!(late >= 3, "{late}");
        assert_eq!(echo(&client, patient, b"after").unwrap(), b"after");
    }
}

/// A long call of a peer that takes what it is sent slowly: as long as it takes something it is there.
#[test]
fn a_peer_that_reads_slowly_is_not_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let peer = thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        let mut room = vec![0; 256 << 10];
        let mut received = 0;
        while received < 24 << 20 {
            match stream.read(&mut room) {
                Ok(bytes @ 1..) => received += bytes,
                _ => break,
            }
            thread::sleep(Duration::from_millis(20));
        }
        received
    });
    let options = pinging().ping_timeout(Duration::from_millis(1000));
    let client = client(&address, options);
    let error = echo(
        &client,
        CallOptions::new().timeout(LONG),
        &vec![7; 24 << 20],
    )
    .unwrap_err();
    assert!(peer.join().unwrap() >= 24 << 20, "{error}");
}

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
