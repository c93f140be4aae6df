//! Bytes to memory.
//!
//! Memory is paid for by bytes: all memory of the arena is paid for before it is taken, at
//! the price of what it takes (and of one byte for each element that takes none). The value itself
//! is paid for like what it points to. Machine code pays the same.

mod source;

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use tenon_plan::Count;
use tenon_wire::{DecodeError, DecodeErrorKind};

use super::{ErrorRecorded, NumberMover, StepResult, number};
use crate::frame::arena::FrameArena;
use crate::frame::heap::{CHeap, MemoryContent};
use crate::layout::CountedArray;
use crate::program::{InterpreterProgram, ListStep, NumberFormat, ProgramEntry, ProgramStep};

use source::DecodeRefusal;
pub(in crate::frame) use source::DecodeSource;

/// Reads a value to `to`, and what it points to into `arena`; what was read before, or by what
/// has refused it, is forgotten. Returns the bytes that are left to read, and the memory that
/// is still paid for.
///
/// # Errors
/// The bytes are not such a value; then there is none at `to`.
///
/// # Safety
/// There is room for a value as `entry` moves it at `to`.
#[inline(always)]
pub(in crate::frame) unsafe fn decode<N: NumberMover, M: ValueMemory>(
    program: &InterpreterProgram,
    entry: &ProgramEntry,
    to: *mut u8,
    memory: &mut M,
    source: DecodeSource<'_>,
) -> Result<(usize, usize), DecodeError> {
    memory.forget();
    let mut decoding = DecodeInterpreter::<M, N> {
        program,
        source,
        memory,
        fault: None,
        numbers: PhantomData,
    };
    // SAFETY: the caller's promise.
    let done = unsafe {
        match source.swapped {
            true => decoding.entry::<true>(entry, to),
            false => decoding.entry::<false>(entry, to),
        }
    };
    match done {
        Ok(()) => {
            let left = &decoding.source;
            Ok((left.rest.len(), left.memory_left))
        }
        Err(ErrorRecorded) => Err(decoding.error(entry)),
    }
}

/// Memory for what a value points to.
pub(in crate::frame) trait ValueMemory {
    /// Set if a program in C holds the value: it pays for the value itself, and there is no memory for no items.
    const IS_C: bool;

    /// Forgets all that was taken.
    fn forget(&mut self);

    /// So many bytes, aligned to 8; `None` if the system gives none.
    fn take(&mut self, bytes: usize, content: MemoryContent) -> Option<NonNull<u8>>;
}

impl ValueMemory for FrameArena {
    const IS_C: bool = false;

    #[inline(always)]
    fn forget(&mut self) {
        self.rewind();
    }

    #[inline(always)]
    fn take(&mut self, bytes: usize, _: MemoryContent) -> Option<NonNull<u8>> {
        Some(FrameArena::take(self, bytes))
    }
}

impl ValueMemory for CHeap {
    const IS_C: bool = true;

    fn forget(&mut self) {
        self.free_all();
    }

    fn take(&mut self, bytes: usize, content: MemoryContent) -> Option<NonNull<u8>> {
        CHeap::take(self, bytes, content)
    }
}

struct DecodeInterpreter<'p, 'i, 'm, M, N> {
    program: &'p InterpreterProgram,
    source: DecodeSource<'i>,
    memory: &'m mut M,
    fault: Option<DecodeRefusal<'p>>,
    numbers: PhantomData<N>,
}

/// The block of a body that has none yet. It is never read.
const NO_BLOCK: *const u8 = ptr::dangling();

impl<'p, M: ValueMemory, N: NumberMover> DecodeInterpreter<'p, '_, '_, M, N> {
    #[inline(always)]
    unsafe fn entry<const SWAP: bool>(
        &mut self,
        entry: &'p ProgramEntry,
        to: *mut u8,
    ) -> StepResult {
        if !M::IS_C {
            self.charge(1, entry.bytes as usize, None)?;
        }
        // SAFETY: the caller's promise.
        unsafe { self.value::<SWAP>(entry, to, None) }
    }

    /// Moves a whole value of an entry, for `step`.
    #[inline]
    unsafe fn value<const SWAP: bool>(
        &mut self,
        entry: &'p ProgramEntry,
        to: *mut u8,
        step: Option<&'p ProgramStep>,
    ) -> StepResult {
        let steps = self.program.steps_of(entry);
        if entry.is_recursive {
            let Some(left) = self.source.depth_left.checked_sub(1) else {
                return Err(self.refuse(DecodeErrorKind::TooDeep, step));
            };
            self.source.depth_left = left;
        }
        // SAFETY: the caller's promise.
        unsafe { self.body::<SWAP>(steps, to, NO_BLOCK)? };
        self.source.depth_left += u32::from(entry.is_recursive);
        Ok(())
    }

