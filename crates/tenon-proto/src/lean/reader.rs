//! Finds the preamble and the messages in the bytes of a stream.

use super::fault::{Fault, Violation};
use super::header::{HEADER, Header};
use super::message::Message;
use super::order::{ALIGNMENT, ByteOrder};
use super::preamble::{PREAMBLE, Preamble, check_magic};

/// Bytes a reader asks for at first; most messages need no more.
pub const ROOM_FIRST: usize = 16 << 10;

/// What has come.
#[derive(Debug, Clone, Copy)]
pub enum Incoming<'m> {
    /// The first that comes.
    Preamble(Preamble),
    /// What comes then.
    Message(Message<'m>),
}

/// Finds the preamble and the messages in the bytes of a stream.
///
/// The owner reads into [`room`](Self::room), says how much arrived with [`filled`](Self::filled),
/// and takes what has come whole with [`next_message`](Self::next_message) until there is nothing. A
/// message is handed out where it was received, at a multiple of 8 in memory. The storage follows
/// what has really arrived and not what a header promises.
#[derive(Debug)]
pub struct MessageReader {
    /// All of it is initialised; what is behind `filled` is stale.
    storage: Vec<u8>,
    /// The first place in the storage that is 8-byte aligned.
    base: usize,
    /// The first byte that was not handed out.
    start: usize,
    /// Behind the last byte received.
    filled: usize,
    /// Where in the stream `start` is.
    at: u64,
    awaited: Awaited,
    /// The message that was handed out last: its header, and where what follows it begins.
    last: Option<(Header, usize)>,
    order: ByteOrder,
    limit: usize,
}

/// What begins at `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Preamble,
    Header,
    /// The rest of a message of so many bytes.
    Rest {
        header: Header,
        length: usize,
    },
}

impl Awaited {
    /// Bytes that have to be there before anything can be handed out or found out.
    fn bytes(self) -> usize {
        match self {
            Self::Preamble => PREAMBLE,
            Self::Header => HEADER,
            Self::Rest { length, .. } => length,
        }
    }
}

impl MessageReader {
    /// A reader of a stream from its beginning, whose messages have at most `limit` bytes. It takes
    /// no memory before the first [`room`](Self::room).
    pub fn new(limit: usize) -> Self {
        Self {
            storage: Vec::new(),
            base: 0,
            start: 0,
            filled: 0,
            at: 0,
            awaited: Awaited::Preamble,
            last: None,
            order: ByteOrder::NATIVE,
            limit,
        }
    }

    /// Where to put received bytes. It is not empty once [`next_message`](Self::next_message) has
    /// said that there is nothing: it grows with what has arrived, up to the limit.
    pub fn room(&mut self) -> &mut [u8] {
        self.rewind();
        if self.lacks_room() {
            self.make_room();
        }
        &mut self.storage[self.filled..]
    }

    /// Bytes of memory that the reader has after the next [`room`](Self::room), for an owner that
    /// must find them first.
    pub fn capacity_wanted(&mut self) -> usize {
        self.rewind();
        match self.lacks_room() && self.is_full() {
            true => self.capacity_doubled(),
            false => self.storage.len(),
        }
    }

    /// Says that the first `bytes` of [`room`](Self::room) have been received.
    ///
    /// # Panics
    /// There was less room.
    pub fn filled(&mut self, bytes: usize) {
        assert!(bytes <= self.storage.len() - self.filled);
        self.filled += bytes;
    }

