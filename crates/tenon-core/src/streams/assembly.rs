//! Whole items out of what was received of a stream, whose messages may have parts of them.

use std::ops::Range;

use tenon_proto::lean::ByteOrder;
use tenon_wire::{Buffer, DecodeError, Lean};

use super::received::ReceivedItems;
use crate::caller::Decoding;
use crate::error::CallError;
use crate::lean_input::LeanInput;

/// Bytes of credit that are given back together.
const GIVEN_BACK_TOGETHER: u64 = 16 << 10;

/// Bytes of the count in front of opaque data in the lean representation, which is followed by the data itself.
pub(super) const COUNT: usize = 4;

/// What a reader has taken of a stream: items that have come, the one that it reads, and the credit that is to be given
/// back for them.
#[derive(Debug, Default)]
pub struct ItemAssembly {
    received: ReceivedItems,
    /// The first parts of an item that comes in several, or all of them.
    joined: Buffer,
    /// True if the item that was taken last is [joined](Self::joined).
    is_joined: bool,
    /// Bytes of the item that was taken last, if it came in one part.
    place: Range<usize>,
    /// Bytes of that item that are to be read, if items are bytes.
    unread: Range<usize>,
    /// Bytes of credit of items that were taken.
    credit: u64,
}

/// An item.
#[derive(Debug, Clone, Copy)]
pub struct WholeItem<'a> {
    /// The value in the lean representation.
    pub bytes: &'a [u8],
    /// The order of its bytes.
    pub order: ByteOrder,
}

