//! A server that is restarted again and again under load of tasks, as one is that gets a signal and ends in order: no
//! call is lost, and none that is said not to be carried out was.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::restarts::{ECHO, PROGRAM, Place, VERSION, interface, unknown_calls};
use crate::common::serving::{Serving, rest};
use tenon::wire::{Decoder, Encoder, Lean};
use tenon::{CallError, LeanInput, Protocol, Server};
use tenon_tokio::{ChannelOptions, Client};

/// Restarts for each address.
const RESTARTS: usize = 20;
const TASKS: usize = 6;

/// How often the call with a number was carried out.
type Journal = Arc<Mutex<HashMap<u64, u32>>>;

/// What the callers were told.
#[derive(Debug, Default)]
struct CallTally {
    done: Vec<u64>,
    not_done: Vec<u64>,
    unknown: Vec<String>,
}

fn carry_out(journal: &Journal, arguments: &[u8]) -> Vec<u8> {
    let number = u64::from_be_bytes(arguments.try_into().unwrap());
    *journal.lock().unwrap().entry(number).or_default() += 1;
    arguments.to_vec()
}

fn serve_by_threads(place: &Place, journal: &Journal) -> Server {
    let journal = Arc::clone(journal);
    place.start(move |_, arguments| Ok(carry_out(&journal, arguments)))
}

async fn serve_by_tasks(place: &Place, journal: &Journal) -> tenon_tokio::Server {
    let journal = Arc::clone(journal);
    let interface = interface();
    let builder = tenon_tokio::Server::builder().listen(&place.tcp).unwrap();
    let builder = builder.listen(&place.unix).unwrap();
    let body = move |_: u32, arguments: &[u8]| Ok(carry_out(&journal, arguments));
    let builder = builder.sync_service(Serving { interface, body });
    builder.start().await.unwrap()
}

async fn echo(client: &Client, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    match client.protocol() {
        Protocol::Onc => {
            let put = |out: &mut Encoder<'_>| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            };
            let get = |input: &mut Decoder<'_>| Ok(input.rest().to_vec());
            client.onc().call(ECHO.into(), put, get).await
        }
        Protocol::Lean => {
            let put = |out: &mut Encoder<'_, Lean>| {
                out.room(bytes.len()).copy_from_slice(bytes);
                Ok(())
            };
            let get = |input: &mut LeanInput<'_>| Ok(rest(input).to_vec());
            client.lean().call(ECHO.into(), put, get).await
        }
    }
}

async fn call_until(over: Arc<AtomicBool>, client: Client, numbers: Arc<AtomicU64>) -> CallTally {
    let mut told = CallTally::default();
    while !over.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match echo(&client, &number.to_be_bytes()).await {
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

/// The server that is restarted.
enum Served {
    Threads(Server),
    Tasks(tenon_tokio::Server),
}

async fn serve(place: &Place, journal: &Journal, by_tasks: bool) -> Served {
    if by_tasks {
        Served::Tasks(serve_by_tasks(place, journal).await)
    } else {
        Served::Threads(serve_by_threads(place, journal))
    }
}

async fn stop(server: Served) {
    const DRAIN: Duration = Duration::from_secs(10);
    match server {
        Served::Tasks(server) => server.shutdown(DRAIN).await,
        Served::Threads(server) => {
            let stopped = tokio::task::spawn_blocking(move || server.shutdown(DRAIN));
            stopped.await.unwrap();
        }
    }
}

/// Restarts the server under calls to `address`, and returns what could not be told of.
async fn restart_under_load(place: &Place, address: &str, by_tasks: bool) -> Vec<String> {
    let journal = Journal::default();
    let mut server = serve(place, &journal, by_tasks).await;
    let options = ChannelOptions::default().wait_for_ready(true);
    let client = Client::connect_with(address, PROGRAM, VERSION, options).await;
    let client = client.unwrap().with_interface(Arc::new(interface()));
    let (over, numbers) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let callers: Vec<_> = (0..TASKS)
        .map(|_| call_until(Arc::clone(&over), client.clone(), Arc::clone(&numbers)))
        .map(tokio::spawn)
        .collect();
    for _ in 0..RESTARTS {
        let before = client.channel().counters().calls.successes;
        while client.channel().counters().calls.successes < before + 50 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop(server).await;
        server = serve(place, &journal, by_tasks).await;
    }
    over.store(true, Ordering::Relaxed);
    let mut unknown = Vec::new();
    for caller in callers {
        let told = caller.await.unwrap();
        let journal = journal.lock().unwrap();
        let times = |number: &u64| journal.get(number).copied().unwrap_or(0);
        assert!(told.done.iter().all(|number| times(number) == 1));
        assert!(told.not_done.iter().all(|number| times(number) == 0));
        unknown.extend(told.unknown);
    }
    stop(server).await;
    unknown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_carried_out_or_not_and_their_callers_know() {
    let place = Place::fresh();
    for by_tasks in [false, true] {
        for address in &place.every_way() {
            let unknown = restart_under_load(&place, address, by_tasks).await;
            assert!(unknown.is_empty(), "{address}, {by_tasks}: {unknown:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_wait_to_be_accepted_are_told_that_the_server_stops() {
    for round in 0..RESTARTS {
        // One that is dropped may listen for a moment more.
        let place = Place::fresh();
        let address = match round % 4 {
            0 | 1 => format!("lean+{}", place.unix),
            _ => place.unix.clone(),
        };
        let server = serve_by_tasks(&place, &Journal::default()).await;
        let runtime = tokio::runtime::Handle::current();
        let callers = tokio::task::spawn_blocking(move || {
            unknown_calls(&address, || {
                std::thread::sleep(Duration::from_millis(3));
                if round % 2 == 0 {
                    runtime.block_on(server.shutdown(Duration::from_secs(30)));
                } else {
                    drop(server);
                }
            })
        });
        let unknown = callers.await.unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
