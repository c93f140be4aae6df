//! The kernel over vectors of any width: how an array is cut into them.

use core::ptr;

use super::item::Bits;
use super::lengths::LONG;
use super::portable;

/// A vector register of 16 bytes or more, and at most [`LONG`].
pub(super) trait SimdVector: Copy {
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

    /// Says that the cache line there will be wanted. It need not be there.
    #[inline(always)]
    fn fetch(_at: *const u8) {}
}

/// Vectors that are under way at the same time.
const AT_ONCE: usize = 4;

/// Bytes from which on an array is hardly in any cache: both places are fetched ahead, further than
/// processors do by themselves, and the last vector is moved first: so it is faster, wherever they lie.
const FAR: usize = 2 << 20;

/// Distance that is fetched ahead, in bytes.
const AHEAD: usize = 2 << 10;

/// Bytes up to which vectors copy as well as the platform's copy, which knows how to write lines
/// without reading them first. Behind [`FAR`] it is behind again.
const NEAR: usize = 256 << 10;

/// Copies items and reverses the bytes of each. Gives where the last one written ends.
///
/// # Safety
/// As [`super::swap::swap`]; and the processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn swap<V: SimdVector, B: Bits>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) -> *mut u8 {
    const { assert!(LONG >= size_of::<V>() && LONG <= 4 * size_of::<V>()) }
    // SAFETY: the caller's promise, and the lengths.
    unsafe {
        if bytes < LONG && size_of::<B>() == 1 {
            portable::copy_few(from, to, bytes);
            return to.add(bytes);
        }
        if bytes < LONG {
            return portable::swap::<B>(from, to, bytes);
        }
        if bytes <= 2 * size_of::<V>() {
            swap_ends::<V, B, 1>(from, to, bytes);
        } else if bytes <= 4 * size_of::<V>() {
            swap_ends::<V, B, 2>(from, to, bytes);
        } else if bytes >= FAR {
            swap_many::<V, B, true>(from, to, bytes);
        } else if size_of::<B>() == 1 && bytes > NEAR {
            ptr::copy(from, to, bytes);
        } else {
            swap_many::<V, B, false>(from, to, bytes);
        }
        to.add(bytes)
    }
}

/// Copies items and reverses the bytes of each: the first `N` vectors and the last `N`, which are all that
/// there is and may overlap. All are read before one is written, so that this holds in place, too.
///
/// # Safety
/// As [`swap`]; `bytes` are as many as `N` vectors have or more, and at most twice as many.
#[inline(always)]
unsafe fn swap_ends<V: SimdVector, B: Bits, const N: usize>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    let width = size_of::<V>();
    let last = bytes - N * width;
    // SAFETY: the caller's promise: all vectors lie inside of both places. Items divide a vector, so that
    // they are whole in those that end where the last item does.
    unsafe {
        let starts: [V; N] = core::array::from_fn(|index| V::load(from.add(index * width)));
        let ends: [V; N] = core::array::from_fn(|index| V::load(from.add(last + index * width)));
        for (index, vector) in starts.into_iter().enumerate() {
            vector.swapped::<B>().store(to.add(index * width));
        }
        for (index, vector) in ends.into_iter().enumerate() {
            vector.swapped::<B>().store(to.add(last + index * width));
        }
    }
}

/// Copies items and reverses the bytes of each.
///
/// The first and the last vector may overlap those between. They are read before anything is
/// written and written after everything else, so that this holds in place, too. Those between
/// begin where `to` is aligned, if any item begins there: a store that crosses cache lines costs
/// two.
///
/// # Safety
/// As [`swap`]; `bytes` are as many as two vectors have or more.
#[inline(always)]
unsafe fn swap_many<V: SimdVector, B: Bits, const FETCHED: bool>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    let width = size_of::<V>();
    let end = bytes - width;
    let start = (width - to.addr() % width).next_multiple_of(size_of::<B>());
    // SAFETY: vectors are read and written at 0, at `end`, and at offsets up to `end` between, so
    // that all lie inside of both places; the offsets are multiples of the item's size.
    unsafe {
        let first = V::load(from).swapped::<B>();
        let last = V::load(from.add(end)).swapped::<B>();
        match FETCHED || follows(from, to) {
            true => swap_backwards::<V, B, FETCHED>(from, to, start, end),
            false => swap_forwards::<V, B>(from, to, start, end),
        }
        first.store(to);
        last.store(to.add(end));
    }
}

/// Distance in bytes that processors cannot tell from 0 when they look for a store that a load has to wait for: two
/// addresses that differ by a multiple of it are the same at first sight.
const ALIAS: usize = 4096;

/// Returns whether `to` is by less behind `from` than `from` behind `to`, at first sight. To read there what was
/// just written that little before, as a loop forwards does, takes up to twice as long.
#[inline(always)]
fn follows(from: *const u8, to: *const u8) -> bool {
    to.addr().wrapping_sub(from.addr()) % ALIAS < ALIAS / 2
}

/// Vectors from the offset `at` on, as long as they begin before `end`.
///
/// # Safety
/// As [`swap`], for `end` and a vector more.
#[inline(always)]
unsafe fn swap_forwards<V: SimdVector, B: Bits>(
    from: *const u8,
    to: *mut u8,
    mut at: usize,
    end: usize,
) {
    let width = size_of::<V>();
    // SAFETY: the caller's promise.
    unsafe {
        while at + (AT_ONCE - 1) * width <= end {
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
    }
}

/// The same vectors, the last one first.
///
/// # Safety
/// As [`swap_forwards`].
#[inline(always)]
unsafe fn swap_backwards<V: SimdVector, B: Bits, const FETCHED: bool>(
    from: *const u8,
    to: *mut u8,
    start: usize,
    end: usize,
) {
    let width = size_of::<V>();
    let mut at = start + (end - start).next_multiple_of(width);
    // SAFETY: the caller's promise.
    unsafe {
        while at >= start + AT_ONCE * width {
            at -= AT_ONCE * width;
            if FETCHED {
                for line in (0..AT_ONCE * width).step_by(LONG) {
                    V::fetch(from.wrapping_add(at).wrapping_sub(AHEAD + line));
                    V::fetch(to.wrapping_add(at).wrapping_sub(AHEAD + line));
                }
            }
            let vectors: [V; AT_ONCE] =
                core::array::from_fn(|index| V::load(from.add(at + index * width)));
            for (index, vector) in vectors.into_iter().enumerate().rev() {
                vector.swapped::<B>().store(to.add(at + index * width));
            }
        }
        while at > start {
            at -= width;
            V::load(from.add(at)).swapped::<B>().store(to.add(at));
        }
    }
}
