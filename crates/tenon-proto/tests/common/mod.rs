//! What several tests need: words as bytes, numbers that look random, and how many seeds a simulation has.
#![allow(dead_code, reason = "every test uses its part")]

use std::fmt::Debug;
use std::ops::Range;

/// The bytes of XDR words, so that a test shows a message as RFC 5531 does.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A record of one fragment (RFC 5531 section 11).
pub fn record(body: &[u8]) -> Vec<u8> {
    let mark = 0x8000_0000 | body.len() as u32;
    [&mark.to_be_bytes(), body].concat()
}

/// The seeds of a simulation: `count` from 0 on. `TENON_SIMULATION_SEEDS` in the environment is another count, and
/// `TENON_SIMULATION_FIRST` the first, to repeat a failure.
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("TENON_SIMULATION_FIRST").unwrap_or(0);
    first..first + number("TENON_SIMULATION_SEEDS").unwrap_or(count)
}

/// Shows what a run is about if it fails.
pub struct ShownOnFailure<T: Debug>(pub T);

impl<T: Debug> Drop for ShownOnFailure<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}", self.0);
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood): the same numbers for the same seed everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number of at most so many bits, small ones as likely as large ones.
    pub fn of_bits(&mut self, bits: usize) -> usize {
        let bits = self.below(bits + 1);
        self.below(1 << bits)
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, times: u32) -> bool {
        self.below(1000) < times as usize
    }

    pub fn word(&mut self) -> u32 {
        self.next() as u32
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
