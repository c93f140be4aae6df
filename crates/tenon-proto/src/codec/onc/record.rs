//! Record marking: messages on a byte stream (RFC 5531 section 11).
//!
//! A record is one or more fragments, each behind a four-byte mark: the highest bit says that it is
//! the record's last, the others how long it is.

use std::ops::Range;

use tenon_wire::Buffer;

use crate::connection::framing::Storage;

/// Bytes of a mark, and of the room that is left for it in front of every message.
pub const MARK: usize = 4;

/// Longest fragment that a mark can express, in bytes.
pub const FRAGMENT_MAX: usize = 0x7fff_ffff;

pub(crate) const LAST_FRAGMENT: u32 = 0x8000_0000;

/// Fragments without a byte that one record may have. They are legal, and an endless row of them is
/// an attack.
pub(crate) const EMPTY_FRAGMENTS_MAX: u32 = 16;

/// The message behind the room for its mark, as a datagram carries it.
///
/// # Panics
/// The buffer was not begun with room for a mark.
#[inline]
pub fn message(buffer: &Buffer) -> &[u8] {
    &buffer.as_slice()[MARK..]
}

/// Appends room for a mark and a message behind it, as [`message`] finds it.
pub fn put_message(buffer: &mut Buffer, message: &[u8]) {
    buffer.room(MARK);
    buffer.extend(message);
}

/// Makes what stands in `buffer` from `start` on, room for a mark and a message, one record
/// in fragments of at most `fragment_max` bytes.
///
/// # Panics
/// There is no room for a mark at `start`, or `fragment_max` is 0 or over [`FRAGMENT_MAX`].
#[inline]
pub fn seal(buffer: &mut Buffer, start: usize, fragment_max: usize) {
    assert!((1..=FRAGMENT_MAX).contains(&fragment_max));
    let length = buffer.len() - start - MARK;
    if length > fragment_max {
        cut(buffer, start, length, fragment_max);
    } else {
        put_mark(buffer, start, length as u32 | LAST_FRAGMENT);
    }
}

fn put_mark(buffer: &mut Buffer, at: usize, mark: u32) {
    buffer.as_mut_slice()[at..at + MARK].copy_from_slice(&mark.to_be_bytes());
}

/// Moves every fragment but the first to make room for its mark, the last one first.
#[cold]
fn cut(buffer: &mut Buffer, start: usize, length: usize, fragment_max: usize) {
    let fragments = length.div_ceil(fragment_max);
    buffer.room((fragments - 1) * MARK);
    let mut last = LAST_FRAGMENT;
    for fragment in (0..fragments).rev() {
        let offset = fragment * fragment_max;
        let size = fragment_max.min(length - offset);
        let from = start + MARK + offset;
        let to = from + fragment * MARK;
        buffer.as_mut_slice().copy_within(from..from + size, to);
        put_mark(buffer, to - MARK, size as u32 | last);
        last = 0;
    }
}

/// Why a stream cannot be read on: the peer's fault, and the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record is longer than the limit.
    #[error("a record of at least {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Bytes of the record that its marks have announced so far.
        length: u64,
        /// Most bytes that are accepted.
        limit: usize,
    },
    /// A record has too many fragments without a byte.
    #[error("a record has more than {EMPTY_FRAGMENTS_MAX} empty fragments")]
    EmptyFragments,
}

/// Finds records in the bytes of a stream.
///
/// The owner reads into [`room`](Self::room), says how much arrived with [`filled`](Self::filled),
/// and takes records with [`next_record`](Self::next_record) until there is none. A record of one
/// fragment is handed out where it was received. Fragments are moved together where they lie. The
/// storage follows what has really arrived and not what a mark promises.
#[derive(Debug)]
pub struct RecordReader {
    storage: Storage,
    /// The bytes of the present record that are in their place.
    record: Range<usize>,
    /// Where the next byte to be looked at is; at `record.end` but for a mark in between.
    next: usize,
    state: State,
    empty_fragments: u32,
    limit: usize,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A mark; `fresh` if it begins a record.
    Mark { fresh: bool },
    /// A fragment of which `left` bytes are still to come.
    Fragment { left: usize, last: bool },
}

impl RecordReader {
    /// A reader of records of at most `limit` bytes, however many fragments they are in. It takes
    /// no memory before the first [`room`](Self::room).
    pub fn new(limit: usize) -> Self {
        Self {
            // The record, its mark and the next one's.
            storage: Storage::new(1, limit.saturating_add(2 * MARK)),
            record: 0..0,
            next: 0,
            state: State::Mark { fresh: true },
            empty_fragments: 0,
            limit,
        }
    }

