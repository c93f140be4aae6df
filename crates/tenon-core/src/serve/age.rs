//! The age of a connection, behind which it ends so that its client connects anew, perhaps to another server.

use std::time::{Duration, Instant};

use super::half_close::{HALF_CLOSE_MAX, LATELY};
use super::limits::ServerLimits;
use super::turns::DEPARTURE;

/// Time after which a connection is closed whose peer was asked to go away, and goes on calling.
const GO_AWAY_TIMEOUT: Duration = Duration::from_secs(5);

/// The age of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionAge {
    /// Time at which the connection is to be looked at.
    due: Option<Instant>,
    stage: AgeStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgeStage {
    /// The connection is young, or its peer cannot be asked to go away and has not been silent since its age.
    Young,
    /// The peer was asked to go away then.
    Asked(Instant),
    /// The connection ends when its calls are answered, or when it is due.
    Ends,
    /// Its calls with streams were ended, and what is left to be sent of them has until it is due.
    LastItems,
}

/// What is to be done about the age of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeStep {
    /// Nothing yet.
    Nothing,
    /// The peer was asked to go away, which is to be sent.
    Asked,
    /// The connection ends when its calls are answered.
    Ends,
}

impl ConnectionAge {
    /// The age of a connection of this number that was accepted at `now`.
    pub fn new(limits: &ServerLimits, id: usize, now: Instant) -> Self {
        Self {
            due: limits.connection_age.map(|age| now + spread(age, id)),
            stage: AgeStage::Young,
        }
    }

    /// Returns when the connection is to be looked at.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether the peer was asked to go away.
    pub fn was_asked(&self) -> bool {
        matches!(self.stage, AgeStage::Asked(_))
    }

    /// Decides about a connection that is due by `now`, and silent or not; `ask` asks the peer to go away, if it can be
    /// asked.
    pub fn step(
        &mut self,
        limits: &ServerLimits,
        now: Instant,
        is_silent: bool,
        ask: impl FnOnce() -> bool,
    ) -> AgeStep {
        let grace = limits.connection_grace;
        match self.stage {
            AgeStage::Young if ask() => {
                self.stage = AgeStage::Asked(now);
                self.due = Some(now + grace.map_or(LATELY, |grace| grace.min(LATELY)));
                return AgeStep::Asked;
            }
            AgeStage::Young if is_silent => {}
            AgeStage::Asked(at) => {
                let timeout = grace.map_or(GO_AWAY_TIMEOUT, |grace| grace.min(GO_AWAY_TIMEOUT));
                if !is_silent && now < at + timeout {
                    self.due = Some((now + LATELY).min(at + timeout));
                    return AgeStep::Nothing;
                }
            }
            AgeStage::Young => {
                self.due = Some(now + LATELY);
                return AgeStep::Nothing;
            }
            AgeStage::Ends | AgeStage::LastItems => return AgeStep::Nothing,
        }
        let asked = match self.stage {
            AgeStage::Asked(at) => at,
            _ => now,
        };
        self.stage = AgeStage::Ends;
        self.due = grace.map(|grace| asked + grace);
        AgeStep::Ends
    }

    /// Has the connection, of which every call is answered at `now`, wait a moment for its peer.
    pub fn linger(&mut self, now: Instant) {
        self.due = Some(now + HALF_CLOSE_MAX);
    }

    /// Returns whether the calls that still run have had their time by `now`. Those with streams are to be
    /// [ended](Self::begin_last_items) first.
    pub fn is_over(&self, now: Instant, has_streams: bool) -> bool {
        let is_due = self.due.is_some_and(|at| at <= now);
        match self.stage {
            AgeStage::Ends => is_due && !has_streams,
            AgeStage::LastItems => is_due,
            AgeStage::Young | AgeStage::Asked(_) => false,
        }
    }

