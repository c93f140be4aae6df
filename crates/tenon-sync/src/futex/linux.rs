//! By Linux's futex, which wakes all the threads whose bits are set by one system call (futex(2), `FUTEX_WAKE_BITSET`).

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use rustix::thread::futex::{self, Flags, Timespec};

/// Most threads that wait for a word.
pub(crate) const WAITERS_MAX: u32 = u32::BITS;

/// Wakes every thread that waits for the bits.
const ALL: u32 = i32::MAX as u32;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// A word that threads wait for.
#[derive(Debug, Default)]
pub(crate) struct FutexWord(AtomicU32);

impl FutexWord {
    /// Returns the word.
    #[inline]
    pub(crate) fn value(&self) -> &AtomicU32 {
        &self.0
    }

    /// Waits until `bit` is [woken](Self::wake), for `limit`, or for nothing. Does not wait if the word is not what
    /// was `seen` any more.
    pub(crate) fn wait(&self, seen: u32, bit: u32, limit: Duration) {
        let until = after(limit);
        if let Some(bit) = NonZeroU32::new(bit) {
            // Whatever ends it, the caller looks at the word.
            let _ = futex::wait_bitset(&self.0, Flags::PRIVATE, seen, until.as_ref(), bit);
        }
    }

    /// Wakes the threads that wait for these bits. The word is not what they have seen.
    pub(crate) fn wake(&self, bits: u32) {
        if let Some(bits) = NonZeroU32::new(bits) {
            // It fails only where there is no word.
            let _ = futex::wake_bitset(&self.0, Flags::PRIVATE, ALL, bits);
        }
    }
}

/// Returns the time at which `limit` is over, by the kernel's monotonic clock; nothing if that is never.
fn after(limit: Duration) -> Option<Timespec> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    let nanos = now.tv_nsec() + i64::from(limit.subsec_nanos());
    let seconds = i64::try_from(limit.as_secs()).ok()?;
    Some(Timespec {
        tv_sec: seconds.checked_add(now.tv_sec() + nanos / SECOND)?,
        tv_nsec: nanos % SECOND,
    })
}
