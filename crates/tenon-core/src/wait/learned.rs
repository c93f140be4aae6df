//! What the waits on a connection have taught: whether looking pays, and for how long. A
//! [`SpinBackoff`] knows the first, for one kind of wait.
//!
//! Looking pays if it mostly ends with a message. So each time that it does not, the next waits are
//! slept through, one the first time and twice as many each further time; each success makes that
//! half as many again. A peer that takes long, or shares the processor with the thread that looks, soon
//! costs a thousandth of an attempt per wait; a peer that begins to answer at once is found out
//! within a thousand waits. Time that is slept counts as further waits: where waking up takes long, looking
//! gains most, and a thousand waits would be half a second.
//!
//! How long to look is a bet against an unknown: a thread that looks for about as long as waking up takes loses
//! little more than as much again as the best choice would have cost. What waking up takes is learned
//! where the same connection was waited on in both ways.
//!
//! Two ends that both sleep are slow for each other: the end that looks waits for the other's waking up, too.
//! If that takes long, neither would see that both could be quick. So an end that has slept through many waits
//! looks for so long, when it tries again, that the other may wake up meanwhile.

use std::time::Duration;

/// Assumed cost of waking up, in nanoseconds, as long as nothing else is known: that in a virtual
/// machine, where it costs most.
const WAKE_UP: u32 = 50_000;
const WAKE_UP_MIN: u32 = 5_000;
const WAKE_UP_MAX: u32 = 150_000;

/// Nanoseconds to look for once in so many waits that it makes no difference.
const LONG_LOOK: u32 = 250_000;
const SELDOM: u32 = 64;

/// A wait that takes longer than this says nothing of what waking up costs.
const SHORT: u32 = 1_000_000;

/// Most waits that are slept through before looking is tried again.
const HOLD_MAX: u32 = 1024;

/// A sleep counts as one more wait for each time that it takes so long: looking is tried again after some
/// hundredths of a second at the latest, and costs some hundredths of the time at most.
const SLEPT_AS_A_WAIT: u32 = 16_000;

/// Exponential back-off of looking: decides whether to look or to sleep, by what came of looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpinBackoff {
    /// Waits to be slept through before looking is tried again.
    hold: u32,
    /// Value of `hold` after the next miss, which is 1 at least.
    penalty: u32,
}

impl SpinBackoff {
    /// Returns whether to look this time.
    #[inline]
    pub fn should_spin(&mut self) -> bool {
        let looks = self.hold == 0;
        self.hold = self.hold.saturating_sub(1);
        looks
    }

    /// Counts so many further waits as slept through.
    fn slept_through(&mut self, waits: u32) {
        self.hold = self.hold.saturating_sub(waits);
    }

    /// Notes that looking ended with a message.
    #[inline]
    pub fn found(&mut self) {
        self.penalty /= 2;
    }

    /// Notes that looking ended without a message.
    pub fn missed(&mut self) {
        self.hold = self.penalty.max(1);
        self.penalty = (2 * self.hold).min(HOLD_MAX);
    }
}

/// Estimate of how long to look before sleeping, learned on one connection. All times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinEstimator {
    backoff: SpinBackoff,
    /// True if the next look comes after many waits that were slept through.
    is_seldom: bool,
    /// Average time of a wait when looking succeeds.
    usual: Option<u32>,
    wake_up: u32,
}

impl SpinEstimator {
    /// An estimator that has learned nothing yet. Where there is one processor, looking only keeps the peer from
    /// answering, if it is on this machine. That is tried seldom.
    pub fn new(processors: usize) -> Self {
        let hold = match processors {
            0 | 1 => HOLD_MAX,
            _ => 0,
        };
        let penalty = hold;
        Self {
            backoff: SpinBackoff { hold, penalty },
            is_seldom: hold >= SELDOM,
            usual: None,
            wake_up: WAKE_UP,
        }
    }

    /// Returns whether the next wait is to be looked through.
    pub fn is_to_look(&self) -> bool {
        self.backoff.hold == 0
    }

    /// Returns how long to look before sleeping; `None` for a wait that is slept through at once.
    #[inline]
    pub fn patience(&mut self) -> Option<Duration> {
        if !self.backoff.should_spin() {
            return None;
        }
        let nanos = match self.is_seldom {
            true => LONG_LOOK,
            // What comes just when the other end has woken up is seen, too.
            false => self.wake_up + self.wake_up / 2,
        };
        Some(Duration::from_nanos(nanos.into()))
    }

    /// Notes that looking for `took` ended with a message.
    #[inline]
    pub fn found(&mut self, took: Duration) {
        self.backoff.found();
        self.is_seldom = false;
        self.usual = Some(average(self.usual, nanos(took)));
    }

    /// Notes that looking ended without a message.
    pub fn missed(&mut self) {
        self.backoff.missed();
        self.is_seldom = self.backoff.hold >= SELDOM;
    }

    /// Notes that sleeping brought a message after `took`.
    pub fn slept(&mut self, took: Duration) {
        let took = nanos(took);
        if took < SHORT {
            self.backoff.slept_through(took / SLEPT_AS_A_WAIT);
        }
        let Some(usual) = self.usual.filter(|usual| (*usual..SHORT).contains(&took)) else {
            return;
        };
        let wake_up = average(Some(self.wake_up), took - usual);
        self.wake_up = wake_up.clamp(WAKE_UP_MIN, WAKE_UP_MAX);
    }
}

fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

