//! Finds the records of ONC RPC in the bytes of a stream (RFC 5531 section 11).

use std::ops::Range;

use super::detached::{Detached, DetachedFrame};
use super::storage::ReceiveBuffer;
use crate::codec::onc::record::{EMPTY_FRAGMENTS_MAX, LAST_FRAGMENT, MARK, RecordError};

/// Finds records in the bytes of a stream.
///
/// The owner receives into [`room_within`](Self::room_within), reports the number of bytes to
/// [`handle_received`](Self::handle_received), and takes records with [`next_record`](Self::next_record) until there
/// is none. A record of one fragment is handed out where it was received. Fragments are moved together where they
/// lie. The storage follows what has arrived and not what a mark promises.
#[derive(Debug)]
pub struct RecordReader {
    storage: ReceiveBuffer,
    /// The bytes of the present record that are in their place.
    record: Range<usize>,
    /// The index of the next byte to be looked at; `record.end` but for a mark in between.
    next: usize,
    state: RecordReaderState,
    /// True if `record` was handed out, and nothing has been received or begun since.
    is_handed_out: bool,
    empty_fragments: u32,
    limit: usize,
}

/// The item that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordReaderState {
    /// A mark; `fresh` if it begins a record.
    Mark { fresh: bool },
    /// A fragment of which `left` bytes are still to come.
    Fragment { left: usize, last: bool },
}

impl RecordReader {
    /// A reader of records of at most `limit` bytes, however many fragments they are in. It takes
    /// no memory before the first [`room_within`](Self::room_within).
    pub fn new(limit: usize) -> Self {
        Self {
            // The record, its mark and the next one's.
            storage: ReceiveBuffer::new(1, limit.saturating_add(2 * MARK)),
            record: 0..0,
            next: 0,
            state: RecordReaderState::Mark { fresh: true },
            is_handed_out: false,
            empty_fragments: 0,
            limit,
        }
    }

