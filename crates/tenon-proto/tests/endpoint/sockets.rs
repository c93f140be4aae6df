//! The packet exchange over real sockets, through a relay that loses, doubles, delays and reorders real datagrams. No
//! time is asserted; what happens to a datagram is decided by a seed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tenon_proto::config::ConnectionConfig;
use tenon_proto::connection::{CallDraft, LeanCall, ReplyDraft, ServiceTable, StartError};
use tenon_proto::endpoint::duplicates::DuplicateLimits;
use tenon_proto::endpoint::{ClientEndpoint, ServerEndpoint};
use tenon_proto::exchange::ReassembledMessage;
use tenon_proto::exchange::client::{ClientLimits, ClientSecrets};
use tenon_proto::exchange::server::{ServerLimits, ServerSecrets};
use tenon_proto::lean::{ByteOrder, Interface, Preamble};
use tenon_wire::Buffer;

use crate::common::Random;
use crate::exchange::support::request;

const MESSAGE_MAX: usize = 4 << 20;
const PAUSE: Duration = Duration::from_micros(200);

fn whole() -> ReassembledMessage {
    ReassembledMessage::new(&Preamble::client(MESSAGE_MAX as u32))
}

/// A datagram's room, at a multiple of 8 in memory.
#[repr(align(8))]
struct Room([u8; 2048]);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn interface() -> Arc<Interface> {
    Arc::new(Interface::unknown(300, 1))
}

/// What a service makes of its arguments.
fn result_of(arguments: &[u8]) -> Vec<u8> {
    arguments.iter().rev().map(|byte| !byte).collect()
}

// ---- Server ----

/// Serves until it is told to stop; returns how often each call was carried out, by the first bytes of its arguments.
fn serve(socket: &UdpSocket, stop: &AtomicBool) -> HashMap<Vec<u8>, u32> {
    let mut services = ServiceTable::default();
    services.add(300, 1, Some(interface()));
    let secrets = ServerSecrets {
        key: [3; 16],
        incarnation: 1,
        seed: 1,
    };
    let config = ConnectionConfig {
        receive_max: MESSAGE_MAX,
        incoming_calls_max: 64,
        ..ConnectionConfig::server()
    };
    let (limits, duplicates) = (ServerLimits::default(), DuplicateLimits::default());
    let now = Instant::now();
    let mut endpoint = ServerEndpoint::new(&config, limits, duplicates, secrets, None, now);
    let mut executed: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut room = Room([0; 2048]);
    let mut whole = whole();
    while !stop.load(Ordering::Relaxed) {
        let mut is_idle = true;
        while let Ok((bytes, from)) = socket.recv_from(&mut room.0) {
            is_idle = false;
            let now = Instant::now();
            let datagram = &room.0[..bytes];
            let call = endpoint.handle_datagram(now, from, datagram, &services, &mut whole);
            if let Some(call) = call {
                let arguments = call.call.arguments;
                *executed.entry(arguments[..8].to_vec()).or_default() += 1;
                let mut reply = Buffer::default();
                let draft = ReplyDraft::begin(&mut reply, call.call.caller);
                reply.extend(&result_of(arguments));
                draft.seal(&mut reply);
                endpoint.answer(now, call.key, &mut reply).unwrap();
            }
            send_answers(socket, &mut endpoint);
        }
        endpoint.handle_timeout(Instant::now());
        send_answers(socket, &mut endpoint);
        if is_idle {
            thread::sleep(PAUSE);
        }
    }
    executed
}

fn send_answers(socket: &UdpSocket, endpoint: &mut ServerEndpoint<SocketAddr>) {
    let mut out = Buffer::default();
    while let Some(to) = endpoint.poll_transmit(Instant::now(), &mut out) {
        // A full socket loses it, as the network may.
        let _ = socket.send_to(out.as_slice(), to);
        out.clear();
    }
}

// ---- Relay ----

/// What the relay does to datagrams, in times per thousand.
#[derive(Clone, Copy)]
struct Faults {
    loss: u32,
    duplication: u32,
    /// Longest delay, in microseconds.
    delay_us: usize,
}

/// Datagrams that wait in the relay: when they go on, in which order they came, through which of its
/// sockets, and whether to the server.
type Waiting = BinaryHeap<Reverse<(Instant, u64, usize, bool, Vec<u8>)>>;

/// Carries datagrams between clients and the server. Each client has a socket of its own there, so
/// that the server sees it at an address of its own.
fn relay(front: &UdpSocket, server: SocketAddr, faults: Faults, stop: &AtomicBool) -> u64 {
    let mut random = Random(7);
    let mut clients: Vec<(SocketAddr, UdpSocket)> = Vec::new();
    let mut waiting = Waiting::new();
    let (mut count, mut lost) = (0, 0);
    let mut room = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let mut arrived = Vec::new();
        while let Ok((bytes, from)) = front.recv_from(&mut room) {
            let known = clients.iter().position(|(address, _)| *address == from);
            let index = known.unwrap_or_else(|| {
                clients.push((from, socket()));
                clients.len() - 1
            });
            arrived.push((index, true, room[..bytes].to_vec()));
        }
        for (index, (_, back)) in clients.iter().enumerate() {
            while let Ok((bytes, _)) = back.recv_from(&mut room) {
                arrived.push((index, false, room[..bytes].to_vec()));
            }
        }
        let is_idle = arrived.is_empty();
        for (index, to_server, bytes) in arrived {
            for _ in 0..1 + u32::from(random.per_mille(faults.duplication)) {
                if random.per_mille(faults.loss) {
                    lost += 1;
                    continue;
                }
                count += 1;
                let delay = random.below(faults.delay_us + 1) as u64;
                let at = Instant::now() + Duration::from_micros(delay);
                waiting.push(Reverse((at, count, index, to_server, bytes.clone())));
            }
        }
        let now = Instant::now();
        while waiting.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, index, to_server, bytes))) = waiting.pop() else {
                break;
            };
            let (address, back) = &clients[index];
            let _ = if to_server {
                back.send_to(&bytes, server)
            } else {
                front.send_to(&bytes, address)
            };
        }
        if is_idle {
            thread::sleep(PAUSE);
        }
    }
    lost
}

