//! Notices handlers that take long. A thread of its own looks every half a millisecond at what the others are at, as
//! long as handlers run, and sleeps otherwise. A handler that it finds running twice has kept its connection, and
//! those that wait behind it, for half a millisecond or more: another thread takes them over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tenon_sync::SleepFlag;

use super::activity::ThreadActivity;
use super::lock;

/// Interval at which the watchdog looks.
const TICK: Duration = Duration::from_micros(500);

/// Looks in a row without a handler after which the watchdog announces that it will sleep.
const IDLE_TICKS: u32 = 20;

/// The state that the watchdog shares with the threads that it watches.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    sleep: SleepFlag,
    threads: Mutex<Vec<Weak<ThreadActivity>>>,
}

/// The counts that the watchdog keeps from look to look, with their memory.
#[derive(Default)]
struct WatchdogScan {
    /// The handlers that each thread had counted at the last look.
    seen: HashMap<*const ThreadActivity, u64>,
    threads: Vec<Arc<ThreadActivity>>,
}

impl Watchdog {
    /// Watches a thread from now on.
    pub(super) fn watch(&self, activity: &Arc<ThreadActivity>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| thread.strong_count() > 0);
        threads.push(Arc::downgrade(activity));
    }

    /// A handler has [begun](ThreadActivity::begin_handler): the watchdog is woken if it sleeps.
    #[inline]
    pub(super) fn note_handler(&self) {
        self.sleep.note_work();
    }

    /// Returns for how long each handler runs that a thread runs where it has received the call.
    pub(super) fn running(&self) -> Vec<Duration> {
        let threads = lock(&self.threads);
        let threads = threads.iter().filter_map(Weak::upgrade);
        threads.filter_map(|thread| thread.running_for()).collect()
    }

    /// Ends the watchdog's thread.
    pub(super) fn close(&self) {
        self.sleep.close();
    }

    /// Watches until it is [closed](Self::close). The work of a thread in a handler that takes long, another is to
    /// `take_over`, which is told what the thread had [counted](ThreadActivity::handlers).
    pub(super) fn run(&self, take_over: impl Fn(&ThreadActivity, u64)) {
        let mut looks = WatchdogScan::default();
        let mut idle_ticks = 0;
        while self.sleep.pause(TICK) {
            let is_idle = self.look(&mut looks, &take_over);
            idle_ticks = if is_idle { idle_ticks + 1 } else { 0 };
            if idle_ticks == IDLE_TICKS {
                self.sleep.announce();
            } else if idle_ticks > IDLE_TICKS {
                // A handler that has begun since the announcement has ended it.
                if !self.sleep.sleep() {
                    return;
                }
                idle_ticks = 0;
            }
        }
    }

    /// Looks at all threads; returns whether no handler has run since the last look, but those that were taken over.
    fn look(&self, looks: &mut WatchdogScan, take_over: &impl Fn(&ThreadActivity, u64)) -> bool {
        let WatchdogScan { seen, threads } = looks;
        threads.extend(lock(&self.threads).iter().filter_map(Weak::upgrade));
        seen.retain(|known, _| threads.iter().any(|thread| Arc::as_ptr(thread) == *known));
        let mut is_idle = true;
        for activity in threads.drain(..) {
            let now = activity.handlers();
            let before = seen.insert(Arc::as_ptr(&activity), now);
            let runs = !now.is_multiple_of(2);
            let is_taken_over = activity.is_taken_over_at(now);
            is_idle &= before == Some(now) && (!runs || is_taken_over);
            if runs && before == Some(now) && !is_taken_over {
                take_over(&activity, now);
            }
        }
        is_idle
    }
}
