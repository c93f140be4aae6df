//! Notices handlers that take long. A thread of its own looks every half a millisecond at what the others are at, as
//! long as handlers run, and sleeps otherwise. A handler that it finds running twice has kept its connection, and
//! those that wait behind it, for half a millisecond or more: another thread takes them over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::activity::Activity;
use super::lock;

/// How often the watchdog looks.
const TICK: Duration = Duration::from_micros(500);

/// Looks in a row without a handler after which the watchdog sleeps.
const IDLE_TICKS: u32 = 20;

/// What the watchdog and those whom it watches share.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    is_asleep: AtomicBool,
    watched: Mutex<Watched>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    threads: Vec<Weak<Activity>>,
    is_closed: bool,
}

impl Watchdog {
    /// Watches a thread from now on.
    pub(super) fn watch(&self, activity: &Arc<Activity>) {
        let mut watched = lock(&self.watched);
        watched.threads.retain(|thread| thread.strong_count() > 0);
        watched.threads.push(Arc::downgrade(activity));
    }

    /// A handler begins: the watchdog is woken if it sleeps.
    #[inline]
    pub(super) fn note_handler(&self) {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        if self.is_asleep.swap(false, Ordering::AcqRel) {
            let _watched = lock(&self.watched);
            self.wake.notify_one();
        }
    }

    /// Ends the watchdog's thread.
    pub(super) fn close(&self) {
        let mut watched = lock(&self.watched);
        watched.is_closed = true;
        self.wake.notify_one();
    }

    /// Watches until it is [closed](Self::close). What a thread does whose handler takes long, another is to
    /// `take_over`.
    pub(super) fn run(&self, take_over: impl Fn(&Activity)) {
        let mut seen: HashMap<*const Activity, u64> = HashMap::new();
        let mut idle_ticks = 0;
        let mut threads = Vec::new();
        while self.tick(idle_ticks >= IDLE_TICKS, &mut threads) {
            let mut is_idle = true;
            seen.retain(|known, _| threads.iter().any(|thread| Arc::as_ptr(thread) == *known));
            for activity in &threads {
                let now = activity.handlers();
                let before = seen.insert(Arc::as_ptr(activity), now);
                let runs = !now.is_multiple_of(2);
                is_idle &= before == Some(now) && (!runs || activity.is_replaced());
                if runs && before == Some(now) {
                    take_over(activity);
                }
            }
            idle_ticks = if is_idle { idle_ticks + 1 } else { 0 };
        }
    }

    /// Waits for the next look, or until a handler begins if it `sleeps`, and fills in the threads; returns false at
    /// the end.
    fn tick(&self, sleeps: bool, threads: &mut Vec<Arc<Activity>>) -> bool {
        threads.clear();
        let mut watched = lock(&self.watched);
        if sleeps {
            self.is_asleep.store(true, Ordering::Release);
            while self.is_asleep.load(Ordering::Acquire) && !watched.is_closed {
                watched = self
                    .wake
                    .wait(watched)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            self.is_asleep.store(false, Ordering::Relaxed);
        }
        if !watched.is_closed {
            let waited = self.wake.wait_timeout(watched, TICK);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        threads.extend(watched.threads.iter().filter_map(Weak::upgrade));
        !watched.is_closed
    }
}
