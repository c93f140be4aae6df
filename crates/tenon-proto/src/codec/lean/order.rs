//! The order of the bytes of numbers, which each sender chooses and says once.

use tenon_wire::Buffer;

use super::fault::Fault;

/// The order of the bytes of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order of this machine, in which everything is written.
    pub const NATIVE: Self = match cfg!(target_endian = "little") {
        true => Self::Little,
        false => Self::Big,
    };

    /// Returns whether a receiver of this machine has to swap.
    pub fn is_swapped(self) -> bool {
        self != Self::NATIVE
    }

    #[inline(always)]
    pub(super) fn u16_of(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    pub(super) fn u32_of(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    pub(super) fn u64_of(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    #[inline(always)]
    pub(crate) fn bytes_of_u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    #[inline(always)]
    /// Returns the bytes of a number in this order.
    pub fn bytes_of_u32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    #[inline(always)]
    pub(super) fn bytes_of_u64(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// Reads the numbers of a message that are not a stub's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldReader<'m> {
    pub(super) rest: &'m [u8],
    length: usize,
    pub(super) order: ByteOrder,
}

impl<'m> FieldReader<'m> {
    pub(super) fn new(bytes: &'m [u8], order: ByteOrder) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
            order,
        }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(|bytes| self.order.u16_of(bytes))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(|bytes| self.order.u32_of(bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(|bytes| self.order.u64_of(bytes))
    }

    /// Reads `length` bytes and skips the padding behind them, which is not checked. The last item may come without its
    /// padding.
    pub(super) fn bytes(&mut self, length: u32) -> Result<&'m [u8], Fault> {
        let (bytes, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or_else(|| self.is_short(length as usize))?;
        let padding = padding_of(bytes.len()).min(rest.len());
        self.rest = &rest[padding..];
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.is_short(N))?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[cold]
    fn is_short(&self, wanted: usize) -> Fault {
        Fault::Short {
            expected: wanted as u64,
            got: self.rest.len() as u64,
        }
    }
}

/// Everything in a message begins at a multiple of so many bytes.
pub(crate) const ALIGNMENT: usize = 8;

/// Bytes between what is `length` bytes long and the next multiple of [`ALIGNMENT`].
#[inline(always)]
pub(crate) fn padding_of(length: usize) -> usize {
    length.wrapping_neg() & (ALIGNMENT - 1)
}

/// Appends zeros for what is `length` bytes long.
#[inline(always)]
pub(crate) fn pad(buffer: &mut Buffer, length: usize) {
    let end = buffer.len() + padding_of(length);
    // More zeros than needed, then back: a store of fixed size instead of a call.
    *buffer.chunk() = [0; ALIGNMENT];
    buffer.truncate(end);
}
