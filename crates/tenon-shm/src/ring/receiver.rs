//! The end of a ring that receives.

use std::ops::Range;
use std::sync::atomic::AtomicU64 as OwnU64;
use std::sync::atomic::Ordering as OwnOrdering;

use super::{LENGTH_BITS, REFERS, RingCell, RingViolation, cell, mark, wake_sleeper};
use crate::annex::{AnnexCursor, referred_most};
use crate::layout::{ANNEX_HEAD, HEAD, LOAD, RECEIVER_SLEEPS, RingLayout, SENDER_SLEEPS, WORD};
use crate::sync::{AtomicU64, Ordering, fence, spin};

/// Looks for what follows a part of a long message: a sender that is at it takes less than ten.
const LINGER: u32 = if cfg!(loom) { 0 } else { 32 };

/// Looks without a pause for each with one that follows them.
const LOOKS_A_PAUSE: u32 = if cfg!(loom) { 0 } else { 8 };

/// The end that receives. One thread at a time does: if two did, the bytes would be mixed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RingReceiver {
    place: RingLayout,
    /// Cells emptied.
    head: OwnU64,
    /// Bytes that were taken out of the next cell.
    taken: OwnU64,
    /// Cells that the peer may know to be emptied.
    head_told: OwnU64,
    annex: AnnexCursor,
}

/// The content of the next cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingCellContent {
    /// It has not come yet.
    Nothing,
    /// So many bytes.
    Load(usize),
    /// So many bytes of the annex.
    Reference(usize),
}

