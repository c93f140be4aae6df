//! Reserved blocks: bytes of a fixed number that one check makes room for, and the items in them.

use crate::item::{Blittable, Place, Scalar};
use crate::representation::Representation;

/// A fixed number of bytes with one check for room, or for bytes received, and what lies in them. Its parts follow
/// each other without a gap, from its beginning to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct ReservedBlock {
    /// Bytes on the wire.
    pub bytes: u32,
    /// In the order of the wire.
    pub parts: Vec<BlockPart>,
}

/// A part of a reserved block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockPart {
    /// Zeros that fill a hole.
    Hole(BlockHole),
    /// An item.
    Item(FixedItem),
}

/// Zeros between items, so that what follows is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHole {
    /// Offset in the block.
    pub offset: u32,
    /// Number of zeros.
    pub bytes: u32,
}

/// An item of fixed size, which lies in a reserved block.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedItem {
    /// Place in memory.
    pub place: Place,
    /// Offset in the block.
    pub offset: u32,
    /// The kind of item.
    pub kind: FixedKind,
}

/// The kinds of items of fixed size.
#[derive(Debug, Clone, PartialEq)]
pub enum FixedKind {
    /// One number, boolean or enum.
    Put {
        /// Its type.
        scalar: Scalar,
    },
    /// An array of a fixed number of scalars.
    PutArray {
        /// Type of each.
        scalar: Scalar,
        /// Number of them.
        count: u32,
    },
    /// A fixed number of opaque bytes, padded as the representation says.
    Copy {
        /// Number of bytes, without padding.
        bytes: u32,
    },
    /// Items that lie on the wire as C has them in memory, without a hole, but for the order of the
    /// bytes of each number.
    Blit {
        /// The numbers that one of them consists of.
        item: Blittable,
        /// Number of them, one behind the other.
        count: u32,
    },
}

impl ReservedBlock {
    /// Makes a block of `bytes` bytes that is one item.
    pub fn of(place: Place, kind: FixedKind, bytes: u32) -> Self {
        let offset = 0;
        Self {
            bytes,
            parts: vec![BlockPart::Item(FixedItem {
                place,
                offset,
                kind,
            })],
        }
    }

    /// Makes a block of `bytes` bytes that is one hole.
    pub fn hole(bytes: u32) -> Self {
        let offset = 0;
        Self {
            bytes,
            parts: vec![BlockPart::Hole(BlockHole { offset, bytes })],
        }
    }

    /// The items, in the order of the wire.
    pub fn items(&self) -> impl Iterator<Item = &FixedItem> {
        self.parts.iter().filter_map(BlockPart::item)
    }

    /// The holes, in the order of the wire.
    pub fn holes(&self) -> impl Iterator<Item = BlockHole> {
        self.parts.iter().filter_map(|part| match part {
            BlockPart::Hole(hole) => Some(*hole),
            BlockPart::Item(_) => None,
        })
    }

    /// Returns the item that the block consists of, if it is one item and nothing else.
    pub fn only(&self) -> Option<&FixedItem> {
        match self.parts.as_slice() {
            [BlockPart::Item(only)] => Some(only),
            _ => None,
        }
    }

    /// Returns the scalar that the block consists of, if it is one and nothing else, and its place.
    pub fn only_scalar(&self) -> Option<(&Place, Scalar)> {
        let only = self.only()?;
        match only.kind {
            FixedKind::Put { scalar } => Some((&only.place, scalar)),
            _ => None,
        }
    }

    /// Appends a block. `None`, and nothing is done, if the two have more than `max` bytes.
    pub(crate) fn append(&mut self, behind: &mut Self, max: u32) -> Option<()> {
        let bytes = self.bytes.checked_add(behind.bytes);
        let bytes = bytes.filter(|bytes| *bytes <= max)?;
        for mut part in behind.parts.drain(..) {
            *part.offset_mut() += self.bytes;
            self.parts.push(part);
        }
        self.bytes = bytes;
        Some(())
    }

    /// Appends a part, which takes so many bytes.
    pub fn push(&mut self, mut part: BlockPart, bytes: u32) {
        *part.offset_mut() = self.bytes;
        self.bytes += bytes;
        self.parts.push(part);
    }

    /// Returns the same block as seen from outside of the item at `place`, which it lies in.
    pub(crate) fn inside(&self, place: &Place) -> Self {
        let mut block = self.clone();
        for item in block.items_mut() {
            item.place = place.then(&item.place);
        }
        block
    }

    pub(crate) fn items_mut(&mut self) -> impl Iterator<Item = &mut FixedItem> {
        self.parts.iter_mut().filter_map(|part| match part {
            BlockPart::Item(item) => Some(item),
            BlockPart::Hole(_) => None,
        })
    }
}

impl BlockPart {
    /// Returns the item, if it is one.
    pub fn item(&self) -> Option<&FixedItem> {
        match self {
            Self::Item(item) => Some(item),
            Self::Hole(_) => None,
        }
    }

    /// Returns the offset in the block.
    pub fn offset(&self) -> u32 {
        match self {
            Self::Hole(hole) => hole.offset,
            Self::Item(item) => item.offset,
        }
    }

    /// Returns the bytes on the wire, padding included.
    pub fn bytes(&self, representation: &Representation) -> u64 {
        match self {
            Self::Hole(hole) => hole.bytes.into(),
            Self::Item(item) => item.bytes(representation),
        }
    }

    fn offset_mut(&mut self) -> &mut u32 {
        match self {
            Self::Hole(hole) => &mut hole.offset,
            Self::Item(item) => &mut item.offset,
        }
    }
}

impl FixedItem {
    /// Returns the bytes on the wire, padding included.
    pub fn bytes(&self, representation: &Representation) -> u64 {
        match &self.kind {
            FixedKind::Put { scalar } => representation.bytes(*scalar).into(),
            FixedKind::PutArray { scalar, count } => {
                u64::from(representation.bytes(*scalar)) * u64::from(*count)
            }
            FixedKind::Copy { bytes } => representation.padded(u64::from(*bytes)),
            FixedKind::Blit { item, count } => item.bytes() * u64::from(*count),
        }
    }
}
