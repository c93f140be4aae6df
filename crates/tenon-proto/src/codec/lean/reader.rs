//! Finds the preamble and the messages in the bytes of a stream.

use super::fault::{Fault, Violation};
use super::header::{CommonHeader, HEADER, Header};
use super::message::Message;
use super::order::{ALIGNMENT, ByteOrder};
use super::preamble::{PREAMBLE, Preamble, check_magic};
use crate::connection::framing::Storage;

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
    storage: Storage,
    /// The first byte that was not handed out.
    start: usize,
    /// Where in the stream `start` is.
    at: u64,
    awaited: Awaited,
    /// The message that was handed out last.
    last: Option<Last>,
    order: ByteOrder,
    limit: usize,
}

/// A message that was handed out.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Where what follows its header begins.
    begin: usize,
    /// Bytes of its body, if that is known to be all that follows.
    body: Option<usize>,
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
            storage: Storage::new(ALIGNMENT, limit.saturating_add(ALIGNMENT)),
            start: 0,
            at: 0,
            awaited: Awaited::Preamble,
            last: None,
            order: ByteOrder::NATIVE,
            limit,
        }
    }

    /// Where to put received bytes. It is not empty once [`next_message`](Self::next_message) has
    /// said that there is nothing: it grows with what has arrived, up to the limit.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        self.room_within(|_| true).unwrap_or_default()
    }

    /// As [`room`](Self::room), if `may_have` agrees to the bytes of memory that the reader has then.
    #[inline]
    pub fn room_within(&mut self, may_have: impl FnOnce(usize) -> bool) -> Option<&mut [u8]> {
        self.rewind();
        // Mostly: whatever there is has room for a header.
        if self.awaited == Awaited::Header && self.is_between_messages() && self.capacity() > 0 {
            return may_have(self.capacity()).then(|| self.storage.room());
        }
        let lacks_room = self.storage.lacks(self.wanted());
        let capacity = match lacks_room {
            true => self.storage.capacity_with_room(self.start),
            false => self.storage.capacity(),
        };
        if !may_have(capacity) {
            return None;
        }
        if lacks_room {
            self.start = self.storage.make_room(self.start);
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
        if self.received_of_next().len() < length {
            self.awaited = Awaited::Rest { header, length };
            return Ok(None);
        }
        self.awaited = Awaited::Header;
        let begin = self.start + HEADER;
        self.last = Some(Last { begin, body: None });
        self.start += length;
        self.at += length as u64;
        Ok(Some(Incoming::Message(self.message_of(header, begin))))
    }

    /// The header of the next message, if that has come whole and is of the commonest form. It stays the next until it is [taken](Self::take_common), or handed out by
    /// [`next_message`](Self::next_message), which knows all others and what is wrong.
    #[inline]
    pub fn find_common(&self) -> Option<CommonHeader> {
        let received = self.received_of_next();
        if !matches!(self.awaited, Awaited::Header) {
            return None;
        }
        let header = CommonHeader::of(received.first_chunk()?, self.order)?;
        let length = header.message_length();
        (length <= received.len() as u64 && length <= self.limit as u64).then_some(header)
    }

    /// The body of the next message, whose header was [found](Self::find_common) to be this. It stays where it
    /// is until the next call of this reader.
    ///
    /// # Panics
    /// It has not come whole.
    #[inline]
    pub fn take_common(&mut self, header: CommonHeader) -> &[u8] {
        let begin = self.start + HEADER;
        let length = header.message_length();
        let body = header.length() as usize;
        self.last = Some(Last {
            begin,
            body: Some(body),
        });
        self.start += length as usize;
        self.at += length;
        self.storage.get(begin..begin + body)
    }

    /// The message that [`next_message`](Self::next_message) handed out last, as long as nothing was
    /// received since.
    #[inline]
    pub fn message(&self) -> Option<Message<'_>> {
        let Last { begin, .. } = self.last?;
        let bytes = self.storage.get(begin - HEADER..begin).first_chunk()?;
        let header = Header::decode(bytes, self.order).ok()?;
        Some(self.message_of(header, begin))
    }

    #[inline]
    fn message_of(&self, header: Header, begin: usize) -> Message<'_> {
        let content = self.storage.get(begin..begin + header.length as usize);
        Message::new(
            header,
            self.at - header.message_length(),
            self.order,
            content,
        )
    }

    /// The body of that message; nothing if there is none, or what stands in front of it makes no sense.
    #[inline]
    pub fn body(&self) -> &[u8] {
        match self.last {
            Some(Last {
                begin,
                body: Some(bytes),
            }) => self.storage.get(begin..begin + bytes),
            Some(Last { body: None, .. }) => self.body_of_message(),
            None => &[],
        }
    }

    fn body_of_message(&self) -> &[u8] {
        let parts = self.message().and_then(|message| message.parts().ok());
        parts.map_or(&[], |parts| parts.body)
    }

    /// Whether nothing of a message has arrived that was not handed out: the stream may end here.
    #[inline]
    pub fn is_between_messages(&self) -> bool {
        self.start == self.storage.end()
    }

    /// Bytes of the stream that were received.
    pub fn received(&self) -> u64 {
        self.at + self.received_of_next().len() as u64
    }

    /// Bytes received that are kept.
    #[inline]
    pub fn kept(&self) -> usize {
        self.storage.end()
    }

    /// Bytes of memory that the reader has.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.storage.capacity()
    }

    /// Gives the storage back to the allocator if nothing is in it and it has grown beyond `bytes`.
    #[inline]
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.is_between_messages() && self.storage.capacity() > bytes {
            self.storage.release();
            self.start = 0;
            self.last = None;
        }
    }

    #[inline]
    fn received_of_next(&self) -> &[u8] {
        self.storage.received(self.start)
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
    #[inline]
    fn rewind(&mut self) {
        self.last = None;
        if self.is_between_messages() {
            self.start = self.storage.base();
            self.storage.truncate(self.start);
        }
    }

    /// Bytes that are known to be missing.
    #[inline]
    fn wanted(&self) -> usize {
        let received = self.received_of_next().len();
        self.awaited.bytes().saturating_sub(received)
    }
}
