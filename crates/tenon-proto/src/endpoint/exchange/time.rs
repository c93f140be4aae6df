//! Times to wait for an answer: round trips that were measured, and what is added by chance.

use std::time::Duration;

/// Times to wait before something is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetransmitTimeouts {
    /// The time to wait as long as no round trip has been measured (RFC 6298, 2.1).
    pub initial: Duration,
    /// The least (RFC 6298, 2.4 has a second, for receivers that delay their acknowledgements; none
    /// does here).
    pub least: Duration,
    /// The most, however often it was doubled (RFC 6298, 2.5).
    pub most: Duration,
    /// The longest time between two probes of a call that is being carried out.
    pub probe: Duration,
    /// Silence of the other end, though it was asked, after which it is taken to be gone.
    pub silence: Duration,
}

impl Default for RetransmitTimeouts {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            least: Duration::from_millis(10),
            most: Duration::from_secs(10),
            probe: Duration::from_secs(1),
            silence: Duration::from_secs(30),
        }
    }
}

/// RFC 6298: a clock's granularity, in nanoseconds.
const GRANULARITY: u64 = 1_000_000;

/// The estimate of the round trip (RFC 6298). Karn's rule is its callers': they measure only what was
/// sent once. Every answer is measured, so it reckons in nanoseconds: a `Duration` divides for whatever is
/// done with it.
#[derive(Debug)]
pub(super) struct RttEstimator {
    patience: RetransmitTimeouts,
    most: u64,
    /// Smoothed, and its variation.
    measured: Option<(u64, u64)>,
    /// The time to wait if nothing was in vain.
    wait: u64,
}

impl RttEstimator {
    pub(super) fn new(patience: RetransmitTimeouts) -> Self {
        Self {
            patience,
            most: nanoseconds(patience.most),
            measured: None,
            wait: nanoseconds(patience.initial.max(patience.least)),
        }
    }

    /// RFC 6298, 2.2 to 2.4.
    #[inline]
    pub(super) fn measure(&mut self, trip: Duration) {
        let trip = nanoseconds(trip);
        let (smoothed, variation) = match self.measured {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.abs_diff(trip);
                (
                    smoothed - smoothed / 8 + trip / 8,
                    variation - variation / 4 + difference / 4,
                )
            }
        };
        self.measured = Some((smoothed, variation));
        let wait = smoothed.saturating_add(variation.saturating_mul(4).max(GRANULARITY));
        self.wait = wait.max(nanoseconds(self.patience.least));
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.measured
            .map(|(smoothed, _)| Duration::from_nanos(smoothed))
    }

    /// Returns how long to wait when so many waits were in vain: doubled for each (RFC 6298, 5.5), and up to an eighth
    /// longer by chance, so that those that failed together do not try again together.
    #[inline]
    pub(super) fn wait(&self, in_vain: u32, rng: &mut SplitMix64) -> Duration {
        let wait = self.wait.saturating_mul(1 << in_vain.min(16));
        rng.lengthen(wait.min(self.most))
    }

    /// Returns how long to wait between two probes when so many were answered.
    pub(super) fn probe(&self, answered: u32, rng: &mut SplitMix64) -> Duration {
        let wait = self.wait(answered, rng);
        wait.min(rng.lengthen(nanoseconds(self.patience.probe)))
    }
}

/// The most is more than five hundred years.
#[inline]
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// SplitMix64 (Steele, Lea, Flood), from a seed: good enough for numbers that need not be unpredictable.
#[derive(Debug)]
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// So many nanoseconds, and up to an eighth more.
    #[inline]
    fn lengthen(&mut self, wait: u64) -> Duration {
        let more = wait / 8 / 256 * (self.next() % 256);
        Duration::from_nanos(wait.saturating_add(more))
    }
}