impl ItemAssembly {
    /// Takes the next item, of at most `limit` bytes; `None` if it has not come whole.
    ///
    /// # Errors
    /// It is larger.
    pub fn next(&mut self, limit: usize) -> Result<Option<WholeItem<'_>>, CallError> {
        self.unread = 0..0;
        if std::mem::take(&mut self.is_joined) {
            self.joined = Buffer::default();
        }
        while let Some(part) = self.received.take() {
            self.credit += part.size;
            if !part.has_more && self.joined.is_empty() {
                self.place = part.place;
                return Ok(Some(self.item()));
            }
            let bytes = self.received.bytes(&part.place);
            if self.joined.len() + bytes.len() > limit {
                return Err(CallError::ItemTooLarge { limit });
            }
            self.joined.extend(bytes);
            if !part.has_more {
                self.is_joined = true;
                return Ok(Some(self.item()));
            }
        }
        Ok(None)
    }

    /// The item that was taken last.
    fn item(&self) -> WholeItem<'_> {
        WholeItem {
            bytes: match self.is_joined {
                true => self.joined.as_slice(),
                false => self.received.bytes(&self.place),
            },
            order: self.received.order(),
        }
    }

    /// Returns the place for further items, if all that are there were taken.
    pub fn room(&mut self) -> &mut ReceivedItems {
        &mut self.received
    }

    /// Takes the bytes of credit that are to be given back.
    pub fn take_credit(&mut self) -> u64 {
        std::mem::take(&mut self.credit)
    }

    /// Takes them if they are so many that they are worth a message.
    pub fn take_much_credit(&mut self) -> Option<u64> {
        (self.credit >= GIVEN_BACK_TOGETHER).then(|| self.take_credit())
    }

    // ---- Items that are opaque data ----

    /// Takes the next item, which is `opaque<max>`, so that its bytes can be read; returns false if it has not come whole.
    ///
    /// # Errors
    /// It has more than `limit` bytes, or is something else.
    pub fn next_bytes(
        &mut self,
        limit: usize,
        max: u32,
        decoding: Decoding,
    ) -> Result<bool, CallError> {
        let Some(item) = self.next(limit)? else {
            return Ok(false);
        };
        let length: usize =
            decoding.decode_lean::<_, CallError>(item.bytes, item.order, |input| {
                opaque_length(input, max)
            })?;
        self.unread = COUNT..COUNT + length;
        Ok(true)
    }

    /// Returns the bytes of the item that were not read.
    pub fn unread(&self) -> &[u8] {
        match self.unread.is_empty() {
            // The item may be gone.
            true => &[],
            false => &self.item().bytes[self.unread.clone()],
        }
    }

    /// Notes that so many of them were read.
    pub fn consume(&mut self, bytes: usize) {
        self.unread.start = (self.unread.start + bytes).min(self.unread.end);
    }

    /// Takes them out as an item of their own: what is left for a reader of items.
    #[cold]
    pub fn take_unread(&mut self) -> Option<Buffer> {
        if self.unread.is_empty() {
            return None;
        }
        let mut item = Buffer::default();
        let encoded =
            tenon_wire::Encoder::<Lean>::over(&mut item).put_opaque(self.unread(), u32::MAX);
        self.unread = 0..0;
        encoded.is_ok().then_some(item)
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
    use tenon_proto::connection::{ReceivedItem, StreamId};
    use tenon_wire::Encoder;

    use super::*;

    fn item<'m>(content: &'m [u8], has_more: bool) -> ReceivedItem<'m> {
        ReceivedItem {
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

    #[test]
    fn items_in_one_part_and_in_several_are_whole() {
        let mut assembly = ItemAssembly::default();
        for (content, has_more) in [(b"short".as_slice(), false), (b"two ", true)] {
            assembly.room().push(&item(content, has_more));
        }
        let first = assembly
            .next(100)
            .expect("a short item")
            .map(|item| item.bytes.to_vec());
        assert_eq!(first.as_deref(), Some(b"short".as_slice()));
        assert!(assembly.next(100).expect("a short item").is_none());
        let mut rest = ReceivedItems::default();
        rest.push(&item(b"parts", false));
        *assembly.room() = rest;
        let second = assembly
            .next(100)
            .expect("a short item")
            .map(|item| item.bytes.to_vec());
        assert_eq!(second.as_deref(), Some(b"two parts".as_slice()));
        assert_eq!(assembly.take_credit(), 3 * 16 + 14);
    }

    #[test]
    fn an_item_in_parts_that_is_too_long_is_an_error() {
        let mut assembly = ItemAssembly::default();
        assembly.room().push(&item(b"12345678", true));
        assembly.room().push(&item(b"9", false));
        let error = assembly.next(8).expect_err("9 bytes");
        assert!(
            matches!(error, CallError::ItemTooLarge { limit: 8 }),
            "{error}"
        );
    }

    #[test]
    fn bytes_are_read_in_steps_and_the_rest_is_an_item() {
        let mut assembly = ItemAssembly::default();
        assembly
            .room()
            .push(&item(opaque(b"some bytes").as_slice(), false));
        let next = |assembly: &mut ItemAssembly| {
            let next = assembly.next_bytes(100, 10, Decoding::default());
            next.expect("opaque data")
        };
        assert!(next(&mut assembly));
        assert_eq!(assembly.unread(), b"some bytes");
        assembly.consume(5);
        assert_eq!(assembly.unread(), b"bytes");
        assert_eq!(
            assembly.take_unread().expect("5 bytes").as_slice(),
            opaque(b"bytes").as_slice()
        );
        assert!(assembly.unread().is_empty());
        assert!(assembly.take_unread().is_none());
        assert!(!next(&mut assembly));
    }

    #[test]
    fn an_item_that_breaks_its_bound_or_is_cut_off_is_an_error() {
        for (content, max) in [
            (opaque(b"12345").as_slice(), 4),
            (&[9, 0, 0, 0, 1][..], 100),
        ] {
            let mut assembly = ItemAssembly::default();
            assembly.room().push(&item(content, false));
            let read = assembly.next_bytes(100, max, Decoding::default());
            assert!(read.is_err(), "{content:?} as opaque<{max}>: {read:?}");
            assert_eq!(assembly.unread(), b"");
        }
    }
}
