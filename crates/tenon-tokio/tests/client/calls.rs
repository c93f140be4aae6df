//! Clients in tasks, at servers in threads.

use std::error::Error;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::gate::{fresh_gate, open};
use crate::common::obliging::{
    ECHO, PATIENCE, PROGRAM, VERSION, call, connect, connect_with, eventually, every_way, hold,
    in_time, listening, obliging, sleep,
};
use crate::common::place::fresh_host;
use tenon::resolve::Resolver;
use tenon::{Address, CallError, ChannelOptions, ConnectError, Server, Transport};
use tenon_tokio::Client;
use tokio::task::JoinSet;

/// A server in threads whose calls run at the same time.
fn server() -> Server {
    let udp = format!("udp://{}:0", fresh_host());
    let builder = listening().listen(&udp).unwrap();
    builder.service(obliging()).start().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_are_in_flight_over_one_connection() {
    let server = server();
    for address in every_way(server.addresses()) {
        // A server may drop datagrams that come faster than it takes them.
        let (tasks, rounds) = match address.starts_with("udp") {
            true => (16, 5),
            false => (200, 20),
        };
        let client = connect(&address).await.with_timeout(PATIENCE);
        let mut calls = JoinSet::new();
        for task in 0..tasks {
            let client = client.clone();
            calls.spawn(async move {
                for round in 0..rounds {
                    let bytes = [task as u8, round as u8, 7, 7].repeat(1 + task * 13 % 600);
                    assert_eq!(call(&client, ECHO, &bytes).await.unwrap(), bytes);
                }
            });
        }
        in_time(calls.join_all()).await;
        let counters = client.channel().counters();
        assert_eq!(counters.calls.successes, (tasks * rounds) as u64);
        assert_eq!(counters.connections, 1, "{address}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_given_up() {
    let server = server();
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        let gate = fresh_gate();
        let given_up = tokio::time::timeout(Duration::from_millis(30), hold(&client, gate));
        assert!(given_up.await.is_err(), "{address}");
        // One that was never polled was never made.
        drop(hold(&client, gate));
        assert_eq!(
            in_time(call(&client, ECHO, b"four")).await.unwrap(),
            b"four"
        );
        let counters = client.channel().counters();
        assert_eq!(
            (counters.calls.calls, counters.in_flight),
            (2, 0),
            "{address}"
        );
        assert_eq!(counters.calls.cancellations, 1, "{address}");
        open(gate);
    }
}

#[tokio::test]
async fn the_other_protocol_is_refused_before_anything_is_sent() {
    let server = server();
    let client = connect(&server.addresses()[0].to_string()).await;
    let refused = client.lean().call(1, |_| Ok(()), |_| Ok(())).await;
    assert!(matches!(refused, Err(CallError::OtherProtocol { .. })));
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let first = server();
    let addresses: Vec<_> = first.addresses().to_vec();
    let mut clients = Vec::new();
    for address in every_way(&addresses) {
        let options = ChannelOptions::default().wait_for_ready(true);
        let client = connect_with(&address, options).await.with_timeout(PATIENCE);
        call(&client, ECHO, b"once").await.unwrap();
        clients.push(client);
    }
    tokio::task::spawn_blocking(move || first.shutdown(PATIENCE))
        .await
        .unwrap();
    // A channel that was used just now does not look whether its peer has gone meanwhile.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let again = tokio::task::spawn_blocking(move || {
        let mut builder = Server::builder();
        for address in &addresses {
            builder = builder.listen(&address.to_string()).unwrap();
        }
        builder.service(obliging()).start().unwrap()
    });
    for client in &clients {
        let found = in_time(call(client, ECHO, b"again")).await;
        // Over UDP the kernel tells of the closed port what it was asked meanwhile.
        if client.channel().address().transport() == Transport::Udp && found.is_err() {
            continue;
        }
        assert_eq!(found.unwrap(), b"again", "{client:?}");
    }
    drop(again.await.unwrap());
}

#[tokio::test]
async fn calls_in_flight_end_with_the_connection() {
    let server = Arc::new(server());
    let gate = fresh_gate();
    let mut calls = JoinSet::new();
    for address in every_way(server.addresses()) {
        if !address.starts_with("udp") {
            let client = connect(&address).await;
            calls.spawn(async move { hold(&client, gate).await });
        }
    }
    let begun = calls.len() as u64;
    eventually("the calls arrive", || server.counters().calls == begun).await;
    let stopping = Arc::clone(&server);
    let stopped = tokio::task::spawn_blocking(move || stopping.shutdown(Duration::from_millis(50)));
    for ended in in_time(calls.join_all()).await {
        let error = ended.unwrap_err();
        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
    }
    open(gate);
    stopped.await.unwrap();
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_it_is() {
    let port = TcpListener::bind((fresh_host(), 0)).unwrap();
    let address = format!("tcp://{}", port.local_addr().unwrap());
    drop(port);
    let error = tenon_tokio::Channel::connect(&address).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    let error = tenon_tokio::Channel::connect("tcp://localhost")
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::NoPort(_)), "{error:?}");
}

#[tokio::test]
async fn a_peer_that_stays_away_is_told_when_time_is_over() {
    let server = server();
    let addresses = every_way(server.addresses());
    let mut clients = Vec::new();
    // Nobody connects for datagrams: of the exchange the calls themselves find out.
    for address in addresses.iter().filter(|address| !address.contains("udp")) {
        clients.push(connect(address).await);
    }
    tokio::task::spawn_blocking(move || drop(server))
        .await
        .unwrap();
    // A channel that was used just now does not look whether its peer has gone meanwhile.
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Long enough for an attempt on a busy machine; all spend it at the same time.
    let calls: Vec<_> = clients
        .into_iter()
        .map(|client| client.with_timeout(Duration::from_secs(3)))
        .map(|hasty| tokio::spawn(async move { in_time(call(&hasty, ECHO, b"")).await }))
        .collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, CallError::Connect(_)), "{error:?}");
        assert!(!error.may_have_executed());
    }
}

