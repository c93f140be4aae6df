//! The annex of a ring: lines of memory without marks, in which the bytes of long messages lie. A cell of the
//! ring *refers* to them and says how many there are; where they begin both ends know, as whatever is referred to
//! follows what was referred to before.
//!
//! Why not cells: of their lines an eighth are marks, which have to be passed from core to core, too, and a
//! copy that has to leave them out is slower.

use std::sync::atomic::AtomicU64 as OwnU64;
use std::sync::atomic::Ordering as OwnOrdering;

use crate::layout::{CELL, RingLayout, WORD};
use crate::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
use crate::segment::lines;

/// Bytes of a line.
const LINE: usize = CELL * WORD;

/// Bytes that a cell refers to at most. Each part of a message more is a wait for the other core more, which some
/// processors take half a microsecond for: `docs/shm.md` has what was measured.
const REFERRED_MOST: usize = if cfg!(loom) { LINE } else { 64 << 10 };

/// Bytes from which a sender refers to them. Fewer are as quick in cells, or quicker: `docs/shm.md` has what was
/// measured.
pub(crate) const REFERRED_LEAST: usize = if cfg!(loom) { LINE } else { 512 };

/// Returns the number of bytes that a cell refers to at most in an annex of so many lines: half of it at most, so that
/// one half is emptied while the other is filled.
pub(crate) fn referred_most(lines: u64) -> usize {
    REFERRED_MOST.min(lines.div_ceil(2) as usize * LINE)
}

/// Position of an end in an annex.
#[derive(Debug)]
pub(crate) struct AnnexCursor {
    /// Lines that were filled, or emptied.
    at: OwnU64,
    /// Lines that are known to be emptied: of the sender's by the peer, of the receiver's to the peer.
    known: OwnU64,
}

impl AnnexCursor {
    pub(crate) fn new() -> Self {
        Self {
            at: OwnU64::new(0),
            known: OwnU64::new(0),
        }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at.load(OwnOrdering::Relaxed)
    }

    pub(crate) fn known(&self) -> u64 {
        self.known.load(OwnOrdering::Relaxed)
    }

    pub(crate) fn set_known(&self, lines: u64) {
        self.known.store(lines, OwnOrdering::Relaxed);
    }

    /// Passes the lines that so many bytes take.
    pub(crate) fn pass(&self, bytes: usize) {
        let at = self.at() + bytes.div_ceil(LINE) as u64;
        self.at.store(at, OwnOrdering::Relaxed);
    }

    /// Returns the number of bytes that may be referred to next, as far as the end of the annex and what is customary
    /// go.
    pub(crate) fn most(&self, place: RingLayout) -> usize {
        let lines = place.annex_lines();
        match lines {
            0 => 0,
            _ => referred_most(lines).min((lines - self.at() % lines) as usize * LINE),
        }
    }

    /// The same as far as there is room, too.
    pub(crate) fn room(&self, place: RingLayout) -> usize {
        let free = place.annex_lines() - (self.at() - self.known());
        self.most(place).min(free as usize * LINE)
    }

    /// Returns the lines from here to the end of the annex.
    fn lines<'m>(&self, memory: &'m [AtomicU64], place: RingLayout) -> &'m [AtomicU64] {
        let annex = place.annex(memory);
        &annex[self.at() as usize * CELL % annex.len()..]
    }

    /// Writes `bytes`, which are not more than the [`room`](Self::room), and passes them.
    pub(crate) fn put(&self, memory: &[AtomicU64], place: RingLayout, bytes: &[u8]) {
        put_words(self.lines(memory, place), bytes);
        self.pass(bytes.len());
    }

    /// Copies what is there behind the first `skipped` bytes, as much as `room` holds: no more together than
    /// [`most`](Self::most).
    pub(crate) fn take(
        &self,
        memory: &[AtomicU64],
        place: RingLayout,
        skipped: usize,
        room: &mut [u8],
    ) {
        take_words(self.lines(memory, place), skipped, room);
    }
}

/// Copies by words, as each is to be read and written once: what loom, Miri and processors do for which there are
/// no [instructions for lines](crate::segment::lines).
#[cfg(loom)]
mod lines {
    use crate::sync::AtomicU64;

    pub(super) fn put(_: &[AtomicU64], _: &[u8]) -> usize {
        0
    }

    pub(super) fn take(_: &[AtomicU64], _: &mut [u8]) -> usize {
        0
    }
}

fn put_words(words: &[AtomicU64], bytes: &[u8]) {
    let put = lines::put(words, bytes);
    let (words, bytes) = (&words[put / WORD..], &bytes[put..]);
    let (lines, _) = words.as_chunks::<CELL>();
    let (whole, rest) = bytes.as_chunks::<LINE>();
    for (line, bytes) in lines.iter().zip(whole) {
        for (word, bytes) in line.iter().zip(bytes.as_chunks::<WORD>().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }
    let words = &words[whole.len() * CELL..];
    let (whole, rest) = rest.as_chunks::<WORD>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

fn take_words(words: &[AtomicU64], skipped: usize, room: &mut [u8]) {
    let words = &words[skipped / WORD..];
    let inside = skipped % WORD;
    if inside == 0 {
        return take_from_word(words, room);
    }
    let bytes = words[0].load(Ordering::Relaxed).to_ne_bytes();
    let fits = room.len().min(WORD - inside);
    let (first, room) = room.split_at_mut(fits);
    first.copy_from_slice(&bytes[inside..inside + fits]);
    take_from_word(&words[1..], room);
}

fn take_from_word(words: &[AtomicU64], room: &mut [u8]) {
    let taken = lines::take(words, room);
    let (words, room) = (&words[taken / WORD..], &mut room[taken..]);
    let (lines, _) = words.as_chunks::<CELL>();
    let (whole, rest) = room.as_chunks_mut::<LINE>();
    let passed = whole.len() * CELL;
    for (line, bytes) in lines.iter().zip(whole) {
        for (word, bytes) in line.iter().zip(bytes.as_chunks_mut::<WORD>().0) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
    }
    let words = &words[passed..];
    let (whole, rest) = rest.as_chunks_mut::<WORD>();
    let passed = whole.len();
    for (word, bytes) in words.iter().zip(whole) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if !rest.is_empty() {
        let last = words[passed].load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
