//! Memory to bytes.

use std::borrow::Cow;
use std::ptr;

use tenon_plan::{Count, Scalar};
use tenon_wire::{Buffer, EncodeError, EncodeErrorKind};

use super::{Done, Stop, number};
use crate::frame::read::discriminant;
use crate::layout::Counted;
use crate::program::{Entry, List, Number, Program, Step};

/// What is written to.
pub(in crate::frame) struct Sink<'o> {
    pub buffer: &'o mut Buffer,
    /// Where in it the message begins.
    pub start: usize,
    /// Levels of recursive types that may be entered.
    pub depth_left: u32,
}

/// Appends the value at `from`.
///
/// # Errors
/// It is too long somewhere, or holds a value that its type does not have; what was appended is to
/// be dropped.
///
/// # Safety
/// A value as `entry` moves it lies at `from`, with all that it points to.
#[inline(always)]
pub(in crate::frame) unsafe fn encode(
    program: &Program,
    entry: &Entry,
    from: *const u8,
    out: Sink<'_>,
) -> Result<(), EncodeError> {
    let mut encoding = Encoding {
        program,
        out,
        fault: None,
    };
    // SAFETY: the caller's promise.
    let done = unsafe {
        match program.swaps_sent {
            true => encoding.entry::<true>(entry, from),
            false => encoding.entry::<false>(entry, from),
        }
    };
    done.map_err(|Stop| encoding.error(entry))
}

