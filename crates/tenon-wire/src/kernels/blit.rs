//! Moving values that lie on the wire as they lie in memory.

use core::mem::MaybeUninit;
use core::ptr;

use super::Blittable;
use super::blittable::unit;
use super::lengths::SHORT;
use super::swap::{copy, swap, swap_few};

/// Moves values between memory and the wire; both directions are the same. `FEW` says that the
/// compiler knows how many. Gives where the last value ends at `to`.
///
/// # Safety
/// `bytes`, whole values, can be read at `from` and written at `to`, which do not overlap.
#[inline(always)]
pub(super) unsafe fn convert<T: Blittable, const FEW: bool>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    swapped: bool,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        match (swapped, const { unit::<T>() }) {
            (false, _) | (true, Some(1)) if FEW => ptr::copy_nonoverlapping(from, to, bytes),
            (false, _) | (true, Some(1)) => return copy(from, to, bytes),
            (true, Some(2)) if FEW => swap_few::<u16>(from, to, bytes),
            (true, Some(4)) if FEW => swap_few::<u32>(from, to, bytes),
            (true, Some(8)) if FEW => swap_few::<u64>(from, to, bytes),
            (true, Some(2)) => return swap::<u16>(from, to, bytes),
            (true, Some(4)) => return swap::<u32>(from, to, bytes),
            (true, Some(8)) => return swap::<u64>(from, to, bytes),
            (true, _) => convert_runs::<T>(from, to, bytes),
        }
        to.add(bytes)
    }
}

/// Swaps values that consist of numbers of several sizes.
///
/// # Safety
/// As [`convert`].
#[inline]
unsafe fn convert_runs<T: Blittable>(from: *const u8, to: *mut u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        for run in T::RUNS {
            let bytes = run.unit * run.units;
            // SAFETY: the caller's promise; values are whole, and their runs divide their size
            // (the contract of `Blittable`), so that each run lies inside of both places.
            unsafe {
                let (from, to) = (from.add(at), to.add(at));
                match run.unit {
                    2 => swap_few::<u16>(from, to, bytes),
                    4 => swap_few::<u32>(from, to, bytes),
                    8 => swap_few::<u64>(from, to, bytes),
                    _ => ptr::copy_nonoverlapping(from, to, bytes),
                }
            }
            at += bytes;
        }
    }
}

/// Reverses the bytes of each number of a value where it lies.
///
/// # Safety
/// The value lies at `at`, and nothing else reads or writes it.
#[inline(always)]
pub(super) unsafe fn reverse<T: Blittable>(at: *mut u8) {
    let bytes = size_of::<T>();
    // SAFETY: the caller's promise; source and destination are the same. The runs of a value divide its
    // size (the contract of `Blittable`), so that each lies inside of it.
    unsafe {
        match const { unit::<T>() } {
            Some(1) => {}
            Some(2) => swap_few::<u16>(at, at, bytes),
            Some(4) => swap_few::<u32>(at, at, bytes),
            Some(8) => swap_few::<u64>(at, at, bytes),
            _ => {
                let mut done = 0;
                while done < bytes {
                    for run in T::RUNS {
                        let (at, bytes) = (at.add(done), run.unit * run.units);
                        match run.unit {
                            2 => swap_few::<u16>(at, at, bytes),
                            4 => swap_few::<u32>(at, at, bytes),
                            8 => swap_few::<u64>(at, at, bytes),
                            _ => {}
                        }
                        done += bytes;
                    }
                }
            }
        }
    }
}

/// Reverses the bytes of each number where it lies; each has `unit` bytes: 1, 2, 4 or 8.
///
/// # Panics
/// If the numbers do not fill their bytes exactly, or have another size.
pub fn reverse_numbers(numbers: &mut [u8], unit: usize) {
    let (at, bytes) = (numbers.as_mut_ptr(), numbers.len());
    assert!(
        matches!(unit, 1 | 2 | 4 | 8) && bytes.is_multiple_of(unit),
        "the numbers fill their bytes"
    );
    // SAFETY: the bytes are whole numbers, which are borrowed; source and destination are the same.
    unsafe {
        match unit {
            2 => swap_few::<u16>(at, at, bytes),
            4 => swap_few::<u32>(at, at, bytes),
            8 => swap_few::<u64>(at, at, bytes),
            _ => {}
        }
    }
}

/// Writes one value to `to`, its numbers `swapped` if they are to have the other order of bytes.
///
/// # Panics
/// If it does not fill `to` exactly.
#[inline(always)]
pub fn put_one<T: Blittable>(item: &T, to: &mut [u8], swapped: bool) {
    assert!(to.len() == size_of::<T>(), "the items fill their bytes");
    let (from, to) = (ptr::from_ref(item).cast(), to.as_mut_ptr());
    // SAFETY: there are as many bytes at both places; one is borrowed mutably, so they do not
    // overlap.
    unsafe {
        match const { size_of::<T>() <= SHORT } {
            true => convert::<T, true>(from, to, size_of::<T>(), swapped),
            false => convert::<T, false>(from, to, size_of::<T>(), swapped),
        };
    }
}

/// Reads the value that fills `from`.
///
/// # Panics
/// If it does not fill it exactly.
#[inline(always)]
pub fn get<T: Blittable>(from: &[u8], swapped: bool) -> T {
    assert!(from.len() == size_of::<T>(), "the items fill their bytes");
    let mut item = MaybeUninit::<T>::uninit();
    // SAFETY: the value has as many bytes as `from`, and no other reference to it exists yet; whatever they
    // are, they make a value (the contract of `Blittable`).
    unsafe {
        convert::<T, true>(
            from.as_ptr(),
            item.as_mut_ptr().cast(),
            size_of::<T>(),
            swapped,
        );
        item.assume_init()
    }
}

/// Writes `items` to `to`, their numbers `swapped` if they are to have the other order of bytes. Gives where
/// `to` ends: a caller that goes on there need not remember it.
///
/// # Panics
/// If the items do not fill `to` exactly.
#[inline(always)]
pub fn put<T: Blittable>(items: &[T], to: &mut [u8], swapped: bool) -> *mut u8 {
    assert!(size_of_val(items) == to.len(), "the items fill their bytes");
    // SAFETY: both slices have as many bytes; one is borrowed mutably, so they do not overlap.
    unsafe { convert::<T, false>(items.as_ptr().cast(), to.as_mut_ptr(), to.len(), swapped) }
}
