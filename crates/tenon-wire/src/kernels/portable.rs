//! The kernel without special instructions: it says what the others must do, serves where there
//! are none, and moves what is too short for them.

use super::Bits;

/// Copies items and reverses the bytes of each.
///
/// # Safety
/// As [`super::swap`].
#[inline(always)]
pub(super) unsafe fn swap<B: Bits>(from: *const u8, to: *mut u8, bytes: usize) {
    let (from, to) = (from.cast::<B>(), to.cast::<B>());
    for index in 0..bytes / size_of::<B>() {
        // SAFETY: item `index` lies inside of both places; reading and writing it asks for no
        // alignment.
        unsafe {
            let item = from.add(index).read_unaligned();
            to.add(index).write_unaligned(item.swapped());
        }
    }
}
