//! The context that machine code and its helpers share. Machine code makes it where it is needed; the cursor itself
//! is passed between them in a register.

use tenon_wire::Buffer;

use super::given::MAX_COVERED;
use crate::frame::arena::FrameArena;
use crate::frame::array::WriteRange;

/// The fields that both directions have, at the same offsets.
#[repr(C)]
pub(super) struct ContextHeader {
    /// Behind the last byte that may be read or written.
    pub end: *mut u8,
    /// Beginning of the message: positions count from here.
    pub base: *mut u8,
    /// Levels of recursive types that may still be entered.
    pub depth_left: u32,
}

/// Context of an encoder: the bytes that machine code writes lie in the spare room of a buffer until all is done.
#[repr(C)]
pub(super) struct EncodeContext<'e> {
    pub header: ContextHeader,
    pub out: &'e mut Buffer,
    /// Bytes that the message may have, if a program in C holds the value; otherwise not set.
    pub limit: u64,
}

impl EncodeContext<'_> {
    /// Makes room for `bytes` more behind `at`, and returns the address that `at` has then.
    pub fn grow(&mut self, at: *mut u8, bytes: usize) -> *mut u8 {
        let before = at as usize - self.header.base as usize;
        let WriteRange { at, end } = WriteRange::grown(self.out, at, bytes);
        self.header.base = at.wrapping_sub(before);
        self.header.end = end;
        at
    }

    /// As [`grow`](Self::grow), of a value that a program in C holds. `None` if the message has become larger than it may
    /// be, but for the room that several operations get at once, or there is no memory.
    pub fn try_grow(&mut self, at: *mut u8, bytes: usize) -> Option<*mut u8> {
        let before = at as usize - self.header.base as usize;
        let limit = (self.limit as usize).saturating_add(MAX_COVERED as usize);
        if before.saturating_add(bytes) > limit {
            return None;
        }
        let WriteRange { at, end } = WriteRange::try_grown(self.out, at, bytes)?;
        self.header.base = at.wrapping_sub(before);
        self.header.end = end;
        Some(at)
    }
}

/// Context of a decoder. The caller takes the position and the budget over only when all is done.
#[repr(C)]
pub(super) struct DecodeContext<'a, M = FrameArena> {
    pub header: ContextHeader,
    /// All ones in strict mode.
    pub strict: u64,
    /// Bytes of memory that are still paid for.
    pub memory_left: u64,
    /// Gives memory for what the value points to.
    pub arena: &'a mut M,
}

impl<M> DecodeContext<'_, M> {
    /// Bytes that are left to read behind `at`.
    #[inline(always)]
    pub fn left(&self, at: *const u8) -> usize {
        self.header.end as usize - at as usize
    }

    /// Takes the price of memory out of the budget, as
    /// [`Decoder::charge`](tenon_wire::Decoder::charge) does.
    #[inline(always)]
    pub fn charge(&mut self, price: u64) -> Option<()> {
        self.memory_left = self.memory_left.checked_sub(price)?;
        Some(())
    }
}
