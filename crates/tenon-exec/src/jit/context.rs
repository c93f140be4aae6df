//! The context that machine code and its helpers share. Machine code makes it where it is needed; the cursor itself
//! is passed between them in a register.

use tenon_wire::Buffer;

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
}

/// Context of a decoder. The caller takes the position and the budget over only when all is done.
#[repr(C)]
pub(super) struct DecodeContext<'a> {
    pub header: ContextHeader,
    /// All ones in strict mode.
    pub strict: u64,
    /// Bytes of memory that are still paid for.
    pub memory_left: u64,
    pub arena: &'a mut FrameArena,
}

impl DecodeContext<'_> {
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
