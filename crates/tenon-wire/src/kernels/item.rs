//! Items that arrays consist of.

use super::chosen::Chosen;

/// A number that kernels move.
///
/// # Safety
/// The type is as large as its [`Bits`](Self::Bits), has no padding, and every pattern of bytes is
/// a value of it.
pub unsafe trait Item: Copy {
    /// The unsigned integer of its size, as which it is moved.
    type Bits: Bits;
}

/// An unsigned integer of 1, 2, 4 or 8 bytes. A single byte has no order: to swap an array of them
/// is to copy it.
pub trait Bits: Copy {
    /// The integer with its bytes in the other order.
    fn swapped(self) -> Self;

    /// Returns the kernel that moves arrays of such integers.
    fn chosen() -> &'static Chosen;
}
