//! The end of a ring that sends.

use std::ops::Deref;
use std::sync::atomic::AtomicU64 as OwnU64;
use std::sync::atomic::Ordering as OwnOrdering;

use super::{LENGTH_BITS, REFERS, RingCell, RingViolation, cell, mark, wake_receiver};
use crate::annex::{AnnexCursor, REFERRED_LEAST, referred_most};
use crate::layout::{ANNEX_HEAD, HEAD, LOAD, RingLayout, SENDER_SLEEPS, WORD};
use crate::sync::{AtomicU64, Ordering, fence, spin};

/// Cells that are filled before the other end is told: it goes on with them while the rest is filled.
const CHUNK: u64 = 128;

/// The end that sends. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RingSender {
    place: RingLayout,
    /// Cells filled.
    tail: OwnU64,
    /// Cells that the peer had emptied when its cursor was looked at last.
    head_seen: OwnU64,
    annex: AnnexCursor,
}

impl RingSender {
    pub(crate) fn new(place: RingLayout) -> Self {
        Self {
            place,
            tail: OwnU64::new(0),
            head_seen: OwnU64::new(0),
            annex: AnnexCursor::new(),
        }
    }

    /// Puts in as much of `bytes` as there is room for and says how much it was. Calls `wake` when the
    /// peer is to be woken.
    #[inline]
    pub(crate) fn send(
        &self,
        memory: &[AtomicU64],
        bytes: &[u8],
        wake: impl Fn(),
    ) -> Result<usize, RingViolation> {
        let tail = self.tail.load(OwnOrdering::Relaxed);
        match (1..=LOAD).contains(&bytes.len()) && tail < self.room_until() {
            true => Ok(self.send_cell(memory, tail, bytes, wake)),
            false => self.send_pieces(memory, &[bytes], wake),
        }
    }

    /// Sends what one cell can carry, and the next is empty.
    #[inline]
    fn send_cell(&self, memory: &[AtomicU64], tail: u64, bytes: &[u8], wake: impl Fn()) -> usize {
        let cell = cell(self.place.ring(memory), tail);
        put_part(cell, bytes);
        // Release: behind the bytes.
        cell[0].store(mark(tail, bytes.len()), Ordering::Release);
        self.tail.store(tail + 1, OwnOrdering::Relaxed);
        wake_receiver(memory, self.place, wake);
        bytes.len()
    }

