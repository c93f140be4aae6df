//! Blittable values as wholes: what `derive` writes member by member, which for thousands of members
//! takes the compiler many seconds and the processor's instruction cache as a whole.

use core::mem::MaybeUninit;
use core::{ptr, slice};

use super::Blittable;

/// Returns whether two values consist of the same bytes. Of integers: whether they are equal.
#[inline]
pub fn same<T: Blittable>(one: &T, other: &T) -> bool {
    bytes_of(one) == bytes_of(other)
}

/// Another value of the same bytes.
#[inline]
pub fn duplicate<T: Blittable>(value: &T) -> T {
    // SAFETY: it is a value of `T`, which owns nothing, so that there may be two of it.
    unsafe { ptr::read(value) }
}

/// The value of which all numbers are 0.
#[inline]
pub fn zeroed<T: Blittable>() -> T {
    // SAFETY: every pattern of bytes is a value of `T`.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn bytes_of<T: Blittable>(value: &T) -> &[u8] {
    // SAFETY: there are so many bytes, none of them padding, and they do not change while they are
    // borrowed.
    unsafe { slice::from_raw_parts(ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_is_the_same_and_another_is_not() {
        let value = [1_u64, u64::MAX, 3];
        let mut copy = duplicate(&value);
        assert!(copy == value && same(&copy, &value));
        copy[2] ^= 1 << 63;
        assert!(!same(&copy, &value));
    }

    #[test]
    fn zeroed_is_zero() {
        assert_eq!(zeroed::<[i32; 3]>(), [0; 3]);
        assert_eq!(zeroed::<f64>(), 0.0);
    }
}
