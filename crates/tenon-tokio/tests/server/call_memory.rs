//! The memory of calls that are carried out by tasks: it is bounded for each connection and for all, and calls that
//! find none wait in their connections, each of which goes through in the end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::gate;
use crate::common::obliging::{PATIENCE, PROGRAM, VERSION, interface};
use crate::common::serving::Serving;
use tenon::ServerLimits;
use tenon_tokio::Server;
use tokio::runtime::Runtime;

/// Opens the gate that is its first argument, and returns that when the gate of the second one is open.
const HOLD: u32 = 2;

const LARGE: usize = 300 << 10;

/// Memory for two large calls, and not for four.
const MEMORY: usize = 1 << 20;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn serve(limits: ServerLimits) -> (Runtime, Server, String) {
    let runtime = Runtime::new().unwrap();
    let body = |_, arguments: &[u8]| {
        let word = |index: usize| {
            let bytes = arguments[4 * index..4 * index + 4].try_into();
            u32::from_be_bytes(bytes.unwrap())
        };
        gate::open(word(0));
        gate::hold(word(1));
        Ok(words(&[word(0)]))
    };
    let interface = interface();
    let builder = Server::builder().listen("tcp://127.0.0.1:0").unwrap();
    let builder = builder.limits(limits);
    let builder = builder.sync_service(Serving { interface, body });
    let server = runtime.block_on(builder.start()).unwrap();
    let tcp = server.addresses()[0].to_string().replace("tcp://", "");
    (runtime, server, tcp)
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A call that is held until a test lets it go.
struct Held {
    begun: u32,
    end: u32,
}

impl Held {
    fn new() -> Self {
        let [begun, end] = [gate::fresh_gate(), gate::fresh_gate()];
        Self { begun, end }
    }

    fn send(&self, stream: &mut TcpStream, size: usize) {
        let mut message = words(&[self.begun, 0, 2, PROGRAM, VERSION, HOLD, 0, 0, 0, 0]);
        message.extend(words(&[self.begun, self.end]));
        message.resize(size, 0);
        let mark = (1_u32 << 31 | size as u32).to_be_bytes();
        stream.write_all(&[&mark[..], &message].concat()).unwrap();
    }

    fn has_begun(&self) -> bool {
        gate::is_open(self.begun)
    }

    fn wait_for_begun(&self) {
        eventually("a call begins", || self.has_begun());
    }

    fn let_go(&self) {
        gate::open(self.end);
    }

    fn expect_reply(&self, stream: &mut TcpStream) {
        let mut reply = [0; 32];
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], self.begun.to_be_bytes());
        assert_eq!(reply[28..], self.begun.to_be_bytes());
    }
}

fn held_back(server: &Server, count: u64) {
    eventually("calls are held back", || {
        server.counters().calls_held_back >= count
    });
}

#[test]
fn the_calls_of_one_connection_take_bounded_memory() {
    const CALLS: usize = 8;
    let (_runtime, server, tcp) = serve(ServerLimits {
        connection_call_bytes: MEMORY,
        ..ServerLimits::default()
    });
    let calls: Vec<_> = (0..CALLS).map(|_| Held::new()).collect();
    let mut stream = TcpStream::connect(&tcp).unwrap();
    thread::scope(|scope| {
        let (mut sends, calls) = (stream.try_clone().unwrap(), &calls);
        scope.spawn(move || {
            for call in calls {
                call.send(&mut sends, LARGE);
            }
        });
        calls[0].wait_for_begun();
        held_back(&server, 1);
        let begun = calls.iter().filter(|call| call.has_begun()).count();
        assert!(begun * LARGE <= MEMORY, "{begun} calls have begun");
        assert!(!calls[CALLS - 1].has_begun());
        for call in calls {
            call.wait_for_begun();
            call.let_go();
            call.expect_reply(&mut stream);
        }
    });
}

#[test]
fn the_calls_of_all_connections_take_bounded_memory() {
    let (_runtime, server, tcp) = serve(ServerLimits {
        call_bytes: MEMORY,
        ..ServerLimits::default()
    });
    let connect = || (TcpStream::connect(&tcp).unwrap(), Held::new());
    let mut first = [connect(), connect()];
    for (stream, call) in &mut first {
        call.send(stream, LARGE);
        call.wait_for_begun();
    }
    let mut waiting = [connect(), connect()];
    for ((stream, call), count) in waiting.iter_mut().zip(1..) {
        call.send(stream, LARGE);
        held_back(&server, count);
    }
    // Small calls are carried out although all memory is taken.
    let (mut small, call_of_small) = connect();
    call_of_small.send(&mut small, 100);
    call_of_small.wait_for_begun();
    call_of_small.let_go();
    call_of_small.expect_reply(&mut small);
    assert!(!waiting.iter().any(|(_, call)| call.has_begun()));
    // One after the other goes on as room is made, in their order.
    for (index, (mut stream, call)) in first.into_iter().enumerate() {
        call.let_go();
        call.expect_reply(&mut stream);
        waiting[index].1.wait_for_begun();
        assert!(
            waiting[index + 1..]
                .iter()
                .all(|(_, call)| !call.has_begun())
        );
    }
    for (stream, call) in &mut waiting {
        call.let_go();
        call.expect_reply(stream);
    }
    assert_eq!(server.counters().memory_exhausted, 0);
}

/// Whatever the limits, a message that the server takes in is carried out.
#[test]
fn a_single_call_always_goes_through() {
    const LARGEST: usize = 3 << 20;
    let (_runtime, _server, tcp) = serve(ServerLimits {
        call_bytes: 1,
        connection_call_bytes: 1,
        ..ServerLimits::default()
    });
    let mut clients = [(); 2].map(|()| (TcpStream::connect(&tcp).unwrap(), Held::new()));
    for (stream, call) in &mut clients {
        call.send(stream, LARGEST);
        // Either may be the first that has come whole.
        call.let_go();
    }
    for (stream, call) in &mut clients {
        call.expect_reply(stream);
    }
}