    /// Puts in as much of `pieces` as there is room for, one behind the other, and says how many bytes
    /// it was. Calls `wake` when the peer is to be woken.
    pub(crate) fn send_pieces<P: Deref<Target = [u8]>>(
        &self,
        memory: &[AtomicU64],
        pieces: &[P],
        wake: impl Fn(),
    ) -> Result<usize, RingViolation> {
        let ring = self.place.ring(memory);
        let mut filling = UnpublishedCells::at(ring, self.tail.load(OwnOrdering::Relaxed));
        let (mut sent, mut room_until) = (0, self.room_until());
        let mut looked_for_sleeper = SleeperCheck::NotYet;
        let most_referred = referred_most(self.place.annex_lines());
        'all: for piece in pieces {
            let mut rest = &**piece;
            while !rest.is_empty() {
                if filling.next == room_until {
                    room_until = self.look_at_head(memory, filling.next)?;
                    if filling.next == room_until {
                        break 'all;
                    }
                }
                let refers = rest.len() >= REFERRED_LEAST && most_referred > 0;
                let put = if refers {
                    self.put_away(memory, &mut filling, rest)?
                } else {
                    let most = (room_until - filling.next).min(CHUNK - filling.cells());
                    filling.put(rest, most as usize)
                };
                if put == 0 {
                    break 'all;
                }
                rest = &rest[put..];
                sent += put;
                if filling.cells() == CHUNK || refers && put == most_referred {
                    filling = self.publish(filling);
                    looked_for_sleeper.once(|| wake_receiver(memory, self.place, &wake));
                }
            }
        }
        if filling.cells() > 0 {
            self.publish(filling);
            wake_receiver(memory, self.place, wake);
        } else if looked_for_sleeper == SleeperCheck::Before {
            wake_receiver(memory, self.place, wake);
        }
        Ok(sent)
    }

    /// Puts what `bytes` begin with into the annex, has a cell refer to it, and says how much it was: nothing if
    /// there is no room. There is a cell.
    fn put_away(
        &self,
        memory: &[AtomicU64],
        filling: &mut UnpublishedCells<'_>,
        bytes: &[u8],
    ) -> Result<usize, RingViolation> {
        let wanted = bytes.len().min(self.annex.most(self.place));
        if self.annex.room(self.place) < wanted {
            self.look_at_head(memory, filling.next)?;
        }
        let put = wanted.min(self.annex.room(self.place));
        if put > 0 {
            self.annex.put(memory, self.place, &bytes[..put]);
            filling.refer(put);
        }
        Ok(put)
    }

    /// Returns the number of the first cell that may not be empty.
    #[inline]
    fn room_until(&self) -> u64 {
        self.head_seen.load(OwnOrdering::Relaxed) + self.place.cells()
    }

    /// Looks how far the peer is, and says which is the first cell that may not be empty. `tail` is the first
    /// that was not filled.
    #[cold]
    fn look_at_head(&self, memory: &[AtomicU64], tail: u64) -> Result<u64, RingViolation> {
        let (cells, lines) = (self.place.cells(), self.place.annex_lines());
        let head = possible(&memory[self.place.receiver + HEAD], tail, cells)?;
        let emptied = &memory[self.place.receiver + ANNEX_HEAD];
        let annex_head = possible(emptied, self.annex.at(), lines)?;
        self.head_seen.store(head, OwnOrdering::Relaxed);
        self.annex.set_known(annex_head);
        Ok(head + cells)
    }

    /// Lets the peer see what was put in. If it sleeps, it is to be woken then.
    #[inline]
    fn publish<'r>(&self, filling: UnpublishedCells<'r>) -> UnpublishedCells<'r> {
        let next = filling.publish();
        self.tail.store(next.next, OwnOrdering::Relaxed);
        next
    }

    /// Returns whether so much is full that the peer wakes a sender that sleeps until there is room.
    fn lacks_room(&self, memory: &[AtomicU64]) -> bool {
        let tail = self.tail.load(OwnOrdering::Relaxed);
        match self.look_at_head(memory, tail) {
            Ok(room_until) => {
                let in_annex = self.annex.at() - self.annex.known();
                self.place
                    .lacks_room(self.place.cells() - (room_until - tail))
                    || self.place.annex_lacks_room(in_annex)
            }
            // The next attempt to send reports it.
            Err(_) => false,
        }
    }

    /// Looks up to so many times whether there is room, with a pause behind each look, and says whether there is.
    pub(crate) fn look(&self, memory: &[AtomicU64], times: u32) -> bool {
        (0..times).any(|_| {
            let has_room = !self.lacks_room(memory);
            if !has_room {
                spin();
            }
            has_room
        })
    }

    /// Says that the sender sleeps until there is room. Says whether it may: not if there is room.
    pub(crate) fn park(&self, memory: &[AtomicU64]) -> bool {
        let sleeps = &memory[self.place.sender + SENDER_SLEEPS];
        sleeps.store(1, Ordering::Relaxed);
        // With the one in `tell_sender`: either this sees the room, or the peer sees the sleeper.
        fence(Ordering::SeqCst);
        let may = self.lacks_room(memory);
        if !may {
            sleeps.store(0, Ordering::Relaxed);
        }
        may
    }

    /// Says that the sender sleeps no more.
    pub(crate) fn unpark(&self, memory: &[AtomicU64]) {
        memory[self.place.sender + SENDER_SLEEPS].store(0, Ordering::Relaxed);
    }
}

/// State of the check for a sleeping receiver, relative to what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SleeperCheck {
    NotYet,
    /// And nothing was sent since.
    Now,
    /// Something was sent since.
    Before,
}

