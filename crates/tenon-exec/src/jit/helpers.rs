//! Functions that machine code calls. All of them take and return words, and refuse by [`REFUSED`].

use std::{ptr, slice};

use tenon_wire::Buffer;
use tenon_wire::kernels;

use super::c_helpers;
use super::context::{DecodeContext, EncodeContext};
use crate::frame::arena::FrameArena;
use crate::frame::array::{WriteRange, ordered};
use crate::layout::CountedArray;

/// Result of a helper that refuses. No address is null.
pub(super) const REFUSED: u64 = 0;

/// Bytes of a count.
pub(super) const COUNT: usize = size_of::<u32>();

/// A helper as machine code knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelperFunction {
    pub address: *const u8,
    pub parameters: usize,
}

/// A list while it is being read.
#[repr(C)]
pub(super) struct GrowingList {
    pub count: u64,
    pub room: u64,
    pub items: *mut u8,
}

/// The helpers for counted opaque data.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpaqueHelpers {
    /// `(encoding, at, counted, bound)`: appends opaque bytes or a string.
    pub put: HelperFunction,
    /// `(decoding, at, counted, bound)`: reads opaque bytes or a string.
    pub get: HelperFunction,
}

/// The form of counted opaque data in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpaqueForm {
    /// Counted, in a frame.
    Frame,
    /// Counted, where a program in C holds it.
    Counted,
    /// A string that ends in a NUL.
    Text,
}

impl OpaqueHelpers {
    /// Returns the helpers for data of this form that is padded with zeros to a multiple of `padding`, 1, 2, 4 or 8, with
    /// a count that is `swapped` or not.
    pub fn of(form: OpaqueForm, padding: u32, swapped: bool) -> Option<Self> {
        Some(match (padding, swapped) {
            (1, false) => Self::moved::<1, false>(form),
            (1, true) => Self::moved::<1, true>(form),
            (2, false) => Self::moved::<2, false>(form),
            (2, true) => Self::moved::<2, true>(form),
            (4, false) => Self::moved::<4, false>(form),
            (4, true) => Self::moved::<4, true>(form),
            (8, false) => Self::moved::<8, false>(form),
            (8, true) => Self::moved::<8, true>(form),
            _ => return None,
        })
    }

    fn moved<const PADDING: usize, const SWAPPED: bool>(form: OpaqueForm) -> Self {
        let helper = |address| HelperFunction {
            address,
            parameters: 4,
        };
        let (put, get) = match form {
            OpaqueForm::Frame => (
                put_opaque::<PADDING, SWAPPED> as *const u8,
                get_opaque::<PADDING, SWAPPED> as *const u8,
            ),
            OpaqueForm::Counted => (
                c_helpers::put_counted_in_c::<PADDING, SWAPPED> as *const u8,
                c_helpers::get_counted_in_c::<PADDING, SWAPPED> as *const u8,
            ),
            OpaqueForm::Text => (
                c_helpers::put_text::<PADDING, SWAPPED> as *const u8,
                c_helpers::get_text::<PADDING, SWAPPED> as *const u8,
            ),
        };
        Self {
            put: helper(put),
            get: helper(get),
        }
    }
}

