//! What a channel serves of calls of its server, and the calls that wait for a thread.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenon_core::callbacks::Callbacks;
use tenon_core::error::ConnectError;
use tenon_core::serve::{ServerTally, ServiceRegistry};
use tenon_net::Address;
use tenon_proto::connection::ServiceTable;

use super::link::CallbackJob;

/// Time after which a thread without a call ends.
const IDLE_AFTER: Duration = Duration::from_secs(10);

/// What a channel serves, and the calls that wait for a thread.
pub(super) struct CallbackPool {
    pub(super) registry: ServiceRegistry,
    /// Calls that are carried out at the same time.
    pub(super) calls_max: usize,
    pub(super) tally: ServerTally,
    queue: Mutex<JobQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct JobQueue {
    jobs: VecDeque<CallbackJob>,
    /// Threads that wait for a call.
    idle: usize,
    /// True once the last clone of the channel is gone.
    is_closed: bool,
}

impl CallbackPool {
    pub(super) fn new(callbacks: Callbacks, address: &Address) -> Result<Arc<Self>, ConnectError> {
        let (registry, calls_max) = callbacks.into_parts(address)?;
        Ok(Arc::new(Self {
            registry,
            calls_max,
            tally: ServerTally::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Returns the services of a channel that has this pool, or none.
    pub(super) fn table(pool: Option<&Arc<Self>>) -> &ServiceTable {
        pool.map_or(ServiceTable::EMPTY, |pool| pool.registry.table())
    }

    fn lock(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Ends the threads, once they have done what they do.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        queue.jobs.clear();
        drop(queue);
        self.changed.notify_all();
    }

    /// Adds a call; returns whether no thread waits for it.
    pub(super) fn push(&self, job: CallbackJob) -> bool {
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        let needs_thread = queue.jobs.len() > queue.idle;
        drop(queue);
        self.changed.notify_one();
        needs_thread
    }

    /// Waits for a call; `None` if the thread is to end.
    pub(super) fn next_job(&self) -> Option<CallbackJob> {
        let mut queue = self.lock();
        let until = Instant::now() + IDLE_AFTER;
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            queue.idle += 1;
            let woken = self.changed.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
            queue.idle -= 1;
        }
    }
}

impl fmt::Debug for CallbackPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackPool")
            .field("programs", &self.registry.programs())
            .finish_non_exhaustive()
    }
}
