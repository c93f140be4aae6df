//! The primitive numbers as items.

use super::chosen::Chosen;
use super::item::{Bits, Item};
use super::select::find;

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
