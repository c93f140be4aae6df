//! Values in memory of their own. To take the memory and fill it is one call that answers with an
//! address: a decoder that has no more in it becomes part of its caller, and what it makes stays in
//! registers. A value that comes back in memory was written there word by word and is read two words
//! at once, which processors do no sooner than both words have left for the cache.

use alloc::alloc::{alloc, handle_alloc_error};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

use super::Blittable;
use super::blit::convert;
use super::blittable::unit;
use super::chosen::Chosen;
use super::item::Bits;
use super::swap::copy;

/// Reads the `count` items that fill `from` into a vector, the memory of which is written once.
///
/// # Panics
/// If the items do not fill it exactly.
#[inline(always)]
pub fn get_vec<T: Blittable>(from: &[u8], count: usize, swapped: bool) -> Vec<T> {
    let bytes = count.checked_mul(size_of::<T>());
    assert!(bytes == Some(from.len()), "the items fill their bytes");
    // SAFETY: where there are bytes, they are whole items. The allocator handed out memory for so many,
    // unless they take none, and all of it was written; whatever the bytes are, they make items (the
    // contract of `Blittable`).
    unsafe {
        let memory = match from.is_empty() {
            true => NonNull::dangling(),
            false => own::<T>(from, swapped),
        };
        Vec::from_raw_parts(memory.as_ptr(), count, count)
    }
}

/// Memory of the allocator's for as many items as fill `from`, filled with them.
///
/// # Safety
/// They do fill it, and there are some.
#[inline(always)]
unsafe fn own<T: Blittable>(from: &[u8], swapped: bool) -> NonNull<T> {
    let align = align_of::<T>();
    // SAFETY: the caller's promise; where units are told apart, items consist of such alone.
    let memory = unsafe {
        match (swapped, const { unit::<T>() }) {
            (false, _) | (true, Some(1)) => own_copy(from, align),
            (true, Some(2)) => own_swapped(from, align, u16::chosen()),
            (true, Some(4)) => own_swapped(from, align, u32::chosen()),
            (true, Some(8)) => own_swapped(from, align, u64::chosen()),
            (true, _) => own_converted::<T>(from),
        }
    };
    memory.cast()
}

/// # Safety
/// There are bytes.
#[inline(never)]
unsafe fn own_copy(from: &[u8], align: usize) -> NonNull<u8> {
    // SAFETY: there are bytes, and memory for as many, to which no other reference exists yet.
    unsafe {
        let memory = take(from.len(), align);
        copy(from.as_ptr(), memory.as_ptr(), from.len());
        memory
    }
}

/// # Safety
/// There are bytes, and they are whole numbers such as `chosen` moves.
#[inline(never)]
unsafe fn own_swapped(from: &[u8], align: usize, chosen: &Chosen) -> NonNull<u8> {
    // SAFETY: the caller's promise; there is memory for as many bytes, to which no other reference exists yet.
    unsafe {
        let memory = take(from.len(), align);
        chosen.get()(from.as_ptr(), memory.as_ptr(), from.len());
        memory
    }
}

/// Of items that consist of numbers of several sizes.
///
/// # Safety
/// There are bytes, and they are whole items.
#[inline(never)]
unsafe fn own_converted<T: Blittable>(from: &[u8]) -> NonNull<u8> {
    // SAFETY: the caller's promise; there is memory for as many bytes, to which no other reference exists yet.
    unsafe {
        let memory = take(from.len(), align_of::<T>());
        convert::<T, false>(from.as_ptr(), memory.as_ptr(), from.len(), true);
        memory
    }
}

/// Memory of the allocator's.
///
/// # Safety
/// There are `bytes`, and `align` is a power of two.
#[inline(always)]
unsafe fn take(bytes: usize, align: usize) -> NonNull<u8> {
    let Ok(layout) = Layout::from_size_align(bytes, align) else {
        unreachable!("as many bytes lie in memory already")
    };
    // SAFETY: there are bytes.
    match NonNull::new(unsafe { alloc(layout) }) {
        Some(memory) => memory,
        None => handle_alloc_error(layout),
    }
}
