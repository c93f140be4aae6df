//! The handlers that run on the threads which received their calls. Another thread that has taken the connection or
//! port over meanwhile tells them here that a call is cancelled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenon_sync::RunState;

/// The threads of a server, as far as they carry calls out where they have received them. A run of a thread is owned by
/// a connection or port, and known by what names the call there.
#[derive(Debug, Default)]
pub struct RunningHandlers {
    threads: Mutex<Vec<Weak<RunState>>>,
}

impl RunningHandlers {
    /// Knows the handlers of one more thread from now on, as long as it keeps `runs`.
    pub fn add_thread(&self, runs: &Arc<RunState>) {
        let mut threads = self.lock();
        threads.retain(|thread| thread.strong_count() > 0);
        threads.push(Arc::downgrade(runs));
    }

    /// Tells the handler of a call that its caller has stopped waiting; one that has returned need not be told.
    #[cold]
    pub fn cancel(&self, owner: usize, call: u64) {
        self.cancel_runs(owner, Some(call));
    }

    /// Tells all handlers of a connection or port the same.
    #[cold]
    pub fn cancel_all(&self, owner: usize) {
        self.cancel_runs(owner, None);
    }

    fn cancel_runs(&self, owner: usize, call: Option<u64>) {
        for thread in self.lock().iter().filter_map(Weak::upgrade) {
            thread.cancel(owner, call);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<RunState>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
