//! Freeing what values in C's layout own.

use super::heap;
use super::interp::discriminant;
use crate::layout::CountedArray;
use crate::program::{FreeStep, InterpreterProgram, OwnedMemory};

/// Frees what the value at `it` owns, and sets its pointers to null.
///
/// # Safety
/// A value that these steps were made for lies there; what it points to was taken by malloc, and nothing uses it.
pub(super) unsafe fn free(
    program: &InterpreterProgram,
    owned: &OwnedMemory,
    steps: &[FreeStep],
    it: *mut u8,
) {
    for step in steps {
        // SAFETY: the caller's promise; offsets lie in the value.
        unsafe {
            match step {
                FreeStep::Pointer { at, inner } => {
                    let pointer = it.add(*at as usize).cast::<*mut u8>();
                    let held = pointer.replace(std::ptr::null_mut());
                    if !held.is_null() {
                        free(program, owned, inner, held);
                        heap::free(held);
                    }
                }
                FreeStep::Items { at, stride, inner } => {
                    let array = it.add(*at as usize).cast::<CountedArray>();
                    let CountedArray { count, items } = array.read();
                    (*array).items = std::ptr::null_mut();
                    if !items.is_null() {
                        if !inner.is_empty() {
                            for index in 0..count as usize {
                                free(program, owned, inner, items.add(index * *stride as usize));
                            }
                        }
                        heap::free(items);
                    }
                }
                FreeStep::Each {
                    at,
                    count,
                    stride,
                    inner,
                } => {
                    let items = it.add(*at as usize);
                    for index in 0..*count as usize {
                        free(program, owned, inner, items.add(index * *stride as usize));
                    }
                }
                FreeStep::Arms { switch, arms } => {
                    let switch = program.switch(*switch);
                    let from = it.add(switch.at as usize);
                    let value = discriminant(switch.scalar, switch.discriminant, from);
                    let arm = it.add(switch.arms_at as usize);
                    free(program, owned, arms.select(value), arm);
                }
                FreeStep::Chain {
                    at,
                    first_bare,
                    link,
                    element,
                } => {
                    let steps = owned.of_type(*element);
                    let mut pointer = it.add(*at as usize).cast::<*mut u8>();
                    if *first_bare {
                        let first = pointer.cast::<u8>();
                        free(program, owned, steps, first);
                        pointer = first.add(*link as usize).cast();
                    }
                    let mut element = pointer.replace(std::ptr::null_mut());
                    while !element.is_null() {
                        free(program, owned, steps, element);
                        let next = element.add(*link as usize).cast::<*mut u8>().read();
                        heap::free(element);
                        element = next;
                    }
                }
                FreeStep::Named { at, of } => {
                    free(program, owned, owned.of_type(*of), it.add(*at as usize));
                }
            }
        }
    }
}
