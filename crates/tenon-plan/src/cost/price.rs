//! Prices of parameters on a machine, and the price of a tally that follows.

use std::collections::BTreeMap;

use super::symbol::Symbol;
use super::tally::Tally;

/// The levels that bytes can lie in: bytes of each cache, the nearest first. Behind the last one
/// there is memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Levels {
    /// Bytes of each cache.
    pub caches: Vec<u64>,
}

/// A parameter as it is measured: by its symbol and, if it depends on that, the level. 0 for what
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level {
    /// The parameter.
    pub symbol: Symbol,
    /// Index of the cache, the nearest first; behind the last is memory.
    pub level: usize,
}

/// Nanoseconds that each parameter takes on one machine, for one engine and direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// Levels of cache and memory that bytes can lie in.
    pub levels: Levels,
    /// Nanoseconds.
    pub nanoseconds: BTreeMap<Level, f64>,
}

/// The part of a time that one parameter is responsible for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The parameter.
    pub symbol: Symbol,
    /// Number of times that it occurs.
    pub times: f64,
    /// Nanoseconds all together.
    pub nanoseconds: f64,
}

impl Levels {
    /// Returns the number of levels, memory included.
    pub fn count(&self) -> usize {
        self.caches.len() + 1
    }

    /// Returns the level in which a message of so many bytes lies, of which there are two copies: what it is
    /// moved from, and what to.
    pub fn of_message(&self, bytes: u64) -> usize {
        let fits = |cache: &u64| bytes.saturating_mul(2) <= *cache;
        self.caches
            .iter()
            .position(fits)
            .unwrap_or(self.caches.len())
    }
}

impl Tally {
    /// Returns the count of each parameter, given these levels; without those that do not occur.
    pub fn by_level(&self, levels: &Levels) -> impl Iterator<Item = (Level, f64)> {
        let level = levels.of_message(self.wire_bytes());
        let all = Symbol::ALL.into_iter().map(move |symbol| {
            let level = match symbol.is_by_level() {
                true => level,
                false => 0,
            };
            (Level { symbol, level }, self.times(symbol))
        });
        all.filter(|(_, times)| *times != 0.0)
    }
}

impl Parameters {
    /// Nanoseconds that a tally takes.
    pub fn price(&self, tally: &Tally) -> f64 {
        self.shares(tally)
            .iter()
            .map(|share| share.nanoseconds)
            .sum()
    }

    /// Gives to those of `all` that were not measured what the nearest level takes, if that is known.
    pub fn fill(&mut self, all: &[Level]) {
        for level in all {
            let of_symbol = self.nanoseconds.iter();
            let of_symbol = of_symbol.filter(|(known, _)| known.symbol == level.symbol);
            let nearest = of_symbol.min_by_key(|(known, _)| known.level.abs_diff(level.level));
            if let Some((_, nearest)) = nearest {
                let nearest = *nearest;
                self.nanoseconds.entry(*level).or_insert(nearest);
            }
        }
    }

    /// Returns the shares of the time, the largest first.
    pub fn shares(&self, tally: &Tally) -> Vec<Share> {
        let of = |(level, times): (Level, f64)| Share {
            symbol: level.symbol,
            times,
            nanoseconds: times * self.nanoseconds.get(&level).copied().unwrap_or(0.0),
        };
        let mut shares: Vec<Share> = tally.by_level(&self.levels).map(of).collect();
        shares.sort_by(|a, b| b.nanoseconds.total_cmp(&a.nanoseconds));
        shares
    }
}
