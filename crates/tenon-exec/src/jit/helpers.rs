//! What machine code calls. All of them take and give words, and refuse by [`REFUSED`].

use std::mem::MaybeUninit;
use std::{ptr, slice};

use tenon_wire::kernels::{self, Blittable};
use tenon_wire::{Representation, Xdr};

use super::context::{Decoding, Encoding};
use crate::layout::Counted;

/// What a helper gives that refuses. No count or address is so large.
pub(super) const REFUSED: u64 = u64::MAX;

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

macro_rules! helpers {
    ($($(#[$doc:meta])* $constant:ident = $function:ident/$parameters:literal;)*) => {$(
        $(#[$doc])*
        pub(super) const $constant: Helper = Helper {
            address: $function as *const u8,
            parameters: $parameters,
        };
    )*};
}

helpers! {
    /// `(encoding, bytes)`: makes room.
    GROW = grow/2;
    /// `(encoding, counted, bound)`: appends opaque bytes or a string.
    PUT_OPAQUE = put_opaque/3;
    /// `(encoding, counted, bound, item bytes)`: appends an array of numbers.
    PUT_NUMBERS = put_numbers/4;
    /// `(decoding, bound, fewest bytes)`: the count of a counted item.
    COUNT = count/3;
    /// `(decoding, bytes)`: memory of the frame, which is paid for.
    TAKE = take/2;
    /// `(decoding, counted, bound)`: reads opaque bytes or a string.
    GET_OPAQUE = get_opaque/3;
    /// `(decoding, counted, bound, item bytes)`: reads an array of numbers.
    GET_NUMBERS = get_numbers/4;
    /// `(decoding, growing, element bytes)`: the place of a list's next element.
    NEXT = next/3;
    /// `(from, to, bytes)`: copies.
    COPY = copy/3;
    /// `(numbers, bytes on the wire, bytes, item bytes)`: converts an array of numbers.
    TO_WIRE = to_wire/4;
    /// `(numbers, bytes on the wire, bytes, item bytes)`: converts an array of numbers.
    FROM_WIRE = from_wire/4;
}

// Safety of all below: machine code hands over the context that it was entered with, places in
// the frame or the context's bytes, and sizes that it has checked.

unsafe extern "C" fn grow(context: *mut Encoding<'_, '_>, bytes: u64) -> u64 {
    // SAFETY: see above.
    unsafe { (*context).grow(bytes as usize) };
    0
}

/// The counted item, and room for a count and its `bytes` on the wire.
unsafe fn room(context: *mut Encoding<'_, '_>, bytes: usize) -> *mut u8 {
    // SAFETY: see above.
    unsafe {
        let cursor = &raw mut (*context).cursor;
        if (*cursor).end as usize - ((*cursor).at as usize) < bytes {
            (*context).grow(bytes);
        }
        let at = (*cursor).at;
        (*cursor).at = at.add(bytes);
        at
    }
}

unsafe extern "C" fn put_opaque(
    context: *mut Encoding<'_, '_>,
    from: *const Counted,
    bound: u64,
) -> u64 {
    // SAFETY: see above; the item points to as many bytes as it counts.
    unsafe {
        let Counted { count, items } = *from;
        if u64::from(count) > bound {
            return REFUSED;
        }
        let bytes = count as usize;
        let to = room(context, 4 + Xdr::padded(bytes));
        to.cast::<[u8; 4]>().write(count.to_be_bytes());
        to.add(4).copy_from_nonoverlapping(items, bytes);
        to.add(4 + bytes).write_bytes(0, Xdr::padded(bytes) - bytes);
    }
    0
}

unsafe extern "C" fn put_numbers(
    context: *mut Encoding<'_, '_>,
    from: *const Counted,
    bound: u64,
    item: u64,
) -> u64 {
    // SAFETY: see above; the item points to as many numbers as it counts.
    unsafe {
        let Counted { count, items } = *from;
        if u64::from(count) > bound {
            return REFUSED;
        }
        let bytes = count as usize * item as usize;
        let to = room(context, 4 + bytes);
        to.cast::<[u8; 4]>().write(count.to_be_bytes());
        to_wire(items, to.add(4), bytes as u64, item)
    }
}

unsafe extern "C" fn count(context: *mut Decoding<'_>, bound: u64, fewest: u64) -> u64 {
    // SAFETY: see above.
    unsafe {
        let left = (*context).left() as u64;
        if left < 4 {
            return REFUSED;
        }
        let at = (*context).cursor.at;
        let count = u64::from(u32::from_be_bytes(at.cast::<[u8; 4]>().read()));
        if count > bound || count * fewest > left - 4 {
            return REFUSED;
        }
        (*context).cursor.at = at.add(4);
        count
    }
}

unsafe fn pay(context: *mut Decoding<'_>, price: u64) -> Option<()> {
    // SAFETY: see above.
    unsafe {
        let left = &raw mut (*context).cursor.memory_left;
        *left = (*left).checked_sub(price)?;
    }
    Some(())
}

unsafe extern "C" fn take(context: *mut Decoding<'_>, bytes: u64) -> u64 {
    // SAFETY: see above.
    unsafe { (*context).arena.take(bytes as usize).as_ptr() as u64 }
}

unsafe extern "C" fn get_opaque(context: *mut Decoding<'_>, to: *mut Counted, bound: u64) -> u64 {
    // SAFETY: see above.
    unsafe {
        let length = count(context, bound, 1);
        if length == REFUSED || pay(context, length).is_none() {
            return REFUSED;
        }
        let bytes = length as usize;
        let items = take(context, length);
        if items == REFUSED || (*context).left() < Xdr::padded(bytes) {
            return REFUSED;
        }
        let from = slice::from_raw_parts((*context).cursor.at, Xdr::padded(bytes));
        (*context).cursor.at = (*context).cursor.at.add(Xdr::padded(bytes));
        let (data, padding) = from.split_at(bytes);
        if (*context).cursor.strict != 0 && padding.iter().any(|byte| *byte != 0) {
            return REFUSED;
        }
        let items = items as *mut u8;
        items.copy_from_nonoverlapping(data.as_ptr(), bytes);
        let count = length as u32;
        to.write(Counted { count, items });
    }
    0
}

unsafe extern "C" fn get_numbers(
    context: *mut Decoding<'_>,
    to: *mut Counted,
    bound: u64,
    item: u64,
) -> u64 {
    // SAFETY: see above.
    unsafe {
        let length = count(context, bound, item);
        if length == REFUSED || pay(context, length * item).is_none() {
            return REFUSED;
        }
        let bytes = length * item;
        let items = take(context, bytes);
        if items == REFUSED {
            return REFUSED;
        }
        let items = items as *mut u8;
        let from = (*context).cursor.at;
        (*context).cursor.at = from.add(bytes as usize);
        let count = length as u32;
        to.write(Counted { count, items });
        from_wire(items, from, bytes, item)
    }
}

unsafe extern "C" fn next(context: *mut Decoding<'_>, list: *mut Growing, element: u64) -> u64 {
    // SAFETY: see above; the list is machine code's own.
    unsafe {
        let Growing { count, room, items } = list.read();
        if count == u64::from(u32::MAX) {
            return REFUSED;
        }
        if count == room {
            let room = (room * 2).max(1);
            if pay(context, room * element.max(1)).is_none() {
                return REFUSED;
            }
            let larger = take(context, room * element);
            if larger == REFUSED {
                return REFUSED;
            }
            let larger = larger as *mut u8;
            larger.copy_from_nonoverlapping(items, (count * element) as usize);
            (*list).items = larger;
            (*list).room = room;
        }
        (*list).count = count + 1;
        (*list).items.add((count * element) as usize) as u64
    }
}

unsafe extern "C" fn copy(from: *const u8, to: *mut u8, bytes: u64) -> u64 {
    // SAFETY: see above.
    unsafe { to.copy_from_nonoverlapping(from, bytes as usize) };
    0
}

unsafe extern "C" fn to_wire(numbers: *const u8, wire: *mut u8, bytes: u64, item: u64) -> u64 {
    // SAFETY: see above; the numbers lie at a multiple of their size.
    unsafe {
        match item {
            4 => numbers_to_wire::<u32>(numbers, wire, bytes),
            8 => numbers_to_wire::<u64>(numbers, wire, bytes),
            _ => ptr::copy_nonoverlapping(numbers, wire, bytes as usize),
        }
    }
    0
}

unsafe extern "C" fn from_wire(numbers: *mut u8, wire: *const u8, bytes: u64, item: u64) -> u64 {
    // SAFETY: see above; the numbers lie at a multiple of their size.
    unsafe {
        match item {
            4 => numbers_from_wire::<u32>(numbers, wire, bytes),
            8 => numbers_from_wire::<u64>(numbers, wire, bytes),
            _ => ptr::copy_nonoverlapping(wire, numbers, bytes as usize),
        }
    }
    0
}

unsafe fn numbers_to_wire<T: Blittable>(numbers: *const u8, wire: *mut u8, bytes: u64) {
    let bytes = bytes as usize;
    // SAFETY: see above.
    unsafe {
        let numbers = slice::from_raw_parts(numbers.cast::<T>(), bytes / size_of::<T>());
        kernels::put(
            numbers,
            slice::from_raw_parts_mut(wire, bytes),
            Xdr::SWAPPED,
        );
    }
}

unsafe fn numbers_from_wire<T: Blittable>(numbers: *mut u8, wire: *const u8, bytes: u64) {
    let bytes = bytes as usize;
    let count = bytes / size_of::<T>();
    // SAFETY: see above.
    unsafe {
        let numbers = slice::from_raw_parts_mut(numbers.cast::<MaybeUninit<T>>(), count);
        kernels::get_into(slice::from_raw_parts(wire, bytes), numbers, Xdr::SWAPPED);
    }
}
