//! Arrays that are made element by element, each written once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::{self, MaybeUninit};

/// An array of what `item` makes for each index, or its first failure.
///
/// # Errors
/// The error that `item` returns.
#[inline(always)]
pub fn try_array<T, E, const N: usize>(
    mut item: impl FnMut(usize) -> Result<T, E>,
) -> Result<[T; N], E> {
    let mut filling = PartialArray {
        items: [const { MaybeUninit::uninit() }; N],
        done: 0,
    };
    // Where the next item goes is not read out of `filling`, where it was just written: that would wait, and
    // no compiler would make the loop one over vectors.
    for at in 0..N {
        filling.items[at].write(item(at)?);
        filling.done = at + 1;
    }
    // SAFETY: all items were just written; the array takes them over, and they are not dropped
    // here.
    let items = unsafe { filling.items.as_ptr().cast::<[T; N]>().read() };
    mem::forget(filling);
    Ok(items)
}

/// An array of which the first items are there.
struct PartialArray<T, const N: usize> {
    items: [MaybeUninit<T>; N],
    done: usize,
}

impl<T, const N: usize> Drop for PartialArray<T, N> {
    fn drop(&mut self) {
        for item in &mut self.items[..self.done] {
            // SAFETY: so many items were written, and nothing else drops them.
            unsafe { item.assume_init_drop() }
        }
    }
}

/// `N` items in memory of their own, without the stack between.
pub fn boxed_array<T, const N: usize>(item: impl FnMut() -> T) -> Box<[T; N]> {
    boxed(core::iter::repeat_with(item).take(N).collect())
}

/// Copies an array into memory of its own, without the stack between.
pub fn boxed_copy<T: Clone, const N: usize>(items: &[T; N]) -> Box<[T; N]> {
    boxed(items.to_vec())
}

/// Returns what `convert` makes of each item of an array, in memory of its own and without the stack between.
pub fn map_boxed<T, U, const N: usize>(
    items: Box<[T; N]>,
    convert: impl FnMut(T) -> U,
) -> Box<[U; N]> {
    let items: Box<[T]> = items;
    boxed(items.into_iter().map(convert).collect())
}

/// A vector known to have `N` items as a boxed array.
pub(crate) fn boxed<T, const N: usize>(items: Vec<T>) -> Box<[T; N]> {
    match items.try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("as many items as asked for"),
    }
}