// ---- Client ----

struct Client {
    socket: UdpSocket,
    endpoint: ClientEndpoint<u64>,
    random: Random,
    results: HashMap<u64, Vec<u8>>,
}

impl Client {
    fn new(number: u64, relay: SocketAddr) -> Self {
        let socket = socket();
        socket.connect(relay).unwrap();
        let key = [number as u8; 16];
        let secrets = ClientSecrets { key, seed: number };
        let config = ConnectionConfig {
            receive_max: MESSAGE_MAX,
            ..ConnectionConfig::client()
        };
        Self {
            socket,
            endpoint: ClientEndpoint::exchange(&config, ClientLimits::default(), secrets),
            random: Random(number),
            results: HashMap::new(),
        }
    }

    /// Calls so many times, up to 16 at once; every call is answered.
    fn run(&mut self, number: u64, calls: u64) {
        let mut room = Room([0; 2048]);
        let mut started = 0;
        while started < calls || !self.results.is_empty() {
            while started < calls && self.endpoint.in_flight() < 16 {
                if !self.start(number << 32 | started) {
                    break;
                }
                started += 1;
            }
            self.send();
            let mut is_idle = true;
            while let Ok(bytes) = self.socket.recv(&mut room.0) {
                is_idle = false;
                self.receive(&room.0[..bytes]);
                self.send();
            }
            self.endpoint.handle_timeout(Instant::now());
            if let Some(failed) = self.endpoint.poll_failure() {
                panic!("{:?}", failed.failure);
            }
            if is_idle {
                thread::sleep(PAUSE);
            }
        }
    }

    fn start(&mut self, name: u64) -> bool {
        let bytes = match self.random.below(10) {
            0 if self.endpoint.peer().is_some() => self.random.below(300_000),
            _ => self.random.of_bits(10),
        };
        let mut arguments = name.to_be_bytes().to_vec();
        arguments.extend(self.random.bytes(bytes));
        let (mut message, draft) = request(ByteOrder::NATIVE, 1, &arguments);
        let draft = CallDraft::Lean(LeanCall {
            draft,
            interface: &interface(),
            procedure: 1,
        });
        let now = Instant::now();
        let deadline = now + Duration::from_secs(300);
        let started = self
            .endpoint
            .start_call(now, &draft, &mut message, deadline, name);
        match started {
            Ok(_) => {
                self.results.insert(name, result_of(&arguments));
                true
            }
            Err(StartError::TooManyCalls { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    fn receive(&mut self, datagram: &[u8]) {
        let mut whole = whole();
        let answer = self
            .endpoint
            .handle_datagram(Instant::now(), datagram, &mut whole);
        if let Some(answer) = answer {
            let expected = self.results.remove(&answer.waiter).expect("it waits");
            assert!(answer.outcome.unwrap() == expected, "a wrong result");
        }
    }

    fn send(&mut self) {
        let mut out = Buffer::default();
        while self.endpoint.poll_transmit(Instant::now(), &mut out) {
            let _ = self.socket.send(out.as_slice());
            out.clear();
        }
    }
}

/// Two clients call through a relay with these faults; how many datagrams it lost.
fn run(faults: Faults, calls: u64) -> u64 {
    let (front, back) = (socket(), socket());
    let at = |socket: &UdpSocket| socket.local_addr().unwrap();
    let (front_address, back_address) = (at(&front), at(&back));
    let stop = AtomicBool::new(false);
    let executed = Mutex::new(HashMap::new());
    let lost = thread::scope(|scope| {
        scope.spawn(|| *executed.lock().unwrap() = serve(&back, &stop));
        let relay = scope.spawn(|| relay(&front, back_address, faults, &stop));
        let clients = [1, 2].map(|number| {
            scope.spawn(move || Client::new(number, front_address).run(number, calls))
        });
        let ended = clients.map(|client| client.join());
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|client| client.unwrap());
        relay.join().unwrap()
    });
    let executed = executed.into_inner().unwrap();
    assert_eq!(executed.len() as u64, 2 * calls);
    assert!(executed.values().all(|times| *times == 1), "at most once");
    lost
}

#[test]
fn calls_of_all_sizes_over_a_network_that_does_nothing_to_them() {
    let faults = Faults {
        loss: 0,
        duplication: 0,
        delay_us: 0,
    };
    assert_eq!(run(faults, 200), 0);
}

#[test]
fn calls_of_all_sizes_through_a_relay_that_loses_doubles_delays_and_reorders() {
    let faults = Faults {
        loss: 100,
        duplication: 100,
        delay_us: 3000,
    };
    assert!(run(faults, 100) > 0);
}
