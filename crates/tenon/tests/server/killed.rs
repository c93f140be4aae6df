//! A server process that is killed and started again while clients call it: they connect again,
//! and nothing is reported done that was not, or not done that was.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::place::{fresh_host, fresh_path};
use tenon::wire::{Decoder, Encoder};
use tenon::{CallError, CallInfo, ChannelOptions, Client, Refusal, Server, Service};

const PROGRAM: u32 = 0x2000_0002;
const RECORD: u32 = 1;
const THREADS: u64 = 4;
const KILLS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls that get through in a life, at least.
const LIFE: u64 = 100;

/// Tell a child of this test that it is the server, and of what.
const ADDRESS: &str = "TENON_TEST_KILLED_ADDRESS";
const JOURNAL: &str = "TENON_TEST_KILLED_JOURNAL";

/// Writes every number it is called with into a file, which outlives it.
struct Recorder(File);

impl Service for Recorder {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(
        &self,
        _call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let number: u64 = arguments.get()?;
        let written = (&self.0).write_all(&number.to_be_bytes());
        written.map_err(|error| Refusal::SystemError(error.to_string()))?;
        result.put(number);
        Ok(())
    }
}

/// The server process. Run as a test of its own, it does nothing.
#[test]
fn serve_until_killed() {
    let (Ok(address), Ok(journal)) = (std::env::var(ADDRESS), std::env::var(JOURNAL)) else {
        return;
    };
    let journal = OpenOptions::new().append(true).create(true).open(journal);
    let server = Server::builder()
        .listen(&address)
        .unwrap()
        .service(Recorder(journal.unwrap()))
        .start()
        .unwrap();
    // Nobody ends it but the test, or time.
    thread::sleep(10 * PATIENCE);
    drop(server);
}

struct Killable {
    child: Child,
}

impl Killable {
    fn start(address: &str, journal: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::serve_until_killed"])
            .env(ADDRESS, address)
            .env(JOURNAL, journal)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What callers were told.
#[derive(Default)]
struct CallTally {
    done: Vec<u64>,
    not_done: Vec<u64>,
    unknown: usize,
}

fn record(client: &Client, number: u64) -> Result<u64, CallError> {
    client.onc().call(
        RECORD,
        |out| {
            out.put(number);
            Ok(())
        },
        |result| result.get(),
    )
}

fn call_until(stop: &AtomicBool, client: &Client, numbers: &AtomicU64) -> CallTally {
    let mut told = CallTally::default();
    while !stop.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match record(client, number) {
            Ok(echo) => {
                assert_eq!(echo, number);
                told.done.push(number);
            }
            Err(error) if error.may_have_executed() => told.unknown += 1,
            Err(_) => told.not_done.push(number),
        }
    }
    told.done.push(last_call(client, numbers));
    told
}

/// The last life lasts, and there was one break at most since this thread called: its second call
/// gets through.
fn last_call(client: &Client, numbers: &AtomicU64) -> u64 {
    let call = || {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        record(client, number)
    };
    call().or_else(|_| call()).unwrap()
}

fn connect(address: &str) -> Client {
    let start = Instant::now();
    loop {
        let options = ChannelOptions::default().wait_for_ready(true);
        match Client::connect_with(address, PROGRAM, 1, options) {
            Ok(client) => return client.with_timeout(PATIENCE),
            Err(error) if start.elapsed() > PATIENCE => panic!("{error}"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn journal_of(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    let numbers = bytes.chunks_exact(8);
    numbers
        .map(|number| u64::from_be_bytes(number.try_into().unwrap()))
        .collect()
}

fn kill_under_load(address: &str, folder: &Path) {
    let journal = folder.join("journal");
    let mut server = Killable::start(address, &journal);
    let client = connect(address);
    let (stop, numbers) = (AtomicBool::new(false), AtomicU64::new(0));
    let told: Vec<CallTally> = thread::scope(|scope| {
        let callers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| call_until(&stop, &client, &numbers)))
            .collect();
        for _ in 0..KILLS {
            live(&client);
            drop(server);
            server = Killable::start(address, &journal);
        }
        stop.store(true, Ordering::Relaxed);
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .collect()
    });
    check(&told, &journal_of(&journal));
    let connections = client.channel().counters().connections;
    assert!(connections > KILLS as u64 / 2, "{connections} connections");
}

/// Lets a server live until it has been called, however busy the machine is, and a moment more.
fn live(client: &Client) {
    let successes = || client.channel().counters().calls.successes;
    let (before, begin) = (successes(), Instant::now());
    while successes() < before + LIFE {
        assert!(begin.elapsed() < PATIENCE, "nobody is served");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(50));
}

fn check(told: &[CallTally], journal: &[u64]) {
    let executed: HashSet<u64> = journal.iter().copied().collect();
    assert_eq!(
        executed.len(),
        journal.len(),
        "nothing is carried out twice"
    );
    let done: Vec<u64> = told
        .iter()
        .flat_map(|told| told.done.iter().copied())
        .collect();
    assert!(done.len() > 1000, "only {} calls got through", done.len());
    for number in &done {
        assert!(
            executed.contains(number),
            "{number} was reported done and was not"
        );
    }
    for number in told.iter().flat_map(|told| &told.not_done) {
        assert!(
            !executed.contains(number),
            "{number} was carried out and denied"
        );
    }
    let unknown: usize = told.iter().map(|told| told.unknown).sum();
    assert!(executed.len() <= done.len() + unknown, "calls of nobody");
}

/// A folder that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = fresh_path();
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn over_tcp() {
    let folder = Folder::new();
    let free = TcpListener::bind((fresh_host(), 0)).unwrap();
    let address = format!("tcp://{}", free.local_addr().unwrap());
    drop(free);
    kill_under_load(&address, &folder.0);
}

#[test]
fn over_a_unix_socket() {
    let folder = Folder::new();
    let address = format!("unix://{}", folder.0.join("socket").display());
    kill_under_load(&address, &folder.0);
}
