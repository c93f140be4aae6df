//! The health of a server: asked for, watched, and gone before the server is.

use std::thread;
use std::time::{Duration, Instant};

use tenon::health::{Health, HealthEntry, HealthQuestion, HealthStatus, HealthV1Client};
use tenon::{CallError, CallErrorKind, Server, Transport};

use crate::common::place::fresh_path;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(health: &Health) -> (Server, [String; 2]) {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.health(health).start().unwrap();
    let address = server.addresses()[0].to_string();
    let lean = format!("lean+{address}");
    (server, [address, lean])
}

fn connect(address: &str) -> HealthV1Client {
    HealthV1Client::connect(address)
        .unwrap()
        .with_timeout(PATIENCE)
}

fn question(service: &str, known: HealthStatus, milliseconds: u32) -> HealthQuestion {
    HealthQuestion {
        service: service.into(),
        known,
        milliseconds,
    }
}

#[test]
fn services_have_the_statuses_that_were_set() {
    let health = Health::new();
    let (_server, addresses) = start(&health);
    for address in addresses {
        let client = connect(&address);
        health.set("A", HealthStatus::Serving);
        health.set("B", HealthStatus::NotServing);
        assert_eq!(client.check("").unwrap(), HealthStatus::Serving);
        assert_eq!(client.check("A").unwrap(), HealthStatus::Serving);
        assert_eq!(client.check("B").unwrap(), HealthStatus::NotServing);
        assert_eq!(client.check("C").unwrap(), HealthStatus::Unknown);
        let entry = |service: &str, status| HealthEntry {
            service: service.into(),
            status,
        };
        let listed = [
            entry("", HealthStatus::Serving),
            entry("A", HealthStatus::Serving),
            entry("B", HealthStatus::NotServing),
        ];
        assert_eq!(client.list().unwrap(), listed, "{address}");
        health.set("A", HealthStatus::Unknown);
        assert_eq!(client.list().unwrap().len(), 2);
    }
}

#[test]
fn a_caller_that_watches_is_told_of_a_change() {
    let health = Health::new();
    let (_server, addresses) = start(&health);
    for address in addresses {
        health.set("A", HealthStatus::Serving);
        let client = connect(&address);
        // What is another than the caller knows is said at once.
        let now = client.watch(&question("A", HealthStatus::NotServing, 3_600_000));
        assert_eq!(now.unwrap(), HealthStatus::Serving);
        // What stays is said after the time.
        let same = client.watch(&question("A", HealthStatus::Serving, 20));
        assert_eq!(same.unwrap(), HealthStatus::Serving);
        let changed = thread::scope(|scope| {
            let watch = scope.spawn(|| client.watch(&question("A", HealthStatus::Serving, 60_000)));
            thread::sleep(Duration::from_millis(50));
            health.set("B", HealthStatus::Serving);
            health.set("A", HealthStatus::NotServing);
            watch.join().unwrap().unwrap()
        });
        assert_eq!(changed, HealthStatus::NotServing, "{address}");
    }
}

#[test]
fn a_server_says_that_it_does_not_serve_before_it_is_gone() {
    let health = Health::new();
    let (server, addresses) = start(&health);
    let clients = addresses.map(|address| connect(&address));
    thread::scope(|scope| {
        let watches: Vec<_> = clients
            .iter()
            .map(|client| {
                client.check("").unwrap();
                scope.spawn(|| client.watch(&question("", HealthStatus::Serving, 60_000)))
            })
            .collect();
        let begun = Instant::now();
        while server.counters().calls_running < 2 {
            assert!(begun.elapsed() < PATIENCE, "the calls do not arrive");
            thread::sleep(Duration::from_millis(1));
        }
        server.shutdown(PATIENCE);
        for watch in watches {
            assert_eq!(watch.join().unwrap().unwrap(), HealthStatus::NotServing);
        }
    });
    // It is so for good.
    health.set("", HealthStatus::Serving);
    assert_eq!(health.get(""), HealthStatus::NotServing);
}

#[test]
fn more_than_64_that_watch_are_answered_at_once() {
    let health = Health::new();
    let (_server, [_, lean]) = start(&health);
    let client = connect(&lean);
    let asked = question("", HealthStatus::Serving, 60_000);
    let watches: Vec<_> = (0..70)
        .map(|_| client.start_watch(&asked).unwrap())
        .collect();
    let mut answered = 0;
    for mut watch in watches {
        answered += usize::from(watch.wait_for(Duration::from_millis(20)));
        if answered == 6 {
            break;
        }
    }
    let begun = Instant::now();
    while answered < 6 && begun.elapsed() < PATIENCE {
        // One further caller after the other is answered at once, as the others wait.
        assert_eq!(client.watch(&asked).unwrap(), HealthStatus::Serving);
        answered += 1;
    }
    health.stop();
}