    /// Returns whether the calls with streams that still run are to be ended by `now`, as they have had their time. What
    /// is left to be sent of them has a moment then.
    pub fn begin_last_items(&mut self, now: Instant) -> bool {
        let is_due = self.stage == AgeStage::Ends && self.due.is_some_and(|at| at <= now);
        if is_due {
            self.stage = AgeStage::LastItems;
            self.due = Some(now + DEPARTURE);
        }
        is_due
    }
}

/// Returns `age`, a tenth more or less, by the number of a connection.
fn spread(age: Duration, id: usize) -> Duration {
    // Neighbouring numbers are far apart (Fibonacci hashing).
    let hash = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    age.mul_f64(0.9 + 0.2 * (hash as f64 / f64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(10);

    fn limits(grace: Option<Duration>) -> ServerLimits {
        ServerLimits {
            connection_age: Some(AGE),
            connection_grace: grace,
            ..ServerLimits::default()
        }
    }

    /// A connection that has just reached its age.
    fn aged(limits: &ServerLimits) -> (ConnectionAge, Instant) {
        let age = ConnectionAge::new(limits, 1, Instant::now());
        (age, age.due().unwrap())
    }

    #[test]
    fn ages_lie_within_a_tenth_and_differ() {
        let ages: Vec<_> = (0..100).map(|id| spread(100 * AGE, id)).collect();
        assert!(ages.iter().all(|it| (900..=1100).contains(&it.as_secs())));
        let (least, most) = (ages.iter().min().unwrap(), ages.iter().max().unwrap());
        assert!(
            *most - *least > Duration::from_secs(150),
            "{least:?} {most:?}"
        );
    }

    #[test]
    fn a_peer_that_can_be_asked_goes_by_itself_or_after_a_silence() {
        let limits = limits(None);
        let (mut age, now) = aged(&limits);
        assert_eq!(age.step(&limits, now, false, || true), AgeStep::Asked);
        assert!(age.was_asked());
        let next = age.due().unwrap();
        let busy = age.step(&limits, next, false, || unreachable!());
        assert_eq!(busy, AgeStep::Nothing);
        let next = age.due().unwrap();
        assert_eq!(
            age.step(&limits, next, true, || unreachable!()),
            AgeStep::Ends
        );
        // Without a grace its calls may run on.
        assert!(age.due().is_none() && !age.is_over(next + 100 * AGE, false));
    }

    #[test]
    fn a_peer_that_stays_is_closed_and_its_calls_have_their_grace() {
        let grace = 2 * GO_AWAY_TIMEOUT;
        let limits = limits(Some(grace));
        let (mut age, asked) = aged(&limits);
        age.step(&limits, asked, false, || true);
        while age.due().unwrap() < asked + GO_AWAY_TIMEOUT {
            let now = age.due().unwrap();
            let step = age.step(&limits, now, false, || unreachable!());
            assert_eq!(step, AgeStep::Nothing);
        }
        let end = age.step(&limits, asked + GO_AWAY_TIMEOUT, false, || unreachable!());
        assert_eq!(end, AgeStep::Ends);
        assert!(!age.is_over(asked + grace, true));
        assert!(!age.is_over(asked + GO_AWAY_TIMEOUT, false) && age.is_over(asked + grace, false));
        // Those with streams are ended, and have a moment more.
        assert!(!age.begin_last_items(asked + GO_AWAY_TIMEOUT));
        assert!(age.begin_last_items(asked + grace));
        let end = age.due().unwrap();
        assert!(!age.is_over(asked + grace, true) && age.is_over(end, true));
    }

    #[test]
    fn a_peer_that_cannot_be_asked_is_waited_for_until_it_is_silent() {
        let limits = limits(None);
        let (mut age, mut now) = aged(&limits);
        for _ in 0..5 {
            assert_eq!(age.step(&limits, now, false, || false), AgeStep::Nothing);
            now = age.due().unwrap();
        }
        assert_eq!(age.step(&limits, now, true, || false), AgeStep::Ends);
    }
}
