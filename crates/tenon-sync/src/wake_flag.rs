//! How one thread is woken by another, whether it looks or sleeps.

use std::sync::Arc;
use std::time::Duration;

use crate::sync::{AtomicBool, Ordering, Thread, thread};

/// Flag by which one thread at a time waits: it looks whether it [was woken](Self::is_woken), or
/// [sleeps](Self::sleep).
#[derive(Debug, Default)]
pub struct WakeFlag {
    is_woken: AtomicBool,
}

/// Wakes a thread that waits.
#[derive(Debug)]
pub struct WakeHandle {
    thread: Thread,
    flag: Arc<WakeFlag>,
}

impl WakeHandle {
    /// Wakes the thread, whichever way it waits.
    pub fn wake(&self) {
        // In this order: a thread that finds the flag set finds the wake-up that a sleeper would have had, too, and
        // takes it. Otherwise its next sleep would be for nothing.
        self.thread.unpark();
        self.flag.is_woken.store(true, Ordering::Release);
    }
}

impl WakeFlag {
    /// Returns the handle that wakes the present thread, which is going to wait.
    pub fn wake_handle(self: &Arc<Self>) -> WakeHandle {
        self.is_woken.store(false, Ordering::Relaxed);
        WakeHandle {
            thread: thread::current(),
            flag: Arc::clone(self),
        }
    }

    /// Returns whether the thread is to go on, for a loop: [`is_woken`](Self::is_woken) says what was seen behind it.
    #[inline]
    pub fn seems_woken(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed)
    }

    /// Returns whether the thread is to go on.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Takes the wake-up that was left for a thread that sleeps, by one that has found itself
    /// [woken](Self::is_woken). It does not wait.
    pub fn take_wake(&self) {
        #[cfg(not(loom))]
        thread::park_timeout(Duration::ZERO);
        // It does not wait either, as the thread was unparked before the flag was set.
        #[cfg(loom)]
        thread::park();
    }

    /// Sleeps until the thread is woken, or for `limit`, or for nothing.
    pub fn sleep(&self, limit: Duration) {
        #[cfg(not(loom))]
        thread::park_timeout(limit);
        // Loom has no time: what sleeps for ever it reports.
        #[cfg(loom)]
        {
            let _ = limit;
            thread::park();
        }
    }
}
