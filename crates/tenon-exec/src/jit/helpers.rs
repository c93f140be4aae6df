//! What machine code calls. All of them take and give words, and refuse by [`REFUSED`].

use std::{ptr, slice};

use tenon_wire::kernels;

use super::context::{Decoding, Encoding};
use crate::layout::Counted;

/// What a helper gives that refuses. No address is null.
pub(super) const REFUSED: u64 = 0;

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

/// How opaque data lies on the wire, in one word.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct Shape(u64);

impl Shape {
    /// Padded to a multiple of `padding`, a power of two, its count `swapped` or not.
    pub fn new(padding: u32, swapped: bool) -> Self {
        Self(u64::from(padding - 1) << 1 | u64::from(swapped))
    }

    /// The word that helpers take.
    pub fn word(self) -> u64 {
        self.0
    }

    fn padded(self, bytes: usize) -> usize {
        let mask = (self.0 >> 1) as usize;
        (bytes + mask) & !mask
    }

    /// Between the order of the wire and the processor's.
    fn count(self, count: u32) -> u32 {
        match self.0 & 1 {
            0 => count,
            _ => count.swap_bytes(),
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
    /// `(encoding, at, counted, bound, shape)`: appends opaque bytes or a string.
    PUT_OPAQUE = put_opaque, 5;
    /// `(decoding, bytes, price)`: so much memory of the frame, at this price.
    TAKE = take, 3;
    /// `(decoding, at, counted, bound, shape)`: reads opaque bytes or a string.
    GET_OPAQUE = get_opaque, 5;
    /// `(decoding, growing, element bytes)`: the place of a list's next element.
    NEXT = next, 3;
    /// `(at, bytes)`: whether all of them are zero.
    ARE_ZERO = are_zero, 2;
    /// `(from, to, bytes)`: copies, and gives nothing.
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

unsafe extern "C" fn put_opaque(
    context: *mut Encoding<'_>,
    at: *mut u8,
    from: *const Counted,
    bound: u64,
    shape: Shape,
) -> *mut u8 {
    // SAFETY: see above; the item points to as many bytes as it counts.
    unsafe {
        let Counted { count, items } = *from;
        if u64::from(count) > bound {
            return ptr::null_mut();
        }
        let bytes = count as usize;
        let padded = shape.padded(bytes);
        if ((*context).cursor.end as usize - at as usize) < 4 + padded {
            return put_opaque_growing(context, at, from, bound, shape);
        }
        at.cast::<u32>().write_unaligned(shape.count(count));
        let to = at.add(4);
        copy_few(items, to, bytes);
        to.add(bytes).write_bytes(0, padded - bytes);
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

unsafe extern "C" fn get_opaque(
    context: *mut Decoding<'_>,
    at: *mut u8,
    to: *mut Counted,
    bound: u64,
    shape: Shape,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let left = (*context).left(at);
        if left < 4 {
            return ptr::null_mut();
        }
        let count = shape.count(at.cast::<u32>().read_unaligned());
        let (bytes, at) = (count as usize, at.add(4));
        let padded = shape.padded(bytes);
        if u64::from(count) > bound || padded > left - 4 {
            return ptr::null_mut();
        }
        let padding = slice::from_raw_parts(at.add(bytes), padded - bytes);
        if (*context).strict != 0 && padding.iter().any(|byte| *byte != 0) {
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
unsafe extern "C" fn put_opaque_growing(
    context: *mut Encoding<'_>,
    at: *mut u8,
    from: *const Counted,
    bound: u64,
    shape: Shape,
) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let all = 4 + shape.padded((*from).count as usize);
        let at = (*context).grow(at, all);
        put_opaque(context, at, from, bound, shape)
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

/// Copies bytes of which there mostly are few: then by two moves that may overlap, not by a call.
#[inline(always)]
unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise: so many bytes are at both places.
    unsafe {
        match bytes {
            33.. => to.copy_from_nonoverlapping(from, bytes),
            16..=32 => copy_ends::<u128>(from, to, bytes),
            8..=15 => copy_ends::<u64>(from, to, bytes),
            4..=7 => copy_ends::<u32>(from, to, bytes),
            2..=3 => copy_ends::<u16>(from, to, bytes),
            1 => to.write(from.read()),
            0 => {}
        }
    }
}

/// Copies the first and the last bytes, as many as `T` has; these are all of them.
#[inline(always)]
unsafe fn copy_ends<T: Copy>(from: *const u8, to: *mut u8, bytes: usize) {
    let last = bytes - size_of::<T>();
    // SAFETY: the caller's promise: so many bytes are at both places, and `T` has no more.
    unsafe {
        let front = from.cast::<T>().read_unaligned();
        let back = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(front);
        to.add(last).cast::<T>().write_unaligned(back);
    }
}

unsafe extern "C" fn copy(from: *const u8, to: *mut u8, bytes: u64) {
    let bytes = bytes as usize;
    // SAFETY: see above; they do not overlap.
    unsafe {
        let from = slice::from_raw_parts(from, bytes);
        kernels::put(from, slice::from_raw_parts_mut(to, bytes), false);
    }
}
