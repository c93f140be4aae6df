//! Functions that machine code calls for values that a program in C holds.

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use super::context::{DecodeContext, EncodeContext};
use super::helpers::{COUNT, HelperFunction, REFUSED, copy_few, helpers, opaque_at};
use crate::frame::array::ordered;
use crate::frame::heap::{CHeap, MemoryContent};
use crate::frame::interp;
use crate::layout::CountedArray;

helpers! {
    /// `(encoding, at, bytes)`: makes room, and returns the cursor as it is then.
    TRY_GROW = try_grow, 3;
    /// `(decoding, bytes, price)`: allocates zeroed memory for a value, at this price.
    TAKE_IN_C = take_in_c, 3;
    /// `(decoding, items, bytes, price)`: allocates memory for items, at this price, and stores its address at `items`,
    /// or null if there is nothing to pay for. Returns an address in either case.
    TAKE_ITEMS_IN_C = take_items_in_c::<false>, 4;
    /// As [`TAKE_ITEMS_IN_C`], for items that write all of their memory.
    TAKE_BYTES_IN_C = take_items_in_c::<true>, 4;
    /// `(encoding, first, link, fewest)`: returns one more than the number of elements of a list that are linked by
    /// pointers, unless they take more bytes on the wire than the message may have.
    CHAIN_LENGTH = chain_length, 4;
}

// Safety of all below: machine code hands over the context that it was entered with, places in the value or the
// context's bytes, and sizes that it has checked.

unsafe extern "C" fn try_grow(context: *mut EncodeContext<'_>, at: *mut u8, bytes: u64) -> *mut u8 {
    // SAFETY: see above.
    let grown = unsafe { (*context).try_grow(at, bytes as usize) };
    grown.unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn take_in_c(
    context: *mut DecodeContext<'_, CHeap>,
    bytes: u64,
    price: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe { take_from_heap(context, bytes, price, MemoryContent::Zeros) }
}

#[inline(always)]
unsafe fn take_from_heap(
    context: *mut DecodeContext<'_, CHeap>,
    bytes: u64,
    price: u64,
    content: MemoryContent,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let memory = (*context)
            .charge(price)
            .and_then(|()| (*context).arena.take(bytes as usize, content));
        memory.map_or(ptr::null_mut(), |memory| memory.as_ptr())
    }
}

unsafe extern "C" fn take_items_in_c<const ALL_WRITTEN: bool>(
    context: *mut DecodeContext<'_, CHeap>,
    items: *mut *mut u8,
    bytes: u64,
    price: u64,
) -> *mut u8 {
    let content = match ALL_WRITTEN {
        true => MemoryContent::Any,
        false => MemoryContent::Zeros,
    };
    // SAFETY: see above.
    unsafe {
        if price == 0 {
            items.write_unaligned(ptr::null_mut());
            // Nothing is moved to there.
            return ptr::dangling_mut::<u64>().cast();
        }
        let memory = take_from_heap(context, bytes, price, content);
        items.write_unaligned(memory);
        memory
    }
}

unsafe extern "C" fn chain_length(
    context: *mut EncodeContext<'_>,
    first: *const u8,
    link: u64,
    fewest: u64,
) -> u64 {
    // SAFETY: see above.
    let counted = unsafe {
        let limit = (*context).limit as usize;
        interp::chain_length(first, link as usize, fewest as usize, limit)
    };
    counted.map_or(REFUSED, |count| u64::from(count) + 1)
}

/// Appends counted bytes of a value that a program in C holds.
#[inline(always)]
unsafe fn put_bytes_in_c<const PADDING: usize, const SWAPPED: bool>(
    context: *mut EncodeContext<'_>,
    mut at: *mut u8,
    bytes: &[u8],
    bound: u64,
) -> *mut u8 {
    let Ok(count) = u32::try_from(bytes.len()) else {
        return ptr::null_mut();
    };
    if u64::from(count) > bound {
        return ptr::null_mut();
    }
    let padded = bytes.len().next_multiple_of(PADDING);
    // SAFETY: see above.
    unsafe {
        if ((*context).header.end as usize - at as usize) < COUNT + padded {
            at = try_grow(context, at, (COUNT + padded) as u64);
            if at.is_null() {
                return at;
            }
        }
        at.cast::<u32>().write_unaligned(ordered::<SWAPPED>(count));
        let to = at.add(COUNT);
        if PADDING > 1 && padded > 0 {
            to.add(padded - PADDING).write_bytes(0, PADDING);
        }
        copy_few(bytes.as_ptr(), to, bytes.len());
        to.add(padded)
    }
}

/// See [`OpaqueHelpers::put`].
pub(super) unsafe extern "C" fn put_counted_in_c<const PADDING: usize, const SWAPPED: bool>(
    context: *mut EncodeContext<'_>,
    at: *mut u8,
    from: *const CountedArray,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above; the item points to as many bytes as it counts, unless its pointer is null.
    unsafe {
        let CountedArray { count, items } = *from;
        let bytes = match (items.is_null(), count) {
            (true, 0) => &[],
            (true, _) => return ptr::null_mut(),
            (false, count) => slice::from_raw_parts(items, count as usize),
        };
        put_bytes_in_c::<PADDING, SWAPPED>(context, at, bytes, bound)
    }
}

/// See [`OpaqueHelpers::put`].
pub(super) unsafe extern "C" fn put_text<const PADDING: usize, const SWAPPED: bool>(
    context: *mut EncodeContext<'_>,
    at: *mut u8,
    from: *const *const c_char,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above; the text ends in a NUL, unless its pointer is null.
    unsafe {
        let text = *from;
        let bytes = match text.is_null() {
            true => &[],
            false => CStr::from_ptr(text).to_bytes(),
        };
        put_bytes_in_c::<PADDING, SWAPPED>(context, at, bytes, bound)
    }
}

/// See [`OpaqueHelpers::get`].
pub(super) unsafe extern "C" fn get_counted_in_c<const PADDING: usize, const SWAPPED: bool>(
    context: *mut DecodeContext<'_, CHeap>,
    at: *mut u8,
    to: *mut CountedArray,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let Some((at, count, behind)) = opaque_at::<PADDING, SWAPPED, _>(context, at, bound) else {
            return ptr::null_mut();
        };
        let mut items = ptr::null_mut();
        if count > 0 {
            let price = count.into();
            items = take_from_heap(context, price, price, MemoryContent::Any);
            if items.is_null() {
                return items;
            }
            copy_few(at, items, count as usize);
        }
        to.write(CountedArray { count, items });
        behind
    }
}

/// See [`OpaqueHelpers::get`].
pub(super) unsafe extern "C" fn get_text<const PADDING: usize, const SWAPPED: bool>(
    context: *mut DecodeContext<'_, CHeap>,
    at: *mut u8,
    to: *mut *mut u8,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let Some((at, count, behind)) = opaque_at::<PADDING, SWAPPED, _>(context, at, bound) else {
            return ptr::null_mut();
        };
        let bytes = count as usize;
        if !libc::memchr(at.cast(), 0, bytes).is_null() {
            return ptr::null_mut();
        }
        let price = u64::from(count) + 1;
        let text = take_from_heap(context, price, price, MemoryContent::Any);
        if text.is_null() {
            return text;
        }
        copy_few(at, text, bytes);
        text.add(bytes).write(0);
        to.write(text);
        behind
    }
}
