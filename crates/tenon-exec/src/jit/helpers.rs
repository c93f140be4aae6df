//! What machine code calls. All of them take and give words, and refuse by [`REFUSED`].

use std::mem::MaybeUninit;
use std::{ptr, slice};

use tenon_wire::Buffer;
use tenon_wire::kernels::{self, Bits, Blittable};

use super::context::{Decoding, Encoding, Room};
use crate::frame::Place;
use crate::frame::arena::Arena;
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

/// Where a decoder has come to, null if it refuses; and the memory that is still paid for.
#[repr(C)]
pub(super) struct Read {
    pub behind: *const u8,
    pub memory_left: u64,
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

/// An array that is a whole message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// Whether the bytes of numbers are swapped.
    pub swapped: bool,
    /// Bytes of each of its numbers; of what is not swapped, 1 will do.
    pub unit: u32,
    /// Bytes of each of its items.
    pub stride: u64,
    /// How many there may be.
    pub bound: u32,
}

/// A function for numbers of so many bytes.
macro_rules! by_unit {
    ($function:ident, $unit:expr, $swapped:expr, $plain:literal) => {
        match ($unit, $swapped) {
            (1, false) => Some($function::<u8, false, $plain> as *const u8),
            (1, true) => Some($function::<u8, true, $plain> as *const u8),
            (2, false) => Some($function::<u16, false, $plain> as *const u8),
            (2, true) => Some($function::<u16, true, $plain> as *const u8),
            (4, false) => Some($function::<u32, false, $plain> as *const u8),
            (4, true) => Some($function::<u32, true, $plain> as *const u8),
            (8, false) => Some($function::<u64, false, $plain> as *const u8),
            (8, true) => Some($function::<u64, true, $plain> as *const u8),
            _ => None,
        }
    };
}

impl Whole {
    /// Appends it: `(place, at, end, bound, stride, buffer) -> at`, where `end` is that of the buffer's
    /// room.
    pub fn put(self) -> Option<Helper> {
        by_unit!(put_array, self.unit, self.swapped, false).map(Self::helper)
    }

    /// Reads it, and forgets what was read before: `(place, at, end, bound, stride, memory_left)`, which
    /// gives a [`Read`].
    pub fn get(self) -> Option<Helper> {
        by_unit!(get_array, self.unit, self.swapped, false).map(Self::helper)
    }

    fn helper(address: *const u8) -> Helper {
        Helper {
            address,
            parameters: 6,
        }
    }

    /// An entry that appends it, if it is any number of numbers: so there is nothing to hand over.
    pub fn put_entry(self) -> Option<*const u8> {
        by_unit!(put_array, self.plain()?, self.swapped, true)
    }

    /// An entry that reads it, as above.
    pub fn get_entry(self) -> Option<*const u8> {
        by_unit!(get_array, self.plain()?, self.swapped, true)
    }

    /// The bytes of an item, if each is a number and there may be any number of them.
    fn plain(self) -> Option<u64> {
        let is_number = !self.swapped || u64::from(self.unit) == self.stride;
        (is_number && self.bound == u32::MAX).then_some(self.stride)
    }
}

/// Between the order of the wire and the processor's.
#[inline(always)]
fn ordered<const SWAPPED: bool>(count: u32) -> u32 {
    match SWAPPED {
        true => count.swap_bytes(),
        false => count,
    }
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

/// See [`Whole::put`]. Of what is `PLAIN`, bound and stride are known, and not handed over.
unsafe extern "C" fn put_array<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    place: *const Place,
    at: *mut u8,
    end: *mut u8,
    bound: u64,
    stride: u64,
    out: *mut Buffer,
) -> *mut u8 {
    // SAFETY: see above; what counts the items is small, and points to as many as it counts.
    unsafe {
        let Counted { count, items } = Place::small(place.cast_mut()).cast::<Counted>().read();
        let stride = if PLAIN {
            size_of::<T>()
        } else {
            stride as usize
        };
        if !PLAIN && u64::from(count) > bound {
            return ptr::null_mut();
        }
        let bytes = count as usize * stride;
        if (end as usize - at as usize) < COUNT + bytes {
            return put_array_growing::<T, SWAPPED, PLAIN>(
                place,
                at,
                end,
                bound,
                stride as u64,
                out,
            );
        }
        at.cast::<u32>().write_unaligned(ordered::<SWAPPED>(count));
        let to = slice::from_raw_parts_mut(at.add(COUNT), bytes);
        match SWAPPED && size_of::<T>() > 1 {
            true => {
                let count = bytes / size_of::<T>();
                kernels::put(slice::from_raw_parts(items.cast::<T>(), count), to, true)
            }
            false => u8::chosen().run(items, to.as_mut_ptr(), bytes),
        }
    }
}

/// [`put_array`] where there is not enough room yet.
#[cold]
#[inline(never)]
unsafe extern "C" fn put_array_growing<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    place: *const Place,
    at: *mut u8,
    _end: *mut u8,
    bound: u64,
    stride: u64,
    out: *mut Buffer,
) -> *mut u8 {
    // SAFETY: as there.
    unsafe {
        let Counted { count, .. } = Place::small(place.cast_mut()).cast::<Counted>().read();
        let all = COUNT as u64 + u64::from(count) * stride;
        let Room { at, end } = grow_buffer(out, at, all);
        put_array::<T, SWAPPED, PLAIN>(place, at, end, bound, stride, out)
    }
}

/// See [`Whole::get`]. Of what is `PLAIN`, bound and stride are known, and not handed over.
unsafe extern "C" fn get_array<T: Blittable, const SWAPPED: bool, const PLAIN: bool>(
    place: *mut Place,
    at: *const u8,
    end: *const u8,
    bound: u64,
    stride: u64,
    memory_left: u64,
) -> Read {
    let refused = Read {
        behind: ptr::null(),
        memory_left: 0,
    };
    // SAFETY: see above; there is room for what counts the items, which is small, at the place.
    unsafe {
        let left = end as usize - at as usize;
        if left < COUNT {
            return refused;
        }
        let count = ordered::<SWAPPED>(at.cast::<u32>().read_unaligned());
        let stride = if PLAIN {
            size_of::<T>()
        } else {
            stride as usize
        };
        let bytes = count as usize * stride;
        // The value itself, and what it points to.
        let price = (size_of::<Counted>() + bytes) as u64;
        if bytes > left - COUNT || price > memory_left {
            return refused;
        }
        if !PLAIN && u64::from(count) > bound {
            return refused;
        }
        // Written before there is memory for the items: so it need not be kept meanwhile. Nobody
        // looks at a value that is refused.
        let to = Place::small(place).cast::<Counted>();
        (*to).count = count;
        let items = Place::arena(place).take_only(bytes).as_ptr();
        (*to).items = items;
        let from = slice::from_raw_parts(at.add(COUNT), bytes);
        let count = bytes / size_of::<T>();
        let to = slice::from_raw_parts_mut(items.cast::<MaybeUninit<T>>(), count);
        kernels::get_into(from, to, SWAPPED);
        Read {
            behind: at.add(COUNT + bytes),
            memory_left: memory_left - price,
        }
    }
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
