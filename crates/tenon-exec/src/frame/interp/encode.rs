//! Memory to bytes.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use tenon_plan::Count;
use tenon_wire::{Buffer, EncodeError, EncodeErrorKind};

use super::{ErrorRecorded, NumberMover, StepResult, number};
use crate::layout::CountedArray;
use crate::program::{InterpreterProgram, ListStep, NumberFormat, ProgramEntry, ProgramStep};

/// The buffer that is appended to.
pub(in crate::frame) struct EncodeSink<'o> {
    pub buffer: &'o mut Buffer,
    /// Position in it at which the message begins.
    pub start: usize,
    /// Levels of recursive types that may be entered.
    pub depth_left: u32,
    /// Bytes that the message may have; [`NO_LIMIT`] if there is no end to them.
    pub limit: usize,
}

/// The limit of a message that may have any number of bytes.
pub(in crate::frame) const NO_LIMIT: usize = usize::MAX;

/// Appends the value at `from`.
///
/// # Errors
/// It is too long somewhere, or holds a value that its type does not have; or the message becomes too large, or there
/// is no memory for it. What was appended is to be dropped.
///
/// # Safety
/// A value as `entry` moves it lies at `from`, with all that it points to.
#[inline(always)]
pub(in crate::frame) unsafe fn encode<N: NumberMover>(
    program: &InterpreterProgram,
    entry: &ProgramEntry,
    from: *const u8,
    out: EncodeSink<'_>,
) -> Result<(), EncodeError> {
    let mut encoding = EncodeInterpreter::<N> {
        program,
        out,
        fault: None,
        numbers: PhantomData,
    };
    // SAFETY: the caller's promise.
    let done = unsafe {
        match program.swaps_sent {
            true => encoding.entry::<true>(entry, from),
            false => encoding.entry::<false>(entry, from),
        }
    };
    done.map_err(|ErrorRecorded| encoding.error(entry))
}

struct EncodeInterpreter<'p, 'o, N> {
    program: &'p InterpreterProgram,
    out: EncodeSink<'o>,
    /// The error and its step; without a step, it is in the whole value.
    fault: Option<(EncodeErrorKind, Option<&'p ProgramStep>)>,
    numbers: PhantomData<N>,
}

/// The block of a body that has none yet. It is never written.
const NO_BLOCK: *mut u8 = ptr::dangling_mut();

impl<'p, N: NumberMover> EncodeInterpreter<'p, '_, N> {
    #[cold]
    fn error(&self, entry: &ProgramEntry) -> EncodeError {
        let Some((kind, step)) = self.fault else {
            unreachable!("a program that stops has noted its fault");
        };
        let name = match step {
            Some(step) => self.program.name_of(step),
            None => self.program.name_of_entry(entry),
        };
        let mut error = EncodeError::new(kind);
        error.field = Cow::Owned(name.to_owned());
        error
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, kind: EncodeErrorKind, step: Option<&'p ProgramStep>) -> ErrorRecorded {
        self.fault = Some((kind, step));
        ErrorRecorded
    }

    #[inline(always)]
    unsafe fn entry<const SWAP: bool>(
        &mut self,
        entry: &'p ProgramEntry,
        from: *const u8,
    ) -> StepResult {
        // SAFETY: the caller's promise.
        unsafe { self.value::<SWAP>(entry, from, None) }
    }

    /// Moves a whole value of an entry, for `step`.
    #[inline]
    unsafe fn value<const SWAP: bool>(
        &mut self,
        entry: &'p ProgramEntry,
        from: *const u8,
        step: Option<&'p ProgramStep>,
    ) -> StepResult {
        let steps = self.program.steps_of(entry);
        if entry.is_recursive {
            let Some(left) = self.out.depth_left.checked_sub(1) else {
                return Err(self.refuse(EncodeErrorKind::TooDeep, step));
            };
            self.out.depth_left = left;
        }
        // SAFETY: the caller's promise.
        unsafe { self.body::<SWAP>(steps, from, NO_BLOCK)? };
        self.out.depth_left += u32::from(entry.is_recursive);
        Ok(())
    }