    /// Returns where to put received bytes, if `may_have` agrees to the bytes of memory that the reader has then, and
    /// the allocator has them.
    /// The room is not empty once [`next_record`](Self::next_record) has returned nothing: it grows with what has
    /// arrived, up to the limit.
    #[inline]
    pub fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        self.close_gaps();
        let lacks_room = self.storage.lacks(self.wanted());
        let capacity = if lacks_room {
            self.storage.capacity_with_room(self.kept_from())
        } else {
            self.storage.capacity()
        };
        if !may_have(capacity) {
            return None;
        }
        if lacks_room {
            self.make_room();
            if self.storage.lacks(1) {
                return None;
            }
        }
        Some(self.storage.room())
    }

    /// Reports that the first `bytes` of the [room](Self::room_within) have been received.
    ///
    /// # Panics
    /// There was less room.
    #[inline]
    pub fn handle_received(&mut self, bytes: usize) {
        self.storage.fill(bytes);
    }

    /// Returns the next complete record, which stays where it is until the next call of this reader.
    ///
    /// # Errors
    /// The stream cannot be read on; the same error comes again.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<&[u8]>, RecordError> {
        match self.find_whole().map(<[u8]>::len) {
            Some(bytes) => Ok(Some(self.take_whole(bytes))),
            None if self.is_between_frames() => Ok(None),
            None => self.join_fragments(),
        }
    }

    /// Returns the record that begins next, if it has one fragment and is complete, as most are. It stays
    /// the next until it is [taken](Self::take_whole) or handed out by [`next_record`](Self::next_record).
    #[inline(always)]
    pub fn find_whole(&self) -> Option<&[u8]> {
        let (mark, rest) = self.unread().split_first_chunk()?;
        let mark = u32::from_be_bytes(*mark);
        let length = (mark & !LAST_FRAGMENT) as usize;
        let is_only =
            mark & LAST_FRAGMENT != 0 && self.state == (RecordReaderState::Mark { fresh: true });
        let record = rest.get(..length)?;
        (is_only && length <= self.limit).then_some(record)
    }

    /// Takes the record that was [found](Self::find_whole) to have so many `bytes`. It stays where it
    /// is until the next call of this reader.
    #[inline]
    pub fn take_whole(&mut self, bytes: usize) -> &[u8] {
        let begin = self.next + MARK;
        self.next = begin + bytes;
        self.record = begin..self.next;
        self.is_handed_out = true;
        self.storage.get(begin..self.next)
    }

    fn join_fragments(&mut self) -> Result<Option<&[u8]>, RecordError> {
        loop {
            match self.state {
                RecordReaderState::Mark { fresh } => {
                    if self.unread().len() < MARK {
                        return Ok(None);
                    }
                    self.read_mark(fresh)?;
                }
                RecordReaderState::Fragment { left, last } => {
                    let left = self.take_in(left);
                    self.state = RecordReaderState::Fragment { left, last };
                    if left > 0 {
                        return Ok(None);
                    }
                    self.state = RecordReaderState::Mark { fresh: last };
                    if last {
                        self.is_handed_out = true;
                        return Ok(Some(self.storage.get(self.record.clone())));
                    }
                }
            }
        }
    }

    /// Returns the record that was handed out last, as long as nothing was received since.
    #[inline]
    pub fn last_record(&self) -> Option<&[u8]> {
        let is_there = self.is_handed_out;
        is_there.then(|| self.storage.get(self.record.clone()))
    }

    /// Returns what has arrived and was not looked at: everything, before the first
    /// [`next_record`](Self::next_record).
    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.storage.received(self.next)
    }

    /// Takes memory over, if this reader has none.
    #[inline]
    pub(super) fn adopt(&mut self, memory: &mut Vec<u8>) {
        if self.storage.may_adopt() && !memory.is_empty() {
            self.storage.adopt(std::mem::take(memory));
            self.restart();
        }
    }

    /// Gives the memory back, in which nothing is left.
    pub(super) fn release(&mut self) -> Vec<u8> {
        let memory = self.storage.release();
        self.restart();
        memory
    }

    /// Forgets everything, as there was no memory for something that must not be lost: nothing is received any more.
    #[cold]
    pub(super) fn run_out(&mut self) {
        self.storage.run_out();
        self.state = RecordReaderState::Mark { fresh: true };
        self.restart();
    }

    /// Returns whether something was lost that there was no memory for: nothing is received any more.
    pub(super) fn has_run_out(&self) -> bool {
        self.storage.has_run_out()
    }

    /// Returns whether there is no room to receive into.
    pub(super) fn lacks_room(&self) -> bool {
        self.storage.lacks(1)
    }

    /// Takes out what was received and not handed out.
    pub(super) fn take_unread(&mut self, take: impl FnOnce(&[u8])) {
        take(self.unread());
        self.storage.truncate(self.next);
    }

    /// Returns whether nothing of a record has arrived that was not handed out: the stream may end here.
    #[inline]
    pub fn is_between_frames(&self) -> bool {
        self.state == RecordReaderState::Mark { fresh: true } && self.next == self.storage.end()
    }

    /// Bytes received that are kept.
    pub fn kept(&self) -> usize {
        self.storage.end()
    }

    /// Bytes of memory that the reader has.
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Gives the storage back to the allocator if nothing is in it and it has grown beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.is_between_frames() && self.storage.capacity() > bytes {
            self.release();
        }
    }

    /// Takes the record that was handed out last out of this reader, as
    /// [`Receiver::detach`](super::Receiver::detach) does. `spare` is used where something has to be copied, or is
    /// received into next.
    pub(super) fn detach(&mut self, spare: &mut Option<ReceiveBuffer>) -> Option<Detached> {
        if !std::mem::take(&mut self.is_handed_out) {
            return None;
        }
        let mut other = spare.take().unwrap_or_else(|| self.storage.fresh());
        other.clear();
        let record = self.record.clone();
        let rest = self.next..self.storage.end();
        let copied = if rest.len() > record.len() {
            record.clone()
        } else {
            rest.clone()
        };
        if other.append(self.storage.get(copied)).is_err() {
            self.run_out();
            return None;
        }
        if rest.len() > record.len() {
            let place = other.base()..other.end();
            return Some(Detached::new(other, DetachedFrame::Record(place)));
        }
        let storage = std::mem::replace(&mut self.storage, other);
        self.restart();
        Some(Detached::new(storage, DetachedFrame::Record(record)))
    }

    /// An empty storage of the same kind, which has no memory yet.
    pub(super) fn fresh_storage(&self) -> ReceiveBuffer {
        self.storage.fresh()
    }

    /// Gives the storage of a detached record back; returns it if this reader has one.
    pub(super) fn reattach(&mut self, mut storage: ReceiveBuffer) -> Option<ReceiveBuffer> {
        if !self.storage.may_adopt() {
            return Some(storage);
        }
        storage.clear();
        self.storage = storage;
        self.restart();
        None
    }

    /// A record begins next, at the front of the storage.
    #[inline]
    fn restart(&mut self) {
        self.next = self.storage.base();
        self.record = self.next..self.next;
        self.is_handed_out = false;
    }

    fn read_mark(&mut self, fresh: bool) -> Result<(), RecordError> {
        self.is_handed_out = false;
        if fresh {
            self.empty_fragments = 0;
            self.record = self.next + MARK..self.next + MARK;
        }
        let (last, left) = self.check_mark()?;
        self.next += MARK;
        self.state = RecordReaderState::Fragment { left, last };
        Ok(())
    }

    /// Returns whether the fragment is the last and how long it is, when the record may have it.
    fn check_mark(&mut self) -> Result<(bool, usize), RecordError> {
        let mut mark = [0; MARK];
        mark.copy_from_slice(self.storage.get(self.next..self.next + MARK));
        let mark = u32::from_be_bytes(mark);
        let (last, left) = (mark & LAST_FRAGMENT != 0, mark & !LAST_FRAGMENT);
        let length = self.record.len() as u64 + u64::from(left);
        if length > self.limit as u64 {
            let limit = self.limit;
            return Err(RecordError::TooLong { length, limit });
        }
        if left == 0 && !last {
            if self.empty_fragments == EMPTY_FRAGMENTS_MAX {
                return Err(RecordError::EmptyFragments);
            }
            self.empty_fragments += 1;
        }
        Ok((last, left as usize))
    }

    /// Takes what has arrived of a fragment into the record; returns how much of it is missing.
    fn take_in(&mut self, left: usize) -> usize {
        let taken = left.min(self.unread().len());
        if self.next != self.record.end {
            let fragment = self.next..self.next + taken;
            self.storage.move_down(fragment, self.record.end);
        }
        self.record.end += taken;
        self.next += taken;
        left - taken
    }

    /// Moves what was not looked at, a part of a mark at most if the owner has taken all records,
    /// right behind the present record, so that what comes next is received in its place.
    #[inline]
    fn close_gaps(&mut self) {
        self.is_handed_out = false;
        if self.state == (RecordReaderState::Mark { fresh: true }) {
            self.record = self.next..self.next;
        }
        let end = self.storage.end();
        if self.record.start == end {
            self.storage.truncate(0);
            (self.record, self.next) = (0..0, 0);
        } else if self.record.end < self.next {
            self.close_gap(end);
        }
    }

    #[cold]
    fn close_gap(&mut self, end: usize) {
        self.storage.move_down(self.next..end, self.record.end);
        self.storage.truncate(end - (self.next - self.record.end));
        self.next = self.record.end;
    }

    /// Bytes that are known to be missing.
    fn wanted(&self) -> usize {
        match self.state {
            RecordReaderState::Mark { .. } => MARK,
            RecordReaderState::Fragment { left, .. } => left,
        }
    }

    /// Returns the index of the first byte that is still needed: the mark of the present record is kept with it, unless
    /// nothing of the record had come when the storage was emptied, and the mark with it.
    fn kept_from(&self) -> usize {
        match self.state {
            RecordReaderState::Mark { fresh: true } => self.record.start,
            RecordReaderState::Mark { fresh: false } | RecordReaderState::Fragment { .. } => {
                self.record.start.saturating_sub(MARK)
            }
        }
    }

    #[cold]
    fn make_room(&mut self) {
        let from = self.kept_from();
        let gone = from - self.storage.make_room(from);
        self.record = self.record.start - gone..self.record.end - gone;
        self.next -= gone;
    }
}
