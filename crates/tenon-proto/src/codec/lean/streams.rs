//! Streams of items: the messages that carry them, and the credit that their senders need.

use tenon_wire::Buffer;

use super::fault::{Fault, Violation};
use super::header::{Flags, HEADER, Header};
use super::kind::Kind;
use super::message::{Message, plain, put_message};
use super::order::{ByteOrder, pad, padding_of};

/// Bytes of items that a sender may send of each stream before its receiver grants more.
pub const STREAM_WINDOW: u32 = 64 << 10;

/// Bytes of items that a sender may send of all streams of a connection before their receiver grants more.
pub const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;

/// Bytes of the longest message of items that is sent, its header included; a longer item goes in several. One takes all of
/// the first [window](STREAM_WINDOW).
pub const ITEM_MAX: usize = 64 << 10;

/// Bytes of a message of items for which every receiver grants credit in the end: a longer one that waits for credit is
/// cut there.
pub const ITEM_PART: usize = 32 << 10;

/// The form of the messages that carry the items of one stream. A message is written in a buffer of its own, behind the
/// place of its header, so that what is 8-byte aligned in the buffer is in the message.
#[derive(Debug, Clone, Copy)]
pub struct ItemDraft {
    header: Header,
    order: ByteOrder,
}

impl ItemDraft {
    /// Messages of the call `number`, which is one of the accepting end of the connection if it is `reverse`.
    pub fn new(order: ByteOrder, number: u32, reverse: bool) -> Self {
        let header = plain(Kind::Items, number, 0).reversed(reverse);
        Self { header, order }
    }

    /// Begins a message in an empty buffer; returns the position of its first item.
    pub fn begin(self, buffer: &mut Buffer) -> usize {
        *buffer.chunk() = self.header.encode(self.order);
        HEADER
    }

    /// Makes place for an item behind those of a message; returns its position.
    #[inline]
    pub fn begin_next(self, buffer: &mut Buffer) -> usize {
        let length = buffer.len();
        if padding_of(length) > 0 {
            pad(buffer, length);
        }
        buffer.len()
    }

    /// Returns what was written of a message behind its header.
    pub fn content(self, buffer: &Buffer) -> &[u8] {
        &buffer.as_slice()[HEADER..]
    }

    /// Ends a message of at most [`ITEM_MAX`] bytes; returns false, and leaves it as it is, if it is longer: its content
    /// is to be [split](Self::split).
    #[must_use]
    pub fn seal(self, buffer: &mut Buffer) -> bool {
        if buffer.len() > ITEM_MAX {
            return false;
        }
        let length = buffer.len() - HEADER;
        pad(buffer, length);
        let header = Header {
            length: length as u32,
            ..self.header
        };
        buffer.as_mut_slice()[..HEADER].copy_from_slice(&header.encode(self.order));
        true
    }

    /// Appends a message to `out` with the first bytes of `rest`, which are those of a content that were not sent;
    /// returns how many of them it has.
    pub fn split(self, rest: &[u8], out: &mut Buffer) -> usize {
        let length = rest.len().min(ITEM_MAX - HEADER);
        let more = if length < rest.len() { Flags::MORE } else { 0 };
        let header = Header {
            flags: Flags(self.header.flags.0 | more),
            length: length as u32,
            ..self.header
        };
        out.extend(&header.encode(self.order));
        out.extend(&rest[..length]);
        pad(out, length);
        length
    }
}

/// Splits whole messages of items: returns how many bytes the first of them have that are at most `limit` bytes together.
/// It is 0 if the first is longer.
pub fn split_item(messages: &[u8], order: ByteOrder, limit: u64) -> usize {
    let mut end = 0;
    while let Some(header) = messages[end..].first_chunk()
        && let Ok(header) = Header::decode(header, order)
    {
        let next = end as u64 + header.message_length();
        if next > limit || next > messages.len() as u64 {
            break;
        }
        end = next as usize;
    }
    end
}

/// Cuts the first of several messages of items: takes a message of [`ITEM_PART`] bytes out that has the first part of its
/// content, and leaves one with the rest. `None`, and nothing is changed, if it is not longer.
pub(crate) fn cut_item(messages: &mut Buffer, order: ByteOrder) -> Option<Buffer> {
    const LENGTH: usize = ITEM_PART - HEADER;
    let whole = Header::decode(messages.as_slice().first_chunk()?, order).ok()?;
    let rest = whole
        .length
        .checked_sub(LENGTH as u32)
        .filter(|rest| *rest > 0)?;
    let content = messages.as_slice().get(HEADER..ITEM_PART)?;
    let first = Header {
        flags: Flags(whole.flags.0 | Flags::MORE),
        length: LENGTH as u32,
        ..whole
    };
    let second = Header {
        length: rest,
        ..whole
    };
    let mut part = Buffer::default();
    part.extend(&first.encode(order));
    part.extend(content);
    // The header of the rest takes the place of the last bytes in front of it.
    let left = messages.len() - LENGTH;
    let bytes = messages.as_mut_slice();
    bytes[LENGTH..ITEM_PART].copy_from_slice(&second.encode(order));
    bytes.copy_within(LENGTH.., 0);
    messages.truncate(left);
    Some(part)
}

/// Checks that a message whose content goes on in another consists of whole words, and of one at least.
pub(crate) fn check_item(message: &Message<'_>) -> Result<(), Violation> {
    let length = message.header.length;
    let is_whole = length > 0 && padding_of(length as usize) == 0;
    match message.header.flags.has(Flags::MORE) && !is_whole {
        true => Err(message.header_violation(Fault::ItemLength(length), 12)),
        false => Ok(()),
    }
}

/// The bytes of items that a receiver takes beyond those that it has granted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Credit {
    /// Of the stream of the call that the message names.
    pub(crate) stream: u32,
    /// Of all streams of the connection together.
    pub(crate) connection: u32,
}

impl Credit {
    /// Appends the message.
    pub(crate) fn encode(self, out: &mut Buffer, order: ByteOrder, number: u32, reverse: bool) {
        let header = plain(Kind::Credit, number, 0).reversed(reverse);
        put_message(out, order, header, |out| {
            out.extend(&order.bytes_of_u32(self.stream));
            out.extend(&order.bytes_of_u32(self.connection));
        });
    }

    pub(crate) fn decode(message: &Message<'_>) -> Result<Self, Violation> {
        message.read(|input| {
            Ok(Self {
                stream: input.u32()?,
                connection: input.u32()?,
            })
        })
    }
}
