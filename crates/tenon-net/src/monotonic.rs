//! The kernel's monotonic clock.

#[cfg(target_os = "linux")]
use nix::time::{ClockId, clock_gettime};
#[cfg(all(unix, not(target_os = "linux")))]
use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of the kernel's monotonic clock.
#[cfg(target_os = "linux")]
#[inline]
pub fn monotonic_nanos() -> u64 {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| nanos(time.tv_sec() as u64, time.tv_nsec() as u64))
}

/// Returns the nanoseconds of the kernel's monotonic clock.
#[cfg(all(unix, not(target_os = "linux")))]
#[inline]
pub fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    nanos(time.tv_sec as u64, time.tv_nsec as u64)
}

/// Returns the nanoseconds since this was asked first: no number that another process can be told.
#[cfg(windows)]
pub fn monotonic_nanos() -> u64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let begin = BEGIN.get_or_init(std::time::Instant::now);
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The clock begins when the machine does: neither number is negative, nor their sum too large.
#[cfg(unix)]
#[inline]
fn nanos(seconds: u64, nanos: u64) -> u64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}
