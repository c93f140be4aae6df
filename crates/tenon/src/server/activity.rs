//! The activity of a thread of the server: for the watchdog, whether it runs a handler, and for the scheduler, its
//! role.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenon_core::serve::CallToServe;
use tenon_core::service::RunState;

use super::lock;

/// The role that a thread counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ThreadRole {
    /// One that polls, or does nothing.
    Other,
    /// One that serves those that have something to say.
    Serving,
    /// One that stays with a connection.
    Staying,
    /// One in a handler that takes long, so that another thread does its work.
    Replaced,
    /// One that carries a call out that was handed over.
    Working,
}

/// The current activity of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadActivity {
    /// The calls that the thread carries out where it received them, each owned by the connection or port that the
    /// thread serves.
    pub(super) runs: Arc<RunState>,
    /// Odd while a handler runs, and another number for each.
    handlers: AtomicU64,
    /// The value of `handlers` when another thread took over last.
    taken_over_at: AtomicU64,
    /// The time of that.
    taken_over: Mutex<Option<Instant>>,
    /// The service and the procedure of the handler that runs, or ran last.
    procedure: AtomicU64,
    /// A [`ThreadRole`], which changes with the tasks of the scheduler locked.
    role: AtomicU8,
}

impl ThreadActivity {
    /// The thread serves the connection or port of this number now.
    #[inline]
    pub(super) fn set_slot(&self, id: usize) {
        self.runs.set_owner(id);
    }

    /// Returns the number of the connection or port that the thread serves, or served last.
    pub(super) fn slot(&self) -> usize {
        self.runs.owner()
    }

    /// The handler of a procedure begins. Only the thread itself counts, so that a plain store does.
    #[inline]
    pub(super) fn begin_handler(&self, call: &CallToServe) {
        let procedure = (call.service as u64) << 32 | u64::from(call.procedure);
        self.procedure.store(procedure, Ordering::Relaxed);
        let count = self.handlers.load(Ordering::Relaxed);
        self.handlers.store(count + 1, Ordering::Release);
    }

    /// The handler that runs has ended.
    #[inline]
    pub(super) fn end_handler(&self) {
        let count = self.handlers.load(Ordering::Relaxed);
        self.handlers.store(count + 1, Ordering::Release);
    }

    /// Returns the service and the procedure of the handler that runs, or ran last.
    pub(super) fn procedure(&self) -> (usize, u32) {
        let procedure = self.procedure.load(Ordering::Relaxed);
        ((procedure >> 32) as usize, procedure as u32)
    }

    /// Returns the number of handlers that have begun plus that of those that have ended: odd while one runs.
    pub(super) fn handlers(&self) -> u64 {
        self.handlers.load(Ordering::Acquire)
    }

    /// Returns whether another thread has taken over while `handlers` was this.
    pub(super) fn is_taken_over_at(&self, handlers: u64) -> bool {
        self.taken_over_at.load(Ordering::Relaxed) == handlers
    }

    /// Another thread takes over, as the handler that runs while `handlers` is this takes long.
    pub(super) fn note_taken_over(&self, handlers: u64) {
        *lock(&self.taken_over) = Some(Instant::now());
        self.taken_over_at.store(handlers, Ordering::Relaxed);
    }

    /// Returns for how long the handler of a call that this thread has received runs, as far as is known: one that was
    /// not found to take long has just begun. `None` if none runs.
    pub(super) fn running_for(&self) -> Option<Duration> {
        let handlers = self.handlers();
        if handlers.is_multiple_of(2) {
            return None;
        }
        let taken_over = *lock(&self.taken_over);
        let since = taken_over.filter(|_| self.is_taken_over_at(handlers));
        Some(since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Returns whether another thread does this one's work.
    #[inline]
    pub(super) fn is_replaced(&self) -> bool {
        self.role.load(Ordering::Relaxed) == ThreadRole::Replaced as u8
    }

    /// Returns what the thread counts as.
    pub(super) fn role(&self) -> ThreadRole {
        match self.role.load(Ordering::Relaxed) {
            1 => ThreadRole::Serving,
            2 => ThreadRole::Staying,
            3 => ThreadRole::Replaced,
            4 => ThreadRole::Working,
            _ => ThreadRole::Other,
        }
    }

    /// Sets what the thread counts as.
    pub(super) fn set_role(&self, role: ThreadRole) {
        self.role.store(role as u8, Ordering::Relaxed);
    }
}
