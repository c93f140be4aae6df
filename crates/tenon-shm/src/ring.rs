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
//! The bytes themselves are written and read as atomic words, relaxed. That is what the language has
//! for memory that somebody else may write at the same time: each word is read exactly once, into memory
//! that is one's own, and whatever it was then is what everybody after looks at. An ordinary copy could be
//! read twice by what the compiler makes of it. On the processors there are such a word costs what
//! any other does.

use std::ops::{Deref, Range};
use std::sync::atomic::AtomicU64 as OwnU64;
use std::sync::atomic::Ordering as OwnOrdering;

use crate::annex::{Cursor, REFERRED_LEAST, REFERRED_MOST};
use crate::layout::{ANNEX_HEAD, CELL, HEAD, LOAD, Place, RECEIVER_SLEEPS, SENDER_SLEEPS, WORD};
use crate::sync::{AtomicU64, Ordering, fence, spin};

/// Cells that are filled before the other end is told: it goes on with them while the rest is filled.
const CHUNK: u64 = 128;

/// Looks for what follows a part of a long message: a sender that is at it takes less than ten.
const LINGER: u32 = if cfg!(loom) { 0 } else { 32 };

/// Bits of a mark that say how many bytes a cell carries. The others number it.
const LENGTH_BITS: u32 = 8;

/// What they say of a cell that refers to bytes in the annex. Its first word behind the mark says how many.
const REFERS: usize = (1 << LENGTH_BITS) - 1;

/// The peer wrote something into the segment that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A cell has the mark of none that could be there.
    #[error("the peer marked cell {awaited} of what it sends as cell {found}")]
    Mark {
        /// Which it is.
        awaited: u64,
        /// Which it is said to be.
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
        /// How many of them were taken already.
        taken: usize,
        /// Most that there can be.
        most: usize,
    },
    /// More was received than was sent.
    #[error(
        "the peer claims to have received more than was sent: {claimed} cells or lines of {capacity} remain"
    )]
    Received {
        /// What follows from the peer's cursor.
        claimed: u64,
        /// What the ring, or its annex, holds.
        capacity: u64,
    },
}

/// The end that sends. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Sender {
    place: Place,
    /// Cells filled.
    tail: OwnU64,
    /// Cells that the peer had emptied when its cursor was looked at last.
    head_seen: OwnU64,
    annex: Cursor,
}

/// The end that receives. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Receiver {
    place: Place,
    /// Cells emptied.
    head: OwnU64,
    /// Bytes that were taken out of the next cell.
    taken: OwnU64,
    /// Cells that the peer may know to be emptied.
    head_told: OwnU64,
    annex: Cursor,
}

/// What the next cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It has not come yet.
    Nothing,
    /// So many bytes.
    Load(usize),
    /// So many bytes of the annex.
    Reference(usize),
}

type Cell = [AtomicU64; CELL];

impl Place {
    #[inline]
    fn ring(self, memory: &[AtomicU64]) -> &[Cell] {
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

/// Where in a ring the cell of a number is.
#[inline]
fn cell(ring: &[Cell], number: u64) -> &Cell {
    &ring[number as usize & (ring.len() - 1)]
}

impl Sender {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            tail: OwnU64::new(0),
            head_seen: OwnU64::new(0),
            annex: Cursor::new(),
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
    ) -> Result<usize, Violation> {
        self.send_pieces(memory, &[bytes], wake)
    }

    /// Puts in as much of `pieces` as there is room for, one behind the other, and says how many bytes
    /// it was. Calls `wake` when the peer is to be woken.
    #[inline]
    pub(crate) fn send_pieces<P: Deref<Target = [u8]>>(
        &self,
        memory: &[AtomicU64],
        pieces: &[P],
        wake: impl Fn(),
    ) -> Result<usize, Violation> {
        let ring = self.place.ring(memory);
        let mut filling = Filling::at(ring, self.tail.load(OwnOrdering::Relaxed));
        let (mut sent, mut room_until) = (0, self.room_until());
        let mut looked_for_sleeper = Looked::NotYet;
        'all: for piece in pieces {
            let mut rest = &**piece;
            while !rest.is_empty() {
                if filling.next == room_until {
                    room_until = self.look_at_head(memory, filling.next)?;
                    if filling.next == room_until {
                        break 'all;
                    }
                }
                let put = match rest.len() >= REFERRED_LEAST && self.place.annex_lines() > 0 {
                    true => self.put_away(memory, &mut filling, rest)?,
                    false => {
                        let most = (room_until - filling.next).min(CHUNK - filling.cells());
                        filling.put(rest, most as usize)
                    }
                };
                if put == 0 {
                    break 'all;
                }
                rest = &rest[put..];
                sent += put;
                if filling.cells() == CHUNK || put >= REFERRED_MOST {
                    filling = self.publish(filling);
                    looked_for_sleeper.once(|| wake_receiver(memory, self.place, &wake));
                }
            }
        }
        if filling.cells() > 0 {
            self.publish(filling);
            wake_receiver(memory, self.place, wake);
        } else if looked_for_sleeper == Looked::Before {
            wake_receiver(memory, self.place, wake);
        }
        Ok(sent)
    }

