//! The layout of a segment. Everything is counted in words of 8 bytes.
//!
//! In front are two blocks, the server's and the client's, of which each is written by its owner, but for the words
//! that say that it sleeps, which the other end clears. A block has two lines, far enough from each other for a
//! processor's caches to pass them about one by one: what changes whenever a quarter of a ring was received, and what
//! seldom changes and so stays in the cache of the end that reads it. Behind lie the two rings, of cells that are a
//! line each. The second half of a ring that is not small is its annex.

use crate::sync::AtomicU64;

/// Bytes of a word.
pub(crate) const WORD: usize = 8;

/// Words of a line: two lines of the caches that there are, as some fetch them in pairs.
const LINE: usize = if cfg!(loom) { 4 } else { 16 };

/// Words of a block.
const BLOCK: usize = 2 * LINE;

/// Words of a cell: one line of the caches that there are, the first word of it the mark.
pub(crate) const CELL: usize = if cfg!(loom) { 2 } else { 8 };

/// Bytes that a cell carries.
pub(crate) const LOAD: usize = (CELL - 1) * WORD;

/// Words in front of the rings: a page.
const FRONT: usize = if cfg!(loom) { 2 * BLOCK } else { 512 };

/// In a block: cells that its owner has emptied of the ring that it receives by, as far as it says.
pub(crate) const HEAD: usize = 0;
/// In a block: lines that its owner has emptied of the annex of that ring, as far as it says.
pub(crate) const ANNEX_HEAD: usize = HEAD + 1;
/// In a block: what its owner does no more, as bits.
pub(crate) const ENDED: usize = LINE;
/// In a block: not 0 if its owner sleeps until bytes come.
pub(crate) const RECEIVER_SLEEPS: usize = LINE + 1;
/// In a block: not 0 if its owner sleeps until there is room for bytes.
pub(crate) const SENDER_SLEEPS: usize = LINE + 2;

/// Bytes of the two rings of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    to_server: usize,
    to_client: usize,
}

/// No ring has so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ring has a power of two of bytes from {least} to {most}, not {0}",
    least = Sizes::LEAST,
    most = Sizes::MOST
)]
pub struct RingSizesError(u64);

impl Sizes {
    /// Bytes of the smallest ring.
    pub const LEAST: usize = if cfg!(loom) { 4 * CELL * WORD } else { 4 << 10 };
    /// Bytes of the smallest ring that has an annex.
    pub(crate) const ANNEX_LEAST: usize = if cfg!(loom) {
        2 * Self::LEAST
    } else {
        64 << 10
    };
    /// Bytes of the largest ring.
    pub const MOST: usize = 64 << 20;
    /// Bytes of one in which some dozens of ordinary messages fit. The caches of a core hold two.
    pub const USUAL: usize = 256 << 10;

    /// Returns the sizes of a ring for what the server receives and of one for what the client does.
    ///
    /// # Errors
    /// One is no power of two, too small or too large.
    pub fn new(to_server: u64, to_client: u64) -> Result<Self, RingSizesError> {
        Ok(Self {
            to_server: ring(to_server)?,
            to_client: ring(to_client)?,
        })
    }

    /// Returns sizes with both rings of so many bytes, or of the next number that a ring may have.
    pub fn near(bytes: usize) -> Self {
        let bytes = bytes.clamp(Self::LEAST, Self::MOST).next_power_of_two();
        Self {
            to_server: bytes,
            to_client: bytes,
        }
    }

    /// Returns the number of bytes of the ring for what the server receives.
    pub fn to_server(self) -> usize {
        self.to_server
    }

    /// Returns the number of bytes of the ring for what the client receives.
    pub fn to_client(self) -> usize {
        self.to_client
    }

    /// Returns the number of bytes of the segment.
    pub fn segment(self) -> usize {
        FRONT * WORD + self.to_server + self.to_client
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::near(Self::USUAL)
    }
}

