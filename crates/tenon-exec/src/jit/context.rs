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

/// Of an encoder: the buffer's whole room is handed out, and what is not used is taken back.
#[repr(C)]
pub(super) struct Encoding<'e> {
    pub cursor: Cursor,
    out: &'e mut Buffer,
    /// How many bytes of the buffer were written before.
    start: usize,
    /// Where the first byte is written.
    first: *mut u8,
}

impl<'e> Encoding<'e> {
    /// With room for `bytes` at least.
    #[inline(always)]
    pub fn new<R: Representation>(out: &'e mut Encoder<'_, R>, bytes: usize) -> Self {
        let depth_left = out.depth_left();
        let (out, base) = out.parts();
        let start = out.len();
        let spare = out.capacity() - start;
        let room = out.room(spare.max(bytes)).as_mut_ptr_range();
        Self {
            cursor: Cursor {
                end: room.end,
                base: room.start.wrapping_sub(start - base),
                depth_left,
            },
            out,
            start,
            first: room.start,
        }
    }

    /// Where it begins to write.
    #[inline(always)]
    pub fn first(&self) -> *mut u8 {
        self.first
    }

    #[inline(always)]
    fn written(&self, at: *mut u8) -> usize {
        at as usize - self.first as usize
    }

    /// Makes room for `bytes` more behind `at`, and gives where that is now.
    pub fn grow(&mut self, at: *mut u8, bytes: usize) -> *mut u8 {
        let written = self.written(at);
        let before = self.first as usize - self.cursor.base as usize;
        // What was written is kept, and all room there is is handed out again.
        self.out.truncate(self.start);
        self.out.room(written + bytes);
        self.out.truncate(self.start);
        let spare = self.out.capacity() - self.start;
        let room = self.out.room(spare).as_mut_ptr_range();
        self.first = room.start;
        self.cursor.base = room.start.wrapping_sub(before);
        self.cursor.end = room.end;
        room.start.wrapping_add(written)
    }

    /// Keeps what was written up to `behind`, or nothing if that is null. Whether it was kept.
    #[inline(always)]
    pub fn finish(self, behind: *mut u8) -> bool {
        if behind.is_null() {
            self.out.truncate(self.start);
            return false;
        }
        self.out.truncate(self.start + self.written(behind));
        true
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
        let memory_left = input.memory_left().checked_sub(size.max(1))?;
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

    /// Takes the memory of `count` items, which are counted by 32 bits, of `size` bytes out of
    /// what is paid for, as [`Decoder::pay`] does.
    #[inline(always)]
    pub fn pay(&mut self, count: u64, size: u64) -> Option<()> {
        // No value is so large in place that this could overflow; see `Layouts`.
        let price = count * size.max(1);
        self.memory_left = self.memory_left.checked_sub(price)?;
        Some(())
    }

    /// Reads what was read up to `behind` out of `input` too, and pays for it. Null is nothing.
    #[inline(always)]
    pub fn commit<R: Representation>(&self, behind: *const u8, input: &mut Decoder<'_, R>) -> bool {
        if behind.is_null() {
            return false;
        }
        let read = input.left() - self.left(behind);
        let price = input.memory_left() - self.memory_left as usize;
        input.take(read).is_ok() && input.pay(price, 1).is_ok()
    }
}
