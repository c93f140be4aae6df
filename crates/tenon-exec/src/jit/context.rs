//! What machine code and its helpers share. Machine code makes it where it is needed; the cursor
//! itself goes from one to the other in a register.

use tenon_wire::Buffer;

use crate::frame::arena::Arena;
use crate::frame::array::Room;

/// What both directions have, at the same offsets.
#[repr(C)]
pub(super) struct Cursor {
    /// Behind the last byte that may be read or written.
    pub end: *mut u8,
    /// Where the message begins: positions count from here.
    pub base: *mut u8,
    /// Levels of recursive types that may still be entered.
    pub depth_left: u32,
}

/// Of an encoder: what machine code writes lies in the spare room of a buffer until all is done.
#[repr(C)]
pub(super) struct Encoding<'e> {
    pub cursor: Cursor,
    pub out: &'e mut Buffer,
}

impl Encoding<'_> {
    /// Makes room for `bytes` more behind `at`, and gives where that is now.
    pub fn grow(&mut self, at: *mut u8, bytes: usize) -> *mut u8 {
        let before = at as usize - self.cursor.base as usize;
        let Room { at, end } = Room::grown(self.out, at, bytes);
        self.cursor.base = at.wrapping_sub(before);
        self.cursor.end = end;
        at
    }
}

/// Of a decoder. Who has called it goes on from here only when all is done.
#[repr(C)]
pub(super) struct Decoding<'a> {
    pub cursor: Cursor,
    /// All ones if nothing is forgiven.
    pub strict: u64,
    /// Bytes of memory that are still paid for.
    pub memory_left: u64,
    pub arena: &'a mut Arena,
}

impl Decoding<'_> {
    /// Bytes that are left to read behind `at`.
    #[inline(always)]
    pub fn left(&self, at: *const u8) -> usize {
        self.cursor.end as usize - at as usize
    }

    /// Takes the price of memory out of what is paid for, as
    /// [`Decoder::pay`](tenon_wire::Decoder::pay) does.
    #[inline(always)]
    pub fn pay(&mut self, price: u64) -> Option<()> {
        self.memory_left = self.memory_left.checked_sub(price)?;
        Some(())
    }
}
