//! What the operator of a server sees and sets: counters of what runs, and limits that keep a server answering when
//! peers are silent or many and when handlers hang. The same of servers of threads and of tasks.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::gate::{self, fresh_gate};
use crate::common::obliging;
use crate::common::obliging::{ECHO, HOLD, PATIENCE, PROGRAM, Patient, VERSION, interface};
use crate::common::place::{fresh_host, fresh_path};
use crate::common::serving::{Serving, rest};
use tenon::{
    Address, CallError, CallErrorKind, CallInfo, ChannelOptions, Client, Protocol, Refusal,
    ServerCounters, ServerLimits, Service,
};
use tenon_proto::lean::{PREAMBLE, Preamble};
use tokio::runtime::{Builder, Runtime};

/// A server of either driver.
enum Running {
    Threads(tenon::Server),
    /// The run time goes with it.
    Tasks(
        tenon_tokio::Server,
        #[expect(dead_code, reason = "kept")] Runtime,
    ),
}

impl Running {
    fn addresses(&self) -> &[Address] {
        match self {
            Self::Threads(server) => server.addresses(),
            Self::Tasks(server, _) => server.addresses(),
        }
    }

    fn counters(&self) -> ServerCounters {
        match self {
            Self::Threads(server) => server.counters(),
            Self::Tasks(server, _) => server.counters(),
        }
    }

    /// Where the server is by TCP, and by a Unix socket.
    fn places(&self) -> [String; 2] {
        [0, 1].map(|index| {
            let address = self.addresses()[index].to_string();
            address.split_once("://").unwrap().1.to_owned()
        })
    }

    /// Every address that a client may write.
    fn every_way(&self) -> Vec<String> {
        obliging::every_way(self.addresses())
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads(_) => "threads",
            Self::Tasks(..) => "tasks",
        })
    }
}

/// Threads that a server has for calls which take long.
const THREADS: usize = 2;

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).max_blocking_threads(THREADS);
    builder.enable_all().build().unwrap()
}

/// Servers of both drivers, over TCP, Unix sockets and UDP, of a service that a function makes.
fn both<S: Service>(limits: &ServerLimits, service: impl Fn() -> S) -> [Running; 2] {
    let addresses = || {
        [
            format!("tcp://{}:0", fresh_host()),
            format!("unix://{}", fresh_path().display()),
            format!("udp://{}:0", fresh_host()),
        ]
    };
    let limits = ServerLimits {
        threads: THREADS,
        ..limits.clone()
    };
    let mut threads = tenon::Server::builder();
    let mut tasks = tenon_tokio::Server::builder();
    for address in addresses() {
        threads = threads.listen(&address).unwrap();
    }
    for address in addresses() {
        tasks = tasks.listen(&address).unwrap();
    }
    let threads = threads.limits(limits.clone()).service(service());
    let tasks = tasks.limits(limits).sync_service(service());
    let runtime = runtime();
    let tasks = runtime.block_on(tasks.start()).unwrap();
    [
        Running::Threads(threads.start().unwrap()),
        Running::Tasks(tasks, runtime),
    ]
}

fn connect(address: &str) -> Client {
    let options = ChannelOptions::default();
    let client = Client::connect_with(address, PROGRAM, VERSION, options).unwrap();
    let client = client.with_interface(Arc::new(interface()));
    client.with_timeout(PATIENCE)
}

fn call(client: &Client, procedure: u16, bytes: &[u8]) -> Result<Vec<u8>, CallError> {
    match client.protocol() {
        Protocol::Onc => {
            let onc = client.onc();
            onc.call(procedure.into(), obliging::put(bytes), |input| {
                Ok(input.rest().to_vec())
            })
        }
        Protocol::Lean => {
            let lean = client.lean();
            lean.call(procedure.into(), obliging::put_lean(bytes), |input| {
                Ok(rest(input).to_vec())
            })
        }
    }
}

/// Calls HOLD from a thread of its own.
fn hold(address: &str, gate: u32) -> JoinHandle<Result<Vec<u8>, CallError>> {
    let client = connect(address);
    thread::spawn(move || call(&client, HOLD, &gate.to_be_bytes()))
}

#[track_caller]
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A record of ONC RPC that calls ECHO without arguments.
fn echo_record() -> Vec<u8> {
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
    words
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect()
}

/// Reads the reply to it.
fn read_echo(stream: &mut impl Read) {
    stream.read_exact(&mut [0; 28]).unwrap();
}