impl SleeperCheck {
    /// Looks behind the first thing that is sent, so that the receiver begins. It need not be done each time, but
    /// behind the last: looking waits until everything that was written has left this core.
    #[inline]
    fn once(&mut self, look: impl FnOnce()) {
        *self = match self {
            Self::NotYet => {
                look();
                Self::Now
            }
            Self::Now | Self::Before => Self::Before,
        };
    }
}

/// Reads the peer's cursor, which is not ahead of one's own `tail`, nor further behind than the `capacity`.
fn possible(cursor: &AtomicU64, tail: u64, capacity: u64) -> Result<u64, RingViolation> {
    // Acquire: the peer has read what we are going to write over.
    let head = cursor.load(Ordering::Acquire);
    match tail.checked_sub(head) {
        Some(filled) if filled <= capacity => Ok(head),
        Some(_) | None => Err(RingViolation::Received {
            claimed: tail.wrapping_sub(head),
            capacity,
        }),
    }
}

/// Cells that are filled, of which the peer sees none yet: the mark of the first is written last.
struct UnpublishedCells<'r> {
    ring: &'r [RingCell],
    first: u64,
    first_mark: u64,
    next: u64,
}

impl<'r> UnpublishedCells<'r> {
    #[inline]
    fn at(ring: &'r [RingCell], first: u64) -> Self {
        Self {
            ring,
            first,
            first_mark: 0,
            next: first,
        }
    }

    #[inline]
    fn cells(&self) -> u64 {
        self.next - self.first
    }

    /// Fills up to `most` cells with what `bytes` begin with, and says how much it was. They are empty, and
    /// there is something to fill them with.
    #[inline]
    fn put(&mut self, bytes: &[u8], most: usize) -> usize {
        if self.next > self.first && bytes.len() >= LOAD {
            return self.put_run(bytes, most);
        }
        let cell = cell(self.ring, self.next);
        let load = match bytes.first_chunk() {
            Some(whole) => {
                put_whole(cell, whole);
                LOAD
            }
            None => {
                put_part(cell, bytes);
                bytes.len()
            }
        };
        self.end_cell(cell, load);
        load
    }

    /// Fills a cell with how many bytes lie in the annex.
    fn refer(&mut self, bytes: usize) {
        let cell = cell(self.ring, self.next);
        cell[1].store(bytes as u64, Ordering::Relaxed);
        self.end_cell(cell, REFERS);
    }

    #[inline]
    fn end_cell(&mut self, cell: &RingCell, length: usize) {
        let mark = mark(self.next, length);
        match self.next == self.first {
            true => self.first_mark = mark,
            false => cell[0].store(mark, Ordering::Relaxed),
        }
        self.next += 1;
    }

    /// Fills whole cells that follow each other, none of which is the first.
    fn put_run(&mut self, bytes: &[u8], most: usize) -> usize {
        let loads = bytes.as_chunks::<LOAD>().0;
        let cells = &self.ring[self.next as usize & (self.ring.len() - 1)..];
        let run = loads.len().min(most).min(cells.len());
        let mut mark = mark(self.next, LOAD);
        for (cell, load) in cells[..run].iter().zip(loads) {
            put_whole(cell, load);
            cell[0].store(mark, Ordering::Relaxed);
            mark += 1 << LENGTH_BITS;
        }
        self.next += run as u64;
        run * LOAD
    }

    /// Lets the peer see what is filled, of which there is something.
    #[inline]
    fn publish(self) -> Self {
        // Release: behind the bytes, and behind the marks of the cells that follow.
        cell(self.ring, self.first)[0].store(self.first_mark, Ordering::Release);
        Self::at(self.ring, self.next)
    }
}

/// Writes as much as a cell can carry.
#[inline]
fn put_whole(cell: &RingCell, load: &[u8; LOAD]) {
    for (word, bytes) in cell[1..].iter().zip(load.as_chunks::<WORD>().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

/// Writes no more than a cell can carry.
#[inline]
fn put_part(cell: &RingCell, load: &[u8]) {
    let words = &cell[1..];
    let (whole, rest) = load.as_chunks::<WORD>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}