/// A server at an address of each kind that carries streams.
fn start_with_streams(health: &Health) -> (Server, Vec<String>) {
    let path = || fresh_path().display().to_string();
    let mut builder = Server::builder();
    for listen in [
        "tcp://127.0.0.1:0".to_owned(),
        format!("unix://{}", path()),
        format!("shm://{}", path()),
    ] {
        builder = builder.listen(&listen).unwrap();
    }
    let server = builder.health(health).start().unwrap();
    let addresses = server.addresses().iter().map(|address| {
        let protocol = match address.transport() {
            Transport::Shm => "",
            _ => "lean+",
        };
        format!("{protocol}{address}")
    });
    let addresses = addresses.collect();
    (server, addresses)
}

#[test]
fn a_caller_that_follows_is_told_of_each_change() {
    let health = Health::new();
    let (server, addresses) = start_with_streams(&health);
    for address in addresses {
        let client = HealthV1Client::connect(&address).unwrap();
        let mut statuses = client.follow("A").unwrap();
        let mut next = || statuses.next().unwrap().unwrap();
        assert_eq!(next(), HealthStatus::Unknown, "{address}");
        health.set("B", HealthStatus::Serving);
        for status in [
            HealthStatus::NotServing,
            HealthStatus::Serving,
            HealthStatus::Unknown,
        ] {
            health.set("A", status);
            assert_eq!(next(), status, "{address}");
        }
        // The connection goes on beside it, and without it.
        assert_eq!(client.check("").unwrap(), HealthStatus::Serving);
        drop(statuses);
        let begun = Instant::now();
        while server.counters().calls_running > 0 {
            assert!(begun.elapsed() < PATIENCE, "the handler does not end");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn streams_of_statuses_end_before_a_server_that_stops() {
    // Their handlers and the server may be at their connections in any order.
    for _ in 0..10 {
        expect_end_of_streams();
    }
}

fn expect_end_of_streams() {
    let health = Health::new();
    let (server, addresses) = start_with_streams(&health);
    let clients = addresses.iter().map(|address| connect(address));
    let clients: Vec<_> = clients.collect();
    let followed = clients.iter().map(|client| client.follow("").unwrap());
    let mut followed: Vec<_> = followed.collect();
    for statuses in &mut followed {
        assert_eq!(statuses.next().unwrap().unwrap(), HealthStatus::Serving);
    }
    // They do not take the time of the drain.
    let begun = Instant::now();
    server.shutdown(2 * PATIENCE);
    assert!(begun.elapsed() < PATIENCE);
    for statuses in &mut followed {
        assert_eq!(statuses.next().unwrap().unwrap(), HealthStatus::NotServing);
        let end = statuses.next().unwrap().unwrap_err();
        assert_eq!(end.kind(), CallErrorKind::Stopping);
        assert!(statuses.next().is_none());
    }
}

#[test]
fn more_than_64_that_follow_are_refused() {
    let health = Health::new();
    let (_server, [_, lean]) = start(&health);
    let client = HealthV1Client::connect(&lean).unwrap();
    let follow = || {
        let mut statuses = client.follow("").unwrap();
        let first = statuses.next().unwrap();
        first.map(|_| statuses)
    };
    let mut followed: Vec<_> = (0..64).map(|_| follow().unwrap()).collect();
    assert_eq!(follow().unwrap_err().kind(), CallErrorKind::Busy);
    // A caller that leaves makes room for another.
    followed.pop();
    let begun = Instant::now();
    while follow().is_err() {
        assert!(begun.elapsed() < PATIENCE, "there is no room");
    }
}

#[test]
fn a_status_is_not_followed_by_onc_rpc() {
    let health = Health::new();
    let (_server, [onc, _]) = start(&health);
    let error = connect(&onc).follow("").unwrap_err();
    assert!(matches!(error, CallError::NoStreams { .. }), "{error}");
}

#[test]
fn a_server_without_health_says_that_it_has_none() {
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let server = builder.start().unwrap();
    let client = connect(&format!("lean+{}", server.addresses()[0]));
    let error = client.check("").unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoService);
}
