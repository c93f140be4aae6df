//! A thread that looks after others as long as they work, and sleeps while they do not.

use std::time::Duration;

use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, lock};

/// Lets a thread that looks at the work of others, again and again, go to sleep when there is none, without those that
/// begin work paying more than a read for it.
///
/// It [announces](Self::announce) that it will sleep, looks once more after a while, and [sleeps](Self::sleep) then. A
/// thread that begins work says so where the other looks *before* it [notes](Self::note_work) it here: so either the
/// last look finds the work, or the note finds the announcement. For that the two writes must be seen before the two
/// reads that follow them, which is what the while is for: writes of a processor are seen by others within less than a
/// microsecond. A fence would do, too, but the thread that works would pay for it each time.
#[derive(Debug, Default)]
pub struct SleepFlag {
    is_announced: AtomicBool,
    state: Mutex<SleepState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct SleepState {
    is_closed: bool,
}

impl SleepFlag {
    /// Notes that work has begun, which a look finds: the thread that sleeps is woken.
    #[inline]
    pub fn note_work(&self) {
        // Stands for the time that passes; loom has none.
        #[cfg(loom)]
        loom::sync::atomic::fence(Ordering::SeqCst);
        if self.is_announced.load(Ordering::Relaxed) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        if self.is_announced.swap(false, Ordering::AcqRel) {
            let _state = lock(&self.state);
            self.wake.notify_one();
        }
    }

    /// Announces that the thread that looks will sleep after its next look but one, unless work begins.
    pub fn announce(&self) {
        self.is_announced.store(true, Ordering::Release);
    }

    /// Returns whether it has announced that, and no work has begun since.
    pub fn is_announced(&self) -> bool {
        self.is_announced.load(Ordering::Acquire)
    }

    /// Waits until the next look; returns false once all is [closed](Self::close).
    #[cfg(not(loom))]
    pub fn pause(&self, limit: Duration) -> bool {
        let state = lock(&self.state);
        if state.is_closed {
            return false;
        }
        let waited = self.wake.wait_timeout(state, limit);
        let (state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        !state.is_closed
    }

    /// Stands for the time between two looks.
    #[cfg(loom)]
    pub fn pause(&self, _: Duration) -> bool {
        loom::sync::atomic::fence(Ordering::SeqCst);
        !lock(&self.state).is_closed
    }

    /// Sleeps until work begins, which may have been since it was announced; returns false once all is
    /// [closed](Self::close).
    pub fn sleep(&self) -> bool {
        let mut state = lock(&self.state);
        while self.is_announced() && !state.is_closed {
            state = self.wait(state);
        }
        self.is_announced.store(false, Ordering::Relaxed);
        !state.is_closed
    }

    fn wait<'s>(&self, state: MutexGuard<'s, SleepState>) -> MutexGuard<'s, SleepState> {
        let waited = self.wake.wait(state);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Ends the thread that looks.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.wake.notify_all();
    }
}
