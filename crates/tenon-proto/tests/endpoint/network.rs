//! A network that loses, doubles, delays, reorders and damages datagrams, and sometimes brings one
//! again when it was long forgotten.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::Random;

/// What happens to datagrams, in times per thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub loss: u32,
    pub duplication: u32,
    /// Damaged datagrams arrive, as if UDP had no checksum.
    pub damage: u32,
    /// Duplicates that come up to two minutes later.
    pub ghosts: u32,
    /// Longest delay, in microseconds; it is different for every datagram, so they overtake each
    /// other.
    pub delay_us: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    /// Something in it, or in what it answers, is not as it was sent.
    pub is_tainted: bool,
}

/// Datagrams on their way, by the time they arrive.
pub struct Network {
    pub faults: Faults,
    on_the_way: BinaryHeap<Reverse<(Instant, u64, Datagram)>>,
    pub sent: u64,
}

impl Network {
    pub fn new(faults: Faults) -> Self {
        Self {
            faults,
            on_the_way: BinaryHeap::new(),
            sent: 0,
        }
    }

    pub fn send(&mut self, random: &mut Random, now: Instant, datagram: Datagram) {
        let faults = self.faults;
        if random.per_mille(faults.ghosts) {
            let later = Duration::from_millis(random.below(120_000) as u64);
            self.deliver(now + later, datagram.clone());
        }
        if random.per_mille(faults.duplication) {
            self.send_once(random, now, datagram.clone());
        }
        self.send_once(random, now, datagram);
    }

    fn send_once(&mut self, random: &mut Random, now: Instant, mut datagram: Datagram) {
        if random.per_mille(self.faults.loss) {
            return;
        }
        if random.per_mille(self.faults.damage) {
            damage(random, &mut datagram);
        }
        let delay = random.below(self.faults.delay_us + 1) as u64;
        self.deliver(now + Duration::from_micros(20 + delay), datagram);
    }

    fn deliver(&mut self, at: Instant, datagram: Datagram) {
        self.sent += 1;
        self.on_the_way.push(Reverse((at, self.sent, datagram)));
    }

    pub fn next_arrival(&self) -> Option<Instant> {
        self.on_the_way.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next datagram that has arrived by `now`.
    pub fn receive(&mut self, now: Instant) -> Option<Datagram> {
        if self.next_arrival()? > now {
            return None;
        }
        let Reverse((.., datagram)) = self.on_the_way.pop()?;
        Some(datagram)
    }
}

/// Flips some bits, cuts the end off, or appends something.
fn damage(random: &mut Random, datagram: &mut Datagram) {
    datagram.is_tainted = true;
    let bytes = &mut datagram.bytes;
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => bytes.extend(random.next().to_be_bytes()),
        _ if bytes.is_empty() => {}
        _ => {
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
    }
}
