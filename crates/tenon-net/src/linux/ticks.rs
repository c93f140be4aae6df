//! The clock as of the system's last tick, which takes a fraction of what it takes to read it exactly.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getres, clock_gettime};

/// A coarse clock that goes on by a few milliseconds at a time, for callers that need not know the time to the
/// microsecond.
#[derive(Debug)]
pub struct Ticks {
    /// Nanoseconds of the system's clock, and when that was.
    nanos: u64,
    instant: Instant,
    tick: Duration,
}

impl Ticks {
    /// No system has longer ticks.
    const LONGEST: Duration = Duration::from_millis(10);

    /// Returns the one of this process, if the system has such a clock.
    pub fn get() -> Option<&'static Self> {
        static TICKS: OnceLock<Option<Ticks>> = OnceLock::new();
        TICKS.get_or_init(Self::begin).as_ref()
    }

    /// Says when one and the same moment was, by both clocks.
    fn begin() -> Option<Self> {
        // Another thread may run between two looks; the time between them is the error of this clock.
        const NEAR: u64 = 5_000;
        const ATTEMPTS: usize = 100;
        let compare = || {
            let before = look(ClockId::CLOCK_MONOTONIC).unwrap_or_default();
            let instant = Instant::now();
            let after = look(ClockId::CLOCK_MONOTONIC).unwrap_or_default();
            (after.saturating_sub(before), after, instant)
        };
        let mut best = compare();
        for _ in 0..ATTEMPTS {
            if best.0 <= NEAR {
                break;
            }
            let next = compare();
            if next.0 < best.0 {
                best = next;
            }
        }
        let (_, nanos, instant) = best;
        look(ClockId::CLOCK_MONOTONIC_COARSE)?;
        let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE);
        Some(Self {
            nanos,
            instant,
            tick: tick.map_or(Self::LONGEST, Duration::from),
        })
    }

    /// Returns the time from one tick to the next.
    #[inline]
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// Returns the last tick, which was no longer ago than a tick takes: nanoseconds of the system's clock.
    #[inline]
    pub fn last(&self) -> u64 {
        look(ClockId::CLOCK_MONOTONIC_COARSE).unwrap_or(self.nanos)
    }

    /// Returns the time of that tick.
    #[inline]
    pub fn time_of(&self, tick: u64) -> Instant {
        self.instant + Duration::from_nanos(tick.saturating_sub(self.nanos))
    }
}

/// Returns the nanoseconds that a clock shows, if the system has it.
#[inline]
fn look(clock: ClockId) -> Option<u64> {
    let nanos = |time: TimeSpec| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
    clock_gettime(clock).ok().map(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tick_was_just_now() {
        let ticks = Ticks::get().unwrap();
        assert!(ticks.tick <= Ticks::LONGEST, "{ticks:?}");
        let mut is_near = false;
        for _ in 0..1000 {
            let before = Instant::now();
            let last = ticks.time_of(ticks.last());
            let after = Instant::now();
            // The first ticks may lie before the clock was looked at for the first time.
            assert!(last <= after.max(ticks.instant), "{last:?}, {after:?}");
            // Others may run between two looks, but not always.
            is_near |= last + ticks.tick + Duration::from_micros(100) >= before;
        }
        assert!(is_near);
    }
}
