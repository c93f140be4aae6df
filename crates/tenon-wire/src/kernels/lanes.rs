//! The kernel over vectors of any width: how an array is cut into them.

use super::Bits;

/// A vector register of 16 bytes or more, and at most [`LONG`](super::LONG).
pub(super) trait Vector: Copy {
    /// Reads a vector; no alignment is asked for.
    ///
    /// # Safety
    /// The processor has the instructions of this vector; its bytes can be read at `from`.
    unsafe fn load(from: *const u8) -> Self;

    /// Writes the vector; no alignment is asked for.
    ///
    /// # Safety
    /// The processor has the instructions of this vector; its bytes can be written at `to`.
    unsafe fn store(self, to: *mut u8);

    /// Reverses the bytes of each item of the vector.
    ///
    /// # Safety
    /// The processor has the instructions of this vector.
    unsafe fn swapped<B: Bits>(self) -> Self;
}

/// Vectors that are under way at the same time.
const AT_ONCE: usize = 4;

/// Copies items and reverses the bytes of each.
///
/// The first and the last vector may overlap those between. They are read before anything is
/// written and written after everything else, so that this holds in place, too. Those between
/// begin where `to` is aligned, if any item begins there: a store that crosses cache lines costs
/// two.
///
/// # Safety
/// As [`super::swap`]; `bytes` are as many as a vector has or more; and the processor has the
/// instructions of `V`.
#[inline(always)]
pub(super) unsafe fn swap<V: Vector, B: Bits>(from: *const u8, to: *mut u8, bytes: usize) {
    let width = size_of::<V>();
    let end = bytes - width;
    let mut at = (width - to.addr() % width).next_multiple_of(size_of::<B>());
    // SAFETY: vectors are read and written at 0, at `end`, and at offsets up to `end` between, so
    // that all lie inside of both places; the offsets are multiples of the item's size.
    unsafe {
        let first = V::load(from).swapped::<B>();
        let last = V::load(from.add(end)).swapped::<B>();
        while at + AT_ONCE * width <= bytes {
            let vectors: [V; AT_ONCE] =
                core::array::from_fn(|index| V::load(from.add(at + index * width)));
            for (index, vector) in vectors.into_iter().enumerate() {
                vector.swapped::<B>().store(to.add(at + index * width));
            }
            at += AT_ONCE * width;
        }
        while at < end {
            V::load(from.add(at)).swapped::<B>().store(to.add(at));
            at += width;
        }
        first.store(to);
        last.store(to.add(end));
    }
}