#[tokio::test]
async fn closing_waits_for_calls_and_takes_no_more() {
    let server = server();
    for address in every_way(server.addresses()) {
        let client = connect(&address).await;
        let last = tokio::spawn({
            let client = client.clone();
            async move { sleep(&client, 100).await }
        });
        while client.channel().counters().in_flight == 0 {
            tokio::task::yield_now().await;
        }
        in_time(client.channel().close()).await;
        in_time(client.channel().close()).await;
        assert!(last.await.unwrap().is_ok(), "{address}");
        let error = call(&client, ECHO, b"").await.unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
        assert!(!error.may_have_executed());
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_room() {
    let server = server();
    for address in every_way(server.addresses()) {
        let options = ChannelOptions::default().calls_max(2);
        let client = connect_with(&address, options).await;
        let mut calls = JoinSet::new();
        for _ in 0..6 {
            let client = client.clone();
            calls.spawn(async move { sleep(&client, 30).await.unwrap() });
        }
        tokio::task::yield_now().await;
        let ready = client.channel().ready();
        tokio::select! {
            biased;
            () = ready => panic!("there are two calls in flight"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(client.channel().counters().in_flight, 2);
        let hasty = client.with_timeout(Duration::from_millis(10));
        let error = call(&hasty, ECHO, b"").await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        assert!(!error.may_have_executed());
        in_time(calls.join_all()).await;
        in_time(client.channel().ready()).await;
    }
}

#[test]
fn threads_use_a_channel_of_tasks_by_blocking_on_its_calls() {
    let server = server();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for address in every_way(server.addresses()) {
        let client = runtime.block_on(connect(&address));
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let (client, runtime) = (client.clone(), runtime.handle());
                scope.spawn(move || {
                    let bytes = thread.to_be_bytes();
                    let echoed = runtime.block_on(call(&client, ECHO, &bytes));
                    assert_eq!(echoed.unwrap(), bytes);
                });
            }
        });
    }
}

#[test]
fn a_run_time_that_ends_takes_its_calls_with_it() {
    let server = server();
    for address in every_way(server.addresses()) {
        let build = || {
            tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
        };
        let (first, second) = (build().unwrap(), build().unwrap());
        let client = first.block_on(connect(&address));
        let gate = fresh_gate();
        let before = server.counters().calls;
        let held = second.spawn({
            let client = client.clone();
            async move { hold(&client, gate).await }
        });
        second.block_on(eventually("the call arrives", || {
            server.counters().calls > before
        }));
        first.shutdown_background();
        let error = second.block_on(in_time(held)).unwrap().unwrap_err();
        assert!(error.may_have_executed(), "{error:?}");
        open(gate);
    }
}

/// Says of every program that it is at one place, if it is anywhere.
#[derive(Debug)]
struct Directory {
    place: Option<Address>,
    /// What was asked for: addresses, programs and versions.
    asked: Mutex<Vec<(String, u32, u32)>>,
}

impl Directory {
    fn of(place: Option<Address>) -> Arc<Self> {
        let asked = Mutex::default();
        Arc::new(Self { place, asked })
    }
}

impl Resolver for Directory {
    fn resolve(
        &self,
        address: &Address,
        program: u32,
        version: u32,
        _timeout: Duration,
    ) -> Result<Option<Address>, Box<dyn Error + Send + Sync>> {
        let asked = (address.to_string(), program, version);
        self.asked.lock().unwrap().push(asked);
        Ok(self.place.clone())
    }
}

#[tokio::test]
async fn a_resolver_is_asked_for_a_port_that_is_missing() {
    let server = server();
    let place = server.addresses()[0].clone();
    let directory = Directory::of(Some(place.clone()));
    let options = ChannelOptions::default().resolver(Arc::<Directory>::clone(&directory));
    let text = place.to_string();
    let (without_port, _) = text.rsplit_once(':').unwrap();
    let client = connect_with(without_port, options.clone()).await;
    assert_eq!(client.channel().address().to_string(), without_port);
    assert_eq!(client.channel().located(), place);
    let echoed = in_time(call(&client, ECHO, b"four")).await.unwrap();
    assert_eq!(echoed, b"four");
    let asked = (without_port.to_owned(), PROGRAM, VERSION);
    assert_eq!(*directory.asked.lock().unwrap(), [asked]);
    // An address that has a port is not asked for.
    connect_with(&text, options).await;
    assert_eq!(directory.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_program_that_no_resolver_knows_is_told() {
    let options = ChannelOptions::default().resolver(Directory::of(None));
    let connected = Client::connect_with("tcp://localhost", PROGRAM, VERSION, options);
    let error = in_time(connected).await.unwrap_err();
    assert!(error.to_string().contains(&PROGRAM.to_string()), "{error}");
}

#[tokio::test]
async fn a_port_for_datagrams_that_is_closed_is_told_at_once() {
    let place = UdpSocket::bind((fresh_host(), 0)).unwrap();
    let address = format!("udp://{}", place.local_addr().unwrap());
    drop(place);
    // Longer than it is waited for here.
    let client = connect(&address).await.with_timeout(10 * PATIENCE);
    for _ in 0..3 {
        let error = in_time(call(&client, ECHO, b"four")).await.unwrap_err();
        let CallError::Disconnected { cause, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(cause.kind(), ErrorKind::ConnectionRefused);
    }
}
