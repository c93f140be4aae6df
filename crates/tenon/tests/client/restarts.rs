//! A server that is restarted again and again under load, as one is that gets a signal and ends in order: no call is
//! lost, and none that is said not to be carried out was.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::restarts::{Place, client, echo, unknown_calls};
use tenon::{CallOptions, ChannelOptions, Client, Server};

/// Restarts for each address.
const RESTARTS: usize = 40;
const THREADS: usize = 6;

/// How often the call with a number was carried out.
type Journal = Arc<Mutex<HashMap<u64, u32>>>;

/// What the callers were told.
#[derive(Debug, Default)]
struct CallTally {
    done: Vec<u64>,
    not_done: Vec<u64>,
    unknown: Vec<String>,
}

fn serve(place: &Place, journal: &Journal) -> Server {
    let journal = Arc::clone(journal);
    place.start(move |_, arguments| {
        let number = u64::from_be_bytes(arguments.try_into().unwrap());
        *journal.lock().unwrap().entry(number).or_default() += 1;
        Ok(arguments.to_vec())
    })
}

fn call_until(over: &AtomicBool, client: &Client, numbers: &AtomicU64) -> CallTally {
    let mut told = CallTally::default();
    while !over.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match echo(client, CallOptions::new(), &number.to_be_bytes()) {
            Ok(echoed) => {
                assert_eq!(echoed, number.to_be_bytes());
                told.done.push(number);
            }
            Err(error) if error.may_have_executed() => told.unknown.push(error.to_string()),
            Err(_) => told.not_done.push(number),
        }
    }
    told
}

/// Restarts the server under calls to `address`, and returns what could not be told of.
fn restart_under_load(place: &Place, address: &str) -> Vec<String> {
    let journal = Journal::default();
    let mut server = serve(place, &journal);
    let client = client(address, ChannelOptions::default().wait_for_ready(true));
    let (over, numbers) = (AtomicBool::new(false), AtomicU64::new(0));
    let told: Vec<CallTally> = thread::scope(|scope| {
        let call = || call_until(&over, &client, &numbers);
        let callers: Vec<_> = (0..THREADS).map(|_| scope.spawn(call)).collect();
        for _ in 0..RESTARTS {
            let before = client.channel().counters().calls.successes;
            while client.channel().counters().calls.successes < before + 50 {
                thread::yield_now();
            }
            server.shutdown(Duration::from_secs(10));
            server = serve(place, &journal);
        }
        over.store(true, Ordering::Relaxed);
        let callers = callers.into_iter();
        callers.map(|caller| caller.join().unwrap()).collect()
    });
    drop(server);
    let journal = journal.lock().unwrap();
    let times = |number: &u64| journal.get(number).copied().unwrap_or(0);
    for told in &told {
        assert!(told.done.iter().all(|number| times(number) == 1));
        assert!(told.not_done.iter().all(|number| times(number) == 0));
    }
    let connections = client.channel().counters().connections;
    assert!(connections >= RESTARTS as u64, "{connections}");
    told.into_iter().flat_map(|told| told.unknown).collect()
}

#[test]
fn calls_are_carried_out_or_not_and_their_callers_know() {
    let place = Place::fresh();
    for address in &place.every_way() {
        let unknown = restart_under_load(&place, address);
        assert!(unknown.is_empty(), "{address}: {unknown:?}");
    }
}

#[test]
fn connections_that_wait_to_be_accepted_are_told_that_the_server_stops() {
    let place = Place::fresh();
    for address in [format!("lean+{}", place.unix), place.unix.clone()] {
        for _ in 0..RESTARTS / 2 {
            let server = place.start_echo();
            let unknown = unknown_calls(&address, || {
                thread::sleep(Duration::from_millis(3));
                server.shutdown(Duration::from_secs(30));
            });
            assert!(unknown.is_empty(), "{address}: {unknown:?}");
        }
    }
}