fn ring(bytes: u64) -> Result<usize, RingSizesError> {
    let known = usize::try_from(bytes).map_err(|_| RingSizesError(bytes))?;
    match known.is_power_of_two() && (Sizes::LEAST..=Sizes::MOST).contains(&known) {
        true => Ok(known),
        false => Err(RingSizesError(bytes)),
    }
}

/// The position of one ring and what belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingLayout {
    /// The block of the end that sends by it.
    pub(crate) sender: usize,
    /// The block of the end that receives by it.
    pub(crate) receiver: usize,
    /// Its first word.
    pub(crate) start: usize,
    /// Number of words of its cells.
    pub(crate) words: usize,
    /// Number of words of its annex, which is behind them: as many, or none.
    annex_words: usize,
}

impl RingLayout {
    /// Returns the ring for what the server receives.
    pub(crate) fn to_server(sizes: Sizes) -> Self {
        Self::of(BLOCK, 0, FRONT, sizes.to_server)
    }

    /// Returns the ring for what the client receives.
    pub(crate) fn to_client(sizes: Sizes) -> Self {
        Self::of(0, BLOCK, FRONT + sizes.to_server / WORD, sizes.to_client)
    }

    fn of(sender: usize, receiver: usize, start: usize, bytes: usize) -> Self {
        let all = bytes / WORD;
        let annex_words = match bytes < Sizes::ANNEX_LEAST {
            true => 0,
            false => all / 2,
        };
        Self {
            sender,
            receiver,
            start,
            words: all - annex_words,
            annex_words,
        }
    }

    /// Returns the annex.
    pub(crate) fn annex(self, memory: &[AtomicU64]) -> &[AtomicU64] {
        let start = self.start + self.words;
        &memory[start..start + self.annex_words]
    }

    /// Returns the number of lines of the annex.
    pub(crate) fn annex_lines(self) -> u64 {
        (self.annex_words / CELL) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two_within_limits() {
        for bad in [0, 1, 4095, 4097, 6 << 10, 128 << 20, u64::MAX] {
            assert_eq!(Sizes::new(bad, 4096), Err(RingSizesError(bad)));
            assert_eq!(Sizes::new(4096, bad), Err(RingSizesError(bad)));
        }
        let sizes = Sizes::new(4096, 64 << 20).unwrap();
        assert_eq!(sizes.segment(), 4096 + 4096 + (64 << 20));
    }

    #[test]
    fn a_size_that_no_ring_has_is_the_next_that_one_has() {
        let near = [
            (0, 4096),
            (4097, 8192),
            (256 << 10, 256 << 10),
            (usize::MAX, 64 << 20),
        ];
        for (wanted, bytes) in near {
            let sizes = Sizes::new(bytes as u64, bytes as u64).unwrap();
            assert_eq!(Sizes::near(wanted), sizes, "{wanted}");
        }
        assert_eq!(Sizes::default(), Sizes::near(Sizes::USUAL));
    }

    #[test]
    fn nothing_lies_on_anything_else() {
        let sizes = Sizes::new(4096, 8192).unwrap();
        let (up, down) = (RingLayout::to_server(sizes), RingLayout::to_client(sizes));
        assert!(SENDER_SLEEPS < BLOCK && 2 * BLOCK <= up.start);
        assert_eq!(up.start + up.words, down.start);
        assert_eq!((down.start + down.words) * WORD, sizes.segment());
        assert_eq!((up.annex_lines(), down.annex_lines()), (0, 0));

        let sizes = Sizes::new(64 << 10, 128 << 10).unwrap();
        let (up, down) = (RingLayout::to_server(sizes), RingLayout::to_client(sizes));
        const { assert!(ANNEX_HEAD < ENDED) };
        assert_eq!(up.words + up.annex_words, (64 << 10) / WORD);
        assert_eq!(up.start + up.words + up.annex_words, down.start);
        let end = down.start + down.words + down.annex_words;
        assert_eq!(end * WORD, sizes.segment());
        assert_eq!((up.annex_lines(), down.annex_lines()), (512, 1024));
    }
}
