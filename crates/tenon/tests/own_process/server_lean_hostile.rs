//! A live server among hostile lean clients: whatever they send, it answers or closes, it serves the
//! others, in both protocols, and nothing of them is left: descriptors and threads are counted.

use std::fs;

use crate::common::caller;
use crate::common::caller::{Caller, PATIENCE, call, eventually, limited, success, words};
use crate::common::lean_caller::{
    ECHO, FAIL, LeanCaller, LeanObliging, Memory, PANIC, WHICH_ORDER, interface, with_shm,
};
use tenon::Server;
use tenon::lean::{HEADER, PREAMBLE};

/// A small generator with a seed (splitmix64, Steele and others 2014): the same bytes each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Preamble, binding and a call, as they should be.
fn seed(random: &mut Random) -> Vec<u8> {
    let procedures = [0, ECHO, FAIL, PANIC, WHICH_ORDER, 99];
    let procedure = procedures[random.below(procedures.len())];
    let length = random.below(100);
    LeanCaller::first_call(interface(), procedure, &random.bytes(length))
}

/// Damaged in a few bits behind the preamble, which has a check.
fn bit_flipped(random: &mut Random) -> Vec<u8> {
    let mut stream = seed(random);
    for _ in 0..=random.below(3) {
        let at = PREAMBLE + random.below(stream.len() - PREAMBLE);
        stream[at] ^= 1 << random.below(8);
    }
    stream
}

/// Binds without end, which the server takes to be refused without cost.
fn binds(random: &mut Random) -> Vec<u8> {
    let stream = LeanCaller::first_call(interface(), ECHO, b"");
    let bind = &stream[PREAMBLE..PREAMBLE + HEADER + 16];
    let mut binds = stream[..PREAMBLE].to_vec();
    for number in 0..random.below(3000) as u16 {
        let start = binds.len();
        binds.extend(bind);
        binds[start + 8..start + 10].copy_from_slice(&number.to_ne_bytes());
        binds[start + HEADER] ^= random.next() as u8;
    }
    binds
}

/// A header that promises what never comes, and perhaps what is not granted.
fn promise(random: &mut Random) -> Vec<u8> {
    let mut stream = LeanCaller::first_call(interface(), ECHO, b"");
    let length = stream.len();
    let promised = (random.next() as u32) >> random.below(32);
    stream[length - 4..].copy_from_slice(&promised.to_ne_bytes());
    stream
}

fn address_of(server: &Server, scheme: &str) -> String {
    let mut addresses = server.addresses().iter().map(ToString::to_string);
    addresses
        .find(|address| address.starts_with(scheme))
        .unwrap()
}

fn check(server: &Server, attack: impl Fn(&mut Random) -> Vec<u8>) {
    let mut random = Random(1);
    let address = server.addresses()[0].to_string();
    let mut lean = LeanCaller::connect(&address);
    let shm = address_of(server, "shm://");
    let mut in_memory = LeanCaller::connect(&shm);
    let mut onc = Caller::on_streams(server);
    for round in 0..100 {
        let memory = Memory::connect(&shm);
        memory.send(&attack(&mut random));
        memory.finish();
        for mut caller in Caller::on_streams(server) {
            // The server may close before it has read everything.
            let _ = caller.try_send_raw(&attack(&mut random));
            let _ = caller.finish_sending();
            caller.drain();
        }
        assert_eq!(lean.call(ECHO, b"me"), "ECHO: me");
        assert_eq!(in_memory.call(ECHO, b"me, too"), "ECHO: me, too");
        for caller in &mut onc {
            caller.send(&call(round, 1, &words(&[round])));
            assert_eq!(caller.receive(), success(round, &words(&[round])));
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Resources {
    descriptors: usize,
    threads: usize,
}

impl Resources {
    fn now() -> Self {
        let count = |path| fs::read_dir(path).unwrap().count();
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }
}

pub fn hostile_clients_are_answered_or_closed_and_leave_nothing_behind() {
    let before_server = Resources::now();
    let server = with_shm(caller::listening())
        .service(LeanObliging)
        .limits(limited(|limits| limits.message_bytes = 4096))
        .start()
        .unwrap();
    let before = Resources::now();

    check(&server, seed);
    check(&server, bit_flipped);
    check(&server, binds);
    check(&server, promise);
    check(&server, |random| {
        let mut stream = seed(random);
        stream.truncate(random.below(stream.len()));
        stream
    });
    check(&server, |random| {
        let length = random.below(200);
        let stream = seed(random);
        [&stream[..PREAMBLE], &random.bytes(length)].concat()
    });

    let counters = server.counters();
    assert!(counters.broken_connections > 0, "{counters:?}");
    assert!(counters.violations > 0, "{counters:?}");
    assert!(counters.refusals > 0, "{counters:?}");
    eventually("everything is as before", || {
        server.counters().connections_open == 0 && Resources::now() == before
    });
    server.shutdown(PATIENCE);
    drop(server);
    eventually("nothing is left", || Resources::now() == before_server);
}