    /// Puts what `bytes` begin with into the annex, has a cell refer to it, and says how much it was: nothing if
    /// there is no room. There is a cell.
    fn put_away(
        &self,
        memory: &[AtomicU64],
        filling: &mut Filling<'_>,
        bytes: &[u8],
    ) -> Result<usize, Violation> {
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

    /// The number of the first cell that may not be empty.
    #[inline]
    fn room_until(&self) -> u64 {
        self.head_seen.load(OwnOrdering::Relaxed) + self.place.cells()
    }

    /// Looks how far the peer is, and says which is the first cell that may not be empty. `tail` is the first
    /// that was not filled.
    #[cold]
    fn look_at_head(&self, memory: &[AtomicU64], tail: u64) -> Result<u64, Violation> {
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
    fn publish<'r>(&self, filling: Filling<'r>) -> Filling<'r> {
        let next = filling.publish();
        self.tail.store(next.next, OwnOrdering::Relaxed);
        next
    }

    /// Says that the sender sleeps until there is room. Says whether it may: not if there is room.
    pub(crate) fn park(&self, memory: &[AtomicU64]) -> bool {
        let sleeps = &memory[self.place.sender + SENDER_SLEEPS];
        sleeps.store(1, Ordering::Relaxed);
        // With the one in `tell_sender`: either this sees the room, or the peer sees the sleeper.
        fence(Ordering::SeqCst);
        let tail = self.tail.load(OwnOrdering::Relaxed);
        let may = match self.look_at_head(memory, tail) {
            Ok(room_until) => {
                let in_annex = self.annex.at() - self.annex.known();
                self.place
                    .lacks_room(self.place.cells() - (room_until - tail))
                    || self.place.annex_lacks_room(in_annex)
            }
            // The next attempt to send reports it.
            Err(_) => false,
        };
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

/// Whether somebody was looked for who sleeps, since something was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    NotYet,
    /// And nothing was sent since.
    Now,
    /// Something was sent since.
    Before,
}

impl Looked {
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
fn possible(cursor: &AtomicU64, tail: u64, capacity: u64) -> Result<u64, Violation> {
    // Acquire: the peer has read what we are going to write over.
    let head = cursor.load(Ordering::Acquire);
    let claimed = tail.wrapping_sub(head);
    match claimed > capacity {
        true => Err(Violation::Received { claimed, capacity }),
        false => Ok(head),
    }
}

/// Cells that are filled, of which the peer sees none yet: the mark of the first is written last.
struct Filling<'r> {
    ring: &'r [Cell],
    first: u64,
    first_mark: u64,
    next: u64,
}

impl<'r> Filling<'r> {
    #[inline]
    fn at(ring: &'r [Cell], first: u64) -> Self {
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
    fn end_cell(&mut self, cell: &Cell, length: usize) {
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

/// Has the end woken that receives by the ring at `place`, if it sleeps.
#[inline]
pub(crate) fn wake_receiver(memory: &[AtomicU64], place: Place, wake: impl Fn()) {
    // With the one in `Receiver::park`: either this sees the sleeper, or it sees what is new.
    fence(Ordering::SeqCst);
    wake_sleeper(&memory[place.receiver + RECEIVER_SLEEPS], wake);
}

/// Wakes who sleeps, once.
#[inline]
pub(crate) fn wake_sleeper(sleeps: &AtomicU64, wake: impl Fn()) {
    if sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::AcqRel) != 0 {
        wake();
    }
}

impl Receiver {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            head: OwnU64::new(0),
            taken: OwnU64::new(0),
            head_told: OwnU64::new(0),
            annex: Cursor::new(),
        }
    }

