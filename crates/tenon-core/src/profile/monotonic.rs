//! The kernel's monotonic clock.

#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
pub(super) const NANOS: u64 = 1_000_000_000;

/// Nanoseconds of the kernel's clock.
#[cfg(unix)]
#[inline]
pub(super) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // The clock begins when the machine does: neither number is negative, nor their sum too large.
    (time.tv_sec as u64)
        .wrapping_mul(NANOS)
        .wrapping_add(time.tv_nsec as u64)
}

/// Nanoseconds since this was asked first: no number that another process can be told.
#[cfg(windows)]
pub(super) fn monotonic() -> u64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let begin = BEGIN.get_or_init(std::time::Instant::now);
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