/// `value` among what was before it, of which the last eight count most.
fn average(before: Option<u32>, value: u32) -> u32 {
    match before {
        None => value,
        Some(before) => before - before / 8 + value / 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: Duration = Duration::from_micros(1);

    /// Waits of which `looks` are looked through, when none of them succeeds.
    fn waits_for(learned: &mut SpinEstimator, looks: u32) -> u32 {
        let (mut waits, mut looked) = (0, 0);
        while looked < looks {
            waits += 1;
            if learned.patience().is_some() {
                looked += 1;
                learned.missed();
            }
        }
        waits
    }

    #[test]
    fn misses_become_rare() {
        let mut learned = SpinEstimator::new(2);
        // 1 + 1, + 2, + 4, ... waits are slept through between them.
        assert_eq!(waits_for(&mut learned, 1), 1);
        assert_eq!(waits_for(&mut learned, 1), 2);
        assert_eq!(waits_for(&mut learned, 1), 3);
        assert_eq!(waits_for(&mut learned, 1), 5);
        waits_for(&mut learned, 20);
        assert_eq!(waits_for(&mut learned, 10), 10 * (HOLD_MAX + 1));
    }

    #[test]
    fn a_success_makes_a_miss_cheaper() {
        let mut learned = SpinEstimator::new(2);
        waits_for(&mut learned, 20);
        while learned.patience().is_none() {}
        for _ in 0..20 {
            learned.found(5 * MICRO);
            assert!(learned.patience().is_some(), "nothing is slept through");
        }
        learned.missed();
        assert_eq!(waits_for(&mut learned, 1), 2);
    }

    #[test]
    fn with_one_processor_looking_is_tried_after_a_thousand_waits() {
        assert_eq!(waits_for(&mut SpinEstimator::new(1), 1), HOLD_MAX + 1);
    }

    #[test]
    fn what_waking_up_costs_is_learned_where_both_was_seen() {
        let mut learned = SpinEstimator::new(2);
        learned.slept(9 * MICRO);
        assert_eq!(learned.patience(), Some(75 * MICRO), "nothing to compare");
        learned.found(4 * MICRO);
        for _ in 0..100 {
            learned.slept(24 * MICRO);
        }
        let patience = learned.patience().unwrap();
        assert!(patience.abs_diff(30 * MICRO) < MICRO, "{patience:?}");
        for _ in 0..100 {
            learned.slept(4 * MICRO);
        }
        assert_eq!(learned.patience(), Some(7500 * MICRO / 1000));
        for _ in 0..100 {
            learned.slept(900 * MICRO);
        }
        assert_eq!(learned.patience(), Some(225 * MICRO));
        let before = learned.clone();
        learned.slept(Duration::from_secs(100));
        learned.slept(MICRO);
        assert_eq!(learned, before);
    }

    #[test]
    fn time_that_is_slept_counts_as_waits() {
        let tries = |took: Duration| {
            let mut learned = SpinEstimator::new(1);
            let mut waits = 1;
            while learned.patience().is_none() {
                learned.slept(took);
                waits += 1;
            }
            waits
        };
        assert_eq!(tries(15 * MICRO), HOLD_MAX + 1);
        assert_eq!(tries(16 * MICRO), HOLD_MAX / 2 + 1);
        assert_eq!(tries(200 * MICRO), HOLD_MAX.div_ceil(13) + 1);
        assert_eq!(tries(1001 * MICRO), HOLD_MAX + 1, "nobody is in a hurry");
    }

    /// One end of a connection, which sleeps or looks as it has learned.
    struct SimulatedEnd {
        learned: SpinEstimator,
        wake_up: Duration,
        waits_since: Duration,
        looks_until: Option<Duration>,
    }

    impl SimulatedEnd {
        fn new(wake_up: Duration, processors: usize) -> Self {
            let mut learned = SpinEstimator::new(processors);
            if processors > 1 {
                waits_for(&mut learned, 20);
            }
            let mut end = Self {
                learned,
                wake_up,
                waits_since: Duration::ZERO,
                looks_until: None,
            };
            end.wait(Duration::ZERO);
            end
        }

        fn wait(&mut self, now: Duration) {
            self.waits_since = now;
            self.looks_until = self.learned.patience().map(|patience| now + patience);
        }

        /// Returns when it has what arrived at `now`.
        fn receive(&mut self, now: Duration) -> Duration {
            match self.looks_until {
                Some(until) if now <= until => {
                    self.learned.found(now - self.waits_since);
                    return now;
                }
                Some(until) => {
                    self.learned.missed();
                    self.waits_since = until;
                }
                None => {}
            }
            let awake = now + self.wake_up;
            self.learned.slept(awake - self.waits_since);
            awake
        }
    }

    /// Returns after how long calls to an end that answers within 5 us take no longer any more, if both have
    /// slept before and it takes so long to wake up.
    fn quick_after(wake_up: Duration, processors: usize) -> Duration {
        const CALLS: usize = 20_000;
        const ON_THE_WAY: Duration = MICRO;
        const ANSWERING: Duration = Duration::from_micros(3);
        let mut client = SimulatedEnd::new(wake_up, processors);
        let mut server = SimulatedEnd::new(wake_up, processors);
        let (mut now, mut slow_until) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..CALLS {
            let begin = now;
            client.wait(now);
            now = server.receive(now + ON_THE_WAY) + ANSWERING;
            server.wait(now);
            now = client.receive(now + ON_THE_WAY);
            if now - begin > 5 * MICRO {
                slow_until = now;
            }
            now += MICRO;
        }
        assert!(slow_until < now - MICRO, "they never are");
        slow_until
    }

    #[test]
    fn two_sleepers_find_out_that_both_can_be_quick() {
        for processors in [1, 2] {
            for micros in [1, 5, 20, 50, 80, 100, 120, 150] {
                let after = quick_after(micros * MICRO, processors);
                let limit = Duration::from_millis(40);
                assert!(after < limit, "{after:?} where waking up takes {micros} us");
            }
        }
    }
}
