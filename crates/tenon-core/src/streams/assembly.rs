//! Whole items out of what was received of a stream, whose messages may have parts of them.

use std::mem;
use std::ops::Range;

use tenon_wire::{Buffer, DecodeError};

use super::end::StreamEnd;
use super::received::ReceivedItems;
use crate::caller::Decoding;
use crate::error::CallError;
use crate::lean_input::{ITEM_ALIGNMENT, LeanInput};

/// Bytes of credit that are given back together.
const GIVEN_BACK_TOGETHER: u64 = 16 << 10;

/// Bytes of the count in front of opaque data in the lean representation, which is followed by the data itself.
pub(super) const COUNT: usize = 4;

/// What a reader has taken of a stream: messages that have come, the items of one of them, and the credit that is to be
/// given back for those that were read.
#[derive(Debug, Default)]
pub struct ItemAssembly {
    received: ReceivedItems,
    /// The first parts of a content that comes in several, or all of them.
    joined: Buffer,
    /// True if the content whose items are read is [joined](Self::joined), and not where it was received.
    is_joined: bool,
    /// The place of what was not read of that content.
    rest: Range<usize>,
    /// True if it has further items.
    has_items: bool,
    /// The place of bytes of its last item that are to be read, if items are bytes.
    unread: Range<usize>,
    /// Bytes of credit that are to be given back once all of its items were read.
    content_credit: u64,
    /// Bytes of credit that are to be given back.
    credit: u64,
    end: Option<StreamEnd>,
}

impl ItemAssembly {
    /// Returns whether the next item can be [read](Self::read). If not, it may be once something was
    /// [prepared](Self::prepare).
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.has_items && self.unread.is_empty()
    }

    /// Has the next item ready, which may be what is left of one of which bytes were read; returns false if none has come
    /// whole. `limit` returns how many bytes one may have that comes in parts.
    ///
    /// # Errors
    /// It has more.
    pub fn prepare(&mut self, limit: impl FnOnce() -> usize) -> Result<bool, CallError> {
        if !self.unread.is_empty() {
            self.put_back_unread();
        }
        match self.has_items {
            true => Ok(true),
            false => self.begin_content(limit()),
        }
    }

    /// Reads the next item, which is [ready](Self::is_ready). None is ready behind it if it is the last of its message.
    ///
    /// # Errors
    /// It is no such item. The stream has ended.
    #[inline]
    pub fn read<T>(
        &mut self,
        decoding: Decoding,
        decode: impl FnOnce(&mut LeanInput<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, CallError> {
        let (rest, order) = (&self.bytes()[self.rest.clone()], self.received.order());
        let mut input = LeanInput::over(rest, order, decoding.mode, decoding.limits);
        match decode(&mut input) {
            Ok(item) => match input.end_item() {
                Ok(read) => {
                    self.note_read(read);
                    Ok(item)
                }
                Err(error) => Err(self.fail(error)),
            },
            Err(error) => Err(self.fail(error)),
        }
    }

    #[inline]
    fn note_read(&mut self, bytes: usize) {
        self.rest.start += bytes;
        if self.rest.is_empty() {
            self.has_items = false;
            self.credit += mem::take(&mut self.content_credit);
        }
    }

    #[cold]
    fn fail(&mut self, error: DecodeError) -> CallError {
        self.has_items = false;
        self.end = Some(StreamEnd::Failed);
        error.into()
    }

    /// Takes the next content, all items of the one before having been read; returns false if it has not come whole.
    fn begin_content(&mut self, limit: usize) -> Result<bool, CallError> {
        if mem::take(&mut self.is_joined) {
            self.joined = Buffer::default();
        }
        while let Some(part) = self.received.take() {
            self.has_items = !part.has_more;
            if self.has_items && self.joined.is_empty() {
                self.rest = part.place;
                self.content_credit = part.size;
                break;
            }
            self.credit += part.size;
            let bytes = &self.received.bytes()[part.place];
            if self.joined.len() + bytes.len() > limit {
                self.has_items = false;
                return Err(CallError::ItemTooLarge { limit });
            }
            self.joined.extend(bytes);
            if self.has_items {
                self.is_joined = true;
                self.rest = 0..self.joined.len();
                break;
            }
        }
        Ok(self.has_items)
    }

    /// The bytes in which the content lies whose items are read.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self.is_joined {
            true => self.joined.as_slice(),
            false => self.received.bytes(),
        }
    }

    /// Returns the place for further items, if all that are there were taken.
    pub fn room(&mut self) -> &mut ReceivedItems {
        &mut self.received
    }

    /// Takes the bytes of credit that are to be given back.
    pub fn take_credit(&mut self) -> u64 {
        mem::take(&mut self.credit)
    }

    /// Takes them if they are so many that they are worth a message.
    pub fn take_much_credit(&mut self) -> Option<u64> {
        (self.credit >= GIVEN_BACK_TOGETHER).then(|| self.take_credit())
    }

    // ---- The end ----

    /// Returns whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Notes what a reader has waited for: an item is ready, there is none, or why there is none.
    pub fn note_waited(&mut self, waited: &Result<bool, CallError>) {
        self.end = StreamEnd::of(waited);
    }

    /// Checks that the stream has not ended by an error, which was returned.
    ///
    /// # Errors
    /// It has.
    pub fn check_whole(&self) -> Result<(), CallError> {
        match self.end {
            Some(StreamEnd::Failed) => Err(CallError::StreamClosed),
            _ => Ok(()),
        }
    }

    // ---- Items that are opaque data ----

    /// Takes the next item, which is [ready](Self::is_ready) and is `opaque<max>`, so that its bytes can be read.
    ///
    /// # Errors
    /// It is something else.
    pub fn read_bytes(&mut self, max: u32, decoding: Decoding) -> Result<(), CallError> {
        let begin = self.rest.start + COUNT;
        let length = self.read(decoding, |input| opaque_length(input, max))?;
        self.unread = begin..begin + length;
        Ok(())
    }

    /// Returns the bytes of the item that were not read.
    pub fn unread(&self) -> &[u8] {
        match self.unread.is_empty() {
            // The item may be gone.
            true => &[],
            false => &self.bytes()[self.unread.clone()],
        }
    }

    /// Notes that so many of them were read.
    pub fn consume(&mut self, bytes: usize) {
        self.unread.start = (self.unread.start + bytes).min(self.unread.end);
    }

    /// Makes an item of those that were not read: the next one of the content.
    #[cold]
    fn put_back_unread(&mut self) {
        let order = self.received.order();
        let mut content = Buffer::default();
        content.extend(&order.bytes_of_u32(self.unread.len() as u32));
        content.extend(self.unread());
        if self.has_items {
            content
                .room(content.len().next_multiple_of(ITEM_ALIGNMENT) - content.len())
                .fill(0);
            content.extend(&self.bytes()[self.rest.clone()]);
        }
        self.rest = 0..content.len();
        self.joined = content;
        self.is_joined = true;
        self.has_items = true;
        self.unread = 0..0;
    }
}

