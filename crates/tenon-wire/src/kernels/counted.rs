//! Appends values to a storage behind what counts them.

use core::slice;

use super::Blittable;
use super::blit::put;
use super::blittable::unit;
use super::item::Bits;
use super::storage::{BufferStorage, WORD};
use crate::Representation;

/// Appends a count and the values that it counts, their numbers `swapped` if they are to have the
/// other order of bytes.
#[inline(always)]
pub(crate) fn put_counted<T: Blittable>(
    storage: &mut BufferStorage,
    count: u32,
    values: &[T],
    swapped: bool,
) {
    // SAFETY: values have no padding (the contract of `Blittable`), so that all of their bytes are
    // initialised; they are borrowed as long.
    let bytes = unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
    let swapped_count = count.swap_bytes();
    // SAFETY: values are whole, and they consist of numbers of that size alone.
    unsafe {
        match (swapped, const { unit::<T>() }) {
            (false, _) => storage.append_items(count, bytes, u8::chosen()),
            (true, Some(1)) => storage.append_items(swapped_count, bytes, u8::chosen()),
            (true, Some(2)) => storage.append_items(swapped_count, bytes, u16::chosen()),
            (true, Some(4)) => storage.append_items(swapped_count, bytes, u32::chosen()),
            (true, Some(8)) => storage.append_items(swapped_count, bytes, u64::chosen()),
            (true, _) => {
                *storage.take_chunk() = swapped_count.to_ne_bytes();
                put(values, storage.take(bytes.len()), swapped);
            }
        }
    }
}

/// Appends a count, the bytes that it counts and their padding, as `R` has them.
#[inline(always)]
pub(crate) fn put_opaque<R: Representation>(storage: &mut BufferStorage, count: u32, bytes: &[u8]) {
    let count = match R::SWAPPED {
        true => count.swap_bytes(),
        false => count,
    };
    match R::PADDING {
        1 => storage.append(count, bytes),
        WORD => storage.append_padded(count, bytes),
        _ => {
            *storage.take_chunk() = count.to_ne_bytes();
            let (to, padding) = storage
                .take(R::padded(bytes.len()))
                .split_at_mut(bytes.len());
            to.copy_from_slice(bytes);
            padding.fill(0);
        }
    }
}
