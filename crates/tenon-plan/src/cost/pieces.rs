//! The pieces of memory that a message takes, and what an allocator does for them.
//!
//! A compiled stub asks the allocator for each. The other engines take all from an arena, which
//! asks for larger ones.

use super::symbol::{Engine, Symbol};
use super::tally::SymbolCounts;

/// Bytes of the largest piece that glibc's allocator has lists of, one for each multiple of
/// [`CLASS`], from which it takes what was given back (`tcache` in its `malloc/malloc.c`).
const LISTED_MAX: u64 = 1032;

/// Bytes by which sizes of pieces differ.
const CLASS: u64 = 16;

/// Pieces that each of these lists holds.
const LISTED: u64 = 7;

/// Bytes of the chunks of an arena: the first, the second, and the largest that they double to; and
/// of what each but the first begins with.
const FIRST: u64 = 512;
const SECOND: u64 = 1016;
const MOST: u64 = 16 << 10;
const HEAD: u64 = 16;

/// Pieces in the order in which they are taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AllocationLog(Vec<AllocationGroup>);

/// So many pieces of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AllocationGroup {
    bytes: u64,
    times: u64,
}

impl AllocationLog {
    pub fn take(&mut self, bytes: u64, times: u64) {
        match self.0.last_mut() {
            Some(last) if last.bytes == bytes => last.times = last.times.saturating_add(times),
            _ => self.0.push(AllocationGroup { bytes, times }),
        }
    }

    pub fn take_all(&mut self, others: &Self, times: u64) {
        for piece in &others.0 {
            self.take(piece.bytes, piece.times.saturating_mul(times));
        }
    }

    /// Returns what comes on top once all pieces are known: the chunks of an arena, or pieces that a list has no
    /// more of.
    pub fn finish(&self, engine: Engine) -> SymbolCounts {
        match engine {
            Engine::Compiled => self.more(),
            Engine::Machine | Engine::Interpreter => self.chunks(),
        }
    }

    fn more(&self) -> SymbolCounts {
        let mut classes: Vec<AllocationGroup> = Vec::new();
        for piece in self.0.iter().filter(|piece| piece.bytes <= LISTED_MAX) {
            let class = (piece.bytes + CLASS / 2).div_ceil(CLASS);
            match classes.iter_mut().find(|known| known.bytes == class) {
                Some(known) => known.times = known.times.saturating_add(piece.times),
                None => classes.push(AllocationGroup {
                    bytes: class,
                    ..*piece
                }),
            }
        }
        let more = classes
            .iter()
            .map(|class| class.times.saturating_sub(LISTED) as f64);
        let mut times = SymbolCounts::default();
        times.add(Symbol::AllocateMore, more.sum());
        times
    }

    fn chunks(&self) -> SymbolCounts {
        let mut arena = ArenaModel::default();
        for piece in &self.0 {
            let words = piece.bytes.checked_next_multiple_of(8);
            arena.take(words.unwrap_or(u64::MAX), piece.times);
        }
        arena.times
    }
}

/// Models the requests of an arena to an allocator, as that of `tenon-exec` makes them.
#[derive(Default)]
struct ArenaModel {
    times: SymbolCounts,
    /// Bytes left in the present chunk.
    left: u64,
    /// Chunks so far, and the bytes of the latest.
    chunks: u64,
    latest: u64,
}

impl ArenaModel {
    fn take(&mut self, bytes: u64, mut times: u64) {
        while times > 0 {
            let there = self.left.checked_div(bytes).unwrap_or(times).min(times);
            self.left -= there * bytes;
            times -= there;
            if times > 0 {
                times -= self.take_from_new(bytes, times);
            }
        }
    }

    /// Takes as many pieces from new chunks as those hold; `most` if all chunks are alike.
    fn take_from_new(&mut self, bytes: u64, most: u64) -> u64 {
        let (usual, head) = match self.chunks {
            0 => (FIRST, 0),
            1 => (SECOND, HEAD),
            _ => (self.latest.saturating_mul(2).min(MOST), HEAD),
        };
        let chunk = bytes.saturating_add(head).max(usual);
        let are_alike = self.chunks > 1 && self.latest >= MOST.min(chunk);
        let each = ((chunk - head) / bytes).max(1);
        let chunks = match are_alike {
            true => most.div_ceil(each),
            false => 1,
        };
        take(&mut self.times, chunk, chunks);
        let taken = each.saturating_mul(chunks).min(most);
        let in_last = taken - each.saturating_mul(chunks - 1);
        let left = (chunk - head).saturating_sub(in_last.saturating_mul(bytes));
        self.left = self.left.max(left);
        (self.chunks, self.latest) = (self.chunks.saturating_add(chunks), chunk);
        taken
    }
}

/// Counts pieces that are taken from the allocator.
pub(super) fn take(times: &mut SymbolCounts, bytes: u64, pieces: u64) {
    let symbol = match bytes <= LISTED_MAX {
        true => Symbol::Allocate,
        false => Symbol::AllocateLarge,
    };
    times.add(symbol, pieces as f64);
    times.add(Symbol::AllocateByte, bytes as f64 * pieces as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(engine: Engine, pieces: &[(u64, u64)]) -> [f64; 4] {
        let mut all = AllocationLog::default();
        pieces
            .iter()
            .for_each(|(bytes, times)| all.take(*bytes, *times));
        let times = all.finish(engine);
        let symbols = [
            Symbol::Allocate,
            Symbol::AllocateLarge,
            Symbol::AllocateMore,
            Symbol::AllocateByte,
        ];
        symbols.map(|symbol| times.of(symbol))
    }

    #[test]
    fn an_arena_takes_ever_larger_chunks() {
        let arena = |pieces: &[(u64, u64)]| taken(Engine::Machine, pieces);
        assert_eq!(arena(&[]), [0.0; 4]);
        assert_eq!(arena(&[(5, 1)]), [1.0, 0.0, 0.0, 512.0]);
        assert_eq!(arena(&[(64, 8)]), [1.0, 0.0, 0.0, 512.0]);
        assert_eq!(arena(&[(64, 9)]), [2.0, 0.0, 0.0, 512.0 + 1016.0]);
        let three = 512.0 + 1016.0 + 2032.0;
        assert_eq!(arena(&[(64, 8 + 15 + 1)]), [2.0, 1.0, 0.0, three]);
        // A large one has a chunk of its own, and the present one stays in use.
        assert_eq!(
            arena(&[(8, 1), (5000, 1), (504, 1)]),
            [1.0, 1.0, 0.0, 512.0 + 5016.0]
        );
    }

    #[test]
    fn a_long_array_takes_chunks_that_are_alike() {
        let [listed, large, _, bytes] = taken(Engine::Interpreter, &[(1000, 1_000_000)]);
        assert_eq!(listed, 2.0);
        assert!((large - 1e6 / 16.0).abs() < 10.0, "{large}");
        assert!((bytes / (large * MOST as f64) - 1.0).abs() < 0.01);
        let [_, large, ..] = taken(Engine::Interpreter, &[(u64::MAX, u64::MAX)]);
        assert!(large > 1e18);
    }

    #[test]
    fn a_list_of_the_allocator_holds_seven_of_a_size() {
        let more = |pieces: &[(u64, u64)]| taken(Engine::Compiled, pieces)[2];
        assert_eq!(more(&[(20, 7)]), 0.0);
        assert_eq!(more(&[(20, 7), (40, 7), (24, 2)]), 2.0);
        assert_eq!(more(&[(2000, 50)]), 0.0);
    }
}
