//! Kernels: values between memory and the wire, at the speed of a copy. Where the order of bytes
//! differs, which instructions change it is chosen once per array; every choice gives equal results
//! at every length, and none asks for alignment.
//!
//! This is the crate's room for `unsafe`. The functions in front take slices, check what they are
//! handed, and cannot be misused; everything behind them moves bytes by pointer.
#![allow(unsafe_code)]

mod array;
mod blit;
mod blittable;
mod chosen;
mod counted;
mod item;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon")
))]
mod lanes;
mod lengths;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod number;
mod owned;
mod portable;
mod primitive;
mod reserved_value;
mod select;
mod storage;
mod swap;
#[cfg(test)]
mod tests;
mod whole;
#[cfg(target_arch = "x86_64")]
mod x86;

use alloc::boxed::Box;
use core::mem::MaybeUninit;

pub use array::{boxed_array, boxed_copy, map_boxed, try_array};
pub use blit::{get, put, put_one, reverse_numbers};
pub use blittable::{Blittable, Part, Run, has_no_order};
pub use chosen::Chosen;
pub use item::{Bits, Item};
pub use owned::get_vec;
pub use reserved_value::ReservedValue;
pub use select::Kernel;
pub use whole::{duplicate, same, zeroed};

pub(crate) use array::boxed;
pub(crate) use counted::{put_counted, put_opaque};
pub(crate) use number::{put as put_number, take as take_number};
pub(crate) use storage::BufferStorage;

use blit::convert;
use swap::swap;

/// Writes `bytes` to `to`, and gives where that ends. Where there are few, as in most strings, nothing is
/// called.
///
/// # Panics
/// If they do not fill `to` exactly.
#[inline(always)]
pub fn put_bytes(bytes: &[u8], to: &mut [u8]) -> *mut u8 {
    assert!(bytes.len() == to.len(), "the bytes fill their room");
    // SAFETY: both slices have as many bytes; one is borrowed mutably, so they do not overlap.
    unsafe { storage::copy_string(bytes.as_ptr(), to.as_mut_ptr(), to.len()) }
}

/// Reads the items that fill `from` to `to`; all of it is written.
///
/// # Panics
/// If the items do not fill `to` exactly.
#[inline(always)]
pub fn get_into<T: Blittable>(from: &[u8], to: &mut [MaybeUninit<T>], swapped: bool) {
    assert!(from.len() == size_of_val(to), "the items fill their bytes");
    // SAFETY: both slices have as many bytes; one is borrowed mutably, so they do not overlap.
    // Whatever the bytes are, they make items (the contract of `Blittable`).
    unsafe { convert::<T, false>(from.as_ptr(), to.as_mut_ptr().cast(), from.len(), swapped) };
}

/// Reads the value that fills `from` into memory of its own.
///
/// # Panics
/// If it does not fill it exactly.
#[inline]
pub fn get_boxed<T: Blittable>(from: &[u8], swapped: bool) -> Box<T> {
    let mut item = Box::<T>::new_uninit();
    get_into(from, core::slice::from_mut(&mut *item), swapped);
    // SAFETY: all of it was just written.
    unsafe { item.assume_init() }
}

/// The `count` items that fill `from` where they lie, if they lie at a multiple of what their type
/// wants. They are counted by the caller, as a division would take longer than all the rest.
#[inline]
pub fn borrowed<T: Blittable>(from: &[u8], count: usize) -> Option<&[T]> {
    let at = from.as_ptr().cast::<T>();
    let is_all = count.checked_mul(size_of::<T>()) == Some(from.len());
    if size_of::<T>() == 0 || !is_all || !at.is_aligned() {
        return None;
    }
    // SAFETY: so many items fill the bytes, which are borrowed as long; they lie where such items
    // may, and whatever the bytes are, they make items (the contract of `Blittable`).
    Some(unsafe { core::slice::from_raw_parts(at, count) })
}

/// Reverses the bytes of each of `items` where they lie.
#[inline(always)]
pub fn swap_in_place<T: Item>(items: &mut [T]) {
    let at = items.as_mut_ptr().cast::<u8>();
    // SAFETY: all bytes are those of `items`, and every pattern of bytes is an item (the contract
    // of `Item`); source and destination are the same.
    unsafe { swap::<T::Bits>(at, at, size_of_val(items)) };
}
