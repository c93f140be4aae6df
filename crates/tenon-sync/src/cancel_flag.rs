//! The flag of a call that was given up by its caller.

use std::sync::Arc;
use std::task::{Context, Waker};

use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Flag that is set once the caller has stopped waiting for a call that is carried out elsewhere than where it was
/// received.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_set: AtomicBool,
    /// A task that carries the call out.
    task: Mutex<Option<Waker>>,
}

impl CancelFlag {
    /// Notes that the caller has stopped waiting, and wakes the task that carries the call out.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        let task = lock(&self.0.task).take();
        task.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the caller has stopped waiting.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Returns whether the caller has stopped waiting; otherwise the task is woken when it does.
    pub fn poll_set(&self, cx: &Context<'_>) -> bool {
        *lock(&self.0.task) = Some(cx.waker().clone());
        // It may have been set before it knew the task.
        self.is_set()
    }
}