/// Declares helpers by their functions and the words that they take.
macro_rules! helpers {
    ($($(#[$doc:meta])* $constant:ident = $function:path, $parameters:literal;)*) => {$(
        $(#[$doc])*
        pub(super) const $constant: HelperFunction = HelperFunction {
            address: $function as *const u8,
            parameters: $parameters,
        };
    )*};
}

pub(super) use helpers;

helpers! {
    /// `(encoding, at, bytes)`: makes room, and returns the cursor as it is then.
    GROW = grow, 3;
    /// `(buffer, at, bytes)`: makes room, and returns the cursor as it is then, and the end of the room.
    GROW_BUFFER = grow_buffer, 3;
    /// `(arena)`: forgets all that was taken from it.
    REWIND = rewind, 1;
    /// `(decoding, bytes, price)`: allocates so much memory of the frame, at this price.
    TAKE = take, 3;
    /// `(decoding, growing, element bytes)`: returns the address of the next element of a list.
    NEXT = next, 3;
    /// `(at, bytes)`: returns whether all of them are zero.
    ARE_ZERO = are_zero, 2;
    /// `(from, to, bytes)`: copies, and returns the end of the bytes written.
    COPY = copy, 3;
}

// Safety of all below: machine code hands over the context that it was entered with, places in
// the frame or the context's bytes, and sizes that it has checked.

#[cold]
#[inline(never)]
unsafe extern "C" fn grow(context: *mut EncodeContext<'_>, at: *mut u8, bytes: u64) -> *mut u8 {
    // SAFETY: see above.
    unsafe { (*context).grow(at, bytes as usize) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn grow_buffer(out: *mut Buffer, at: *mut u8, bytes: u64) -> WriteRange {
    // SAFETY: see above.
    unsafe { WriteRange::grown(&mut *out, at, bytes as usize) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn rewind(arena: *mut FrameArena) -> u64 {
    // SAFETY: see above.
    unsafe { (*arena).rewind() }
    0
}

/// See [`OpaqueHelpers::put`].
unsafe extern "C" fn put_opaque<const PADDING: usize, const SWAPPED: bool>(
    context: *mut EncodeContext<'_>,
    at: *mut u8,
    from: *const CountedArray,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above; the item points to as many bytes as it counts.
    unsafe {
        let CountedArray { count, items } = *from;
        if u64::from(count) > bound {
            return ptr::null_mut();
        }
        let bytes = count as usize;
        let padded = bytes.next_multiple_of(PADDING);
        if ((*context).header.end as usize - at as usize) < COUNT + padded {
            return put_opaque_growing::<PADDING, SWAPPED>(context, at, from, bound);
        }
        at.cast::<u32>().write_unaligned(ordered::<SWAPPED>(count));
        let to = at.add(COUNT);
        // Zeroed before the bytes are written over them, so that it is known how many.
        if PADDING > 1 && padded > 0 {
            to.add(padded - PADDING).write_bytes(0, PADDING);
        }
        copy_few(items, to, bytes);
        to.add(padded)
    }
}

#[inline(always)]
unsafe extern "C" fn take(context: *mut DecodeContext<'_>, bytes: u64, price: u64) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        match (*context).charge(price) {
            Some(()) => (*context).arena.take(bytes as usize).as_ptr(),
            None => ptr::null_mut(),
        }
    }
}

/// See [`OpaqueHelpers::get`].
unsafe extern "C" fn get_opaque<const PADDING: usize, const SWAPPED: bool>(
    context: *mut DecodeContext<'_>,
    at: *mut u8,
    to: *mut CountedArray,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let Some((at, count, behind)) = opaque_at::<PADDING, SWAPPED, _>(context, at, bound) else {
            return ptr::null_mut();
        };
        let items = take(context, count.into(), count.into());
        if items.is_null() {
            return ptr::null_mut();
        }
        copy_few(at, items, count as usize);
        to.write(CountedArray { count, items });
        behind
    }
}

/// Finds counted opaque data at `at`, and returns its first byte, how many there are, and what lies behind it and its
/// padding. `None` if it is refused.
#[inline(always)]
pub(super) unsafe fn opaque_at<const PADDING: usize, const SWAPPED: bool, M>(
    context: *mut DecodeContext<'_, M>,
    at: *mut u8,
    bound: u64,
) -> Option<(*mut u8, u32, *mut u8)> {
    // SAFETY: see above.
    unsafe {
        let left = (*context).left(at);
        if left < COUNT {
            return None;
        }
        let count = ordered::<SWAPPED>(at.cast::<u32>().read_unaligned());
        let (bytes, at) = (count as usize, at.add(COUNT));
        let padded = bytes.next_multiple_of(PADDING);
        if u64::from(count) > bound || padded > left - COUNT {
            return None;
        }
        let padding = slice::from_raw_parts(at.add(bytes), padded - bytes);
        if PADDING > 1 && (*context).strict != 0 && padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        Some((at, count, at.add(padded)))
    }
}

/// [`put_opaque`] where there is not enough room yet. It is a function of its own, so that the usual case has no
/// registers to save.
#[cold]
#[inline(never)]
unsafe extern "C" fn put_opaque_growing<const PADDING: usize, const SWAPPED: bool>(
    context: *mut EncodeContext<'_>,
    at: *mut u8,
    from: *const CountedArray,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let all = COUNT + ((*from).count as usize).next_multiple_of(PADDING);
        let at = (*context).grow(at, all);
        put_opaque::<PADDING, SWAPPED>(context, at, from, bound)
    }
}

unsafe extern "C" fn next(
    context: *mut DecodeContext<'_>,
    list: *mut GrowingList,
    element: u64,
) -> *mut u8 {
    // SAFETY: see above; the list is machine code's own.
    unsafe {
        let GrowingList { count, room, items } = list.read();
        if count == u64::from(u32::MAX) {
            return ptr::null_mut();
        }
        if count == room {
            let room = (room * 2).max(1);
            let larger = take(context, room * element, room * element.max(1));
            if larger.is_null() {
                return ptr::null_mut();
            }
            if count > 0 {
                larger.copy_from_nonoverlapping(items, (count * element) as usize);
            }
            (*list).items = larger;
            (*list).room = room;
        }
        (*list).count = count + 1;
        (*list).items.add((count * element) as usize)
    }
}

unsafe extern "C" fn are_zero(at: *const u8, bytes: u64) -> u64 {
    // SAFETY: see above.
    let bytes = unsafe { slice::from_raw_parts(at, bytes as usize) };
    u64::from(bytes.iter().all(|byte| *byte == 0))
}

/// Copies bytes of which there mostly are few.
#[inline(always)]
pub(super) unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise: so many bytes are at both places, which do not overlap.
    unsafe {
        let from = slice::from_raw_parts(from, bytes);
        kernels::put_bytes(from, slice::from_raw_parts_mut(to, bytes));
    }
}

unsafe extern "C" fn copy(from: *const u8, to: *mut u8, bytes: u64) -> *mut u8 {
    let bytes = bytes as usize;
    // SAFETY: see above; they do not overlap.
    unsafe {
        let from = slice::from_raw_parts(from, bytes);
        kernels::put(from, slice::from_raw_parts_mut(to, bytes), false)
    }
}