    /// Carries out `steps`, which read to the value at `it`. The first of them lie in `block`, if there is
    /// one.
    ///
    /// # Safety
    /// There is room for what these steps move at `it`; `block` has the bytes that the program was
    /// made for.
    unsafe fn body<const SWAP: bool>(
        &mut self,
        mut steps: &'p [ProgramStep],
        it: *mut u8,
        mut block: *const u8,
    ) -> StepResult {
        while let [step, rest @ ..] = steps {
            steps = rest;
            // SAFETY: the caller's promise, and that the program's offsets lie in the value and in
            // the block that was found to be there last.
            unsafe {
                match *step {
                    ProgramStep::Reserve { bytes } => block = self.take(bytes as usize, step)?,
                    ProgramStep::Align { to, before } => self.align(to, before, step)?,
                    ProgramStep::Zero { bytes, offset } => {
                        self.zeros(block.add(offset as usize), bytes as usize, step)?;
                    }
                    ProgramStep::Put { number, at, offset } => {
                        let (to, from) = (it.add(at as usize), block.add(offset as usize));
                        if !number::move_plain::<N, SWAP>(number, from, to) {
                            self.get::<SWAP>(number, from, to, step)?;
                        }
                    }
                    ProgramStep::PutArray {
                        number,
                        at,
                        count,
                        offset,
                    } => {
                        let (to, from) = (it.add(at as usize), block.add(offset as usize));
                        self.numbers::<SWAP>(number, from, to, count as usize, step)?;
                    }
                    ProgramStep::PutCounted { number, at, bound } => {
                        let (wire, memory) = (number.wire_bytes(), number.memory_bytes());
                        let count = self.count::<SWAP>(bound, wire, step)?;
                        let items = self.memory_of(count, memory, MemoryContent::Any, step)?;
                        let from = self.take_counted(count * wire);
                        self.numbers::<SWAP>(number, from, items, count, step)?;
                        put_counted(count, items, it.add(at as usize));
                    }
                    ProgramStep::Copy {
                        at,
                        bytes,
                        padding,
                        offset,
                    } => {
                        let (bytes, from) = (bytes as usize, block.add(offset as usize));
                        it.add(at as usize).copy_from_nonoverlapping(from, bytes);
                        self.zeros(from.add(bytes), padding as usize, step)?;
                    }
                    ProgramStep::CopyCounted { at, bound } => {
                        let bytes = self.count::<SWAP>(bound, 1, step)?;
                        let padded = bytes.next_multiple_of(self.program.padding as usize);
                        let from = self.take(padded, step)?;
                        self.zeros(from.add(bytes), padded - bytes, step)?;
                        let items = self.memory_of(bytes, 1, MemoryContent::Any, step)?;
                        items.copy_from_nonoverlapping(from, bytes);
                        put_counted(bytes, items, it.add(at as usize));
                    }
                    ProgramStep::Text { at, bound } => {
                        let text = self.text::<SWAP>(bound, step)?;
                        it.add(at as usize).cast::<*mut u8>().write(text);
                    }
                    ProgramStep::Blit {
                        item,
                        at,
                        bytes,
                        offset,
                    } => {
                        let (to, from) = (it.add(at as usize), block.add(offset as usize));
                        number::get_block::<SWAP>(self.program, item, from, to, bytes as usize);
                    }
                    ProgramStep::BlitCounted {
                        item,
                        stride,
                        at,
                        bound,
                    } => {
                        let stride = stride as usize;
                        let count = self.count::<SWAP>(bound, stride, step)?;
                        let items = self.memory_of(count, stride, MemoryContent::Any, step)?;
                        let bytes = count * stride;
                        let from = self.take_counted(bytes);
                        if bytes > 0 {
                            number::get_block::<SWAP>(self.program, item, from, items, bytes);
                        }
                        put_counted(count, items, it.add(at as usize));
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
                        let (at, bytes) = (it.add(at as usize), bytes as usize);
                        let sizes = (stride as usize, bytes);
                        let (count, items) = self.elements::<SWAP>(at, count, sizes, step)?;
                        let from = self.take(count * bytes, step)?;
                        for index in 0..count {
                            let item = items.add(index * stride as usize);
                            self.body::<SWAP>(inner, item, from.add(index * bytes))?;
                        }
                    }
                    ProgramStep::Loop {
                        at,
                        count,
                        stride,
                        fewest,
                        length,
                    } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let (at, sizes) = (it.add(at as usize), (stride as usize, fewest as usize));
                        let (count, items) = self.elements::<SWAP>(at, count, sizes, step)?;
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
                    ProgramStep::Optional { at, bytes, length } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let mut held = ptr::null_mut();
                        if self.flag::<SWAP>(step)? {
                            held = self.memory(1, bytes as usize, step)?;
                            self.body::<SWAP>(inner, held, NO_BLOCK)?;
                        }
                        it.add(at as usize).cast::<*mut u8>().write(held);
                    }
                    ProgramStep::Boxed { at, bytes, length } => {
                        let (inner, rest) = rest.split_at(length as usize);
                        steps = rest;
                        let held = self.memory(1, bytes as usize, step)?;
                        it.add(at as usize).cast::<*mut u8>().write(held);
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
                        return Err(self.refuse(DecodeErrorKind::External, Some(step)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of elements and the address for them: counted ones get memory of
    /// their own. `sizes` are the bytes of an element in memory and the fewest on the wire.
    ///
    /// # Safety
    /// There is room for them, or for the counted array, at `at`.
    unsafe fn elements<const SWAP: bool>(
        &mut self,
        at: *mut u8,
        count: Count,
        sizes: (usize, usize),
        step: &'p ProgramStep,
    ) -> Result<(usize, *mut u8), ErrorRecorded> {
        match count {
            Count::Fixed(count) => Ok((count as usize, at)),
            Count::Counted(bound) => {
                let count = self.count::<SWAP>(bound, sizes.1, step)?;
                let items = self.memory(count, sizes.0, step)?;
                // SAFETY: the caller's promise.
                unsafe { put_counted(count, items, at) };
                Ok((count, items))
            }
        }
    }

    /// Reads the boolean that says whether something follows.
    fn flag<const SWAP: bool>(&mut self, step: &'p ProgramStep) -> Result<bool, ErrorRecorded> {
        let flag = self.program.flag;
        let from = self.take(flag.wire_bytes(), step)?;
        let mut follows = 0_i32;
        // SAFETY: so many bytes were just found to be there.
        unsafe { self.get::<SWAP>(flag, from, (&raw mut follows).cast(), step)? };
        Ok(follows != 0)
    }

    #[inline(never)]
    unsafe fn get<const SWAP: bool>(
        &mut self,
        number: NumberFormat,
        from: *const u8,
        to: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        // SAFETY: the caller's promise.
        let done =
            unsafe { number::get::<SWAP>(self.program, self.source.is_strict, number, from, to) };
        done.map_err(|kind| self.refuse_at(kind, from, step))
    }

    /// Reads an array of numbers that are converted one by one.
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
            unsafe {
                let (from, to) = (from.add(index * wire), to.add(index * memory));
                let strict = self.source.is_strict;
                let done = number::get::<SWAP>(self.program, strict, number, from, to);
                done.map_err(|kind| self.refuse_at(kind, from, step))?;
            }
        }
        Ok(())
    }

    unsafe fn switch<const SWAP: bool>(
        &mut self,
        switch: u32,
        it: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        let switch = self.program.switch(switch);
        let from = self.take(switch.discriminant.wire_bytes(), step)?;
        // SAFETY: the caller's promise: there is room for the discriminant and for each arm.
        unsafe {
            let to = it.add(switch.at as usize);
            self.get::<SWAP>(switch.discriminant, from, to, step)?;
            let value = number::discriminant(switch.scalar, switch.discriminant, to);
            match switch.select(value) {
                Some(arm) => {
                    let steps = self.program.steps(arm);
                    self.body::<SWAP>(steps, it.add(switch.arms_at as usize), NO_BLOCK)
                }
                None => Err(self.refuse_at(DecodeErrorKind::UnknownValue(value), from, step)),
            }
        }
    }

    unsafe fn list<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        // SAFETY: the caller's promise.
        unsafe {
            match list.is_flagged {
                true => self.flagged_list::<SWAP>(list, at, step),
                false => self.counted_list::<SWAP>(list, at, step),
            }
        }
    }

    #[inline(never)]
    unsafe fn counted_list<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        let sizes = (list.stride as usize, list.fewest as usize);
        // SAFETY: the caller's promise.
        unsafe {
            let (count, items) =
                self.elements::<SWAP>(at, Count::Counted(u32::MAX), sizes, step)?;
            if list.first_bare && count == 0 {
                return Err(self.refuse(DecodeErrorKind::BadList, Some(step)));
            }
            let entry = self.program.of_type(list.element);
            for index in 0..count {
                self.align(list.align, 0, step)?;
                self.value::<SWAP>(entry, items.add(index * sizes.0), Some(step))?;
            }
        }
        Ok(())
    }

    /// The room doubles when it is full; what was taken before stays paid for.
    #[inline(never)]
    unsafe fn flagged_list<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        let stride = list.stride as usize;
        let entry = self.program.of_type(list.element);
        let (mut count, mut room, mut items) =
            (0_usize, 0_usize, ptr::dangling_mut::<u64>().cast());
        while (list.first_bare && count == 0) || self.flag::<SWAP>(step)? {
            if count > 0 || !list.first_bare {
                self.align(list.align, 0, step)?;
            }
            if count == u32::MAX as usize {
                return Err(self.refuse(DecodeErrorKind::TooMuchMemory, Some(step)));
            }
            // SAFETY: the larger room is behind the smaller one, which holds `count` elements; the
            // element lies in it.
            unsafe {
                if count == room {
                    room = (room * 2).max(1);
                    let larger = self.memory(room, stride, step)?;
                    larger.copy_from_nonoverlapping(items, count * stride);
                    items = larger;
                }
                self.value::<SWAP>(entry, items.add(count * stride), Some(step))?;
            }
            count += 1;
        }
        // SAFETY: the caller's promise.
        unsafe { put_counted(count, items, at) };
        Ok(())
    }

    /// Reads a string, which ends in a NUL in memory.
    #[inline(never)]
    unsafe fn text<const SWAP: bool>(
        &mut self,
        bound: u32,
        step: &'p ProgramStep,
    ) -> Result<*mut u8, ErrorRecorded> {
        let bytes = self.count::<SWAP>(bound, 1, step)?;
        let padded = bytes.next_multiple_of(self.program.padding as usize);
        let from = self.take(padded, step)?;
        // SAFETY: so many bytes were just found to be there.
        unsafe {
            self.zeros(from.add(bytes), padded - bytes, step)?;
            if std::slice::from_raw_parts(from, bytes).contains(&0) {
                return Err(self.refuse_at(DecodeErrorKind::HoldsNul, from, step));
            }
            let text = self.memory_of(bytes + 1, 1, MemoryContent::Any, step)?;
            text.copy_from_nonoverlapping(from, bytes);
            text.add(bytes).write(0);
            Ok(text)
        }
    }

    /// Reads a list that is linked by pointers. If the first is bare, it lies at `at`, and otherwise the
    /// pointer to it.
    #[inline(never)]
    unsafe fn chain<const SWAP: bool>(
        &mut self,
        list: &'p ListStep,
        at: *mut u8,
        step: &'p ProgramStep,
    ) -> StepResult {
        let entry = self.program.of_type(list.element);
        let link = list.link as usize;
        let mut left = match list.is_flagged {
            true => None,
            false => Some(self.count::<SWAP>(u32::MAX, list.fewest as usize, step)?),
        };
        let mut pointer = at.cast::<*mut u8>();
        // SAFETY: the caller's promise; an element holds the pointer to the next one.
        unsafe {
            if list.first_bare {
                if let Some(count) = &mut left {
                    let Some(others) = count.checked_sub(1) else {
                        return Err(self.refuse(DecodeErrorKind::BadList, Some(step)));
                    };
                    *count = others;
                    self.align(list.align, 0, step)?;
                }
                pointer = at.add(link).cast();
                pointer.write(ptr::null_mut());
                self.value::<SWAP>(entry, at, Some(step))?;
            } else {
                pointer.write(ptr::null_mut());
            }
            loop {
                let follows = match &mut left {
                    None => self.flag::<SWAP>(step)?,
                    Some(0) => false,
                    Some(count) => {
                        *count -= 1;
                        true
                    }
                };
                if !follows {
                    return Ok(());
                }
                self.align(list.align, 0, step)?;
                let element = self.memory(1, list.stride as usize, step)?;
                pointer.write(element);
                pointer = element.add(link).cast();
                self.value::<SWAP>(entry, element, Some(step))?;
            }
        }
    }
}

/// # Safety
/// There is room for a counted item.
#[inline]
unsafe fn put_counted(count: usize, items: *mut u8, to: *mut u8) {
    let count = count as u32;
    // SAFETY: the caller's promise.
    unsafe {
        to.cast::<CountedArray>()
            .write(CountedArray { count, items })
    };
}
