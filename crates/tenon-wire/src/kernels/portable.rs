//! The kernel without special instructions: it says what the others must do, serves where there
//! are none, and moves what is too short for them.

use core::ptr;

use super::item::Bits;

/// Copies items and reverses the bytes of each. Gives where the last one written ends.
///
/// # Safety
/// As [`super::swap::swap`].
#[inline(always)]
pub(super) unsafe fn swap<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let behind = unsafe { to.add(bytes) };
    if size_of::<B>() == 1 {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy(from, to, bytes) };
        return behind;
    }
    let (from, to) = (from.cast::<B>(), to.cast::<B>());
    for index in 0..bytes / size_of::<B>() {
        // SAFETY: item `index` lies inside of both places; reading and writing it asks for no
        // alignment.
        unsafe {
            let item = from.add(index).read_unaligned();
            to.add(index).write_unaligned(item.swapped());
        }
    }
    behind
}

/// [`swap`] as a kernel.
///
/// # Safety
/// As there.
pub(super) unsafe extern "C" fn kernel<B: Bits>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { swap::<B>(from, to, bytes) }
}

/// Copies up to 64 bytes, without a call: two pieces that may overlap.
///
/// # Safety
/// `bytes`, at most 64, can be read at `from` and written at `to`, which are one place or do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise, and that the lengths are such.
    unsafe {
        match bytes {
            33.. => copy_ends::<[[u8; 16]; 2]>(from, to, bytes),
            16.. => copy_ends::<[u8; 16]>(from, to, bytes),
            8.. => copy_ends::<[u8; 8]>(from, to, bytes),
            4.. => copy_ends::<[u8; 4]>(from, to, bytes),
            2.. => copy_ends::<[u8; 2]>(from, to, bytes),
            1 => to.write(from.read()),
            0 => {}
        }
    }
}

/// Copies the first and the last piece, which are all that there is.
///
/// # Safety
/// `bytes`, between a piece and two of them, can be read at `from` and written at `to`, which are one place
/// or do not overlap; a piece consists of bytes.
#[inline(always)]
unsafe fn copy_ends<Piece: Copy>(from: *const u8, to: *mut u8, bytes: usize) {
    let end = bytes - size_of::<Piece>();
    // SAFETY: the caller's promise. As they do not overlap, one may be written before the other is read,
    // and fewer registers are needed; where they are one place, that changes nothing.
    unsafe {
        let first = from.cast::<Piece>().read_unaligned();
        to.cast::<Piece>().write_unaligned(first);
        let last = from.add(end).cast::<Piece>().read_unaligned();
        to.add(end).cast::<Piece>().write_unaligned(last);
    }
}
