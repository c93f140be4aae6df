//! Moves bytes and items of any number by the best kernel there is, or without one where they are few.

use core::ptr;

use super::item::Bits;
use super::lengths::{LONG, SHORT};
use super::portable;

/// Copies items and reverses the bytes of each. Where it is known that they are few, they are not
/// worth a call.
///
/// # Safety
/// `bytes`, whole items, can be read at `from` and written at `to`, which are one place or do not
/// overlap.
#[inline(always)]
pub(super) unsafe fn swap_few<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes <= LONG {
            true => portable::swap::<B>(from, to, bytes),
            false => swap::<B>(from, to, bytes),
        };
    }
}

/// Copies bytes. Gives where the last one written ends, as the kernel below does.
///
/// # Safety
/// `bytes` can be read at `from` and written at `to`, which do not overlap.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if bytes > SHORT {
            return swap::<u8>(from, to, bytes);
        }
        ptr::copy_nonoverlapping(from, to, bytes);
        to.add(bytes)
    }
}

/// Copies items and reverses the bytes of each, by the best kernel there is.
///
/// # Safety
/// As [`swap_few`].
#[inline(always)]
pub(super) unsafe fn swap<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { B::chosen().get()(from, to, bytes) }
}
