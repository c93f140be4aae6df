//! A server process without descriptors for further connections: it refuses them at once and serves those that it has.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::obliging::{ECHO, PATIENCE, PROGRAM, VERSION, interface};
use crate::common::place::{fresh_host, fresh_path};
use crate::common::serving::Serving;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenon::{Client, ServerCounters, Service};

/// Tells a child of this test which server it is: "threads" or "tasks".
const DRIVER: &str = "TENON_TEST_DESCRIPTORS_DRIVER";

/// Connections that the child has room for, at least.
const ROOM: usize = 6;

/// Connections that it has no room for.
const EXCESS: usize = 20;

type Counters = Arc<OnceLock<Box<dyn Fn() -> ServerCounters + Send + Sync>>>;

/// Answers every call with how many connections were refused for want of descriptors, and how often accepting failed.
fn counting(counters: &Counters) -> impl Service + use<> {
    let counters = Arc::clone(counters);
    Serving {
        interface: interface(),
        body: move |_, _: &[u8]| {
            let now = counters.get().unwrap()();
            let words = [now.descriptors_exhausted as u32, now.accept_failures as u32];
            Ok(words.map(u32::to_be_bytes).concat())
        },
    }
}

/// The server process. Run as a test of its own, it does nothing.
#[test]
fn serve_with_few_descriptors() {
    let Ok(driver) = std::env::var(DRIVER) else {
        return;
    };
    let counters = Counters::default();
    let addresses = [
        format!("tcp://{}:0", fresh_host()),
        format!("unix://{}", fresh_path().display()),
        format!("shm://{}", fresh_path().display()),
    ];
    if driver == "threads" {
        let mut builder = tenon::Server::builder().service(counting(&counters));
        for address in &addresses {
            builder = builder.listen(address).unwrap();
        }
        let server = Arc::new(builder.start().unwrap());
        let counted = Arc::clone(&server);
        assert!(counters.set(Box::new(move || counted.counters())).is_ok());
        announce(server.addresses());
    } else {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut builder = tenon_tokio::Server::builder().sync_service(counting(&counters));
        for address in &addresses {
            builder = builder.listen(address).unwrap();
        }
        let server = Arc::new(runtime.block_on(builder.start()).unwrap());
        let counted = Arc::clone(&server);
        assert!(counters.set(Box::new(move || counted.counters())).is_ok());
        announce(server.addresses());
    }
}

/// Leaves room for few descriptors, says where the server is, and serves until the test ends the process.
fn announce(addresses: &[tenon::Address]) {
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    let limit = Rlimit {
        current: Some((open + ROOM) as u64),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    for address in addresses {
        println!("at {address}");
    }
    // The test ends it, or time.
    thread::sleep(10 * PATIENCE);
}

struct Served {
    child: Child,
    addresses: Vec<String>,
}

impl Served {
    fn start(driver: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "descriptors::serve_with_few_descriptors",
                "--nocapture",
            ])
            .env(DRIVER, driver)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = lines.map(Result::unwrap);
        let addresses = lines.filter_map(|line| line.strip_prefix("at ").map(str::to_owned));
        let addresses = addresses.take(3).collect();
        Self { child, addresses }
    }

    fn place(&self, index: usize) -> &str {
        self.addresses[index].split_once("://").unwrap().1
    }

    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.place(0)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn unix(&self) -> UnixStream {
        let stream = UnixStream::connect(self.place(1)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        for index in [1, 2] {
            let _ = fs::remove_file(self.place(index));
        }
    }
}

/// Calls; returns what the service has counted.
fn counted(stream: &mut (impl Read + Write)) -> Option<[u32; 2]> {
    let words = [
        1 << 31 | 40,
        7,
        0,
        2,
        PROGRAM,
        VERSION,
        ECHO.into(),
        0,
        0,
        0,
        0,
    ];
    let message: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    let mut reply = [0; 36];
    stream.write_all(&message).ok()?;
    stream.read_exact(&mut reply).ok()?;
    let word = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
    Some([word(28), word(32)])
}

#[test]
fn connections_without_a_descriptor_are_refused_at_once() {
    for driver in ["threads", "tasks"] {
        let server = Served::start(driver);
        let mut kept = Vec::new();
        let mut first = server.tcp();
        assert_eq!(counted(&mut first), Some([0, 0]), "{driver}");
        // The server may have a descriptor for a moment that nothing needs afterwards.
        let mut refused = 0;
        while refused < ROOM {
            let (mut tcp, mut unix) = (server.tcp(), server.unix());
            refused += 1;
            if counted(&mut tcp).is_some() {
                kept.push(OwnedFd::from(tcp));
                refused = 0;
            }
            if counted(&mut unix).is_some() {
                kept.push(OwnedFd::from(unix));
                refused = 0;
            }
            assert!(kept.len() <= 2 * ROOM, "{driver}");
        }
        let [before, _] = counted(&mut first).unwrap();
        for index in 0..EXCESS {
            let is_served = if index % 2 == 0 {
                counted(&mut server.tcp()).is_some()
            } else {
                counted(&mut server.unix()).is_some()
            };
            assert!(!is_served, "{driver}: {index} behind {}", kept.len());
        }
        // Each was accepted once, and nothing was tried in vain.
        let counts = counted(&mut first).unwrap();
        assert_eq!(counts, [before + EXCESS as u32, 0], "{driver}");
        // Shared memory needs descriptors that are handed over.
        let refused = Client::connect(&server.addresses[2], PROGRAM, VERSION);
        let refused = refused.map(|client| {
            let client = client.with_timeout(PATIENCE);
            let called = client.lean().call(ECHO.into(), |_| Ok(()), |_| Ok(()));
            called.unwrap_err();
        });
        if let Err(error) = refused {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                text = format!("{text}: {next}");
                cause = next.source();
            }
            assert!(text.contains("too many connections"), "{driver}: {text}");
        }
        drop(kept);
        let deadline = Instant::now() + PATIENCE;
        while counted(&mut server.tcp()).is_none() {
            assert!(Instant::now() < deadline, "{driver}: no room again");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
