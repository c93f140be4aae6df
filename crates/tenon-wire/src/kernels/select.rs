//! Finds the kernels that this processor can run, and the best of them: the one place that asks.

use super::chosen::Move;
use super::item::{Bits, Item};
use super::portable;

/// A kernel that this processor can run. One that it cannot run is never handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(InstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstructionSet {
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

use InstructionSet::*;

/// The widest first.
const ALL: &[InstructionSet] = &[
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

/// True if the processor has a feature, and the system lets it be used. Without `std` only the
/// compiler knows.
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

impl InstructionSet {
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

/// Copies up to 64 bytes without a look at how many they are, if this processor can; says whether it did.
/// A branch on the length of a string is mostly mispredicted.
///
/// # Safety
/// `bytes`, at most 64, can be read at `from` and written at `to`, which do not overlap.
#[inline(always)]
pub(super) unsafe fn copies_masked(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if Avx512.are_here() {
        // SAFETY: the caller's promise; the processor has the instructions.
        unsafe { super::x86::copy_masked(from, to, bytes) };
        return true;
    }
    let _ = (from, to, bytes);
    false
}

impl Kernel {
    /// All that this processor can run, the widest first.
    pub fn available() -> impl Iterator<Item = Kernel> {
        let here = ALL.iter().filter(|instructions| instructions.are_here());
        here.copied().map(Kernel)
    }

    /// The kernel that the functions of this module use where bytes are swapped.
    pub fn best() -> Kernel {
        Self::best_for::<u32>()
    }

    fn best_for<B: Bits>() -> Kernel {
        let suitable = Self::available().find(|kernel| kernel.suits::<B>());
        suitable.unwrap_or(Kernel(Portable))
    }

    /// Returns the name of its instructions.
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
        unsafe { self.of::<T::Bits>()(from.as_ptr(), to.as_mut_ptr(), from.len()) };
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
        unsafe { self.of::<T::Bits>()(at, at, bytes.len()) };
    }

    /// Returns whether it moves such items better than those behind it do, if it is here. To copy, vectors of 16
    /// bytes gain nothing on the platform's own copy. The first generations of processors with AVX-512
    /// lower their clock for a while when its widest registers are touched, so that whatever comes
    /// after a short array runs slower: a call with 4 KiB each way took 10 % longer than with AVX2.
    /// The generations behind them also have VBMI.
    fn suits<B: Bits>(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Avx512 => has!("avx512vbmi"),
            #[cfg(target_arch = "x86_64")]
            Avx2 => true,
            #[cfg(target_arch = "x86_64")]
            Ssse3 => size_of::<B>() > 1,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Neon => size_of::<B>() > 1,
            Portable => true,
        }
    }

    /// Returns the function that moves such items. The instructions are here, or the kernel would not have been
    /// handed out.
    fn of<B: Bits>(self) -> Move {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Avx512 => super::x86::avx512::<B>,
            #[cfg(target_arch = "x86_64")]
            Avx2 => super::x86::avx2::<B>,
            #[cfg(target_arch = "x86_64")]
            Ssse3 => super::x86::ssse3::<B>,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Neon => super::neon::neon::<B>,
            Portable => portable::kernel::<B>,
        }
    }
}

/// Chooses what moves such items, and lets it.
///
/// # Safety
/// As [`super::swap::swap`].
pub(super) unsafe extern "C" fn find<B: Bits>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) -> *mut u8 {
    let chosen = Kernel::best_for::<B>().of::<B>();
    B::chosen().set(chosen);
    // SAFETY: the caller's promise.
    unsafe { chosen(from, to, bytes) }
}
