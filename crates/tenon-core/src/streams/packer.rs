//! Messages out of the items of a stream.

use std::collections::VecDeque;
use std::mem;

use tenon_proto::lean::{HEADER, ITEM_MAX, ItemDraft};
use tenon_wire::{Buffer, EncodeError, Encoder, Lean};

use crate::error::CallError;

/// What a writer has taken of a stream: items that go together in messages of at most [`ITEM_MAX`] bytes, and a longer
/// item in several.
#[derive(Debug)]
pub struct ItemPacker {
    draft: ItemDraft,
    /// Bytes of the longest item that the other end accepts.
    item_max: usize,
    /// Messages that take no further items, oldest first.
    sealed: VecDeque<Buffer>,
    /// The message that further items go into; empty if none is begun. It has one item alone if that is too long for it.
    open: Buffer,
    /// Bytes of the content of such an item that were put into messages.
    split: usize,
    /// Memory of a message that was handed over.
    spare: Buffer,
}

impl ItemPacker {
    /// Puts items of at most `item_max` bytes into messages of the form of `draft`.
    pub fn new(draft: ItemDraft, item_max: usize) -> Self {
        Self {
            draft,
            item_max,
            sealed: VecDeque::new(),
            open: Buffer::default(),
            split: 0,
            spare: Buffer::default(),
        }
    }

    /// Takes the item that `encode` appends. If it returns an error it has taken nothing.
    ///
    /// # Errors
    /// The item cannot be encoded, or is too large.
    #[inline]
    pub fn push(
        &mut self,
        encode: impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError>,
    ) -> Result<(), CallError> {
        if self.is_long() {
            self.split_all();
        }
        let before = self.open.len();
        let begin = match before {
            0 => self.draft.begin(&mut self.open),
            _ => self.draft.begin_next(&mut self.open),
        };
        if let Err(error) = encode(&mut Encoder::over(&mut self.open)) {
            self.open.truncate(before);
            return Err(error.into());
        }
        let length = self.open.len() - begin;
        let may_be_followed = length > 0 && self.open.len() + length <= ITEM_MAX;
        match may_be_followed && length <= self.item_max {
            true => Ok(()),
            false => self.end_message(before, begin),
        }
    }

    /// Ends the message that is open behind its last item, which begins at `begin`, if there is no room for one as long,
    /// and in front of it, at `before`, if there was none for it. An item without bytes is in a message of its own, as
    /// only that says that it is there.
    #[inline(never)]
    fn end_message(&mut self, before: usize, begin: usize) -> Result<(), CallError> {
        let length = self.open.len() - begin;
        if length > self.item_max {
            self.open.truncate(before);
            return Err(CallError::TooLargeForPeer {
                size: length,
                limit: self.item_max,
                own_limit: None,
            });
        }
        if before > 0 && (length == 0 || self.open.len() > ITEM_MAX) {
            let mut next = mem::take(&mut self.spare);
            self.draft.begin(&mut next);
            next.extend(&self.open.as_slice()[begin..]);
            self.open.truncate(before);
            self.seal_open();
            self.open = next;
        }
        if length == 0 || self.open.len() + length > ITEM_MAX {
            self.seal_open();
        }
        Ok(())
    }

    /// Returns whether the message that is open is an item that is too long for one.
    #[inline]
    fn is_long(&self) -> bool {
        self.open.len() > ITEM_MAX
    }

    /// Ends the message that is open, unless it is too long.
    fn seal_open(&mut self) {
        if self.draft.seal(&mut self.open) {
            let next = mem::take(&mut self.spare);
            self.sealed.push_back(mem::replace(&mut self.open, next));
        }
    }

    /// Puts all of a long item into messages.
    #[cold]
    fn split_all(&mut self) {
        while self.is_long() {
            self.split_next();
        }
    }

    /// Puts the next part of a long item into a message.
    fn split_next(&mut self) {
        let mut part = mem::take(&mut self.spare);
        let rest = &self.draft.content(&self.open)[self.split..];
        let taken = self.draft.split(rest, &mut part);
        self.split = match taken < rest.len() {
            true => self.split + taken,
            false => {
                self.open = Buffer::default();
                0
            }
        };
        self.sealed.push_back(part);
    }

    /// Returns whether there are messages that take no further items.
    #[inline]
    pub fn has_full(&self) -> bool {
        self.is_long() || !self.sealed.is_empty()
    }

    /// Returns the message that is to be handed over next: one that takes no further items, or one with all items that
    /// there are, if `all` are to be.
    pub fn next(&mut self, all: bool) -> Option<&mut Buffer> {
        if self.sealed.is_empty() {
            if self.is_long() {
                self.split_next();
            } else if all && !self.open.is_empty() {
                self.seal_open();
            }
        }
        self.sealed.front_mut()
    }

    /// Notes that the [next](Self::next) message was handed over, and that a buffer was left in its place.
    pub fn note_handed_over(&mut self) {
        if let Some(left) = self.sealed.pop_front() {
            self.spare = left;
            self.spare.clear();
        }
    }

