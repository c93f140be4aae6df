//! A network that loses, doubles, delays, reorders and damages datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::common::Random;

/// What happens to datagrams, in times per thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub loss: u32,
    pub duplication: u32,
    pub damage: u32,
    /// Damaged datagrams arrive, as if nothing below had a checksum. Otherwise damage is loss.
    pub unchecked: bool,
    /// Longest delay, in milliseconds; it is different for every datagram, so they overtake each
    /// other.
    pub delay_ms: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Client,
    Server,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    pub to: End,
    pub bytes: Vec<u8>,
    /// Something in it, or in what it answers, is not as it was sent.
    pub tainted: bool,
}

/// Datagrams on their way, by the time they arrive.
pub struct Network {
    faults: Faults,
    on_the_way: BinaryHeap<Reverse<(Instant, u64, Datagram)>>,
    sent: u64,
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
        if random.per_mille(self.faults.duplication) {
            let Datagram { to, tainted, .. } = datagram;
            let bytes = datagram.bytes.clone();
            self.send_once(random, now, Datagram { to, bytes, tainted });
        }
        self.send_once(random, now, datagram);
    }

    fn send_once(&mut self, random: &mut Random, now: Instant, mut datagram: Datagram) {
        if random.per_mille(self.faults.loss) {
            return;
        }
        if random.per_mille(self.faults.damage) {
            if !self.faults.unchecked {
                return;
            }
            damage(random, &mut datagram);
        }
        let delay = Duration::from_millis(random.below(self.faults.delay_ms + 1) as u64);
        self.sent += 1;
        let arrival = (now + delay, self.sent, datagram);
        self.on_the_way.push(Reverse(arrival));
    }

    pub fn next_arrival(&self) -> Option<Instant> {
        self.on_the_way.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next datagram that has arrived by `now`.
    pub fn receive(&mut self, now: Instant) -> Option<Datagram> {
        if self.next_arrival()? > now {
            return None;
        }
        self.on_the_way
            .pop()
            .map(|Reverse((.., datagram))| datagram)
    }
}

/// Flips a bit, cuts the end off, or appends something.
fn damage(random: &mut Random, datagram: &mut Datagram) {
    datagram.tainted = true;
    let bytes = &mut datagram.bytes;
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => bytes.extend(random.next().to_be_bytes()),
        _ if bytes.is_empty() => {}
        _ => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
    }
}
