//! Which kernels this processor can run, and which of them is best: the one place that asks.

use super::{Bits, Item, LONG, portable};

/// A kernel that this processor can run. One that it cannot run is never handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Instructions);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    Portable,
}

use Instructions::*;

/// The best first.
const ALL: &[Instructions] = &[
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    Portable,
];

/// Whether the processor has a feature, and the system lets it be used. Without `std` nobody knows
/// but the compiler.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        let has = std::is_x86_feature_detected!($feature);
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = $feature);
        has
    }};
}

impl Instructions {
    #[inline(always)]
    fn are_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Avx512 => has!("avx512bw"),
            #[cfg(target_arch = "x86_64")]
            Avx2 => has!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Ssse3 => has!("ssse3"),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Neon => true,
            Portable => true,
        }
    }
}

impl Kernel {
    /// All that this processor can run, the best first.
    pub fn available() -> impl Iterator<Item = Kernel> {
        let here = ALL.iter().filter(|instructions| instructions.are_here());
        here.copied().map(Kernel)
    }

    /// The kernel that the functions of this module use for arrays of 64 bytes and more.
    #[inline(always)]
    pub fn best() -> Kernel {
        let best = ALL.iter().find(|instructions| instructions.are_here());
        Kernel(best.copied().unwrap_or(Portable))
    }

    /// What its instructions are called.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Ssse3 => "SSSE3",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Neon => "NEON",
            Portable => "portable",
        }
    }

    /// Copies the items that fill `from` to `to` and reverses the bytes of each.
    ///
    /// # Panics
    /// If `to` is not as long as `from`, or they end inside of an item.
    pub fn swap<T: Item>(self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "as much to read as to write");
        assert_eq!(from.len() % size_of::<T>(), 0, "whole items");
        // SAFETY: both slices have as many bytes, whole items; one is borrowed mutably, so they do
        // not overlap.
        unsafe { self.swap_any::<T::Bits>(from.as_ptr(), to.as_mut_ptr(), from.len()) }
    }

    /// Reverses the bytes of each of the items that fill `bytes`, where they lie.
    ///
    /// # Panics
    /// If `bytes` ends inside of an item.
    pub fn swap_in_place<T: Item>(self, bytes: &mut [u8]) {
        assert_eq!(bytes.len() % size_of::<T>(), 0, "whole items");
        let at = bytes.as_mut_ptr();
        // SAFETY: all bytes are those of the slice, whole items; source and destination are the
        // same.
        unsafe { self.swap_any::<T::Bits>(at, at, bytes.len()) }
    }

    /// [`run`](Self::run) for arrays of any length.
    ///
    /// # Safety
    /// As [`super::swap`].
    unsafe fn swap_any<B: Bits>(self, from: *const u8, to: *mut u8, bytes: usize) {
        let kernel = if bytes < LONG { Kernel(Portable) } else { self };
        // SAFETY: the caller's promise, and other kernels get long arrays only.
        unsafe { kernel.run::<B>(from, to, bytes) }
    }

    /// Copies items and reverses the bytes of each.
    ///
    /// # Safety
    /// As [`super::swap`]; `bytes` are [`LONG`] or more unless the kernel is the portable one.
    #[inline(always)]
    pub(super) unsafe fn run<B: Bits>(self, from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise; the instructions are here, or the kernel would not have
        // been handed out.
        unsafe {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Avx512 => super::x86::avx512::<B>(from, to, bytes),
                #[cfg(target_arch = "x86_64")]
                Avx2 => super::x86::avx2::<B>(from, to, bytes),
                #[cfg(target_arch = "x86_64")]
                Ssse3 => super::x86::ssse3::<B>(from, to, bytes),
                #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
                Neon => super::neon::neon::<B>(from, to, bytes),
                Portable => portable::swap::<B>(from, to, bytes),
            }
        }
    }
}
