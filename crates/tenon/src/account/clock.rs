//! The clock of the stamps: one that all processes of a machine share, so that what the two ends of a
//! call read can be compared.

use std::fs;
use std::sync::OnceLock;

use rustix::time::{ClockId, clock_gettime};

/// Ticks of the clock in a second.
pub const RATE: u64 = 1_000_000_000;

/// The time now, in nanoseconds since some moment.
#[inline]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // The clock begins when the machine does: neither number is negative, nor their sum too large.
    (time.tv_sec as u64)
        .wrapping_mul(RATE)
        .wrapping_add(time.tv_nsec as u64)
}

/// The same number in all processes that read the same clock; 0 if that cannot be known.
pub fn identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| find_identity().unwrap_or(0))
}

/// A boot of a machine has a number of its own. Containers may have clocks of their own beside.
fn find_identity() -> Option<u64> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let offsets = fs::read("/proc/self/timens_offsets").unwrap_or_default();
    let bytes = boot.iter().chain(&offsets);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Some(hash.max(1))
}