    /// Where to put received bytes. It is not empty once [`next_record`](Self::next_record) has
    /// said that there is no further record: it grows with what has arrived, up to the limit.
    pub fn room(&mut self) -> &mut [u8] {
        self.room_within(|_| true).unwrap_or_default()
    }

    /// As [`room`](Self::room), if `may_have` agrees to the bytes of memory that the reader has then.
    #[inline]
    pub fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        self.close_gaps();
        let lacks_room = self.storage.lacks(self.wanted());
        let capacity = match lacks_room {
            true => self.storage.capacity_with_room(self.kept_from()),
            false => self.storage.capacity(),
        };
        if !may_have(capacity) {
            return None;
        }
        if lacks_room {
            self.make_room();
        }
        Some(self.storage.room())
    }

    /// Says that the first `bytes` of [`room`](Self::room) have been received.
    ///
    /// # Panics
    /// There was less room.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.storage.fill(bytes);
    }

    /// The next complete record, which stays where it is until the next call of this reader.
    ///
    /// # Errors
    /// The stream makes no sense from here on; the same error comes again.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<&[u8]>, RecordError> {
        match self.find_whole().map(<[u8]>::len) {
            Some(bytes) => Ok(Some(self.take_whole(bytes))),
            None if self.is_between_records() => Ok(None),
            None => self.piece_together(),
        }
    }

    /// The record that begins next, if it has one fragment and is there whole, as most are. It stays
    /// the next until it is [taken](Self::take_whole), or handed out by
    /// [`next_record`](Self::next_record), which knows all others and what is wrong.
    #[inline]
    pub fn find_whole(&self) -> Option<&[u8]> {
        let (mark, rest) = self.unread().split_first_chunk()?;
        let mark = u32::from_be_bytes(*mark);
        let length = (mark & !LAST_FRAGMENT) as usize;
        let is_only = mark & LAST_FRAGMENT != 0 && self.state == (State::Mark { fresh: true });
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
        self.record()
    }

    fn piece_together(&mut self) -> Result<Option<&[u8]>, RecordError> {
        loop {
            match self.state {
                State::Mark { fresh } => {
                    if self.unread().len() < MARK {
                        return Ok(None);
                    }
                    self.read_mark(fresh)?;
                }
                State::Fragment { left, last } => {
                    let left = self.take_in(left);
                    self.state = State::Fragment { left, last };
                    if left > 0 {
                        return Ok(None);
                    }
                    self.state = State::Mark { fresh: last };
                    if last {
                        return Ok(Some(self.record()));
                    }
                }
            }
        }
    }

    /// The record that [`next_record`](Self::next_record) handed out last, as long as nothing was
    /// done with this reader since.
    #[inline]
    pub fn record(&self) -> &[u8] {
        self.storage.get(self.record.clone())
    }

    /// What has arrived and was not looked at: everything, before the first
    /// [`next_record`](Self::next_record).
    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.storage.received(self.next)
    }

    /// Whether nothing of a record has arrived that was not handed out: the stream may end here.
    pub fn is_between_records(&self) -> bool {
        self.state == State::Mark { fresh: true } && self.next == self.storage.end()
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
        if self.is_between_records() && self.storage.capacity() > bytes {
            self.storage.release();
            (self.record, self.next) = (0..0, 0);
        }
    }

    fn read_mark(&mut self, fresh: bool) -> Result<(), RecordError> {
        if fresh {
            self.empty_fragments = 0;
            self.record = self.next + MARK..self.next + MARK;
        }
        let (last, left) = self.check_mark()?;
        self.next += MARK;
        self.state = State::Fragment { left, last };
        Ok(())
    }

    /// Whether the fragment is the last and how long it is, when the record may have it.
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

    /// Takes what has arrived of a fragment into the record; says how much of it is missing.
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
    fn close_gaps(&mut self) {
        if self.state == (State::Mark { fresh: true }) {
            self.record = self.next..self.next;
        }
        let end = self.storage.end();
        if self.record.start == end {
            self.storage.truncate(0);
            (self.record, self.next) = (0..0, 0);
        } else if self.record.end < self.next {
            self.storage.move_down(self.next..end, self.record.end);
            self.storage.truncate(end - (self.next - self.record.end));
            self.next = self.record.end;
        }
    }

    /// Bytes that are known to be missing.
    fn wanted(&self) -> usize {
        match self.state {
            State::Mark { .. } => MARK,
            State::Fragment { left, .. } => left,
        }
    }

    /// Where what is still needed begins: the mark of the present record is kept with it, unless nothing of the
    /// record had come when the storage was emptied, and the mark with it.
    fn kept_from(&self) -> usize {
        match self.state {
            State::Mark { fresh: true } => self.record.start,
            State::Mark { fresh: false } | State::Fragment { .. } => {
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
