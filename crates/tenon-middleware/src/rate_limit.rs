//! A limit of the calls in a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenon::{CallScope, Middleware, Rejection};

/// Lets so many calls a second go on, evenly but for bursts (a token bucket, by the generic cell rate algorithm of ITU-T
/// I.371). Others are refused as [`Busy`](tenon::CallErrorKind::Busy), and told when to come again, or
/// [wait](Self::waiting).
#[derive(Debug)]
pub struct RateLimit {
    /// Nanoseconds from one call to the next.
    interval: u64,
    /// Nanoseconds that a call may come earlier than evenly.
    tolerance: u64,
    waiting_max: Duration,
    begun: Instant,
    /// When the next call would come if all came evenly, in nanoseconds.
    next: AtomicU64,
}

impl RateLimit {
    /// So many calls a second, of which up to `burst` may come at once.
    ///
    /// # Panics
    /// The rate is not above 0.
    pub fn per_second(rate: f64, burst: u32) -> Self {
        assert!(
            rate > 0.0,
            "a rate of {rate} calls a second lets none go on"
        );
        let interval = ((1e9 / rate) as u64).max(1);
        Self {
            interval,
            tolerance: interval.saturating_mul(u64::from(burst.max(1)) - 1),
            waiting_max: Duration::ZERO,
            begun: Instant::now(),
            next: AtomicU64::new(0),
        }
    }

    /// Lets calls wait for so long until it is their turn. At a server of threads each of them holds a thread.
    #[must_use]
    pub fn waiting(self, waiting_max: Duration) -> Self {
        Self {
            waiting_max,
            ..self
        }
    }

    /// Returns how long a call of now has to wait, and takes its turn; or how long it would have to wait.
    fn take_turn(&self, now: Instant) -> Result<Duration, Duration> {
        let nanoseconds = now.saturating_duration_since(self.begun).as_nanos() as u64;
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let wait = next
                .saturating_sub(self.tolerance)
                .saturating_sub(nanoseconds);
            let wait = Duration::from_nanos(wait);
            if wait > self.waiting_max {
                return Err(wait);
            }
            let behind = next.max(nanoseconds).saturating_add(self.interval);
            match self.next.compare_exchange_weak(
                next,
                behind,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(wait),
                Err(other) => next = other,
            }
        }
    }
}

impl Middleware for RateLimit {
    type State = ();

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<(), Rejection> {
        let now = Instant::now();
        match self.take_turn(now) {
            Ok(Duration::ZERO) => Ok(()),
            Ok(wait) => {
                call.hold_until(now + wait);
                Ok(())
            }
            Err(wait) => {
                Err(Rejection::busy("the calls come faster than they may").retry_after(wait))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_on_and_then_calls_come_evenly() {
        let limit = RateLimit::per_second(10.0, 3);
        let begun = limit.begun;
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        let turns: Vec<_> = (0..4).map(|_| limit.take_turn(at(0)).is_ok()).collect();
        assert_eq!(turns, [true, true, true, false]);
        assert_eq!(limit.take_turn(at(0)), Err(Duration::from_millis(100)));
        assert_eq!(limit.take_turn(at(100)), Ok(Duration::ZERO));
        assert!(limit.take_turn(at(150)).is_err());
        // After a silence a burst is possible again, and no more than one.
        let turns: Vec<_> = (0..4).map(|_| limit.take_turn(at(9000)).is_ok()).collect();
        assert_eq!(turns, [true, true, true, false]);
    }

    #[test]
    fn calls_that_may_wait_get_turns_one_after_the_other() {
        let limit = RateLimit::per_second(10.0, 1).waiting(Duration::from_millis(250));
        let now = limit.begun;
        let waits: Vec<_> = (0..4).map(|_| limit.take_turn(now)).collect();
        let [none, one, two] = [0, 100, 200].map(|wait| Ok(Duration::from_millis(wait)));
        assert_eq!(waits, [none, one, two, Err(Duration::from_millis(300))]);
    }
}
