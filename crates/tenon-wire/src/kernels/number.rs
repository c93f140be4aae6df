//! Values of any kind, single numbers among them: those are moved as a representation says.

use super::blittable::unit;
use super::{Blittable, get, put_one};
use crate::Representation;

/// Writes a value as `R` has it. If it is a single number, it is moved as `R` says.
///
/// # Panics
/// If it does not fill `to` exactly.
#[inline(always)]
pub(crate) fn put<T: Blittable, R: Representation>(item: &T, to: &mut [u8]) {
    match const { is_number::<T>() } {
        true => R::put_number(item, to),
        false => put_one(item, to, R::SWAPPED),
    }
}

/// Reads a value as `R` has it. If it is a single number, it is moved as `R` says.
///
/// # Panics
/// If it does not fill `from` exactly.
#[inline(always)]
pub(crate) fn take<T: Blittable, R: Representation>(from: &[u8]) -> T {
    match const { is_number::<T>() } {
        true => R::take_number(from),
        false => get(from, R::SWAPPED),
    }
}

/// Returns whether a value is one number and no more.
const fn is_number<T: Blittable>() -> bool {
    matches!(unit::<T>(), Some(unit) if unit == size_of::<T>())
}
