//! The bytes that are decoded with their memory budget, and the errors in them.

use std::borrow::Cow;
use std::ptr;

use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, Representation};

use super::{DecodeInterpreter, ValueMemory};
use crate::frame::heap::MemoryContent;
use crate::frame::interp::{ErrorRecorded, StepResult, number};
use crate::program::{InterpreterProgram, ProgramEntry, ProgramStep, ReceivedByteOrder};

/// The bytes to be decoded, and the limits of doing so.
#[derive(Debug, Clone, Copy)]
pub(in crate::frame) struct DecodeSource<'i> {
    /// Not read yet.
    pub rest: &'i [u8],
    /// Position in the message at which the rest ends.
    pub end: usize,
    /// Set in strict mode.
    pub is_strict: bool,
    /// Set if the bytes have another order than memory.
    pub swapped: bool,
    /// Levels of recursive types that may be entered.
    pub depth_left: u32,
    /// Bytes of memory that may be taken.
    pub memory_left: usize,
}

impl<'i> DecodeSource<'i> {
    /// Takes the rest of `input`, for this program.
    #[inline(always)]
    pub fn of<R: Representation>(input: &Decoder<'i, R>, program: &InterpreterProgram) -> Self {
        Self {
            rest: input.rest(),
            end: input.position() + input.left(),
            is_strict: input.is_strict(),
            swapped: match program.swaps_received {
                ReceivedByteOrder::Swapped(swapped) => swapped,
                ReceivedByteOrder::Senders => R::SWAPPED,
            },
            depth_left: input.depth_left(),
            memory_left: input.memory_left(),
        }
    }
}

/// A decode error before its field has a name.
#[derive(Clone, Copy)]
pub(super) struct DecodeRefusal<'p> {
    kind: DecodeErrorKind,
    /// In the message.
    offset: usize,
    /// Step that failed; `None` if it is the whole value.
    step: Option<&'p ProgramStep>,
}

impl<'p, M: ValueMemory, N> DecodeInterpreter<'p, '_, '_, M, N> {
    /// The next `bytes`, if they are there.
    #[inline]
    pub(super) fn take(
        &mut self,
        bytes: usize,
        step: &'p ProgramStep,
    ) -> Result<*const u8, ErrorRecorded> {
        match self.source.rest.split_at_checked(bytes) {
            Some((taken, rest)) => {
                self.source.rest = rest;
                Ok(taken.as_ptr())
            }
            None => Err(self.truncated(bytes as u64, step)),
        }
    }

    /// The next `bytes`, which [`count`](Self::count) has found to be there.
    ///
    /// # Safety
    /// It has.
    #[inline(always)]
    pub(super) unsafe fn take_counted(&mut self, bytes: usize) -> *const u8 {
        // SAFETY: the caller's promise.
        let (taken, rest) = unsafe { self.source.rest.split_at_unchecked(bytes) };
        self.source.rest = rest;
        taken.as_ptr()
    }

    /// Pays for `count` items of `bytes` each.
    #[inline]
    pub(super) fn charge(
        &mut self,
        count: usize,
        bytes: usize,
        step: Option<&'p ProgramStep>,
    ) -> StepResult {
        // An item that takes no memory still costs the time to make it.
        let price = count.saturating_mul(bytes.max(1));
        match self.source.memory_left.checked_sub(price) {
            Some(left) => {
                self.source.memory_left = left;
                Ok(())
            }
            None => Err(self.refuse(DecodeErrorKind::TooMuchMemory, step)),
        }
    }

    /// Memory for `count` items of `bytes` each, which may hold pointers.
    #[inline]
    pub(super) fn memory(
        &mut self,
        count: usize,
        bytes: usize,
        step: &'p ProgramStep,
    ) -> Result<*mut u8, ErrorRecorded> {
        self.memory_of(count, bytes, MemoryContent::Zeros, step)
    }

