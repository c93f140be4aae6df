//! How long to wait for an answer: round trips that were measured, and what is added by chance.

use std::time::Duration;

/// How long to wait before something is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// As long as no round trip has been measured (RFC 6298, 2.1).
    pub initial: Duration,
    /// The least (RFC 6298, 2.4 has a second, for receivers that delay their acknowledgements; none
    /// does here).
    pub least: Duration,
    /// The most, however often it was doubled (RFC 6298, 2.5).
    pub most: Duration,
    /// The longest time between two probes of a call that is being carried out.
    pub probe: Duration,
    /// How long the other end may be silent, though it was asked, before it is taken to be gone.
    pub silence: Duration,
}

impl Default for Patience {
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

/// RFC 6298: a clock's granularity.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimate of the round trip (RFC 6298). Karn's rule is its callers': they measure only what was
/// sent once.
#[derive(Debug)]
pub(super) struct RoundTrip {
    patience: Patience,
    /// Smoothed, and its variation.
    measured: Option<(Duration, Duration)>,
}

impl RoundTrip {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            measured: None,
        }
    }

    /// RFC 6298, 2.2 and 2.3.
    pub(super) fn measure(&mut self, trip: Duration) {
        self.measured = Some(match self.measured {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.abs_diff(trip);
                (
                    smoothed * 7 / 8 + trip / 8,
                    variation * 3 / 4 + difference / 4,
                )
            }
        });
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// How long to wait when so many waits were in vain: doubled for each (RFC 6298, 5.5), and up to
    /// an eighth longer by chance, so that those that failed together do not try again together.
    pub(super) fn wait(&self, in_vain: u32, chance: &mut Chance) -> Duration {
        let wait = match self.measured {
            None => self.patience.initial,
            Some((smoothed, variation)) => smoothed + (variation * 4).max(GRANULARITY),
        };
        let wait = wait.max(self.patience.least);
        let wait = wait.saturating_mul(1 << in_vain.min(16));
        chance.lengthen(wait.min(self.patience.most))
    }

    /// How long to wait between two probes when so many were answered.
    pub(super) fn probe(&self, answered: u32, chance: &mut Chance) -> Duration {
        let wait = self.wait(answered, chance);
        wait.min(chance.lengthen(self.patience.probe))
    }
}

/// SplitMix64 (Steele, Lea, Flood), from a seed: good enough for what nobody need not foresee.
#[derive(Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn lengthen(&mut self, wait: Duration) -> Duration {
        wait + wait / 8 * (self.next() % 256) as u32 / 256
    }
}
