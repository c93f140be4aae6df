//! Processes that are killed at any moment while they call over shared memory, or are called: the other end
//! is told, goes on with others, and keeps nothing of them.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::caller::{PATIENCE, PROGRAM, VERSION, fresh_path};
use crate::common::lean_caller;
use crate::common::lean_caller::LeanObliging;
use crate::common::lean_steady::call;
use crate::common::own_process::run;
use tenon::{CallError, ChannelOptions, Client, Server, Waiting};

/// Says to a process where it is to listen or to call.
const ADDRESS: &str = "TENON_SHM_ADDRESS";

/// Servers that are killed, and clients; of both together a fifth as many.
const KILLS: u64 = 100;

/// How long a call may take whose server lives.
const ENOUGH: Duration = Duration::from_secs(10);

/// A process that is killed when it is dropped.
struct Victim(Child);

impl Victim {
    fn start(what: &str, address: &str) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", what, "--test-threads=1"])
            .env(ADDRESS, address)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "it has ended by itself: {ended:?}");
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn orders() -> Option<String> {
    env::var(ADDRESS).ok()
}

fn serve(address: &str) -> Server {
    let builder = Server::builder().listen(address).unwrap();
    builder.service(LeanObliging).start().unwrap()
}

/// A process that serves until it is killed; without orders it does nothing.
#[test]
fn serve_until_killed() {
    let Some(address) = orders() else { return };
    let _server = serve(&address);
    thread::sleep(4 * PATIENCE);
}

/// A process that calls until it is killed; without orders it does nothing.
#[test]
fn call_until_killed() {
    let Some(address) = orders() else { return };
    let end = Instant::now() + 4 * PATIENCE;
    thread::scope(|scope| {
        for (_, waiting) in Waiting::ALL {
            let address = &address;
            scope.spawn(move || {
                let client = connect(address, waiting);
                (0..)
                    .take_while(|_| Instant::now() < end)
                    .for_each(|number| call(&client, number));
            });
        }
    });
}

/// Connects as soon as somebody listens.
fn connect(address: &str, waiting: Waiting) -> Client {
    let options = ChannelOptions::default().waiting(waiting);
    let begin = Instant::now();
    loop {
        match Client::connect_with(address, PROGRAM, VERSION, options.clone()) {
            Ok(client) => return client,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
        thread::sleep(Duration::from_micros(300));
    }
}

/// Up to some milliseconds, another each time.
fn moment(number: u64) -> Duration {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    Duration::from_micros(random % 6000)
}

/// How many descriptors this process has, how many segments it has mapped, and what lies where
/// shared memory with names would be.
fn belongings() -> (usize, usize, BTreeSet<OsString>) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let segments = maps.lines().filter(|line| line.contains("tenon-shm"));
    let named = fs::read_dir("/dev/shm").unwrap();
    let named = named
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("tenon"));
    (descriptors, segments.count(), named.collect())
}

/// Waits until `belongings` are what they were.
fn wait_for(before: &(usize, usize, BTreeSet<OsString>)) {
    let begin = Instant::now();
    while belongings() != *before {
        assert!(
            begin.elapsed() < PATIENCE,
            "{:?}, not {before:?}",
            belongings()
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// Calls until that fails, and says how.
fn call_until_it_fails(client: &Client) -> CallError {
    loop {
        let echoed = client.lean().call(
            lean_caller::ECHO.into(),
            |out| {
                out.room(5000).fill(1);
                Ok(())
            },
            |_| Ok(()),
        );
        if let Err(error) = echoed {
            return error;
        }
    }
}

/// A server is called over several connections and killed.
fn servers_that_are_killed(address: &str, kills: u64) {
    for number in 0..kills {
        // The path is left from the one before.
        let mut victim = Victim::start("killed::serve_until_killed", address);
        let clients = Waiting::ALL.map(|(_, waiting)| connect(address, waiting));
        let is_killed = AtomicBool::new(false);
        thread::scope(|scope| {
            let callers = clients.map(|client| {
                let is_killed = &is_killed;
                scope.spawn(move || call_until_told(&client.with_timeout(ENOUGH), is_killed))
            });
            thread::sleep(moment(number));
            is_killed.store(true, Ordering::SeqCst);
            victim.kill();
            for caller in callers {
                caller.join().unwrap();
            }
        });
    }
}

/// A caller that waits for a server that is killed is told before time runs out. One that knew it before it called
/// tries to connect again until then.
fn call_until_told(client: &Client, is_killed: &AtomicBool) {
    let error = call_until_it_fails(client);
    let is_told = match &error {
        CallError::Disconnected { .. } => true,
        CallError::Connect(_) => !error.may_have_executed(),
        _ => false,
    };
    assert!(is_told, "{error}");
    assert!(is_killed.load(Ordering::SeqCst), "{error}");
}

/// A server is called by processes that are killed, and by one that is not.
fn clients_that_are_killed(kills: u64) {
    let address = format!("shm://{}", fresh_path().display());
    let server = serve(&address);
    let honest = connect(&address, Waiting::default()).with_timeout(PATIENCE);
    call(&honest, 0);
    let before = belongings();
    for number in 0..kills {
        let accepted = server.counters().connections_accepted;
        let mut victim = Victim::start("killed::call_until_killed", &address);
        let begin = Instant::now();
        while server.counters().connections_accepted == accepted {
            assert!(begin.elapsed() < PATIENCE);
            thread::sleep(Duration::from_micros(300));
        }
        thread::sleep(moment(number));
        victim.kill();
        call(&honest, number as u32);
    }
    wait_for(&before);
    assert_eq!(server.counters().connections_open, 1);
}

/// A server and a client that are killed together leave the path, and nothing else.
fn both_killed(kills: u64) {
    let address = format!("shm://{}", fresh_path().display());
    let (_, _, named) = belongings();
    for number in 0..kills {
        let mut server = Victim::start("killed::serve_until_killed", &address);
        let _client = connect(&address, Waiting::Block);
        let mut client = Victim::start("killed::call_until_killed", &address);
        thread::sleep(moment(number) + Duration::from_millis(5));
        server.kill();
        // It was told, and perhaps has ended by itself.
        drop(std::mem::replace(&mut client, Victim::start("nothing", "")));
    }
    assert_eq!(belongings().2, named);
    drop(serve(&address));
    let path = address.strip_prefix("shm://").unwrap();
    assert!(fs::metadata(path).is_err(), "removed by the last server");
}

#[test]
fn whoever_is_killed_is_missed_at_once_and_leaves_nothing() {
    run(
        "killed::whoever_is_killed_is_missed_at_once_and_leaves_nothing",
        servers_and_clients_that_are_killed,
    );
}

fn servers_and_clients_that_are_killed() {
    let before = belongings();
    let address = format!("shm://{}", fresh_path().display());
    servers_that_are_killed(&address, KILLS);
    drop(serve(&address));
    wait_for(&before);
    clients_that_are_killed(KILLS);
    wait_for(&before);
    both_killed(KILLS / 5);
    wait_for(&before);
}