struct Encoding<'p, 'o> {
    program: &'p Program,
    out: Sink<'o>,
    /// What is wrong, and where; without a step, with the whole value.
    fault: Option<(EncodeErrorKind, Option<&'p Step>)>,
}

/// What `body` says before there is a block. Nobody writes there.
const NO_BLOCK: *mut u8 = ptr::dangling_mut();

impl<'p> Encoding<'p, '_> {
    #[cold]
    fn error(&self, entry: &Entry) -> EncodeError {
        let Some((kind, step)) = self.fault else {
            unreachable!("whoever stops says why");
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
    fn refuse(&mut self, kind: EncodeErrorKind, step: Option<&'p Step>) -> Stop {
        self.fault = Some((kind, step));
        Stop
    }

    #[inline(always)]
    unsafe fn entry<const SWAP: bool>(&mut self, entry: &'p Entry, from: *const u8) -> Done {
        // SAFETY: the caller's promise.
        unsafe { self.value::<SWAP>(entry, from, None) }
    }

    /// Moves a whole value of an entry, for `step`.
    #[inline]
    unsafe fn value<const SWAP: bool>(
        &mut self,
        entry: &'p Entry,
        from: *const u8,
        step: Option<&'p Step>,
    ) -> Done {
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

    /// Appends what `steps` say of the value at `it`. The first of them lie in `block`, if there is
    /// one.
    ///
    /// # Safety
    /// A value for these steps lies at `it`, with all that it points to; `block` has the room that
    /// the program was made for.
    unsafe fn body<const SWAP: bool>(
        &mut self,
        mut steps: &'p [Step],
        it: *const u8,
        mut block: *mut u8,
    ) -> Done {
        while let [step, rest @ ..] = steps {
            steps = rest;
            // SAFETY: the caller's promise, and that the program's offsets lie in the value and in
            // the block that was reserved last, behind which nothing has made room since.
            unsafe {
                match *step {
                    Step::Reserve { bytes } => block = self.room(bytes as usize),
                    Step::Align { to, before } => self.align(to, before),
                    Step::Zero { bytes, offset } => {
                        block.add(offset as usize).write_bytes(0, bytes as usize);
                    }
                    Step::Put { number, at, offset } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        if !number::move_plain::<SWAP>(number, from, to) {
                            self.put::<SWAP>(number, from, to, step)?;
                        }
                    }
                    Step::PutSlowly { number, at, offset } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        let moves = self.program.moves;
                        if !number::move_slowly::<SWAP>(moves, number, from, to) {
                            self.put::<SWAP>(number, from, to, step)?;
                        }
                    }
                    Step::PutArray {
                        number,
                        at,
                        count,
                        offset,
                    } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        self.numbers::<SWAP>(number, from, to, count as usize, step)?;
                    }
                    Step::PutCounted { number, at, bound } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize * number.wire_bytes();
                        let to = self.counted_room::<SWAP>(items.count, bytes);
                        self.numbers::<SWAP>(number, items.items, to, items.count as usize, step)?;
                    }
                    Step::Copy {
                        at,
                        bytes,
                        padding,
                        offset,
                    } => {
                        let (bytes, to) = (bytes as usize, block.add(offset as usize));
                        to.copy_from_nonoverlapping(it.add(at as usize), bytes);
                        to.add(bytes).write_bytes(0, padding as usize);
                    }
                    Step::CopyCounted { at, bound } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize;
                        let padded = bytes.next_multiple_of(self.program.padding as usize);
                        let to = self.counted_room::<SWAP>(items.count, padded);
                        to.copy_from_nonoverlapping(items.items, bytes);
                        to.add(bytes).write_bytes(0, padded - bytes);
                    }
                    Step::Blit {
                        item,
                        at,
                        bytes,
                        offset,
                    } => {
                        let (from, to) = (it.add(at as usize), block.add(offset as usize));
                        number::put_block::<SWAP>(self.program, item, from, to, bytes as usize);
                    }
                    Step::BlitCounted {
                        item,
                        stride,
                        at,
                        bound,
                    } => {
                        let items = self.counted(it.add(at as usize), bound, step)?;
                        let bytes = items.count as usize * stride as usize;
                        let to = self.counted_room::<SWAP>(items.count, bytes);
                        number::put_block::<SWAP>(self.program, item, items.items, to, bytes);
                    }
                    Step::PutElements {
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
                        let room = self.room(count * bytes as usize);
                        for index in 0..count {
                            let item = items.add(index * stride as usize);
                            self.body::<SWAP>(inner, item, room.add(index * bytes as usize))?;
                        }
                    }
                    Step::Loop {
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
                    Step::Switch { switch, length } => {
                        steps = &rest[length as usize..];
                        self.switch::<SWAP>(switch, it, step)?;
                    }
                    Step::Optional { at, length, .. } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let held = it.add(at as usize).cast::<*const u8>().read();
                        self.flag::<SWAP>(!held.is_null());
                        if !held.is_null() {
                            self.body::<SWAP>(inner, held, NO_BLOCK)?;
                        }
                    }
                    Step::Boxed { at, length, .. } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let held = it.add(at as usize).cast::<*const u8>().read();
                        self.body::<SWAP>(inner, held, NO_BLOCK)?;
                    }
                    Step::List { list } => {
                        let list = self.program.list(list);
                        self.list::<SWAP>(list, it.add(list.at as usize), step)?;
                    }
                    Step::Call { at, of } => {
                        let entry = self.program.of_type(of);
                        self.value::<SWAP>(entry, it.add(at as usize), Some(step))?;
                    }
                    Step::External => {
                        return Err(self.refuse(EncodeErrorKind::External, Some(step)));
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn room(&mut self, bytes: usize) -> *mut u8 {
        self.out.buffer.room(bytes).as_mut_ptr()
    }

    /// Room for `bytes` behind a count.
    #[inline]
    fn counted_room<const SWAP: bool>(&mut self, count: u32, bytes: usize) -> *mut u8 {
        let room = self.room(4 + bytes);
        // SAFETY: there is room for so much.
        unsafe {
            number::put_word::<SWAP>(count as i32, room);
            room.add(4)
        }
    }

    fn align(&mut self, to: u32, before: u32) {
        let position = self.out.buffer.len() - self.out.start + before as usize;
        let hole = position.wrapping_neg() & (to as usize - 1);
        self.out.buffer.room(hole).fill(0);
    }

    fn flag<const SWAP: bool>(&mut self, follows: bool) {
        let (flag, follows) = (self.program.flag, i32::from(follows));
        let to = self.room(flag.wire_bytes());
        // SAFETY: there is room for it; a boolean is not checked.
        let done =
            unsafe { number::put::<SWAP>(self.program, flag, (&raw const follows).cast(), to) };
        debug_assert!(done.is_ok());
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
        step: &'p Step,
    ) -> Result<Counted, Stop> {
        // SAFETY: the caller's promise.
        let counted = unsafe { at.cast::<Counted>().read() };
        match counted.count <= bound {
            true => Ok(counted),
            false => {
                let length = counted.count as usize;
                Err(self.refuse(EncodeErrorKind::TooLong { length, bound }, Some(step)))
            }
        }
    }

    /// How many elements there are, and where; a count is appended.
    ///
    /// # Safety
    /// They, or what counts them, lie at `at`.
    unsafe fn elements<const SWAP: bool>(
        &mut self,
        at: *const u8,
        count: Count,
        step: &'p Step,
    ) -> Result<(usize, *const u8), Stop> {
        match count {
            Count::Fixed(count) => Ok((count as usize, at)),
            Count::Counted(bound) => {
                // SAFETY: the caller's promise.
                let counted = unsafe { self.counted(at, bound, step)? };
                self.counted_room::<SWAP>(counted.count, 0);
                Ok((counted.count as usize, counted.items))
            }
        }
    }

    #[inline(never)]
    unsafe fn put<const SWAP: bool>(
        &mut self,
        number: Number,
        from: *const u8,
        to: *mut u8,
        step: &'p Step,
    ) -> Done {
        // SAFETY: the caller's promise.
        let done = unsafe { number::put::<SWAP>(self.program, number, from, to) };
        done.map_err(|kind| self.refuse(kind, Some(step)))
    }

    /// Writes an array of numbers that are looked at one by one.
    #[inline(never)]
    unsafe fn numbers<const SWAP: bool>(
        &mut self,
        number: Number,
        from: *const u8,
        to: *mut u8,
        count: usize,
        step: &'p Step,
    ) -> Done {
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
        step: &'p Step,
    ) -> Done {
        let switch = self.program.switch(switch);
        let to = self.room(switch.discriminant.wire_bytes());
        // SAFETY: the caller's promise: discriminant and arm lie there.
        unsafe {
            let from = it.add(switch.at as usize);
            self.put::<SWAP>(switch.discriminant, from, to, step)?;
            let value = match switch.scalar {
                Scalar::Bool => i32::from(discriminant(switch.scalar, from) != 0),
                scalar => discriminant(scalar, from),
            };
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
        list: &'p List,
        at: *const u8,
        step: &'p Step,
    ) -> Done {
        // SAFETY: the caller's promise.
        let Counted { count, items } = unsafe { self.counted(at, u32::MAX, step)? };
        if list.first_bare && count == 0 {
            return Err(self.refuse(EncodeErrorKind::EmptyList, Some(step)));
        }
        if !list.is_flagged {
            self.counted_room::<SWAP>(count, 0);
        }
        let entry = self.program.of_type(list.element);
        for index in 0..count as usize {
            let is_bare = list.is_flagged && list.first_bare && index == 0;
            if list.is_flagged && !is_bare {
                self.flag::<SWAP>(true);
            }
            if !is_bare {
                self.align(list.align, 0);
            }
            // SAFETY: the caller's promise: so many elements lie there.
            unsafe {
                let item = items.add(index * list.stride as usize);
                self.value::<SWAP>(entry, item, Some(step))?;
            }
        }
        if list.is_flagged {
            self.flag::<SWAP>(false);
        }
        Ok(())
    }
}
