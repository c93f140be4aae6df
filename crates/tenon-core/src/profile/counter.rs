//! The processor's counter of time.

use std::fs;

use tenon_net::monotonic_nanos;

use super::NANOS;

/// File in which the kernel names its clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Clock sources that are counters which programs can read: on x86-64, on 64-bit Arm.
const COUNTERS: [&str; 2] = ["tsc", "arch_sys_counter"];

/// The processor's counter.
#[derive(Debug)]
pub(super) struct Counter(quanta::Clock);

impl Counter {
    /// Returns the counter, if the kernel keeps time by it.
    pub(super) fn find() -> Option<Self> {
        let source = fs::read_to_string(CLOCK_SOURCE).ok()?;
        if !COUNTERS.contains(&source.trim()) {
            return None;
        }
        let clock = quanta::Clock::new();
        // Where it does not trust the counter it reads the monotonic clock, and does not say so.
        let (before, read, after) = (monotonic_nanos(), clock.raw(), monotonic_nanos());
        (!(before..=after).contains(&read)).then_some(Self(clock))
    }

    /// Returns its ticks.
    #[inline]
    pub(super) fn read(&self) -> u64 {
        self.0.raw()
    }

    /// Returns its ticks in a second.
    pub(super) fn rate(&self) -> u64 {
        const TICKS: u64 = 1 << 40;
        let nanos = self.0.delta_as_nanos(0, TICKS).max(1);
        let rate = u128::from(TICKS) * u128::from(NANOS) / u128::from(nanos);
        u64::try_from(rate).unwrap_or(u64::MAX).max(1)
    }
}
