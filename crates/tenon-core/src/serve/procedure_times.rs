//! Which procedures take long, as their handlers have shown. A handler is run by the thread that received its call,
//! as long as that is quick; a procedure that was slow twice is handed to another thread at once, until it has been
//! quick for a while.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// A handler that takes no longer is quick, measured where it runs on a thread of its own.
pub const QUICK: Duration = Duration::from_micros(200);

/// A handler that takes longer is slow where others wait for it.
pub const SLOW: Duration = Duration::from_micros(500);

/// Times that a handler has to be slow before its procedure is handed to another thread.
const STRIKES: u8 = 2;

/// Times in a row that a procedure has to be quick on another thread before it is run where it is received again.
const QUICK_RUNS: u8 = 32;

/// The entry of a procedure whose handler waits for calls of its own over the connection of its call.
const CALLS_BACK: u8 = u8::MAX;

/// Procedures of a service that are told apart.
const PROCEDURES: usize = 256;

/// Record of how long the procedures of all services of a server take.
#[derive(Debug, Default)]
pub struct ProcedureTimes {
    /// For each service: below [`STRIKES`] how often a procedure was slow, from there on how often it has been quick
    /// since.
    services: Vec<[AtomicU8; PROCEDURES]>,
    /// True if every procedure stays one that takes long.
    is_fixed: bool,
}

impl ProcedureTimes {
    /// A record of so many services, of which nothing is known.
    pub fn new(services: usize) -> Self {
        let unknown = || [const { AtomicU8::new(0) }; PROCEDURES];
        Self {
            services: (0..services).map(|_| unknown()).collect(),
            is_fixed: false,
        }
    }

    /// The same, where every call is to be carried out elsewhere, however quick its procedure is.
    pub fn always_elsewhere(services: usize) -> Self {
        Self {
            is_fixed: true,
            ..Self::cautious(services)
        }
    }

    /// The same, where nothing can be done about a handler that takes long once it runs: a procedure of which nothing
    /// is known is taken for slow.
    pub fn cautious(services: usize) -> Self {
        let unknown = || [const { AtomicU8::new(STRIKES) }; PROCEDURES];
        Self {
            services: (0..services).map(|_| unknown()).collect(),
            is_fixed: false,
        }
    }

    #[inline]
    fn entry(&self, service: usize, procedure: u32) -> Option<&AtomicU8> {
        let service = self.services.get(service)?;
        Some(&service[procedure as usize % PROCEDURES])
    }

    /// Returns whether a procedure is to be handed to another thread at once.
    #[inline]
    pub fn is_slow(&self, service: usize, procedure: u32) -> bool {
        self.entry(service, procedure)
            .is_some_and(|entry| entry.load(Ordering::Relaxed) >= STRIKES)
    }

    /// Notes that a handler took long where its call was received.
    pub fn note_slow(&self, service: usize, procedure: u32) {
        if let Some(entry) = self.entry(service, procedure) {
            let strikes = entry.load(Ordering::Relaxed);
            if strikes < STRIKES {
                entry.store(strikes + 1, Ordering::Relaxed);
            }
        }
    }

    /// Notes that a handler waits for calls of its own over the connection of its call, which is served meanwhile: its
    /// procedure is handed to another thread from now on.
    pub fn note_calls_back(&self, service: usize, procedure: u32) {
        if let Some(entry) = self.entry(service, procedure) {
            entry.store(CALLS_BACK, Ordering::Relaxed);
        }
    }

    /// Notes how long a handler took where its call was received, and where others had to wait for it.
    #[inline]
    pub fn note_inline(&self, service: usize, procedure: u32, took: Duration) {
        if took > SLOW
            && let Some(entry) = self.entry(service, procedure)
        {
            entry.store(STRIKES, Ordering::Relaxed);
        }
    }

    /// Notes how long a handler took on another thread.
    pub fn note_elsewhere(&self, service: usize, procedure: u32, took: Duration) {
        let Some(entry) = self.entry(service, procedure).filter(|_| !self.is_fixed) else {
            return;
        };
        let runs = entry.load(Ordering::Relaxed).max(STRIKES);
        if runs == CALLS_BACK {
            return;
        }
        let next = if took > QUICK {
            STRIKES
        } else if runs - STRIKES + 1 < QUICK_RUNS {
            runs + 1
        } else {
            // Once more, and it is handed over again.
            STRIKES - 1
        };
        entry.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procedure_that_was_slow_twice_is_slow() {
        let times = ProcedureTimes::new(2);
        assert!(!times.is_slow(1, 7));
        times.note_slow(1, 7);
        assert!(!times.is_slow(1, 7));
        times.note_slow(1, 7);
        assert!(times.is_slow(1, 7));
        assert!(!times.is_slow(0, 7) && !times.is_slow(1, 8));
    }

    #[test]
    fn a_procedure_that_has_become_quick_is_not_slow_any_more() {
        let times = ProcedureTimes::new(1);
        let quick = || times.note_elsewhere(0, 1, QUICK);
        times.note_slow(0, 1);
        times.note_slow(0, 1);
        for _ in 1..QUICK_RUNS {
            quick();
        }
        times.note_elsewhere(0, 1, 2 * QUICK);
        for _ in 1..QUICK_RUNS {
            quick();
            assert!(times.is_slow(0, 1));
        }
        quick();
        assert!(!times.is_slow(0, 1));
        times.note_slow(0, 1);
        assert!(times.is_slow(0, 1), "it was slow before");
    }

    #[test]
    fn a_procedure_may_be_always_elsewhere() {
        let times = ProcedureTimes::always_elsewhere(1);
        for _ in 0..2 * QUICK_RUNS {
            times.note_elsewhere(0, 1, QUICK);
        }
        assert!(times.is_slow(0, 1));
    }

    #[test]
    fn nothing_is_known_of_a_service_that_is_not_there() {
        let times = ProcedureTimes::new(0);
        times.note_slow(3, 1);
        times.note_elsewhere(3, 1, QUICK);
        assert!(!times.is_slow(3, 1));
    }
}
