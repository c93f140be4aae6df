//! Representations: how items lie on the wire. A representation is data. Lowering and passes read
//! it, and engines and back ends find everything that follows from it in the operations of a plan
//! and in the few answers below; so a new one needs no new code.

use crate::item::Scalar;

/// Describes how items lie on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Representation {
    /// Its short name.
    pub name: &'static str,
    /// The order of the bytes of a number.
    pub order: Order,
    /// True if a boolean or an integer of 8 or 16 bits takes a whole word of four bytes, as in
    /// XDR, and not the bytes that it needs.
    pub words: bool,
    /// True if numbers lie at multiples of their size, counted from the beginning of the message,
    /// and values of fixed size as C lays them out.
    pub aligned: bool,
    /// Opaque data and strings are padded with zeros to a multiple of so many bytes.
    pub padding: u32,
    /// The encoding of linked lists.
    pub lists: Lists,
}

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The most significant byte first.
    Big,
    /// The least significant byte first.
    Little,
    /// That of the sender's processor. The receiver learns it before the first message.
    Sender,
}

/// The encoding of linked lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lists {
    /// A flag in front of each element says that there is one (RFC 4506 section 4.19).
    Flagged,
    /// As an array: a count, then the elements.
    Counted,
}

/// Bytes that a value takes on the wire, and the alignment of its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireExtent {
    /// Bytes, a multiple of `align`.
    pub bytes: u64,
    /// 1, 2, 4 or 8.
    pub align: u32,
}

/// Bytes of the count of a counted item, in every representation.
pub const COUNT_BYTES: u32 = 4;

/// Alignment of the beginning of a message.
pub const MESSAGE_ALIGN: u32 = 8;

impl Representation {
    /// External Data Representation (RFC 4506).
    pub const XDR: Self = Self {
        name: "xdr",
        order: Order::Big,
        words: true,
        aligned: false,
        padding: 4,
        lists: Lists::Flagged,
    };

    /// The representation between two Tenon peers: numbers as they lie in the sender's memory.
    pub const LEAN: Self = Self {
        name: "lean",
        order: Order::Sender,
        words: false,
        aligned: true,
        padding: 1,
        lists: Lists::Counted,
    };

    /// Bytes of an item.
    pub fn bytes(&self, scalar: Scalar) -> u32 {
        match scalar {
            Scalar::F128 => 16,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
            Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::Enum(_) => 4,
            Scalar::I16 | Scalar::U16 if !self.words => 2,
            Scalar::I8 | Scalar::U8 | Scalar::Bool if !self.words => 1,
            Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 | Scalar::Bool => 4,
        }
    }

    /// Returns the alignment of an item's position.
    pub fn align(&self, scalar: Scalar) -> u32 {
        match scalar {
            Scalar::F128 => 1,
            scalar => self.align_of(self.bytes(scalar)),
        }
    }

    /// Returns the alignment of the position of a number of so many bytes.
    fn align_of(&self, bytes: u32) -> u32 {
        match self.aligned {
            true => bytes,
            false => 1,
        }
    }

    /// Returns the alignment of the position of a count.
    pub fn count_align(&self) -> u32 {
        self.align_of(COUNT_BYTES)
    }

    /// Bytes of opaque data with its padding.
    pub fn padded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.padding.into())
    }

    /// Returns whether not every pattern of bits on the wire is a value, so that reading one may fail.
    pub fn is_checked(&self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Bool | Scalar::Enum(_) => true,
            Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => self.words,
            Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => false,
            Scalar::F32 | Scalar::F64 | Scalar::F128 => false,
        }
    }
}

impl WireExtent {
    /// Of nothing.
    pub(crate) const NOTHING: Self = Self { bytes: 0, align: 1 };

    /// Of so many of them.
    pub(crate) fn times(self, count: u32) -> Self {
        let bytes = self.bytes.saturating_mul(count.into());
        Self { bytes, ..self }
    }

    /// Both, the second one at the next position that it may have.
    pub(crate) fn then(self, next: Self) -> Self {
        let start = up_to_multiple(self.bytes, next.align);
        Self {
            bytes: start.saturating_add(next.bytes),
            align: self.align.max(next.align),
        }
    }

    /// As many bytes as the next one of its kind begins behind it.
    pub(crate) fn closed(self) -> Self {
        let bytes = up_to_multiple(self.bytes, self.align);
        Self { bytes, ..self }
    }
}

fn up_to_multiple(bytes: u64, of: u32) -> u64 {
    bytes
        .checked_next_multiple_of(of.into())
        .unwrap_or(u64::MAX)
}
