//! A ring of cells with one end that sends and one that receives, in different processes.
//!
//! A cell is a line of the processors' caches: a word, the *mark*, that says which cell it is and how many
//! bytes it carries, and the bytes. So a short message passes from one core to another as one line: the
//! receiver looks at the mark of the cell that comes next, and when it is there the bytes are, too. Marks
//! count cells since the beginning and never wrap around, so what a cell was marked with when the ring was
//! passed the last time is never taken for what is awaited.
//!
//! Each end keeps its own cursor for itself. The receiver lets the sender see its own once in a quarter of the
//! ring; the sender's is in the marks. What an end reads of the other it believes only if it is possible: a mark of
//! the cell that is awaited, or of the one that was there before; a cursor between nothing and all of the ring.
//!
//! Of a long message the bytes lie in the ring's [annex](crate::annex), and a cell refers to them.
//!
//! The bytes themselves are written and read as atomic words, relaxed. That is what the language has for memory that
//! another process may write at the same time: each word is read exactly once, into memory that is one's own, and
//! whatever it was then is what all code after it looks at. An ordinary copy could be read twice by what the compiler
//! makes of it. On the processors there are such a word costs what any other does.

mod receiver;
mod sender;

use crate::layout::{CELL, LOAD, RECEIVER_SLEEPS, RingLayout};
use crate::sync::{AtomicU64, Ordering, fence};

pub(crate) use receiver::RingReceiver;
pub(crate) use sender::RingSender;

/// Bits of a mark that say how many bytes a cell carries. The others number it.
const LENGTH_BITS: u32 = 8;

/// Length in the mark of a cell that refers to bytes in the annex. Its first word behind the mark says how many.
const REFERS: usize = (1 << LENGTH_BITS) - 1;

/// The peer wrote something into the segment that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingViolation {
    /// A cell has the mark of none that could be there.
    #[error("the peer marked cell {awaited} of what it sends as cell {found}")]
    Mark {
        /// The number of the cell.
        awaited: u64,
        /// The number that the mark says.
        found: u64,
    },
    /// A cell carries nothing, or more than there is room for.
    #[error("the peer marked a cell as one of {0} bytes, and there are 1 to {most}", most = LOAD)]
    Length(u64),
    /// A cell refers to nothing, or to more than there can be.
    #[error("the peer refers to {found} bytes, and there are {least} to {most}", least = taken + 1)]
    Reference {
        /// Bytes that it refers to.
        found: u64,
        /// Bytes of them that were taken already.
        taken: usize,
        /// Most that there can be.
        most: usize,
    },
    /// More was received than was sent.
    #[error(
        "the peer claims to have received more than was sent: {claimed} cells or lines of {capacity} remain"
    )]
    Received {
        /// Cells or lines that follow from the peer's cursor.
        claimed: u64,
        /// Capacity of the ring, or of its annex.
        capacity: u64,
    },
}

type RingCell = [AtomicU64; CELL];

impl RingLayout {
    #[inline]
    fn ring(self, memory: &[AtomicU64]) -> &[RingCell] {
        memory[self.start..self.start + self.words]
            .as_chunks::<CELL>()
            .0
    }

    fn cells(self) -> u64 {
        (self.words / CELL) as u64
    }

    /// Cells that a sender that sleeps is woken for, and so those that are emptied before the sender is told.
    /// For less it would wake up again and again.
    fn worth_telling(self) -> u64 {
        self.cells() / 4
    }

    fn lacks_room(self, in_ring: u64) -> bool {
        in_ring > self.cells() - self.worth_telling()
    }

    /// As [`worth_telling`](Self::worth_telling), of lines of the annex.
    fn annex_worth_telling(self) -> u64 {
        self.annex_lines() / 4
    }

    fn annex_lacks_room(self, in_annex: u64) -> bool {
        in_annex > self.annex_lines() - self.annex_worth_telling()
    }
}

#[inline]
fn mark(number: u64, length: usize) -> u64 {
    ((number + 1) << LENGTH_BITS) | length as u64
}

/// Returns the cell of a number in a ring.
#[inline]
fn cell(ring: &[RingCell], number: u64) -> &RingCell {
    &ring[number as usize & (ring.len() - 1)]
}

/// Has the end woken that receives by the ring at `place`, if it sleeps.
#[inline]
pub(crate) fn wake_receiver(memory: &[AtomicU64], place: RingLayout, wake: impl Fn()) {
    // With the one in `RingReceiver::park`: either this sees the sleeper, or it sees what is new.
    fence(Ordering::SeqCst);
    wake_sleeper(&memory[place.receiver + RECEIVER_SLEEPS], wake);
}

/// Wakes the sleeping peer, once.
#[inline]
pub(crate) fn wake_sleeper(sleeps: &AtomicU64, wake: impl Fn()) {
    if sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::AcqRel) != 0 {
        wake();
    }
}
