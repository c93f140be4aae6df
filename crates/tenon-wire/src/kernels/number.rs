//! Single numbers, moved as a representation says: at once, or in the slower ways that the study of
//! stubs compares that with.

use core::mem::MaybeUninit;
use core::ptr;

use super::blittable::unit;
use super::{Blittable, get, put_one};
use crate::Representation;

/// Writes a value as `R` has it. If it is a single number, it is moved as `R` says.
///
/// # Panics
/// If it does not fill `to` exactly.
#[inline(always)]
pub(crate) fn put<T: Blittable, R: Representation>(item: &T, to: &mut [u8]) {
    match const { is_number::<T>() } {
        true if R::CALLED => procedure(&const { put_inline::<T, R> as Put<T> })(item, to),
        true => put_inline::<T, R>(item, to),
        false => put_one(item, to, R::SWAPPED),
    }
}

/// Reads a value as `R` has it. If it is a single number, it is moved as `R` says.
///
/// # Panics
/// If it does not fill `from` exactly.
#[inline(always)]
pub(crate) fn take<T: Blittable, R: Representation>(from: &[u8]) -> T {
    match const { is_number::<T>() } {
        true if R::CALLED => procedure(&const { take_inline::<T, R> as Take<T> })(from),
        true => take_inline::<T, R>(from),
        false => get(from, R::SWAPPED),
    }
}

type Put<T> = fn(&T, &mut [u8]);
type Take<T> = fn(&[u8]) -> T;

/// Returns whether a value is one number and no more.
const fn is_number<T: Blittable>() -> bool {
    matches!(unit::<T>(), Some(unit) if unit == size_of::<T>())
}

/// The procedure behind a pointer that compilers may not look behind: it might be bound when the
/// program is started.
#[inline(always)]
fn procedure<F: Copy>(pointer: &'static F) -> F {
    // SAFETY: a reference may be read.
    unsafe { ptr::from_ref(pointer).read_volatile() }
}

#[inline(always)]
fn put_inline<T: Blittable, R: Representation>(item: &T, to: &mut [u8]) {
    match R::BYTEWISE {
        true => put_bytes(item, to, R::SWAPPED),
        false => put_one(item, to, R::SWAPPED),
    }
}

#[inline(always)]
fn take_inline<T: Blittable, R: Representation>(from: &[u8]) -> T {
    match R::BYTEWISE {
        true => take_bytes(from, R::SWAPPED),
        false => get(from, R::SWAPPED),
    }
}

/// Writes each byte of a number by itself: what compilers would make one store of.
#[inline(always)]
fn put_bytes<T: Blittable>(item: &T, to: &mut [u8], swapped: bool) {
    assert!(to.len() == size_of::<T>(), "the number fills its bytes");
    let from = ptr::from_ref(item).cast::<u8>();
    for (at, to) in to.iter_mut().enumerate() {
        // SAFETY: the number has so many bytes; a reference may be written to.
        unsafe { ptr::from_mut(to).write_volatile(from.add(place::<T>(at, swapped)).read()) };
    }
}

/// Reads each byte of a number by itself.
#[inline(always)]
fn take_bytes<T: Blittable>(from: &[u8], swapped: bool) -> T {
    assert!(from.len() == size_of::<T>(), "the number fills its bytes");
    let mut item = MaybeUninit::<T>::uninit();
    let to = item.as_mut_ptr().cast::<u8>();
    for (at, from) in from.iter().enumerate() {
        // SAFETY: the number has so many bytes; a reference may be read.
        unsafe {
            to.add(place::<T>(at, swapped))
                .write(ptr::from_ref(from).read_volatile())
        };
    }
    // SAFETY: all its bytes were just written, and whatever they are, they make a number (the
    // contract of `Blittable`).
    unsafe { item.assume_init() }
}

/// Returns the offset in memory of the byte that comes at `at` on the wire.
#[inline(always)]
fn place<T>(at: usize, swapped: bool) -> usize {
    match swapped {
        true => size_of::<T>() - 1 - at,
        false => at,
    }
}
