//! Kernels: arrays of numbers between the processor's byte order and the network's, at the speed
//! of a copy. Which instructions do it is chosen once per array; every choice gives equal results
//! at every length, and none asks for alignment.
//!
//! This is the crate's room for `unsafe`. The functions in front take slices, check what they are
//! handed, and cannot be misused; everything behind them moves bytes by pointer.
#![allow(unsafe_code)]

mod item;
mod lanes;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod portable;
mod select;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use alloc::vec::Vec;
use core::mem::MaybeUninit;

pub use item::Item;
pub use select::Kernel;

use item::Bits;

/// Bytes from which on an array is worth choosing a kernel for; no kernel is handed less. The
/// widest vector there is.
const LONG: usize = 64;

/// Writes `items` to `to`, most significant byte first.
///
/// # Panics
/// If the items do not fill `to` exactly.
#[inline(always)]
pub fn put<T: Item>(items: &[T], to: &mut [u8]) {
    assert_eq!(size_of_val(items), to.len(), "the items fill their bytes");
    // SAFETY: both slices have as many bytes; one is borrowed mutably, so they do not overlap.
    unsafe { convert::<T>(items.as_ptr().cast(), to.as_mut_ptr(), to.len()) }
}

/// Reads the items that fill `from`, most significant byte first.
///
/// # Panics
/// If `from` ends inside of an item.
#[inline]
pub fn get_vec<T: Item>(from: &[u8]) -> Vec<T> {
    assert_eq!(from.len() % size_of::<T>(), 0, "whole items");
    let count = from.len() / size_of::<T>();
    let mut items = Vec::with_capacity(count);
    get_into(from, &mut items.spare_capacity_mut()[..count]);
    // SAFETY: so many items were just written.
    unsafe { items.set_len(count) };
    items
}

/// Reads the items that fill `from`, most significant byte first, to `to`; all of it is written.
///
/// # Panics
/// If the items do not fill `to` exactly.
#[inline(always)]
pub fn get_into<T: Item>(from: &[u8], to: &mut [MaybeUninit<T>]) {
    assert_eq!(from.len(), size_of_val(to), "the items fill their bytes");
    // SAFETY: both slices have as many bytes; one is borrowed mutably, so they do not overlap.
    // Whatever the bytes are, they make items (the contract of `Item`).
    unsafe { convert::<T>(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) }
}

/// Reads the `N` items that fill `from`, most significant byte first.
///
/// # Panics
/// If they do not fill it exactly.
#[inline(always)]
pub fn get_array<T: Item, const N: usize>(from: &[u8]) -> [T; N] {
    assert_eq!(from.len(), N * size_of::<T>(), "the items fill their bytes");
    let mut items = MaybeUninit::<[T; N]>::uninit();
    // SAFETY: the array has as many bytes as `from`, and nobody else knows it yet; whatever they
    // are, they make `N` items (the contract of `Item`).
    unsafe {
        convert::<T>(from.as_ptr(), items.as_mut_ptr().cast(), from.len());
        items.assume_init()
    }
}

/// Reverses the bytes of each of `items` where they lie.
#[inline(always)]
pub fn swap_in_place<T: Item>(items: &mut [T]) {
    let at = items.as_mut_ptr().cast::<u8>();
    // SAFETY: all bytes are those of `items`, and every pattern of bytes is an item (the contract
    // of `Item`); source and destination are the same.
    unsafe { swap::<T::Bits>(at, at, size_of_val(items)) }
}

/// Copies items between the processor's byte order and the network's; both directions are the
/// same.
///
/// # Safety
/// As [`swap`], and the two places do not overlap.
#[inline(always)]
unsafe fn convert<T: Item>(from: *const u8, to: *mut u8, bytes: usize) {
    if cfg!(target_endian = "big") {
        // SAFETY: the caller's promise.
        unsafe { core::ptr::copy_nonoverlapping(from, to, bytes) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { swap::<T::Bits>(from, to, bytes) }
    }
}

/// Copies items and reverses the bytes of each. Short arrays are not worth a call.
///
/// # Safety
/// `bytes`, whole items, can be read at `from` and written at `to`, which are one place or do not
/// overlap.
#[inline(always)]
unsafe fn swap<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes < LONG {
        // SAFETY: the caller's promise.
        unsafe { portable::swap::<B>(from, to, bytes) }
    } else {
        // SAFETY: the caller's promise, and the array is long.
        unsafe { swap_long::<B>(from, to, bytes) }
    }
}

/// [`swap`] by the best kernel.
///
/// # Safety
/// As [`swap`]; `bytes` are [`LONG`] or more.
#[inline(never)]
unsafe fn swap_long<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { Kernel::best().run::<B>(from, to, bytes) }
}
