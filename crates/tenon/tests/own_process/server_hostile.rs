//! A live server among hostile peers: whatever they send, it answers or closes, it serves the
//! others, and nothing of them is left: descriptors and threads are counted.

use std::fs;

use crate::common::caller::*;
use tenon::Server;

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

/// A call that is well-formed until something is done to it.
fn seed(random: &mut Random) -> Vec<u8> {
    let sys = words(&[1, 28, 99, 3, 0x6162_6300, 1042, 100, 1, 7]);
    let length = 4 * random.below(20);
    let procedures = [0, ECHO, COUNT, WHO, DENY, FAIL, 99];
    let procedure = procedures[random.below(procedures.len())];
    let arguments = random.bytes(length);
    call_as(random.next() as u32, procedure, &sys, &arguments)
}

fn truncated(random: &mut Random) -> Vec<u8> {
    let mut message = seed(random);
    message.truncate(random.below(message.len()));
    message
}

fn bit_flipped(random: &mut Random) -> Vec<u8> {
    let mut message = seed(random);
    for _ in 0..=random.below(3) {
        let at = random.below(message.len());
        message[at] ^= 1 << random.below(8);
    }
    // The one procedure that may take long is not asked for by accident.
    if message.get(20..24) == Some(&words(&[SLEEP])) || message.get(20..24) == Some(&words(&[BIG]))
    {
        message[23] = 0;
    }
    message
}

fn random_bytes(random: &mut Random) -> Vec<u8> {
    let length = random.below(200);
    random.bytes(length)
}

/// Sends `bytes`, says that this is all, and reads until the server has closed the connection.
fn exhaust(mut caller: Caller, bytes: &[u8]) {
    // The server may close before it has read everything.
    let _ = caller.try_send_raw(bytes);
    let _ = caller.finish_sending();
    while let Ok(Some(_)) = caller.try_receive() {}
}

fn check(server: &Server, attack: impl Fn(&mut Random) -> Vec<u8>) {
    let mut random = Random(1);
    let mut others = Caller::on_all(server);
    for _ in 0..150 {
        for caller in Caller::on_streams(server) {
            exhaust(caller, &attack(&mut random));
        }
        Caller::udp(server).send(&attack(&mut random));
        others.iter_mut().for_each(Caller::expect_service);
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

pub fn hostile_peers_are_answered_or_closed_and_leave_nothing_behind() {
    let before_server = Resources::now();
    let server = builder()
        .limits(limited(|limits| limits.message_bytes = 4096))
        .start()
        .unwrap();
    let before = Resources::now();

    check(&server, |random| record(&truncated(random)));
    check(&server, |random| record(&bit_flipped(random)));
    check(&server, |random| record(&random_bytes(random)));
    check(&server, random_bytes);
    check(&server, |random| {
        let mut bytes = record(&seed(random));
        bytes.truncate(random.below(bytes.len()));
        bytes
    });
    check(&server, |random| {
        let length = 4096 + random.below(4096);
        record(&random.bytes(length))
    });
    check(&server, |random| {
        let pieces = random.below(40);
        (0..pieces).flat_map(|_| fragment(&[], false)).collect()
    });

    let counters = server.counters();
    assert!(counters.broken_connections > 0, "{counters:?}");
    assert!(counters.violations > 0, "{counters:?}");
    assert!(counters.refusals > 0, "{counters:?}");
    assert_eq!(counters.panics, 0);
    eventually("everything is as before", || {
        server.counters().connections_open == 0 && Resources::now() == before
    });
    server.shutdown(PATIENCE);
    drop(server);
    eventually("nothing is left", || Resources::now() == before_server);
}
