//! Damaged bytes at either end: no end hangs or panics, and the next connection works.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::relay::{Relay, Toward};
use crate::rows::{Execution, Row, touched_rows};
use crate::service::{ECHO, Obliging, pattern};

/// Damages of each kind of traffic in each row.
const DAMAGES: u64 = 12;

/// A small generator with a seed (splitmix64, Steele and others 2014): the same damage each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Damages good traffic in one of the ways in which it may be damaged.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    // What stands in front decides more than what follows.
    let most = match random.below(2) {
        0 => bytes.len().min(64),
        _ => bytes.len(),
    };
    let at = random.below(most);
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => bytes.truncate(at),
        3 => bytes.insert(at, random.next() as u8),
        4 => drop(bytes.remove(at)),
        _ => {
            let copied = bytes[at..].to_vec();
            bytes.splice(at..at, copied);
        }
    }
}

fn check(row: &Row, toward: Toward) {
    let server = row.server(&Obliging::default(), Execution::Inline);
    let relay = Relay::default();
    let client = row.client(&relay.before(&server.address()));
    let direct = row.client(&server.address());
    // A damaged length may have an end wait for what never comes.
    let hasty = client.clone().within(Duration::from_millis(150));
    let sent = pattern(100);
    for seed in 0..DAMAGES {
        let mut random = Random(seed);
        let skipped = random.below(3);
        relay.touch(toward, skipped, move |bytes| damage(bytes, &mut random));
        let before = relay.touched.load(Ordering::SeqCst);
        for _ in 0..20 {
            if relay.touched.load(Ordering::SeqCst) > before {
                break;
            }
            // Whatever comes of it: without a checksum the result itself may be what was damaged.
            if let Ok(echo) = hasty.call(ECHO, &sent) {
                assert!(echo == sent || !row.carrier.has_check, "{row}: {seed}");
            }
        }
        assert!(
            relay.touched.load(Ordering::SeqCst) > before,
            "{row}: {seed}"
        );
        assert!(direct.call(ECHO, &sent).unwrap() == sent, "{row}: {seed}");
        // The connection that was damaged may be found dead by one call.
        let next = (0..3).find_map(|_| client.call(ECHO, &sent).ok());
        assert!(next.unwrap() == sent, "{row}: {seed}");
    }
    assert_eq!(server.counters().panics, 0, "{row}");
}

#[test]
fn a_server_outlives_damaged_calls() {
    touched_rows()
        .iter()
        .for_each(|row| check(row, Toward::Server));
}

#[test]
fn a_client_outlives_damaged_replies() {
    touched_rows()
        .iter()
        .for_each(|row| check(row, Toward::Client));
}
