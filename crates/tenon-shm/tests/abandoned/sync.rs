//! Atomics of which a thread can be given only so many stores: at the next it is gone, as a process is that is killed
//! there. What another process can tell of where it was killed is what it had stored by then.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64 as Word;

pub use std::hint::spin_loop as spin;
pub use std::sync::atomic::{Ordering, fence};

thread_local! {
    /// Steps that this thread has left, if they are counted.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What unwinds when no step is left.
struct Gone;

/// What can be seen from outside: a store, or a notifier.
pub fn step() {
    match LEFT.get() {
        None => {}
        Some(0) => resume_unwind(Box::new(Gone)),
        Some(left) => LEFT.set(Some(left - 1)),
    }
}

/// What `act` returns if it has done all it does within so many steps; otherwise nothing, and it did no more.
pub fn within<T>(steps: usize, act: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(Some(steps));
    let done = catch_unwind(AssertUnwindSafe(act));
    LEFT.set(None);
    match done {
        Ok(done) => Some(done),
        Err(gone) if gone.is::<Gone>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// As the standard library's, as far as the rings use it.
#[derive(Debug)]
pub struct AtomicU64(Word);

impl AtomicU64 {
    pub fn new(value: u64) -> Self {
        Self(Word::new(value))
    }

    pub fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    pub fn store(&self, value: u64, order: Ordering) {
        step();
        self.0.store(value, order);
    }

    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.swap(value, order)
    }

    pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_or(value, order)
    }
}
