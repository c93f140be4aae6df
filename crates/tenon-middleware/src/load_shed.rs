//! Shedding of load: calls are refused before all of them become slow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenon::{CallErrorKind, CallOutcome, CallScope, Middleware, Rejection};

/// Part of the limit that stays when calls take too long.
const DECREASE: f32 = 0.9;

/// Refuses calls as [`Busy`](tenon::CallErrorKind::Busy) while those that are carried out take longer than they should:
/// a limit of concurrency that finds itself. It goes up by one for as many quick calls as it lets in, and down by a
/// tenth where one took longer than the target, at most once in the time of the target (additive increase,
/// multiplicative decrease, as TCP does it).
#[derive(Debug)]
pub struct LoadShed {
    target: Duration,
    lowest: f32,
    highest: f32,
    /// The limit, as the bits of an `f32`.
    limit: AtomicU32,
    running: AtomicU32,
    decreased_at: Mutex<Option<Instant>>,
}

impl LoadShed {
    /// Calls should take no longer than `target`. At first 64 are let in at the same time; it will be 1 at least and
    /// 65,536 at most.
    pub fn new(target: Duration) -> Self {
        Self {
            target,
            lowest: 1.0,
            highest: 65_536.0,
            limit: AtomicU32::new(64_f32.to_bits()),
            running: AtomicU32::new(0),
            decreased_at: Mutex::new(None),
        }
    }

    /// Lets in no fewer than `lowest` and no more than `highest` calls at the same time, whatever they take.
    #[must_use]
    pub fn between(self, lowest: u32, highest: u32) -> Self {
        let lowest = lowest.max(1);
        let (lowest, highest) = (lowest as f32, highest.max(lowest) as f32);
        let limit = self.get_limit().clamp(lowest, highest);
        Self {
            lowest,
            highest,
            limit: AtomicU32::new(limit.to_bits()),
            ..self
        }
    }

    /// Returns how many calls are let in at the same time now.
    pub fn limit(&self) -> u32 {
        self.get_limit() as u32
    }

    fn get_limit(&self) -> f32 {
        f32::from_bits(self.limit.load(Ordering::Relaxed))
    }

    fn increase(&self, running: u32) {
        let limit = self.get_limit();
        // A limit that is not needed says nothing.
        if running as f32 * 2.0 >= limit && limit < self.highest {
            let limit = (limit + limit.recip()).min(self.highest);
            self.limit.store(limit.to_bits(), Ordering::Relaxed);
        }
    }

    #[cold]
    fn decrease(&self, now: Instant) {
        let mut decreased_at = self
            .decreased_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if decreased_at.is_some_and(|at| now.saturating_duration_since(at) < self.target) {
            return;
        }
        *decreased_at = Some(now);
        let limit = (self.get_limit() * DECREASE).max(self.lowest);
        self.limit.store(limit.to_bits(), Ordering::Relaxed);
    }
}

impl Middleware for LoadShed {
    type State = ();

    #[inline]
    fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        let running = self.running.fetch_add(1, Ordering::Relaxed);
        if running >= self.limit() {
            self.running.fetch_sub(1, Ordering::Relaxed);
            let reason = format!("calls take too long, and {running} are carried out");
            return Err(Rejection::busy(reason).retry_after(self.target));
        }
        Ok(())
    }

    #[inline]
    fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        let running = self.running.fetch_sub(1, Ordering::Relaxed);
        let now = Instant::now();
        let took = now.saturating_duration_since(call.started_at());
        if took > self.target || outcome.kind() == Some(CallErrorKind::TimedOut) {
            self.decrease(now);
        } else if outcome.is_success() {
            self.increase(running);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_goes_down_by_slow_calls_and_up_by_quick_ones() {
        let shed = LoadShed::new(Duration::from_millis(10)).between(2, 100);
        let begun = Instant::now();
        assert_eq!(shed.limit(), 64);
        for step in 0..100 {
            shed.decrease(begun + Duration::from_millis(20 * step));
        }
        assert_eq!(shed.limit(), 2);
        // Twice in the time of the target counts once.
        shed.limit.store(100_f32.to_bits(), Ordering::Relaxed);
        let now = begun + Duration::from_secs(60);
        shed.decrease(now);
        shed.decrease(now + Duration::from_millis(5));
        assert_eq!(shed.limit(), 90);
        for _ in 0..90 * 3 {
            shed.increase(80);
        }
        assert!((92..=100).contains(&shed.limit()), "{}", shed.limit());
        let before = shed.limit();
        shed.increase(1);
        assert_eq!(shed.limit(), before);
    }
}
