//! The clock as of the system's last tick, which takes a fraction of what it takes to read it exactly.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getres, clock_gettime};

/// A clock that goes on by a few milliseconds at a time, for who need not know to the microsecond when it is.
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

    /// The one of this process.
    #[inline]
    pub fn get() -> &'static Self {
        static TICKS: OnceLock<Ticks> = OnceLock::new();
        TICKS.get_or_init(Self::begin)
    }

    /// Says when one and the same moment was, by both clocks.
    fn begin() -> Self {
        // Somebody else may run between two looks; what is between them is how wrong this is.
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
        let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE);
        Self {
            nanos,
            instant,
            tick: tick.map_or(Self::LONGEST, Duration::from),
        }
    }

    /// From one tick to the next.
    #[inline]
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// When the last tick was: no more than a tick ago, and not in the future.
    #[inline]
    pub fn last(&self) -> Instant {
        match look(ClockId::CLOCK_MONOTONIC_COARSE) {
            Some(now) => self.instant + Duration::from_nanos(now.saturating_sub(self.nanos)),
            None => Instant::now(),
        }
    }
}

/// The nanoseconds that a clock shows, if the system has it.
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
        let ticks = Ticks::get();
        assert!(ticks.tick <= Ticks::LONGEST, "{ticks:?}");
        let mut is_near = false;
        for _ in 0..1000 {
            let before = Instant::now();
            let last = ticks.last();
            let after = Instant::now();
            // The first ticks may lie before the clock was looked at for the first time.
            assert!(last <= after.max(ticks.instant), "{last:?}, {after:?}");
            // Others may run between two looks, but not always.
            is_near |= last + ticks.tick + Duration::from_micros(100) >= before;
        }
        assert!(is_near);
    }
}