    /// What has come next as a whole. It stays where it is until the next call of this reader.
    ///
    /// # Errors
    /// The stream makes no sense from here on; the same error comes again.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        let (header, length) = match self.awaited {
            Awaited::Rest { header, length } => (header, length),
            Awaited::Header => match self.next_header()? {
                Some(found) => found,
                None => return Ok(None),
            },
            Awaited::Preamble => return self.next_preamble(),
        };
        if self.filled - self.start < length {
            self.awaited = Awaited::Rest { header, length };
            return Ok(None);
        }
        self.awaited = Awaited::Header;
        self.last = Some((header, self.start + HEADER));
        self.start += length;
        self.at += length as u64;
        Ok(self.message().map(Incoming::Message))
    }

    /// The message that [`next_message`](Self::next_message) handed out last, as long as nothing was
    /// received since.
    #[inline]
    pub fn message(&self) -> Option<Message<'_>> {
        let (header, begin) = self.last?;
        Some(Message {
            header,
            at: self.at - header.message_length(),
            order: self.order,
            content: &self.storage[begin..begin + header.length as usize],
        })
    }

    /// Whether nothing of a message has arrived that was not handed out: the stream may end here.
    pub fn is_between_messages(&self) -> bool {
        self.start == self.filled
    }

    /// Bytes of the stream that were received.
    pub fn received(&self) -> u64 {
        self.at + (self.filled - self.start) as u64
    }

    /// Bytes of memory that the reader has.
    pub fn capacity(&self) -> usize {
        self.storage.len()
    }

    /// Gives the storage back to the allocator if nothing is in it and it has grown beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.is_between_messages() && self.storage.len() > bytes {
            self.storage = Vec::new();
            (self.base, self.start, self.filled) = (0, 0, 0);
            self.last = None;
        }
    }

    fn received_of_next(&self) -> &[u8] {
        &self.storage[self.start..self.filled]
    }

    #[cold]
    fn next_preamble(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        check_magic(self.received_of_next())?;
        let Some(bytes) = self.received_of_next().first_chunk() else {
            return Ok(None);
        };
        let preamble = Preamble::decode(bytes)?;
        self.order = preamble.order;
        self.awaited = Awaited::Header;
        self.start += PREAMBLE;
        self.at += PREAMBLE as u64;
        Ok(Some(Incoming::Preamble(preamble)))
    }

    /// The next header, if it is there, and the bytes of its message.
    #[inline]
    fn next_header(&self) -> Result<Option<(Header, usize)>, Violation> {
        let Some(bytes) = self.received_of_next().first_chunk() else {
            return Ok(None);
        };
        let header = Header::decode(bytes, self.order)
            .map_err(|(fault, offset)| fault.at(self.at + offset as u64))?;
        let (length, limit) = (header.message_length(), self.limit as u64);
        if length > limit {
            return Err(Fault::TooLong { length, limit }.at(self.at + 12));
        }
        Ok(Some((header, length as usize)))
    }

    /// Begins at the front again if nothing is left.
    fn rewind(&mut self) {
        self.last = None;
        if self.start == self.filled {
            (self.start, self.filled) = (self.base, self.base);
        }
    }

    fn lacks_room(&self) -> bool {
        self.storage.len() - self.start < self.awaited.bytes()
    }

    /// Whether nothing can be moved to make room.
    fn is_full(&self) -> bool {
        self.start == self.base && self.filled == self.storage.len()
    }

    fn capacity_doubled(&self) -> usize {
        let most = self.limit.saturating_add(ALIGNMENT).max(ROOM_FIRST);
        (self.storage.len() * 2).clamp(ROOM_FIRST, most)
    }

    /// Moves what is there to the front, or doubles the storage if that is full.
    #[cold]
    fn make_room(&mut self) {
        if self.start > self.base {
            self.storage.copy_within(self.start..self.filled, self.base);
            self.filled -= self.start - self.base;
            self.start = self.base;
        }
        if self.is_full() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let grown = vec![0; self.capacity_doubled()];
        // It may be that nobody can tell, as when this is run by Miri.
        let base = match grown.as_ptr().align_offset(ALIGNMENT) {
            offset @ 0..ALIGNMENT => offset,
            _ => 0,
        };
        let before = std::mem::replace(&mut self.storage, grown);
        let left = &before[self.start..self.filled];
        self.storage[base..base + left.len()].copy_from_slice(left);
        (self.base, self.start, self.filled) = (base, base, base + left.len());
    }
}
