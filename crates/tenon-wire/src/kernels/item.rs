//! What an array consists of.

/// A number that kernels move.
///
/// # Safety
/// The type is as large as its [`Bits`](Self::Bits), has no padding, and every pattern of bytes is
/// a value of it.
pub unsafe trait Item: Copy {
    /// The unsigned integer of its size, in whose shape it is moved.
    type Bits: Bits;
}

/// An unsigned integer of 2, 4 or 8 bytes.
pub trait Bits: Copy {
    /// The integer with its bytes in the other order.
    fn swapped(self) -> Self;
}

macro_rules! items {
    ($($bits:ty: $($item:ty)*;)*) => {$(
        impl Bits for $bits {
            #[inline(always)]
            fn swapped(self) -> Self {
                self.swap_bytes()
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
    u16: i16 u16;
    u32: i32 u32 f32;
    u64: i64 u64 f64;
}
