//! The cursors that machine code and its helpers share.

use std::marker::PhantomData;

use tenon_wire::{Decoder, Encoder};

use crate::frame::arena::Arena;

/// What both directions have, at the same offsets.
#[repr(C)]
pub(super) struct Cursor {
    /// The next byte.
    pub at: *mut u8,
    /// Behind the last byte that may be read or written.
    pub end: *mut u8,
    /// Levels of recursive types that may still be entered.
    pub depth_left: u32,
    /// 1 if nothing is forgiven.
    pub strict: u32,
    /// Bytes of memory that may still be taken.
    pub memory_left: u64,
}

/// Of an encoder: the buffer's whole room is handed out, and what is not used is taken back.
#[repr(C)]
pub(super) struct Encoding<'e, 'o> {
    pub cursor: Cursor,
    out: &'e mut Encoder<'o>,
    /// Where in the buffer it began.
    start: usize,
    first: *mut u8,
}

impl<'e, 'o> Encoding<'e, 'o> {
    pub fn new(out: &'e mut Encoder<'o>) -> Self {
        let start = out.position();
        let spare = out.spare();
        let room = out.room(spare).as_mut_ptr_range();
        Self {
            cursor: Cursor {
                at: room.start,
                end: room.end,
                depth_left: out.depth_left(),
                strict: 0,
                memory_left: 0,
            },
            out,
            start,
            first: room.start,
        }
    }

    fn written(&self) -> usize {
        self.cursor.at as usize - self.first as usize
    }

    /// Makes room for `bytes` more.
    pub fn grow(&mut self, bytes: usize) {
        let written = self.written();
        self.out.truncate(self.start);
        self.out.room(written + bytes);
        let room = written + bytes + self.out.spare();
        self.out.truncate(self.start);
        let room = self.out.room(room).as_mut_ptr_range();
        self.first = room.start;
        self.cursor.at = room.start.wrapping_add(written);
        self.cursor.end = room.end;
    }

    /// Keeps what was written if all is `done`, and nothing otherwise.
    pub fn finish(self, done: bool) {
        let written = if done { self.written() } else { 0 };
        self.out.truncate(self.start + written);
    }
}

/// Of a decoder, whose place and account are changed only when all is done.
#[repr(C)]
pub(super) struct Decoding<'a> {
    pub cursor: Cursor,
    pub arena: &'a mut Arena,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Decoding<'a> {
    /// `None` if the frame itself, of `size` bytes, is not paid for.
    pub fn new(input: &Decoder<'a>, arena: &'a mut Arena, size: usize) -> Option<Self> {
        let rest = input.rest().as_ptr_range();
        let paid = input.memory_left();
        Some(Self {
            cursor: Cursor {
                at: rest.start.cast_mut(),
                end: rest.end.cast_mut(),
                depth_left: input.depth_left(),
                strict: u32::from(input.is_strict()),
                memory_left: paid.checked_sub(size.max(1))? as u64,
            },
            arena,
            bytes: PhantomData,
        })
    }

    /// Bytes that are left to read.
    pub fn left(&self) -> usize {
        self.cursor.end as usize - self.cursor.at as usize
    }

    /// Reads what was read out of `input` too, and pays for it.
    pub fn commit(&self, input: &mut Decoder<'_>) -> bool {
        let read = input.left() - self.left();
        let price = input.memory_left() - self.cursor.memory_left as usize;
        input.take(read).is_ok() && input.pay(price, 1).is_ok()
    }
}
