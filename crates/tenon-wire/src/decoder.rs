//! The cursor that reads bytes nobody has checked yet.

use crate::{DecodeError, DecodeErrorKind};

/// What a value from outside may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nesting through recursive types.
    pub depth: u32,
    /// Bytes of memory that each byte received pays for.
    pub memory_per_byte: usize,
    /// Bytes of memory granted to every message beside that.
    pub memory_base: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            memory_per_byte: 64,
            memory_base: 64 << 10,
        }
    }
}

/// How much a decoder forgives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecodeMode {
    /// As libtirpc reads: padding may hold anything, a boolean that is not zero is true, small
    /// integers are truncated, bytes behind the value are ignored.
    #[default]
    Lenient,
    /// As RFC 4506 defines.
    Strict,
}

/// Reads a value out of received bytes. Each length is held against what is really there
/// before anything is allocated.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    mode: DecodeMode,
    depth_left: u32,
    memory_left: usize,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes` leniently within the default [`Limits`].
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with(bytes, DecodeMode::default(), Limits::default())
    }

    /// Reads `bytes` in `mode` within `limits`.
    pub fn with(bytes: &'a [u8], mode: DecodeMode, limits: Limits) -> Self {
        Self {
            bytes,
            at: 0,
            mode,
            depth_left: limits.depth,
            memory_left: bytes
                .len()
                .saturating_mul(limits.memory_per_byte)
                .saturating_add(limits.memory_base),
        }
    }

    /// How much is forgiven.
    pub fn mode(&self) -> DecodeMode {
        self.mode
    }

    /// Whether nothing is forgiven.
    #[inline(always)]
    pub fn is_strict(&self) -> bool {
        matches!(self.mode, DecodeMode::Strict)
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// All bytes not read yet; they stay unread.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Levels of recursive types that may still be entered.
    pub fn depth_left(&self) -> u32 {
        self.depth_left
    }

    /// Bytes of memory that are still paid for.
    pub fn memory_left(&self) -> usize {
        self.memory_left
    }

    /// An error of `kind` at the present position.
    #[cold]
    pub fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(kind, self.at)
    }

    /// A block whose size the interface fixes; one check for all items in it.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn block<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        match self.bytes[self.at..].first_chunk() {
            Some(block) => {
                self.at += N;
                Ok(block)
            }
            None => Err(self.truncated(N as u64)),
        }
    }

    /// The next `bytes`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`].
    #[inline(always)]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes[self.at..].get(..bytes) {
            Some(taken) => {
                self.at += bytes;
                Ok(taken)
            }
            None => Err(self.truncated(bytes as u64)),
        }
    }

    /// Reads a count of elements and holds it against `bound` and against the bytes that
    /// are left, of which every element takes at least `wire_min`.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooLong`], [`DecodeErrorKind::Truncated`].
    #[inline]
    pub fn count(&mut self, bound: u32, wire_min: usize) -> Result<usize, DecodeError> {
        let start = self.at;
        let length = u32::from_be_bytes(*self.block()?);
        if length > bound {
            return Err(DecodeError::new(
                DecodeErrorKind::TooLong { length, bound },
                start,
            ));
        }
        let needed = u64::from(length) * wire_min as u64;
        if needed > self.left() as u64 {
            return Err(self.truncated(needed));
        }
        Ok(length as usize)
    }

    /// Takes the memory of `count` items of `size` bytes out of what the message has paid for.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooMuchMemory`].
    #[inline]
    pub fn pay(&mut self, count: usize, size: usize) -> Result<(), DecodeError> {
        // An item without size on the wire or in memory still costs the time to make it.
        let price = count.saturating_mul(size.max(1));
        match self.memory_left.checked_sub(price) {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::TooMuchMemory)),
        }
    }

    /// Enters a value of a recursive type; [`leave`](Self::leave) it afterwards.
    ///
    /// # Errors
    /// [`DecodeErrorKind::TooDeep`].
    pub fn enter(&mut self) -> Result<(), DecodeError> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::TooDeep)),
        }
    }

    /// Leaves what was entered.
    pub fn leave(&mut self) {
        self.depth_left += 1;
    }

    /// Ends a message: in strict mode nothing may be left.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Trailing`].
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.is_strict() && self.left() > 0 {
            return Err(self.error(DecodeErrorKind::Trailing(self.left())));
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn truncated(&self, needed: u64) -> DecodeError {
        self.error(DecodeErrorKind::Truncated {
            needed,
            left: self.left() as u64,
        })
    }
}