    /// Takes out what is there and fits into `room`, and says how much it was. What is behind that in
    /// `room` may have changed, too. Calls `wake` when the peer is to be woken, as there is room.
    #[inline]
    pub(crate) fn receive(
        &self,
        memory: &[AtomicU64],
        room: &mut [u8],
        wake: impl Fn(),
    ) -> Result<usize, Violation> {
        let ring = self.place.ring(memory);
        let mut head = self.head.load(OwnOrdering::Relaxed);
        let mut taken = self.taken.load(OwnOrdering::Relaxed) as usize;
        let mut received = 0;
        let mut follows = false;
        while received < room.len() {
            let cell = cell(ring, head);
            let length = match self.look_at(cell, head, taken) {
                Ok(Found::Load(length)) => length,
                Ok(Found::Reference(length)) => {
                    let fits = self.take_referred(memory, length, taken, &mut room[received..]);
                    received += fits;
                    taken += fits;
                    if taken < length {
                        break;
                    }
                    taken = 0;
                    head += 1;
                    if self.annex_is_worth_telling() {
                        self.tell_sender(memory, head, &wake);
                    }
                    follows = length == REFERRED_MOST;
                    continue;
                }
                Ok(Found::Nothing) if follows && self.comes_soon(cell, head) => continue,
                Ok(Found::Nothing) => break,
                Err(violation) if received == 0 => return Err(violation),
                // What was sent before it is received first.
                Err(_) => break,
            };
            match room[received..].first_chunk_mut() {
                Some(room) if taken == 0 => {
                    take_load(cell, room);
                    received += length;
                }
                _ => {
                    let fits = take_part(cell, taken..length, &mut room[received..]);
                    received += fits;
                    taken += fits;
                    if taken < length {
                        break;
                    }
                    taken = 0;
                }
            }
            head += 1;
            if length == LOAD {
                let run = self.take_run(ring, head, &mut room[received..]);
                head += run as u64;
                received += run * LOAD;
            }
            if head - self.head_told.load(OwnOrdering::Relaxed) >= self.place.worth_telling() {
                self.tell_sender(memory, head, &wake);
            }
        }
        self.head.store(head, OwnOrdering::Relaxed);
        self.taken.store(taken as u64, OwnOrdering::Relaxed);
        Ok(received)
    }

    /// Takes as much as fits of the `length` bytes that a cell refers to, of which some were taken before.
    fn take_referred(
        &self,
        memory: &[AtomicU64],
        length: usize,
        taken: usize,
        room: &mut [u8],
    ) -> usize {
        let fits = (length - taken).min(room.len());
        self.annex
            .take(memory, self.place, taken, &mut room[..fits]);
        if taken + fits == length {
            self.annex.pass(length);
        }
        fits
    }

    /// Waits for a moment for a cell. Who has sent as much at once as is customary mostly is about to send
    /// more, and is done with it sooner than a caller would be back here.
    fn comes_soon(&self, cell: &Cell, number: u64) -> bool {
        let old = (number + 1).saturating_sub(self.place.cells());
        looks_changed(&cell[0], old, LINGER)
    }

    /// Takes whole cells that follow each other, up to a quarter of the ring, and says how many.
    fn take_run(&self, ring: &[Cell], head: u64, room: &mut [u8]) -> usize {
        let rooms = room.as_chunks_mut::<LOAD>().0;
        let most = rooms.len().min(self.place.worth_telling() as usize);
        let cells = &ring[head as usize & (ring.len() - 1)..];
        let mut awaited = mark(head, LOAD);
        let mut run = 0;
        for (cell, room) in cells.iter().zip(&mut rooms[..most]) {
            if cell[0].load(Ordering::Acquire) != awaited {
                break;
            }
            take_load(cell, room);
            awaited += 1 << LENGTH_BITS;
            run += 1;
        }
        run
    }

    /// What a cell holds, of which some may have been taken.
    #[inline]
    fn look_at(&self, cell: &Cell, number: u64, taken: usize) -> Result<Found, Violation> {
        // Acquire: the bytes are those that the peer put in before the mark.
        let mark = cell[0].load(Ordering::Acquire);
        let (found, length) = (mark >> LENGTH_BITS, mark & ((1 << LENGTH_BITS) - 1));
        if found != number + 1 {
            return self.look_at_old(found, number);
        }
        // A cell of which some was taken may have been marked anew since.
        match taken < length as usize && length as usize <= LOAD {
            true => Ok(Found::Load(length as usize)),
            false => self.look_at_reference(cell, length, taken),
        }
    }

    /// What a cell refers to that carries no bytes itself.
    #[cold]
    fn look_at_reference(
        &self,
        cell: &Cell,
        length: u64,
        taken: usize,
    ) -> Result<Found, Violation> {
        if length != REFERS as u64 || self.place.annex_lines() == 0 {
            return Err(Violation::Length(length));
        }
        let (found, most) = (cell[1].load(Ordering::Relaxed), self.annex.most(self.place));
        match (taken as u64) < found && found <= most as u64 {
            true => Ok(Found::Reference(found as usize)),
            false => Err(Violation::Reference { found, taken, most }),
        }
    }