/// Reads an item that is opaque data, and returns the number of its bytes.
fn opaque_length(input: &mut LeanInput<'_>, max: u32) -> Result<usize, DecodeError> {
    let bytes = match input {
        LeanInput::Native(input) => input.get_opaque_ref(max)?,
        LeanInput::Swapped(input) => input.get_opaque_ref(max)?,
    };
    Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use tenon_proto::connection::{ItemMessage, StreamId};
    use tenon_proto::lean::ByteOrder;
    use tenon_wire::{DecodeMode, Encoder, Lean};

    use super::*;

    fn item<'m>(content: &'m [u8], has_more: bool) -> ItemMessage<'m> {
        ItemMessage {
            id: StreamId::own(1),
            content,
            has_more,
            order: ByteOrder::NATIVE,
            size: 16 + content.len() as u64,
        }
    }

    fn opaque(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::default();
        let mut out = Encoder::<Lean>::over(&mut buffer);
        out.put_opaque(bytes, u32::MAX).expect("a short item");
        buffer
    }

    fn assembly_of(messages: &[ItemMessage<'_>]) -> ItemAssembly {
        let mut assembly = ItemAssembly::default();
        for message in messages {
            assembly.room().push(message);
        }
        assembly
    }

    /// Reads the next item, which is `opaque<>`.
    fn next(assembly: &mut ItemAssembly) -> Result<Option<Vec<u8>>, CallError> {
        if !assembly.prepare(|| 100)? {
            return Ok(None);
        }
        let read = |input: &mut LeanInput<'_>| match input {
            LeanInput::Native(input) => input.get_opaque(u32::MAX),
            LeanInput::Swapped(input) => input.get_opaque(u32::MAX),
        };
        Ok(Some(assembly.read(Decoding::default(), read)?))
    }

    #[test]
    fn items_in_one_message_and_in_several_are_whole() {
        let mut several = opaque(b"one").as_slice().to_vec();
        several.extend([0; 1]);
        several.extend(opaque(b"other").as_slice());
        let last = opaque(b"in two parts");
        let mut assembly = assembly_of(&[item(&several, false), item(&last.as_slice()[..8], true)]);
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"one");
        assert_eq!(assembly.take_credit(), 0, "its message has another");
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"other");
        assert_eq!(assembly.take_credit(), 16 + 17);
        assert!(next(&mut assembly).unwrap().is_none());
        let mut rest = ReceivedItems::default();
        rest.push(&item(&last.as_slice()[8..], false));
        *assembly.room() = rest;
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"in two parts");
        assert!(next(&mut assembly).unwrap().is_none());
        assert_eq!(assembly.take_credit(), 2 * 16 + 16);
    }

    #[test]
    fn a_message_without_bytes_has_one_item() {
        let mut assembly = assembly_of(&[item(b"", false), item(b"", false)]);
        for _ in 0..2 {
            assert!(assembly.prepare(|| 100).unwrap());
            assembly.read(Decoding::default(), |_| Ok(())).unwrap();
        }
        assert!(!assembly.prepare(|| 100).unwrap());
    }

    #[test]
    fn bytes_behind_an_item_that_are_no_item_are_an_error() {
        let mut behind = opaque(b"four").as_slice().to_vec();
        behind.extend(b"\0\0\0\0bad");
        let mut assembly = assembly_of(&[item(&behind, false)]);
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"four");
        assert!(next(&mut assembly).is_err());
        let mut assembly = assembly_of(&[item(b"12345678", false)]);
        assert!(assembly.prepare(|| 100).unwrap());
        let without_bytes = assembly.read(Decoding::default(), |_| Ok(()));
        assert!(without_bytes.is_err(), "there would be items without end");
    }

    #[test]
    fn what_lies_between_items_is_zero_for_strict_readers() {
        for (mode, is_read) in [(DecodeMode::Strict, false), (DecodeMode::Lenient, true)] {
            let mut several = opaque(b"1").as_slice().to_vec();
            several.extend([0, 0, 1]);
            several.extend(opaque(b"2").as_slice());
            let mut assembly = assembly_of(&[item(&several, false)]);
            let decoding = Decoding {
                mode,
                ..Decoding::default()
            };
            assert!(assembly.prepare(|| 100).unwrap());
            let read = assembly.read_bytes(1, decoding);
            assert_eq!(read.is_ok(), is_read, "{mode:?}: {read:?}");
        }
    }

    #[test]
    fn an_item_in_parts_that_is_too_long_is_an_error() {
        let mut assembly = assembly_of(&[item(b"12345678", true), item(b"9", false)]);
        let error = assembly.prepare(|| 8).expect_err("9 bytes");
        assert!(!assembly.is_ready(), "nothing of it is read");
        assert!(
            matches!(error, CallError::ItemTooLarge { limit: 8 }),
            "{error}"
        );
    }

    #[test]
    fn bytes_are_read_in_steps_and_the_rest_is_an_item() {
        let mut several = opaque(b"some bytes").as_slice().to_vec();
        several.extend([0; 2]);
        several.extend(opaque(b"other").as_slice());
        let mut assembly = assembly_of(&[item(&several, false)]);
        assert!(assembly.prepare(|| 100).unwrap());
        assembly.read_bytes(10, Decoding::default()).unwrap();
        assert_eq!(assembly.unread(), b"some bytes");
        assembly.consume(5);
        assert_eq!(assembly.unread(), b"bytes");
        assert!(!assembly.is_ready());
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"bytes");
        assert!(assembly.unread().is_empty());
        assert_eq!(next(&mut assembly).unwrap().unwrap(), b"other");
        assert!(next(&mut assembly).unwrap().is_none());
        assert_eq!(assembly.take_credit(), 16 + 25);
    }

    #[test]
    fn an_item_that_breaks_its_bound_or_is_cut_off_is_an_error() {
        for (content, max) in [
            (opaque(b"12345").as_slice(), 4),
            (&[9, 0, 0, 0, 1][..], 100),
        ] {
            let mut assembly = assembly_of(&[item(content, false)]);
            assert!(assembly.prepare(|| 100).unwrap());
            let read = assembly.read_bytes(max, Decoding::default());
            assert!(read.is_err(), "{content:?} as opaque<{max}>: {read:?}");
            assert_eq!(assembly.unread(), b"");
        }
    }
}
