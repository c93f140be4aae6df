//! A call takes no memory once everything is warm. The counter counts for the whole process, so the tests run one after
//! the other, and what the test harness takes on a busy machine is told apart by trying again.
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

mod connection;
mod duplicates;
mod endpoint;

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test is measured.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is allocated and freed while `run` runs.
fn change(run: impl FnOnce()) -> Stats {
    let region = Region::new(ALLOCATOR);
    run();
    region.change()
}

/// Whether a warm `call` allocates nothing.
fn is_free(mut call: impl FnMut()) -> bool {
    (0..100).for_each(|_| call());
    (0..5).any(|_| {
        let change = change(|| (0..1000).for_each(|_| call()));
        change.allocations + change.reallocations == 0
    })
}
