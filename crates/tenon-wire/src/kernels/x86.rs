//! The vectors of x86-64: a byte shuffle in each lane of 16 bytes.

use core::arch::x86_64::{
    __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_shuffle_epi8,
    _mm_storeu_si128, _mm256_loadu_si256, _mm256_shuffle_epi8, _mm256_storeu_si256,
    _mm512_loadu_si512, _mm512_shuffle_epi8, _mm512_storeu_si512,
};

use super::item::Bits;
use super::lanes::{self, SimdVector};
use super::lengths::LONG;

/// For each byte of a vector, which byte of its lane comes there.
struct ShuffleMask<B>(core::marker::PhantomData<B>);

impl<B> ShuffleMask<B> {
    const BYTES: [u8; LONG] = {
        assert!(size_of::<B>().is_power_of_two() && size_of::<B>() <= 8);
        let mut order = [0; LONG];
        let mut index = 0;
        while index < LONG {
            // Sizes are powers of two: this counts backwards inside of each item.
            order[index] = ((index % 16) ^ (size_of::<B>() - 1)) as u8;
            index += 1;
        }
        order
    };
}

macro_rules! vector {
    ($vector:ty, $name:ident: $feature:literal, $load:ident, $shuffle:ident, $store:ident) => {
        impl SimdVector for $vector {
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { $store(to.cast(), self) }
            }

            #[inline(always)]
            unsafe fn swapped<B: Bits>(self) -> Self {
                if size_of::<B>() == 1 {
                    return self;
                }
                // SAFETY: the caller's promise; the order is as long as the longest vector.
                unsafe { $shuffle(self, $load(ShuffleMask::<B>::BYTES.as_ptr().cast())) }
            }

            #[inline(always)]
            fn fetch(at: *const u8) {
                // SAFETY: it asks for no memory to be there.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        }

        /// Copies items and reverses the bytes of each. Gives where the last one written ends.
        ///
        /// # Safety
        /// As [`lanes::swap`].
        #[target_feature(enable = $feature)]
        pub(super) unsafe extern "C" fn $name<B: Bits>(
            from: *const u8,
            to: *mut u8,
            bytes: usize,
        ) -> *mut u8 {
            // SAFETY: the caller's promise.
            unsafe { lanes::swap::<$vector, B>(from, to, bytes) }
        }
    };
}

vector!(__m128i, ssse3: "ssse3", _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128);
vector!(__m256i, avx2: "avx2", _mm256_loadu_si256, _mm256_shuffle_epi8, _mm256_storeu_si256);
vector!(__m512i, avx512: "avx512bw", _mm512_loadu_si512, _mm512_shuffle_epi8, _mm512_storeu_si512);

/// Copies up to 64 bytes at once. What the mask leaves out is not touched, whatever is there.
///
/// Written as instructions, since a function with intrinsics of AVX-512 would be no part of its callers. A register
/// of the upper half is used: the lower half would have to be cleared behind it.
///
/// # Safety
/// The processor has AVX-512 BW; `bytes`, at most 64, can be read at `from` and written at `to`, which do not overlap.
#[cfg(not(miri))]
#[inline(always)]
pub(super) unsafe fn copy_masked(from: *const u8, to: *mut u8, bytes: usize) {
    let mask = u64::MAX.checked_shr(64 - bytes as u32).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "kmovq k1, {mask}",
            "vmovdqu8 zmm16{{k1}}{{z}}, [{from}]",
            "vmovdqu8 [{to}]{{k1}}, zmm16",
            mask = in(reg) mask,
            from = in(reg) from,
            to = in(reg) to,
            out("k1") _,
            out("zmm16") _,
            options(nostack, preserves_flags),
        );
    }
}