    /// Whether the mark of a cell is the one that it had before.
    #[inline]
    fn look_at_old(&self, found: u64, number: u64) -> Result<Found, Violation> {
        let before = (number + 1).saturating_sub(self.place.cells());
        match found == before {
            true => Ok(Found::Nothing),
            false => Err(Violation::Mark {
                awaited: number,
                found: found.wrapping_sub(1),
            }),
        }
    }

    fn annex_is_worth_telling(&self) -> bool {
        self.annex.at() - self.annex.known() >= self.place.annex_worth_telling()
    }

    /// Lets the sender see how far the receiver is, and has it woken if it sleeps.
    ///
    /// A sender sleeps only if more than three quarters of the ring, or of its annex, are filled by the cursor
    /// that it sees. So at least one further quarter will be emptied before it is empty, and this called: nobody sleeps for
    /// ever, and the fence is needed once in a quarter of the ring.
    #[cold]
    fn tell_sender(&self, memory: &[AtomicU64], head: u64, wake: impl Fn()) {
        self.head_told.store(head, OwnOrdering::Relaxed);
        self.annex.set_known(self.annex.at());
        memory[self.place.receiver + HEAD].store(head, Ordering::Release);
        memory[self.place.receiver + ANNEX_HEAD].store(self.annex.at(), Ordering::Release);
        // With the one in `Sender::park`.
        fence(Ordering::SeqCst);
        wake_sleeper(&memory[self.place.sender + SENDER_SLEEPS], wake);
    }

    /// Whether nothing is there. What cannot be is not nothing.
    #[inline]
    pub(crate) fn is_empty(&self, memory: &[AtomicU64]) -> bool {
        let head = self.head.load(OwnOrdering::Relaxed);
        let cell = cell(self.place.ring(memory), head);
        let taken = self.taken.load(OwnOrdering::Relaxed) as usize;
        matches!(self.look_at(cell, head, taken), Ok(Found::Nothing))
    }

    /// Looks up to so many times whether something comes. What cannot be ends that, too.
    #[inline]
    pub(crate) fn look(&self, memory: &[AtomicU64], times: u32) -> bool {
        let head = self.head.load(OwnOrdering::Relaxed);
        let mark = &cell(self.place.ring(memory), head)[0];
        let old = (head + 1).saturating_sub(self.place.cells());
        looks_changed(mark, old, times)
    }

    /// Says that the receiver sleeps until something comes. Says whether it may, as far as bytes go.
    pub(crate) fn park(&self, memory: &[AtomicU64]) -> bool {
        memory[self.place.receiver + RECEIVER_SLEEPS].store(1, Ordering::Relaxed);
        // With the one in `wake_receiver`: either this sees what is new, or the peer sees the sleeper.
        fence(Ordering::SeqCst);
        self.is_empty(memory)
    }

    /// Says that the receiver sleeps no more.
    pub(crate) fn unpark(&self, memory: &[AtomicU64]) {
        memory[self.place.receiver + RECEIVER_SLEEPS].store(0, Ordering::Relaxed);
    }
}

/// Looks up to so many times whether a mark is another than that of the `old` number.
#[inline]
fn looks_changed(mark: &AtomicU64, old: u64, times: u32) -> bool {
    for _ in 0..times {
        if mark.load(Ordering::Relaxed) >> LENGTH_BITS != old {
            return true;
        }
        spin();
    }
    false
}

/// Writes as much as a cell can carry.
#[inline]
fn put_whole(cell: &Cell, load: &[u8; LOAD]) {
    for (word, bytes) in cell[1..].iter().zip(load.as_chunks::<WORD>().0) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}

/// Writes less than a cell can carry.
#[inline]
fn put_part(cell: &Cell, load: &[u8]) {
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

/// Reads all that a cell can carry, whatever it does.
#[inline]
fn take_load(cell: &Cell, room: &mut [u8; LOAD]) {
    for (word, bytes) in cell[1..].iter().zip(room.as_chunks_mut::<WORD>().0) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}

/// Reads the part of a cell that fits into `room`, and says how much it was.
#[cold]
fn take_part(cell: &Cell, part: Range<usize>, room: &mut [u8]) -> usize {
    let mut all = [0; LOAD];
    take_load(cell, &mut all);
    let fits = part.len().min(room.len());
    room[..fits].copy_from_slice(&all[part.start..part.start + fits]);
    fits
}
