//! Stands between clients and a server, and loses, doubles, delays and reorders real datagrams. What
//! happens to one is decided by a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_micros(200);

/// What is done to datagrams, in times per thousand.
#[derive(Clone, Copy)]
pub struct Faults {
    pub loss: u64,
    pub duplication: u64,
    /// Longest delay, in microseconds.
    pub delay_us: u64,
}

/// Works until it is dropped.
pub struct Relay {
    pub address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    lost: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
}

/// Datagrams that wait: when they go on, in which order they came, through which socket, and whether to
/// the server.
type Waiting = BinaryHeap<Reverse<(Instant, u64, usize, bool, Vec<u8>)>>;

/// splitmix64 (Steele and others 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl Relay {
    /// Stands in front of a server.
    pub fn before(server: SocketAddr, faults: Faults) -> Self {
        Self::losing(&[], server, faults)
    }

    /// The same; of the packets of the exchange that are of these kinds it loses the first of each, too.
    pub fn losing(kinds: &[u8], server: SocketAddr, faults: Faults) -> Self {
        let front = socket();
        let address = front.local_addr().unwrap();
        let (lost, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let server = Arc::new(Mutex::new(server));
        let mut works = Works {
            front,
            server: Arc::clone(&server),
            faults,
            doomed: kinds.to_vec(),
            clients: Vec::new(),
            waiting: Waiting::new(),
            random: Random(7),
            count: 0,
            lost: Arc::clone(&lost),
        };
        let stopping = Arc::clone(&stop);
        let running = thread::spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                if !works.turn() {
                    thread::sleep(PAUSE);
                }
            }
        });
        Self {
            address,
            server,
            lost,
            stop,
            running: Some(running),
        }
    }

    /// Leads to another server from now on.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap() = server;
    }

    /// Datagrams that were lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            running.join().unwrap();
        }
    }
}

struct Works {
    front: UdpSocket,
    server: Arc<Mutex<SocketAddr>>,
    faults: Faults,
    /// Kinds of packets, the next of which is lost.
    doomed: Vec<u8>,
    /// Each has a socket of its own, so that the server sees it at an address of its own.
    clients: Vec<(SocketAddr, UdpSocket)>,
    waiting: Waiting,
    random: Random,
    count: u64,
    lost: Arc<AtomicU64>,
}

impl Works {
    /// Carries on what has come and what is due; says whether anything has come.
    fn turn(&mut self) -> bool {
        let server = *self.server.lock().unwrap();
        let mut arrived = Vec::new();
        let mut room = vec![0; 65_536];
        while let Ok((bytes, from)) = self.front.recv_from(&mut room) {
            let known = self
                .clients
                .iter()
                .position(|(address, _)| *address == from);
            let index = known.unwrap_or_else(|| {
                self.clients.push((from, socket()));
                self.clients.len() - 1
            });
            arrived.push((index, true, room[..bytes].to_vec()));
        }
        for (index, (_, back)) in self.clients.iter().enumerate() {
            while let Ok((bytes, from)) = back.recv_from(&mut room) {
                if from == server {
                    arrived.push((index, false, room[..bytes].to_vec()));
                }
            }
        }
        let has_arrived = !arrived.is_empty();
        for (index, to_server, bytes) in arrived {
            self.take(index, to_server, &bytes);
        }
        self.carry_on(server);
        has_arrived
    }

    fn take(&mut self, index: usize, to_server: bool, bytes: &[u8]) {
        let kind = bytes.get(6);
        if let Some(place) = self.doomed.iter().position(|doomed| Some(doomed) == kind) {
            self.doomed.swap_remove(place);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let is_doubled = self.random.below(1000) < self.faults.duplication;
        for _ in 0..1 + u32::from(is_doubled) {
            if self.random.below(1000) < self.faults.loss {
                self.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.count += 1;
            let delay = Duration::from_micros(self.random.below(self.faults.delay_us + 1));
            let at = Instant::now() + delay;
            let entry = (at, self.count, index, to_server, bytes.to_vec());
            self.waiting.push(Reverse(entry));
        }
    }

    fn carry_on(&mut self, server: SocketAddr) {
        let now = Instant::now();
        while let Some(Reverse((at, ..))) = self.waiting.peek()
            && *at <= now
        {
            let Some(Reverse((_, _, index, to_server, bytes))) = self.waiting.pop() else {
                return;
            };
            let (address, back) = &self.clients[index];
            // A full socket loses it, as the network may.
            let _ = match to_server {
                true => back.send_to(&bytes, server),
                false => self.front.send_to(&bytes, address),
            };
        }
    }
}
