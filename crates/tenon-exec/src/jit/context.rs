//! What machine code and its helpers share. The cursor itself goes from one to the other in a
//! register.

use std::marker::PhantomData;

use tenon_wire::{Buffer, Decoder, Encoder, Representation};

use crate::frame::arena::Arena;

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
    out: &'e mut Buffer,
}

impl<'e> Encoding<'e> {
    /// With the room that there is; and where the first byte is written.
    #[inline(always)]
    pub fn new<R: Representation>(out: &'e mut Encoder<'_, R>) -> (Self, *mut u8) {
        let depth_left = out.depth_left();
        let (out, start) = out.parts();
        let before = out.len() - start;
        let room = out.spare(0).as_mut_ptr_range();
        let cursor = Cursor {
            end: room.end,
            base: room.start.wrapping_sub(before),
            depth_left,
        };
        (Self { cursor, out }, room.start)
    }

    /// Makes room for `bytes` more behind `at`, and gives where that is now.
    pub fn grow(&mut self, at: *mut u8, bytes: usize) -> *mut u8 {
        let first = self.first();
        let written = at as usize - first as usize;
        let before = first as usize - self.cursor.base as usize;
        let start = self.out.len();
        // What was written is kept.
        self.out.advance(written);
        self.out.spare(bytes);
        self.out.truncate(start);
        let room = self.out.spare(0).as_mut_ptr_range();
        self.cursor.base = room.start.wrapping_sub(before);
        self.cursor.end = room.end;
        room.start.wrapping_add(written)
    }

    /// Keeps what was written up to `behind`, or nothing if that is null. Whether it was kept.
    #[inline(always)]
    pub fn finish(mut self, behind: *mut u8) -> bool {
        if behind.is_null() {
            return false;
        }
        let written = behind as usize - self.first() as usize;
        self.out.advance(written);
        true
    }

    /// Where the first byte is written.
    #[inline(always)]
    fn first(&mut self) -> *mut u8 {
        self.out.spare(0).as_mut_ptr()
    }
}

/// Of a decoder, whose place and account are changed only when all is done.
#[repr(C)]
pub(super) struct Decoding<'a> {
    pub cursor: Cursor,
    /// All ones if nothing is forgiven.
    pub strict: u64,
    /// Bytes of memory that are still paid for.
    memory_left: u64,
    pub arena: &'a mut Arena,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Decoding<'a> {
    /// `None` if the frame itself, of `size` bytes, is not paid for.
    #[inline(always)]
    pub fn new<R: Representation>(
        input: &Decoder<'a, R>,
        arena: &'a mut Arena,
        size: usize,
    ) -> Option<Self> {
        let rest = input.rest().as_ptr_range();
        let memory_left = input.memory_left().checked_sub(size)?;
        Some(Self {
            cursor: Cursor {
                end: rest.end.cast_mut(),
                base: rest.start.cast_mut().wrapping_sub(input.position()),
                depth_left: input.depth_left(),
            },
            strict: if input.is_strict() { u64::MAX } else { 0 },
            memory_left: memory_left as u64,
            arena,
            bytes: PhantomData,
        })
    }

    /// Bytes that are left to read behind `at`.
    #[inline(always)]
    pub fn left(&self, at: *const u8) -> usize {
        self.cursor.end as usize - at as usize
    }

    /// Takes the price of memory out of what is paid for, as [`Decoder::pay`] does.
    #[inline(always)]
    pub fn pay(&mut self, price: u64) -> Option<()> {
        self.memory_left = self.memory_left.checked_sub(price)?;
        Some(())
    }

    /// Reads what was read up to `behind` out of `input` too, and pays for it. Null is nothing. Whether
    /// something was read.
    #[inline(always)]
    pub fn commit<R: Representation>(&self, behind: *const u8, input: &mut Decoder<'_, R>) -> bool {
        if behind.is_null() {
            return false;
        }
        input.catch_up(self.left(behind), self.memory_left as usize);
        true
    }
}