impl RingReceiver {
    pub(crate) fn new(place: RingLayout) -> Self {
        Self {
            place,
            head: OwnU64::new(0),
            taken: OwnU64::new(0),
            head_told: OwnU64::new(0),
            annex: AnnexCursor::new(),
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
    ) -> Result<usize, RingViolation> {
        let ring = self.place.ring(memory);
        let head = self.head.load(OwnOrdering::Relaxed);
        let told = self.head_told.load(OwnOrdering::Relaxed);
        let is_plain = self.taken.load(OwnOrdering::Relaxed) == 0
            && head + 1 - told < self.place.worth_telling();
        if let (true, Some(load)) = (is_plain, room.first_chunk_mut()) {
            let next = cell(ring, head);
            let length = look_at_load(next, head);
            let is_all = length > 0 && has_number(cell(ring, head + 1), self.before(head + 1));
            if is_all {
                take_load(next, load);
                self.head.store(head + 1, OwnOrdering::Relaxed);
                return Ok(length);
            }
        }
        self.receive_all(memory, room, wake)
    }

    /// The same for whatever is there.
    fn receive_all(
        &self,
        memory: &[AtomicU64],
        room: &mut [u8],
        wake: impl Fn(),
    ) -> Result<usize, RingViolation> {
        let ring = self.place.ring(memory);
        let mut head = self.head.load(OwnOrdering::Relaxed);
        let mut taken = self.taken.load(OwnOrdering::Relaxed) as usize;
        let mut received = 0;
        let mut follows = false;
        while received < room.len() {
            let cell = cell(ring, head);
            let length = match self.look_at(cell, head, taken) {
                Ok(RingCellContent::Load(length)) => length,
                Ok(RingCellContent::Reference(length)) => {
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
                    follows = length == referred_most(self.place.annex_lines());
                    continue;
                }
                Ok(RingCellContent::Nothing) if follows && self.comes_soon(cell, head) => continue,
                Ok(RingCellContent::Nothing) => break,
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

    /// Waits for a moment for a cell. A sender that has sent as much at once as is customary mostly is about to send
    /// more, and is done with it sooner than a caller would be back here.
    fn comes_soon(&self, cell: &RingCell, number: u64) -> bool {
        looks_changed(&cell[0], self.before(number), LINGER)
    }

    /// Takes whole cells that follow each other, up to a quarter of the ring, and says how many.
    fn take_run(&self, ring: &[RingCell], head: u64, room: &mut [u8]) -> usize {
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

    /// Returns what a cell holds, of which some may have been taken.
    #[inline]
    fn look_at(
        &self,
        cell: &RingCell,
        number: u64,
        taken: usize,
    ) -> Result<RingCellContent, RingViolation> {
        // Acquire: the bytes are those that the peer put in before the mark.
        let mark = cell[0].load(Ordering::Acquire);
        let (found, length) = (mark >> LENGTH_BITS, mark & ((1 << LENGTH_BITS) - 1));
        if found != number + 1 {
            return self.look_at_old(found, number);
        }
        // A cell of which some was taken may have been marked anew since.
        match taken < length as usize && length as usize <= LOAD {
            true => Ok(RingCellContent::Load(length as usize)),
            false => self.look_at_reference(cell, length, taken),
        }
    }

    /// Returns what a cell refers to that carries no bytes itself.
    #[cold]
    fn look_at_reference(
        &self,
        cell: &RingCell,
        length: u64,
        taken: usize,
    ) -> Result<RingCellContent, RingViolation> {
        if length != REFERS as u64 || self.place.annex_lines() == 0 {
            return Err(RingViolation::Length(length));
        }
        let (found, most) = (cell[1].load(Ordering::Relaxed), self.annex.most(self.place));
        match (taken as u64) < found && found <= most as u64 {
            true => Ok(RingCellContent::Reference(found as usize)),
            false => Err(RingViolation::Reference { found, taken, most }),
        }
    }

    /// Checks whether the mark of a cell is the one that it had before.
    #[inline]
    fn look_at_old(&self, found: u64, number: u64) -> Result<RingCellContent, RingViolation> {
        match found == self.before(number) {
            true => Ok(RingCellContent::Nothing),
            false => Err(RingViolation::Mark {
                awaited: number,
                found: found.wrapping_sub(1),
            }),
        }
    }

    /// Returns the number in the mark of the cell that was where this one is to come.
    #[inline]
    fn before(&self, number: u64) -> u64 {
        (number + 1).saturating_sub(self.place.cells())
    }

    fn annex_is_worth_telling(&self) -> bool {
        self.annex.at() - self.annex.known() >= self.place.annex_worth_telling()
    }

    /// Lets the sender see how far the receiver is, and has it woken if it sleeps.
    ///
    /// A sender sleeps only if more than three quarters of the ring, or of its annex, are filled by the cursor that it
    /// sees. So at least one further quarter will be emptied before it is empty, and this called: no sender sleeps for
    /// ever, and the fence is needed once in a quarter of the ring.
    #[cold]
    fn tell_sender(&self, memory: &[AtomicU64], head: u64, wake: impl Fn()) {
        self.head_told.store(head, OwnOrdering::Relaxed);
        self.annex.set_known(self.annex.at());
        memory[self.place.receiver + HEAD].store(head, Ordering::Release);
        memory[self.place.receiver + ANNEX_HEAD].store(self.annex.at(), Ordering::Release);
        // With the one in `RingSender::park`.
        fence(Ordering::SeqCst);
        wake_sleeper(&memory[self.place.sender + SENDER_SLEEPS], wake);
    }

    /// Returns whether nothing is there. What cannot be is not nothing.
    #[inline]
    pub(crate) fn is_empty(&self, memory: &[AtomicU64]) -> bool {
        let head = self.head.load(OwnOrdering::Relaxed);
        let cell = cell(self.place.ring(memory), head);
        let taken = self.taken.load(OwnOrdering::Relaxed) as usize;
        matches!(
            self.look_at(cell, head, taken),
            Ok(RingCellContent::Nothing)
        )
    }

    /// Looks up to so many times whether something comes. What cannot be ends that, too.
    #[inline]
    pub(crate) fn look(&self, memory: &[AtomicU64], times: u32) -> bool {
        let head = self.head.load(OwnOrdering::Relaxed);
        let mark = &cell(self.place.ring(memory), head)[0];
        looks_changed_soon(mark, self.before(head), times)
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

/// Returns the number of bytes that the cell of this number carries itself; 0 if it has not come, or is anything else.
#[inline]
fn look_at_load(cell: &RingCell, number: u64) -> usize {
    // Acquire: the bytes are those that the peer put in before the mark.
    let length = cell[0]
        .load(Ordering::Acquire)
        .wrapping_sub(mark(number, 0));
    match length <= LOAD as u64 {
        true => length as usize,
        false => 0,
    }
}

/// Returns whether the mark of a cell says that it is the one of this number, plus one.
#[inline]
fn has_number(cell: &RingCell, number: u64) -> bool {
    cell[0].load(Ordering::Relaxed) >> LENGTH_BITS == number
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

/// The same, at first without pauses: a processor may take fifty nanoseconds for one, and most of what comes soon
/// comes within half a microsecond. Not while the peer writes a long message: it would lose the line with the
/// mark again and again.
#[inline]
fn looks_changed_soon(mark: &AtomicU64, old: u64, times: u32) -> bool {
    for _ in 0..times * LOOKS_A_PAUSE {
        if mark.load(Ordering::Relaxed) >> LENGTH_BITS != old {
            return true;
        }
    }
    looks_changed(mark, old, times)
}

/// Reads all that a cell can carry, whatever it does.
#[inline]
fn take_load(cell: &RingCell, room: &mut [u8; LOAD]) {
    for (word, bytes) in cell[1..].iter().zip(room.as_chunks_mut::<WORD>().0) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}

/// Reads the part of a cell that fits into `room`, and says how much it was.
#[cold]
fn take_part(cell: &RingCell, part: Range<usize>, room: &mut [u8]) -> usize {
    let mut all = [0; LOAD];
    take_load(cell, &mut all);
    let fits = part.len().min(room.len());
    room[..fits].copy_from_slice(&all[part.start..part.start + fits]);
    fits
}