fn tcp(server: &Running) -> TcpStream {
    let stream = TcpStream::connect(&server.places()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn unix(server: &Running) -> UnixStream {
    let stream = UnixStream::connect(&server.places()[1]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether the server has closed the connection, for which is waited.
fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn counters_say_what_runs_and_what_waits() {
    let limits = ServerLimits::default();
    for server in both(&limits, obliging::obliging) {
        let gate = fresh_gate();
        let ways = server.every_way();
        let mut calls: Vec<_> = (0..THREADS).map(|index| hold(&ways[index], gate)).collect();
        eventually("all threads are busy", || {
            let counters = server.counters();
            counters.calls_running == 2
                && counters.threads_busy == 2
                && counters.oldest_call > Duration::ZERO
        });
        assert_eq!(server.counters().calls_queued, 0, "{server}");
        calls.push(hold(&ways[2], gate));
        eventually("a call waits", || server.counters().calls_queued == 1);
        let before = server.counters().oldest_call;
        eventually("it grows older", || server.counters().oldest_call > before);
        assert_eq!(server.counters().calls_running, 2, "{server}");
        gate::open(gate);
        for call in calls {
            call.join().unwrap().unwrap();
        }
        eventually("nothing runs", || {
            let ServerCounters {
                calls_running,
                calls_queued,
                oldest_call,
                ..
            } = server.counters();
            (calls_running, calls_queued, oldest_call) == (0, 0, Duration::ZERO)
        });
        let told = format!("{:?}", server.counters());
        assert!(told.contains("calls_running: 0"), "{told}");
    }
}

#[test]
fn counters_say_how_many_requests_have_arrived_in_part() {
    let limits = ServerLimits::default();
    for server in both(&limits, obliging::obliging) {
        let record = echo_record();
        let (mut first, mut second) = (tcp(&server), unix(&server));
        first.write_all(&record[..2]).unwrap();
        second.write_all(&record[..20]).unwrap();
        eventually("both are counted", || {
            server.counters().requests_half_received == 2
        });
        first.write_all(&record[2..]).unwrap();
        read_echo(&mut first);
        eventually("one is", || server.counters().requests_half_received == 1);
        drop(second);
        eventually("none is", || server.counters().requests_half_received == 0);
    }
}

#[test]
fn a_connection_without_a_request_is_closed_soon() {
    let limits = ServerLimits {
        first_request_timeout: Some(Duration::from_millis(300)),
        ..ServerLimits::default()
    };
    for server in both(&limits, obliging::obliging) {
        let (mut silent, mut half) = (tcp(&server), unix(&server));
        half.write_all(&echo_record()[..30]).unwrap();
        assert!(is_closed(&mut silent) && is_closed(&mut half), "{server}");
        eventually("they are counted", || {
            server.counters().late_first_requests == 2
        });
        assert_eq!(server.counters().idle_connections, 0, "{server}");
    }
}

#[test]
fn a_preamble_counts_as_a_first_request() {
    let limits = ServerLimits {
        first_request_timeout: Some(Duration::from_secs(1)),
        ..ServerLimits::default()
    };
    let preamble = Preamble::client(1 << 20).encode();
    for server in both(&limits, obliging::obliging) {
        let mut lean = tcp(&server);
        lean.write_all(&preamble).unwrap();
        let mut told = [0; PREAMBLE];
        lean.read_exact(&mut told).unwrap();
        assert_eq!(told[..8], preamble[..8], "{server}: its own preamble");
        // One that is accepted later is let go, and the other is not.
        assert!(is_closed(&mut tcp(&server)));
        eventually("it is counted", || {
            server.counters().late_first_requests == 1
        });
        let soon = Some(Duration::from_millis(50));
        lean.set_read_timeout(soon).unwrap();
        let nothing = lean.read(&mut told).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "{server}");
    }
}

#[test]
fn a_connection_with_a_request_may_be_silent_longer() {
    let limits = ServerLimits {
        first_request_timeout: Some(Duration::from_secs(1)),
        ..ServerLimits::default()
    };
    for server in both(&limits, obliging::obliging) {
        let mut caller = tcp(&server);
        caller.write_all(&echo_record()).unwrap();
        read_echo(&mut caller);
        let [place, _] = server.places();
        let lean = connect(&format!("lean+tcp://{place}"));
        assert_eq!(call(&lean, ECHO, b"first").unwrap(), b"first");
        let mut silent = tcp(&server);
        assert!(is_closed(&mut silent));
        thread::sleep(Duration::from_secs(1));
        assert_eq!(server.counters().late_first_requests, 1, "{server}");
        caller.write_all(&echo_record()).unwrap();
        read_echo(&mut caller);
        assert_eq!(call(&lean, ECHO, b"late").unwrap(), b"late");
        assert_eq!(lean.channel().counters().connections, 1, "{server}");
    }
}

#[test]
fn a_client_that_was_let_go_connects_again() {
    let limits = ServerLimits {
        first_request_timeout: Some(Duration::from_millis(100)),
        ..ServerLimits::default()
    };
    for server in both(&limits, obliging::obliging) {
        for place in [&server.addresses()[0], &server.addresses()[1]] {
            let before = server.counters().late_first_requests;
            let client = connect(&place.to_string());
            eventually("it is let go", || {
                server.counters().late_first_requests > before
            });
            // A call may still go over the connection that is just being closed.
            eventually("it is back", || call(&client, ECHO, b"back").is_ok());
        }
    }
}

#[test]
fn one_host_leaves_room_for_others() {
    let limits = ServerLimits {
        connections_of_host: 2,
        ..ServerLimits::default()
    };
    for server in both(&limits, obliging::obliging) {
        let mut kept = [tcp(&server), tcp(&server)];
        for caller in &mut kept {
            caller.write_all(&echo_record()).unwrap();
            read_echo(caller);
        }
        assert!(is_closed(&mut tcp(&server)));
        assert_eq!(server.counters().hosts_refused, 1, "{server}");
        // A process of this machine is known by its user.
        let mut other = unix(&server);
        other.write_all(&echo_record()).unwrap();
        read_echo(&mut other);
        let [place, _] = server.places();
        // A client whose preamble has not come yet when it is accepted cannot be told.
        let mut told = String::new();
        eventually("a lean client is told why", || {
            let address = format!("lean+tcp://{place}");
            let refused = match Client::connect(&address, PROGRAM, VERSION) {
                Ok(client) => call(&client, ECHO, b"").unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            told = refused;
            told.contains("too many connections of this client's host")
        });
        let [first, _second] = kept;
        drop(first);
        eventually("there is room again", || {
            let mut caller = tcp(&server);
            let sent = caller.write_all(&echo_record());
            sent.is_ok() && caller.read_exact(&mut [0; 28]).is_ok()
        });
    }
}

/// The kind of error that says by this protocol that the server has no thread for a call.
fn overloaded(client: &Client) -> CallErrorKind {
    match client.protocol() {
        Protocol::Onc => CallErrorKind::Failed,
        Protocol::Lean => CallErrorKind::Busy,
    }
}

/// The same where a handler takes too long.
fn timed_out(client: &Client) -> CallErrorKind {
    match client.protocol() {
        Protocol::Onc => CallErrorKind::Failed,
        Protocol::Lean => CallErrorKind::TimedOut,
    }
}

#[test]
fn calls_are_shed_when_all_threads_hang() {
    /// Holds, and counts how often it did.
    fn service(held: &Arc<AtomicUsize>) -> impl Service + use<> {
        let held = Arc::clone(held);
        Serving {
            interface: interface(),
            body: move |procedure, arguments: &[u8]| {
                if procedure == u32::from(HOLD) {
                    held.fetch_add(1, Ordering::SeqCst);
                    gate::hold(u32::from_be_bytes(arguments.try_into().unwrap()));
                }
                Ok(arguments.to_vec())
            },
        }
    }
    let limits = ServerLimits {
        queue_timeout: Some(Duration::from_millis(100)),
        ..ServerLimits::default()
    };
    let held = Arc::new(AtomicUsize::new(0));
    for server in both(&limits, || service(&held)) {
        held.store(0, Ordering::SeqCst);
        let (gate, ways) = (fresh_gate(), server.every_way());
        let hanging: Vec<_> = (0..THREADS).map(|_| hold(&ways[0], gate)).collect();
        eventually("all threads hang", || {
            server.counters().threads_busy == THREADS as u64
        });
        for (index, address) in ways.iter().enumerate() {
            let client = connect(address);
            let error = call(&client, HOLD, &gate.to_be_bytes()).unwrap_err();
            assert_eq!(
                error.kind(),
                overloaded(&client),
                "{server} {address}: {error}"
            );
            if client.protocol() == Protocol::Lean {
                assert!(!error.may_have_executed(), "{server} {address}: {error}");
            }
            assert_eq!(server.counters().calls_shed, index as u64 + 1, "{server}");
            assert_eq!(server.counters().calls_queued, 0, "{server}");
        }
        assert_eq!(held.load(Ordering::SeqCst), THREADS, "{server}");
        gate::open(gate);
        for call in hanging {
            call.join().unwrap().unwrap();
        }
        for address in &ways {
            assert_eq!(call(&connect(address), ECHO, b"well").unwrap(), b"well");
        }
        assert_eq!(held.load(Ordering::SeqCst), THREADS, "{server}");
    }
}

#[test]
fn a_call_is_answered_when_its_handler_hangs() {
    let limits = ServerLimits {
        handler_timeout: Some(Duration::from_millis(500)),
        ..ServerLimits::default()
    };
    for server in both(&limits, obliging::obliging) {
        for (index, address) in server.every_way().iter().enumerate() {
            let (client, gate) = (connect(address), fresh_gate());
            let error = call(&client, HOLD, &gate.to_be_bytes()).unwrap_err();
            assert_eq!(
                error.kind(),
                timed_out(&client),
                "{server} {address}: {error}"
            );
            assert_eq!(server.counters().handler_timeouts, index as u64 + 1);
            assert_eq!(server.counters().calls_running, 1, "{server}");
            // Its late answer is no answer to anything else.
            for _ in 0..3 {
                assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next", "{address}");
            }
            gate::open(gate);
            eventually("the handler returns", || {
                server.counters().calls_running == 0
            });
            assert_eq!(call(&client, ECHO, b"last").unwrap(), b"last", "{address}");
        }
    }
}

#[test]
fn a_handler_that_takes_too_long_is_told() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);

    struct Attentive;

    impl Service for Attentive {
        fn program(&self) -> u32 {
            PROGRAM
        }

        fn version(&self) -> u32 {
            VERSION
        }

        fn call(
            &self,
            call: &CallInfo<'_>,
            _: &mut tenon::wire::Decoder<'_>,
            _: &mut tenon::wire::Encoder<'_>,
        ) -> Result<(), Refusal> {
            while !call.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            TOLD.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    let limits = ServerLimits {
        handler_timeout: Some(Duration::from_millis(50)),
        ..ServerLimits::default()
    };
    for server in both(&limits, || Attentive) {
        for address in server.addresses() {
            let before = TOLD.load(Ordering::SeqCst);
            let client = connect(&address.to_string());
            call(&client, HOLD, b"").unwrap_err();
            eventually("it is told", || TOLD.load(Ordering::SeqCst) > before);
        }
    }
}

#[test]
fn the_future_of_a_call_that_takes_too_long_is_dropped() {
    let patient = Patient::default();
    let held = Arc::clone(&patient.held);
    let runtime = runtime();
    let builder = obliging::listening_in_tasks()
        .limits(ServerLimits {
            handler_timeout: Some(Duration::from_millis(50)),
            ..ServerLimits::default()
        })
        .service(patient);
    let server = runtime.block_on(builder.start()).unwrap();
    for (index, address) in obliging::every_way(server.addresses()).iter().enumerate() {
        let client = connect(address);
        let error = call(&client, HOLD, &fresh_gate().to_be_bytes()).unwrap_err();
        assert_eq!(error.kind(), timed_out(&client), "{address}: {error}");
        eventually("its future is dropped", || {
            held.over.load(Ordering::SeqCst) == index + 1
        });
        assert_eq!(call(&client, ECHO, b"next").unwrap(), b"next");
    }
    assert_eq!(held.to_the_end.load(Ordering::SeqCst), 0);
    eventually("nothing runs", || server.counters().calls_running == 0);
}

#[test]
fn calls_in_order_wait_for_a_handler_that_hangs() {
    let limits = ServerLimits {
        handler_timeout: Some(Duration::from_millis(50)),
        ..ServerLimits::default()
    };
    for server in both(&limits, || obliging::InOrder(obliging::obliging())) {
        let client = connect(&server.addresses()[0].to_string());
        let gate = fresh_gate();
        let (first, second) = (client.clone(), client.clone());
        let first = thread::spawn(move || call(&first, HOLD, &gate.to_be_bytes()));
        eventually("it takes too long", || {
            server.counters().handler_timeouts == 1
        });
        let second = thread::spawn(move || call(&second, ECHO, b"second"));
        thread::sleep(Duration::from_millis(100));
        assert!(!first.is_finished() && !second.is_finished(), "{server}");
        gate::open(gate);
        first.join().unwrap().unwrap();
        assert_eq!(second.join().unwrap().unwrap(), b"second", "{server}");
    }
}