    /// Memory with this content for `count` items of `bytes` each; in C, there is none for no items.
    #[inline]
    pub(super) fn memory_of(
        &mut self,
        count: usize,
        bytes: usize,
        content: MemoryContent,
        step: &'p ProgramStep,
    ) -> Result<*mut u8, ErrorRecorded> {
        self.charge(count, bytes, Some(step))?;
        if M::IS_C && count == 0 {
            return Ok(ptr::null_mut());
        }
        match self.memory.take(count * bytes, content) {
            Some(memory) => Ok(memory.as_ptr()),
            None => Err(self.refuse(DecodeErrorKind::NoMemory, Some(step))),
        }
    }

    /// Reads a count and holds it against `bound` and against the bytes that are left, of which
    /// every item takes at least `fewest`.
    #[inline]
    pub(super) fn count<const SWAP: bool>(
        &mut self,
        bound: u32,
        fewest: usize,
        step: &'p ProgramStep,
    ) -> Result<usize, ErrorRecorded> {
        let from = self.take(4, step)?;
        // SAFETY: so many bytes were just found to be there.
        let length = unsafe { number::get_word::<SWAP>(from) };
        if length > bound {
            return Err(self.refuse_at(DecodeErrorKind::TooLong { length, bound }, from, step));
        }
        let needed = u64::from(length) * fewest as u64;
        match needed <= self.source.rest.len() as u64 {
            true => Ok(length as usize),
            false => Err(self.truncated(needed, step)),
        }
    }

    /// Refuses bytes that are not zero, in strict mode.
    ///
    /// # Safety
    /// There are so many bytes.
    #[inline]
    pub(super) unsafe fn zeros(
        &mut self,
        from: *const u8,
        bytes: usize,
        step: &'p ProgramStep,
    ) -> StepResult {
        if !self.source.is_strict {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(from, bytes) };
        match bytes.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(self.refuse_at(DecodeErrorKind::Padding, from, step)),
        }
    }

    pub(super) fn align(&mut self, to: u32, before: u32, step: &'p ProgramStep) -> StepResult {
        let position = self.source.end - self.source.rest.len() + before as usize;
        let hole = position.wrapping_neg() & (to as usize - 1);
        let from = self.take(hole, step)?;
        // SAFETY: so many bytes were just found to be there.
        unsafe { self.zeros(from, hole, step) }
    }

    #[cold]
    pub(super) fn error(&self, entry: &ProgramEntry) -> DecodeError {
        let Some(fault) = self.fault else {
            unreachable!("a program that stops has noted its fault");
        };
        let name = match fault.step {
            Some(step) => self.program.name_of(step),
            None => self.program.name_of_entry(entry),
        };
        let mut error = DecodeError::new(fault.kind, fault.offset);
        error.field = Cow::Owned(name.to_owned());
        error
    }

    /// Records an error at the next byte.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(
        &mut self,
        kind: DecodeErrorKind,
        step: Option<&'p ProgramStep>,
    ) -> ErrorRecorded {
        let offset = self.source.end - self.source.rest.len();
        self.fault = Some(DecodeRefusal { kind, offset, step });
        ErrorRecorded
    }

    /// Records an error at `at`, which has been read.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_at(
        &mut self,
        kind: DecodeErrorKind,
        at: *const u8,
        step: &'p ProgramStep,
    ) -> ErrorRecorded {
        let behind = self.source.rest.as_ptr().addr() - at.addr();
        let offset = self.source.end - self.source.rest.len() - behind;
        let step = Some(step);
        self.fault = Some(DecodeRefusal { kind, offset, step });
        ErrorRecorded
    }

    #[cold]
    #[inline(never)]
    pub(super) fn truncated(&mut self, needed: u64, step: &'p ProgramStep) -> ErrorRecorded {
        let left = self.source.rest.len() as u64;
        self.refuse(DecodeErrorKind::Truncated { needed, left }, Some(step))
    }
}