    /// Carries out `steps`, which append the value at `it`. The first of them lie in `block`, if there is
    /// one.
    ///
    /// # Safety
    /// A value for these steps lies at `it`, with all that it points to; `block` has the room that
    /// the program was made for.
    unsafe fn body<const SWAP: bool>(
        &mut self,
        mut steps: &'p [ProgramStep],
        it: *const u8,
        mut block: *mut u8,
    ) -> StepResult {
        while let [step, rest @ ..] = steps {
            steps = rest;
            // SAFETY: the caller's promise, and that the program's offsets lie in the value and in
            // the block that was reserved last, behind which nothing has made room since.
            unsafe {
                match *step {
                    ProgramStep::Reserve { bytes } => block = self.room(bytes as usize, step)?,
                    ProgramStep::Align { to, before } => self.align(to, before, step)?,
                    ProgramStep::Zero { bytes, offset } => {
                        block.add(offset as usize).write_bytes(0, bytes as usize);
                    }
                    ProgramStep::Put { number, at, offset } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        if !number::move_plain::<N, SWAP>(number, from, to) {
                            self.put::<SWAP>(number, from, to, step)?;
                        }
                    }
                    ProgramStep::PutArray {
                        number,
                        at,
                        count,
                        offset,
                    } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        self.numbers::<SWAP>(number, from, to, count as usize, step)?;
                    }
                    ProgramStep::PutCounted { number, at, bound } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize * number.wire_bytes();
                        let to = self.counted_room::<SWAP>(items.count, bytes, step)?;
                        self.numbers::<SWAP>(number, items.items, to, items.count as usize, step)?;
                    }
                    ProgramStep::Copy {
                        at,
                        bytes,
                        padding,
                        offset,
                    } => {
                        let (bytes, to) = (bytes as usize, block.add(offset as usize));
                        to.copy_from_nonoverlapping(it.add(at as usize), bytes);
                        to.add(bytes).write_bytes(0, padding as usize);
                    }
                    ProgramStep::CopyCounted { at, bound } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize;
                        let padded = bytes.next_multiple_of(self.program.padding as usize);
                        let to = self.counted_room::<SWAP>(items.count, padded, step)?;
                        to.copy_from_nonoverlapping(items.items, bytes);
                        to.add(bytes).write_bytes(0, padded - bytes);
                    }
                    ProgramStep::Text { at, bound } => {
                        let text = it.add(at as usize).cast::<*const c_char>().read();
                        self.text::<SWAP>(text, bound, step)?;
                    }
                    ProgramStep::Blit {
                        item,
                        at,
                        bytes,
                        offset,
                    } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        number::put_block::<SWAP>(self.program, item, from, to, bytes as usize);
                    }
                    ProgramStep::BlitCounted {
                        item,
                        stride,
                        at,
                        bound,
                    } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize * stride as usize;
                        let to = self.counted_room::<SWAP>(items.count, bytes, step)?;
                        number::put_block::<SWAP>(self.program, item, items.items, to, bytes);
                    }
                    ProgramStep::PutElements {
                        at,
                        count,
                        stride,
                        bytes,
                        length,
                    } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let (count, items) =
                            self.elements::<SWAP>(it.add(at as usize), count, step)?;
                        let room = self.room(count * bytes as usize, step)?;
                        for index in 0..count {
                            let item = items.add(index * stride as usize);
                            self.body::<SWAP>(inner, item, room.add(index * bytes as usize))?;
                        }
                    }
                    ProgramStep::Loop {
                        at,
                        count,
                        stride,
                        length,
                        ..
                    } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let (count, items) =
                            self.elements::<SWAP>(it.add(at as usize), count, step)?;
                        if !inner.is_empty() {
                            for index in 0..count {
                                let item = items.add(index * stride as usize);
                                self.body::<SWAP>(inner, item, NO_BLOCK)?;
                            }
                        }
                    }
                    ProgramStep::Switch { switch, length } => {
                        steps = &rest[length as usize..];
                        self.switch::<SWAP>(switch, it, step)?;
                    }
                    ProgramStep::Optional { at, length, .. } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let held = it.add(at as usize).cast::<*const u8>().read();
                        self.flag::<SWAP>(!held.is_null(), step)?;
                        if !held.is_null() {
                            self.body::<SWAP>(inner, held, NO_BLOCK)?;
                        }
                    }
                    ProgramStep::Boxed { at, length, .. } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let held = it.add(at as usize).cast::<*const u8>().read();
                        if held.is_null() {
                            return Err(self.refuse(EncodeErrorKind::Null, Some(step)));
                        }
                        self.body::<SWAP>(inner, held, NO_BLOCK)?;
                    }
                    ProgramStep::List { list } => {
                        let list = self.program.list(list);
                        self.list::<SWAP>(list, it.add(list.at as usize), step)?;
                    }
                    ProgramStep::Chain { list } => {
                        let list = self.program.list(list);
                        self.chain::<SWAP>(list, it.add(list.at as usize), step)?;
                    }
                    ProgramStep::Call { at, of } => {
                        let entry = self.program.of_type(of);
                        self.value::<SWAP>(entry, it.add(at as usize), Some(step))?;
                    }
                    ProgramStep::External => {
                        return Err(self.refuse(EncodeErrorKind::External, Some(step)));
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn room(&mut self, bytes: usize, step: &'p ProgramStep) -> Result<*mut u8, ErrorRecorded> {
        if self.out.limit != NO_LIMIT {
            self.check_room(bytes, step)?;
        }
        Ok(self.out.buffer.room(bytes).as_mut_ptr())
    }

    /// Refuses what the message may not hold, or the system has no memory for. It stands apart, as few messages have a
    /// limit.
    #[inline(never)]
    fn check_room(&mut self, bytes: usize, step: &'p ProgramStep) -> StepResult {
        let limit = self.out.limit;
        let before = self.out.buffer.len() - self.out.start;
        if before.saturating_add(bytes) > limit {
            return Err(self.refuse(EncodeErrorKind::TooLarge { limit }, Some(step)));
        }
        if !self.out.buffer.try_reserve(bytes) {
            return Err(self.refuse(EncodeErrorKind::NoMemory, Some(step)));
        }
        Ok(())
    }

    /// Room for `bytes` behind a count.
    #[inline]
    fn counted_room<const SWAP: bool>(
        &mut self,
        count: u32,
        bytes: usize,
        step: &'p ProgramStep,
    ) -> Result<*mut u8, ErrorRecorded> {
        let room = self.room(4 + bytes, step)?;
        // SAFETY: there is room for so much.
        unsafe {
            number::put_word::<SWAP>(count as i32, room);
            Ok(room.add(4))
        }
    }

    fn align(&mut self, to: u32, before: u32, step: &'p ProgramStep) -> StepResult {
        let position = self.out.buffer.len() - self.out.start + before as usize;
        let hole = position.wrapping_neg() & (to as usize - 1);
        let room = self.room(hole, step)?;
        // SAFETY: there is room for so much.
        unsafe { room.write_bytes(0, hole) };
        Ok(())
    }

    fn flag<const SWAP: bool>(&mut self, follows: bool, step: &'p ProgramStep) -> StepResult {
        let (flag, follows) = (self.program.flag, i32::from(follows));
        let to = self.room(flag.wire_bytes(), step)?;
        // SAFETY: there is room for it; a boolean is not checked.
        let done =
            unsafe { number::put::<SWAP>(self.program, flag, (&raw const follows).cast(), to) };
        debug_assert!(done.is_ok());
        Ok(())
    }

    /// The counted item at `at`, if it is not too long.
    ///
    /// # Safety
    /// There is one.
    #[inline]
    unsafe fn counted(
        &mut self,
        at: *const u8,
        bound: u32,
        step: &'p ProgramStep,
    ) -> Result<CountedArray, ErrorRecorded> {
        // SAFETY: the caller's promise.
        let mut counted = unsafe { at.cast::<CountedArray>().read() };
        if counted.count > bound {
            let length = counted.count as usize;
            return Err(self.refuse(EncodeErrorKind::TooLong { length, bound }, Some(step)));
        }
        // Only C has such pointers.
        if counted.items.is_null() {
            if counted.count > 0 {
                return Err(self.refuse(EncodeErrorKind::Null, Some(step)));
            }
            counted.items = ptr::dangling_mut::<u64>().cast();
        }
        Ok(counted)
    }

    /// Appends a string.
    ///
    /// # Safety
    /// It is null, which is the empty string, or ends in a NUL.
    #[inline(never)]
    unsafe fn text<const SWAP: bool>(
        &mut self,
        text: *const c_char,
        bound: u32,
        step: &'p ProgramStep,
    ) -> StepResult {
        let bytes = match text.is_null() {
            true => &[],
            // SAFETY: the caller's promise.
            false => unsafe { CStr::from_ptr(text) }.to_bytes(),
        };
        let length = bytes.len();
        let Some(count) = u32::try_from(length).ok().filter(|count| *count <= bound) else {
            return Err(self.refuse(EncodeErrorKind::TooLong { length, bound }, Some(step)));
        };
        let padded = length.next_multiple_of(self.program.padding as usize);
        let to = self.counted_room::<SWAP>(count, padded, step)?;
        // SAFETY: there is room for so much.
        unsafe {
            to.copy_from_nonoverlapping(bytes.as_ptr(), length);
            to.add(length).write_bytes(0, padded - length);
        }
        Ok(())
    }

    /// Returns the number of elements and their address; a count is appended.
    ///
    /// # Safety
    /// They, or the counted array, lie at `at`.
    unsafe fn elements<const SWAP: bool>(
        &mut self,
        at: *const u8,
        count: Count,
        step: &'p ProgramStep,
    ) -> Result<(usize, *const u8), ErrorRecorded> {
        match count {
            Count::Fixed(count) => Ok((count as usize, at)),
            Count::Counted(bound) => {
                // SAFETY: the caller's promise.
                let counted = unsafe { self.counted(at, bound, step)? };
                self.counted_room::<SWAP>(counted.count, 0, step)?;
                Ok((counted.count as usize, counted.items))
            }
        }
    }

    #[inline(never)]
    unsafe fn put<const SWAP: bool>(
        &mut self,
        number: NumberFormat,
        from: *const u8,
        to: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        // SAFETY: the caller's promise.
        let done = unsafe { number::put::<SWAP>(self.program, number, from, to) };
        done.map_err(|kind| self.refuse(kind, Some(step)))
    }

    /// Writes an array of numbers that are converted one by one.
    #[inline(never)]
    unsafe fn numbers<const SWAP: bool>(
        &mut self,
        number: NumberFormat,
        from: *const u8,
        to: *mut u8,
        count: usize,
        step: &'p ProgramStep,
    ) -> StepResult {
        let (wire, memory) = (number.wire_bytes(), number.memory_bytes());
        for index in 0..count {
            // SAFETY: the caller's promise.
            let done = unsafe {
                let (from, to) = (from.add(index * memory), to.add(index * wire));
                number::put::<SWAP>(self.program, number, from, to)
            };
            done.map_err(|kind| self.refuse(kind, Some(step)))?;
        }
        Ok(())
    }

    unsafe fn switch<const SWAP: bool>(
        &mut self,
        switch: u32,
        it: *const u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        let switch = self.program.switch(switch);
        let to = self.room(switch.discriminant.wire_bytes(), step)?;
        // SAFETY: the caller's promise: discriminant and arm lie there.
        unsafe {
            let from = it.add(switch.at as usize);
            self.put::<SWAP>(switch.discriminant, from, to, step)?;
            let value = number::discriminant(switch.scalar, switch.discriminant, from);
            match switch.select(value) {
                Some(arm) => {
                    let steps = self.program.steps(arm);
                    self.body::<SWAP>(steps, it.add(switch.arms_at as usize), NO_BLOCK)
                }
                None => Err(self.refuse(EncodeErrorKind::UnknownValue(value), Some(step))),
            }
        }
    }

    #[inline(never)]
    unsafe fn list<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *const u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        // SAFETY: the caller's promise.
        let CountedArray { count, items } = unsafe { self.counted(at, u32::MAX, step)? };
        if list.first_bare && count == 0 {
            return Err(self.refuse(EncodeErrorKind::EmptyList, Some(step)));
        }
        if !list.is_flagged {
            self.counted_room::<SWAP>(count, 0, step)?;
        }
        let entry = self.program.of_type(list.element);
        for index in 0..count as usize {
            let is_bare = list.is_flagged && list.first_bare && index == 0;
            if list.is_flagged && !is_bare {
                self.flag::<SWAP>(true, step)?;
            }
            if !is_bare {
                self.align(list.align, 0, step)?;
            }
            // SAFETY: the caller's promise: so many elements lie there.
            unsafe {
                let item = items.add(index * list.stride as usize);
                self.value::<SWAP>(entry, item, Some(step))?;
            }
        }
        if list.is_flagged {
            self.flag::<SWAP>(false, step)?;
        }
        Ok(())
    }

    /// Appends a list that is linked by pointers. Where the first is bare, it lies at `at`, and otherwise
    /// the pointer to it.
    #[inline(never)]
    unsafe fn chain<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *const u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        // SAFETY: the caller's promise: elements lie there, linked by pointers of which the last is null.
        unsafe {
            let mut element = match list.first_bare {
                true => at,
                false => at.cast::<*const u8>().read(),
            };
            if !list.is_flagged {
                let (limit, fewest) = (self.out.limit, list.fewest as usize);
                let Some(count) = chain_length(element, list.link as usize, fewest, limit) else {
                    let limit = self.out.limit;
                    return Err(self.refuse(EncodeErrorKind::TooLarge { limit }, Some(step)));
                };
                self.counted_room::<SWAP>(count, 0, step)?;
            }
            let entry = self.program.of_type(list.element);
            let mut is_bare = list.first_bare && list.is_flagged;
            while !element.is_null() {
                if list.is_flagged && !is_bare {
                    self.flag::<SWAP>(true, step)?;
                }
                if !is_bare {
                    self.align(list.align, 0, step)?;
                }
                is_bare = false;
                self.value::<SWAP>(entry, element, Some(step))?;
                element = element.add(list.link as usize).cast::<*const u8>().read();
            }
        }
        match list.is_flagged {
            true => self.flag::<SWAP>(false, step),
            false => Ok(()),
        }
    }
}

/// Counts the elements of a list that are linked by pointers, `link` bytes behind the beginning of each. `None` if they
/// take more bytes than `limit` when each takes no more than `fewest`, or are more than a count can say: the list may
/// lead back to itself.
///
/// # Safety
/// The first element is null, or lies there as all that follow do.
pub(crate) unsafe fn chain_length(
    first: *const u8,
    link: usize,
    fewest: usize,
    limit: usize,
) -> Option<u32> {
    let limit = limit.checked_div(fewest).unwrap_or(usize::MAX);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let (mut element, mut count) = (first, 0);
    while !element.is_null() {
        if count == limit {
            return None;
        }
        count += 1;
        // SAFETY: the caller's promise.
        element = unsafe { element.add(link).cast::<*const u8>().read() };
    }
    Some(count)
}
