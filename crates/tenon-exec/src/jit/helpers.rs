//! What machine code calls. All of them take and give words, and refuse by [`REFUSED`].

use std::{ptr, slice};

use tenon_wire::Buffer;
use tenon_wire::kernels;

use super::context::{Decoding, Encoding};
use crate::frame::arena::Arena;
use crate::frame::array::{Room, ordered};
use crate::layout::Counted;

/// What a helper gives that refuses. No address is null.
pub(super) const REFUSED: u64 = 0;

/// Bytes of a count.
const COUNT: usize = size_of::<u32>();

/// A helper as machine code knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Helper {
    pub address: *const u8,
    pub parameters: usize,
}

/// A list while it is being read.
#[repr(C)]
pub(super) struct Growing {
    pub count: u64,
    pub room: u64,
    pub items: *mut u8,
}

/// What moves opaque data, whose bytes lie behind their count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opaque {
    /// `(encoding, at, counted, bound)`: appends opaque bytes or a string.
    pub put: Helper,
    /// `(decoding, at, counted, bound)`: reads opaque bytes or a string.
    pub get: Helper,
}

impl Opaque {
    /// For data that is padded with zeros to a multiple of `padding`, 1, 2, 4 or 8, and whose count is
    /// `swapped` or not.
    pub fn of(padding: u32, swapped: bool) -> Option<Self> {
        Some(match (padding, swapped) {
            (1, false) => Self::moved::<1, false>(),
            (1, true) => Self::moved::<1, true>(),
            (2, false) => Self::moved::<2, false>(),
            (2, true) => Self::moved::<2, true>(),
            (4, false) => Self::moved::<4, false>(),
            (4, true) => Self::moved::<4, true>(),
            (8, false) => Self::moved::<8, false>(),
            (8, true) => Self::moved::<8, true>(),
            _ => return None,
        })
    }

    fn moved<const PADDING: usize, const SWAPPED: bool>() -> Self {
        let helper = |address| Helper {
            address,
            parameters: 4,
        };
        Self {
            put: helper(put_opaque::<PADDING, SWAPPED> as *const u8),
            get: helper(get_opaque::<PADDING, SWAPPED> as *const u8),
        }
    }
}

macro_rules! helpers {
    ($($(#[$doc:meta])* $constant:ident = $function:path, $parameters:literal;)*) => {$(
        $(#[$doc])*
        pub(super) const $constant: Helper = Helper {
            address: $function as *const u8,
            parameters: $parameters,
        };
    )*};
}

helpers! {
    /// `(encoding, at, bytes)`: makes room, and gives where the cursor is then.
    GROW = grow, 3;
    /// `(buffer, at, bytes)`: makes room, and gives where the cursor is then, and the room's end.
    GROW_BUFFER = grow_buffer, 3;
    /// `(arena)`: forgets what was taken from it.
    REWIND = rewind, 1;
    /// `(decoding, bytes, price)`: so much memory of the frame, at this price.
    TAKE = take, 3;
    /// `(decoding, growing, element bytes)`: the place of a list's next element.
    NEXT = next, 3;
    /// `(at, bytes)`: whether all of them are zero.
    ARE_ZERO = are_zero, 2;
    /// `(from, to, bytes)`: copies, and gives where the last byte written ends.
    COPY = copy, 3;
}

// Safety of all below: machine code hands over the context that it was entered with, places in
// the frame or the context's bytes, and sizes that it has checked.

#[cold]
#[inline(never)]
unsafe extern "C" fn grow(context: *mut Encoding<'_>, at: *mut u8, bytes: u64) -> *mut u8 {
    // SAFETY: see above.
    unsafe { (*context).grow(at, bytes as usize) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn grow_buffer(out: *mut Buffer, at: *mut u8, bytes: u64) -> Room {
    // SAFETY: see above.
    unsafe { Room::grown(&mut *out, at, bytes as usize) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn rewind(arena: *mut Arena) -> u64 {
    // SAFETY: see above.
    unsafe { (*arena).rewind() }
    0
}

/// See [`Opaque::put`].
unsafe extern "C" fn put_opaque<const PADDING: usize, const SWAPPED: bool>(
    context: *mut Encoding<'_>,
    at: *mut u8,
    from: *const Counted,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above; the item points to as many bytes as it counts.
    unsafe {
        let Counted { count, items } = *from;
        if u64::from(count) > bound {
            return ptr::null_mut();
        }
        let bytes = count as usize;
        let padded = bytes.next_multiple_of(PADDING);
        if ((*context).cursor.end as usize - at as usize) < COUNT + padded {
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
unsafe extern "C" fn take(context: *mut Decoding<'_>, bytes: u64, price: u64) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        match (*context).pay(price) {
            Some(()) => (*context).arena.take(bytes as usize).as_ptr(),
            None => ptr::null_mut(),
        }
    }
}

/// See [`Opaque::get`].
unsafe extern "C" fn get_opaque<const PADDING: usize, const SWAPPED: bool>(
    context: *mut Decoding<'_>,
    at: *mut u8,
    to: *mut Counted,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let left = (*context).left(at);
        if left < COUNT {
            return ptr::null_mut();
        }
        let count = ordered::<SWAPPED>(at.cast::<u32>().read_unaligned());
        let (bytes, at) = (count as usize, at.add(COUNT));
        let padded = bytes.next_multiple_of(PADDING);
        if u64::from(count) > bound || padded > left - COUNT {
            return ptr::null_mut();
        }
        let padding = slice::from_raw_parts(at.add(bytes), padded - bytes);
        if PADDING > 1 && (*context).strict != 0 && padding.iter().any(|byte| *byte != 0) {
            return ptr::null_mut();
        }
        let items = take(context, count.into(), count.into());
        if items.is_null() {
            return ptr::null_mut();
        }
        copy_few(at, items, bytes);
        to.write(Counted { count, items });
        at.add(padded)
    }
}

/// [`put_opaque`] where there is not enough room yet. Apart from it, so that there is nothing to be
/// saved where there is.
#[cold]
#[inline(never)]
unsafe extern "C" fn put_opaque_growing<const PADDING: usize, const SWAPPED: bool>(
    context: *mut Encoding<'_>,
    at: *mut u8,
    from: *const Counted,
    bound: u64,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let all = COUNT + ((*from).count as usize).next_multiple_of(PADDING);
        let at = (*context).grow(at, all);
        put_opaque::<PADDING, SWAPPED>(context, at, from, bound)
    }
}

unsafe extern "C" fn next(context: *mut Decoding<'_>, list: *mut Growing, element: u64) -> *mut u8 {
    // SAFETY: see above; the list is machine code's own.
    unsafe {
        let Growing { count, room, items } = list.read();
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
unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
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
