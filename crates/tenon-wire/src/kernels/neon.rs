//! The vectors of 64-bit ARM, which has an instruction for each size of item.

use core::arch::aarch64::{uint8x16_t, vld1q_u8, vrev16q_u8, vrev32q_u8, vrev64q_u8, vst1q_u8};

use super::item::Bits;
use super::lanes::{self, SimdVector};

impl SimdVector for uint8x16_t {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn swapped<B: Bits>(self) -> Self {
        const { assert!(size_of::<B>().is_power_of_two() && size_of::<B>() <= 8) }
        // SAFETY: the caller's promise.
        unsafe {
            match size_of::<B>() {
                1 => self,
                2 => vrev16q_u8(self),
                4 => vrev32q_u8(self),
                _ => vrev64q_u8(self),
            }
        }
    }
}

/// Copies items and reverses the bytes of each. Gives where the last one written ends.
///
/// # Safety
/// As [`lanes::swap`].
#[target_feature(enable = "neon")]
pub(super) unsafe extern "C" fn neon<B: Bits>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { lanes::swap::<uint8x16_t, B>(from, to, bytes) }
}
