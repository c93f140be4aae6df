//! Items of a stream that were received, and wait for their reader.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use tenon_proto::connection::ItemMessage;
use tenon_proto::lean::ByteOrder;

/// Items of a stream that were received and not taken, one behind the other.
#[derive(Debug)]
pub struct ReceivedItems {
    bytes: Vec<u8>,
    /// The first byte that was not taken.
    begin: usize,
    parts: VecDeque<ItemPart>,
    order: ByteOrder,
}

/// An item, or a part of one.
#[derive(Debug, Clone, Copy)]
struct ItemPart {
    length: usize,
    has_more: bool,
    size: u64,
}

/// An item that was taken, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TakenPart {
    /// Its place in the [bytes](ReceivedItems::bytes), as long as nothing else is taken.
    pub place: Range<usize>,
    /// True if the item goes on in the next part.
    pub has_more: bool,
    /// Bytes of credit that it took, which are to be given back.
    pub size: u64,
}

impl Default for ReceivedItems {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            begin: 0,
            parts: VecDeque::new(),
            order: ByteOrder::NATIVE,
        }
    }
}

impl ReceivedItems {
    /// Takes in an item that was received, or a part of one.
    pub fn push(&mut self, item: &ItemMessage<'_>) {
        self.order = item.order;
        self.bytes.extend_from_slice(item.content);
        self.parts.push_back(ItemPart {
            length: item.content.len(),
            has_more: item.has_more,
            size: item.size,
        });
    }

    /// Returns whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The order of the bytes of the items.
    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Takes the next item, or the next part of one.
    pub(super) fn take(&mut self) -> Option<TakenPart> {
        let ItemPart {
            length,
            has_more,
            size,
        } = self.parts.pop_front()?;
        let place = self.begin..self.begin + length;
        self.begin = place.end;
        Some(TakenPart {
            place,
            has_more,
            size,
        })
    }

    /// Returns the bytes in which what was taken lies.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Moves everything that is there into `empty`, and its memory here.
    pub(super) fn move_to(&mut self, empty: &mut Self) {
        empty.bytes.clear();
        empty.begin = 0;
        mem::swap(self, empty);
    }
}
