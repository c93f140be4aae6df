//! What an array consists of.

use super::select::{Chosen, find};

/// A number that kernels move.
///
/// # Safety
/// The type is as large as its [`Bits`](Self::Bits), has no padding, and every pattern of bytes is
/// a value of it.
pub unsafe trait Item: Copy {
    /// The unsigned integer of its size, in whose shape it is moved.
    type Bits: Bits;
}

/// An unsigned integer of 1, 2, 4 or 8 bytes. A single byte has no order: to swap an array of them
/// is to copy it.
pub trait Bits: Copy {
    /// The integer with its bytes in the other order.
    fn swapped(self) -> Self;

    /// What moves arrays of such integers.
    fn chosen() -> &'static Chosen;
}

macro_rules! items {
    ($($bits:ty: $($item:ty)*;)*) => {$(
        impl Bits for $bits {
            #[inline(always)]
            fn swapped(self) -> Self {
                self.swap_bytes()
            }

            #[inline(always)]
            fn chosen() -> &'static Chosen {
                static CHOSEN: Chosen = Chosen::at_first(find::<$bits>);
                &CHOSEN
            }
        }

        $(
            // SAFETY: a primitive number, of the same size as the integer.
            unsafe impl Item for $item {
                type Bits = $bits;
            }
        )*
    )*};
}

items! {
    u8: i8 u8;
    u16: i16 u16;
    u32: i32 u32 f32;
    u64: i64 u64 f64;
}
