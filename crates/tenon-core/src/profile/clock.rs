//! The clock of the stamps: one that all processes of a machine share, so that what the two ends of a
//! call read can be compared.
//!
//! Where the kernel itself keeps time by the processor's counter, that is it: it counts alike on all
//! cores then, and reading it costs half of what asking the kernel's clock does. Elsewhere it is the
//! kernel's monotonic clock.

use std::fs;
use std::sync::OnceLock;
use std::time::SystemTime;

use tenon_net::monotonic_nanos;

use super::NANOS;
use super::counter::Counter;

/// A clock that is read in ticks.
#[derive(Debug)]
pub struct TickClock {
    counter: Option<Counter>,
    scale: ClockScale,
}

/// Identity of a clock, and the length of its ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockScale {
    /// The same number in all processes that read the same clock; 0 if that cannot be known.
    pub identity: u64,
    /// Ticks in a second, not 0.
    pub rate: u64,
}

/// Returns the clock of this process. The first call waits for a moment while the counter is held against
/// the monotonic clock.
#[inline]
pub fn clock() -> &'static TickClock {
    static CLOCK: OnceLock<TickClock> = OnceLock::new();
    CLOCK.get_or_init(TickClock::find)
}

/// Returns the time now, in ticks of the [`clock`] since some moment.
#[inline]
pub fn now() -> u64 {
    clock().now()
}

impl TickClock {
    fn find() -> Self {
        match Counter::find() {
            Some(counter) => Self {
                scale: ClockScale {
                    // Processes that share the counter count alike, and do not have to agree how fast it is.
                    identity: identity(b"counter"),
                    rate: counter.rate(),
                },
                counter: Some(counter),
            },
            None => Self {
                scale: ClockScale {
                    // Containers may have monotonic clocks of their own.
                    identity: identity(&fs::read("/proc/self/timens_offsets").unwrap_or_default()),
                    rate: NANOS,
                },
                counter: None,
            },
        }
    }

    /// Returns the time now, in ticks since some moment.
    #[inline]
    pub fn now(&self) -> u64 {
        match &self.counter {
            Some(counter) => counter.read(),
            None => monotonic_nanos(),
        }
    }

    /// Returns which clock it is, and how long its ticks are.
    pub fn scale(&self) -> ClockScale {
        self.scale
    }
}

impl ClockScale {
    /// Returns the nanoseconds of so many ticks.
    pub fn nanos(self, ticks: u64) -> u64 {
        nanos(ticks, self.rate)
    }
}

/// The system's real-time clock beside the [`clock`]: what one says when the other says what.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    ticks: u64,
    /// Nanoseconds of the real-time clock at these ticks.
    nanos: u64,
    rate: u64,
    /// Nanoseconds by which either may be wrong.
    error: u64,
}

impl WallClock {
    /// Reads both clocks now, a few times, and takes those readings that lie nearest to each other. The result holds for
    /// a while only, as the real-time clock is corrected now and then.
    pub fn read() -> Self {
        const READINGS: usize = 3;
        let mut best: Option<(u64, u64, u64)> = None;
        for _ in 0..READINGS {
            let (before, nanos, after) = (now(), real_time(), now());
            let apart = after.saturating_sub(before);
            if best.is_none_or(|(least, ..)| apart < least) {
                best = Some((apart, before + apart / 2, nanos));
            }
        }
        let (apart, ticks, nanos) = best.unwrap_or_default();
        let scale = clock().scale();
        Self {
            ticks,
            nanos,
            rate: scale.rate,
            error: scale.nanos(apart).div_ceil(2),
        }
    }

    /// Returns the ticks at which the real-time clock said so.
    pub fn ticks_of(&self, nanos: u64) -> u64 {
        let distance = i128::from(nanos) - i128::from(self.nanos);
        let ticks = i128::from(self.ticks) + distance * i128::from(self.rate) / i128::from(NANOS);
        u64::try_from(ticks).unwrap_or(0)
    }

    /// Returns by how many nanoseconds a time that was converted may be wrong.
    pub fn error(&self) -> u64 {
        self.error
    }
}

/// Returns the nanoseconds of so many ticks of which there are `rate` in a second.
pub fn nanos(ticks: u64, rate: u64) -> u64 {
    let nanos = u128::from(ticks) * u128::from(NANOS) / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// Nanoseconds of the system's real-time clock, since 1970.
fn real_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Returns the identity of the clock `which` of this boot of the machine; 0 if it cannot be known.
fn identity(which: &[u8]) -> u64 {
    let Ok(boot) = fs::read("/proc/sys/kernel/random/boot_id") else {
        return 0;
    };
    let bytes = boot.iter().chain(which);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Two clocks that count the same time do not differ by much, whatever this one counts.
    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        let (clock, began) = (clock(), Instant::now());
        let (from, inner) = (clock.now(), Instant::now());
        thread::sleep(Duration::from_millis(20));
        let (within, to) = (inner.elapsed(), clock.now());
        let around = began.elapsed();
        let nanos = u128::from(clock.scale().nanos(to - from));
        let (low, high) = (within.as_nanos(), around.as_nanos());
        assert!(nanos >= low - low / 20, "{nanos} {low}");
        assert!(nanos <= high + high / 20, "{nanos} {high}");
    }

    #[test]
    fn the_two_clocks_are_compared() {
        let before = now();
        let wall = WallClock::read();
        let (at, after) = (wall.ticks_of(wall.nanos), now());
        assert!((before..=after).contains(&at), "{before} {at} {after}");
        let clock = WallClock {
            ticks: 1000,
            nanos: 5000,
            rate: 3 * NANOS,
            error: 0,
        };
        assert_eq!(
            [4990, 5000, 5007, 0].map(|nanos| clock.ticks_of(nanos)),
            [970, 1000, 1021, 0]
        );
    }

    #[test]
    fn ticks_of_any_length_are_nanoseconds() {
        for (ticks, rate, expected) in [
            (5, NANOS, 5),
            (3_000_000_000, 3_000_000_000, NANOS),
            (7, NANOS / 2, 14),
            (7, 0, 7 * NANOS),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(nanos(ticks, rate), expected, "{ticks} at {rate}");
        }
    }

    #[test]
    fn the_two_clocks_of_a_machine_are_two() {
        assert_ne!(identity(b"counter"), identity(b""));
        assert_eq!(identity(b""), identity(b""));
        assert_ne!(identity(b""), 0);
    }
}