    /// Forgets all items that were not handed over.
    pub fn clear(&mut self) {
        *self = Self::new(self.draft, self.item_max);
    }

    /// Bytes that were not handed over.
    pub fn bytes(&self) -> usize {
        let sealed: usize = self.sealed.iter().map(Buffer::len).sum();
        sealed + self.open.len().saturating_sub(HEADER + self.split)
    }
}

#[cfg(test)]
mod tests {
    use tenon_proto::lean::ByteOrder;

    use super::*;

    const NUMBER: u32 = 7;

    fn packer() -> ItemPacker {
        let draft = ItemDraft::new(ByteOrder::Little, NUMBER, false);
        ItemPacker::new(draft, 200 << 10)
    }

    fn push(packer: &mut ItemPacker, length: usize) {
        push_bytes(packer, &vec![length as u8; length]).expect("it is short enough");
    }

    /// Pushes an item of a fixed length.
    fn push_bytes(packer: &mut ItemPacker, bytes: &[u8]) -> Result<(), CallError> {
        packer.push(|out| {
            out.block_of(bytes.len()).put_bytes(0, bytes);
            Ok(())
        })
    }

    /// Takes the next message; returns the bytes of its content.
    fn take(packer: &mut ItemPacker, all: bool) -> Option<Vec<u8>> {
        let message = packer.next(all)?;
        assert!(message.len() <= ITEM_MAX && message.len() % 8 == 0);
        let length = u32::from_le_bytes(*message.as_slice()[12..].first_chunk().unwrap());
        let content = message.as_slice()[HEADER..][..length as usize].to_vec();
        message.clear();
        packer.note_handed_over();
        Some(content)
    }

    fn lengths(packer: &mut ItemPacker, all: bool) -> Vec<usize> {
        let contents = std::iter::from_fn(|| take(packer, all));
        contents.map(|content| content.len()).collect()
    }

    #[test]
    fn short_items_share_a_message_each_behind_a_multiple_of_8_bytes() {
        let mut packer = packer();
        for length in [3, 8, 1] {
            push(&mut packer, length);
        }
        assert!(take(&mut packer, false).is_none(), "others may follow");
        let content = take(&mut packer, true).unwrap();
        assert_eq!(
            content,
            b"\x03\x03\x03\0\0\0\0\0\x08\x08\x08\x08\x08\x08\x08\x08\x01"
        );
        assert!(take(&mut packer, true).is_none());
    }

    #[test]
    fn a_message_is_full_when_another_item_as_long_has_no_room() {
        let mut packer = packer();
        push(&mut packer, 20 << 10);
        push(&mut packer, 20 << 10);
        assert_eq!(lengths(&mut packer, false), []);
        push(&mut packer, 20 << 10);
        assert_eq!(lengths(&mut packer, false), [60 << 10]);
        push(&mut packer, ITEM_MAX - HEADER);
        assert_eq!(lengths(&mut packer, false), [ITEM_MAX - HEADER]);
        push(&mut packer, 8);
        push(&mut packer, 40 << 10);
        assert_eq!(lengths(&mut packer, false), [8 + (40 << 10)]);
        push(&mut packer, 8);
        push(&mut packer, ITEM_MAX - HEADER);
        assert_eq!(lengths(&mut packer, false), [8, ITEM_MAX - HEADER]);
    }

    #[test]
    fn a_long_item_goes_in_parts_and_in_no_message_with_others() {
        let part = ITEM_MAX - HEADER;
        let mut packer = packer();
        for _ in 0..2 {
            push(&mut packer, 8);
            push(&mut packer, 2 * part + 5);
            push(&mut packer, 8);
        }
        let expected = [8, part, part, 5, 8, part, part, 5, 8];
        assert_eq!(
            lengths(&mut packer, true),
            [&expected[..4], &[16], &expected[5..]].concat()
        );
    }

    #[test]
    fn an_item_without_bytes_has_a_message_of_its_own() {
        let mut packer = packer();
        push(&mut packer, 0);
        push(&mut packer, 0);
        assert_eq!(lengths(&mut packer, false), [0, 0]);
    }

    #[test]
    fn an_item_that_is_refused_leaves_those_before_as_they_were() {
        let mut packer = packer();
        push(&mut packer, 3);
        let error = packer
            .push(|out| out.put_opaque(b"12345", 4))
            .expect_err("5 bytes");
        assert!(matches!(error, CallError::Arguments(_)), "{error}");
        let long = vec![0; (200 << 10) + 1];
        let error = push_bytes(&mut packer, &long).expect_err("too long");
        assert!(
            matches!(error, CallError::TooLargeForPeer { .. }),
            "{error}"
        );
        assert_eq!(take(&mut packer, true).unwrap(), [3; 3]);
        assert!(packer.push(|out| out.put_opaque(b"12345", 4)).is_err());
        assert!(take(&mut packer, true).is_none());
    }
}
