//! The service of `jobs-server`: a queue with long polls, each a task.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenon::{CallInfo, Refusal};
use tokio::sync::Notify;
use tokio::task::block_in_place;
use tokio::time::sleep_until;

use crate::jobs::{JobOffer, JobStatus, JobsV1Async};
use crate::journal::JournalError;
use crate::queue::Queue;

/// Longest time that a poll waits.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A queue with long polls. It needs a tokio run time of several threads, as the journal blocks.
pub struct Jobs {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    queue: Queue,
    stopping: bool,
}

impl Jobs {
    /// Serves `queue`.
    pub fn new(queue: Queue) -> Arc<Self> {
        let state = State {
            queue,
            stopping: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        })
    }

    /// Answers every long poll, and later ones at once, so that none delays the shutdown of the server.
    pub fn stop_waiting(&self) {
        self.state().stopping = true;
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue and wakes the polls. The journal may wait for the disk: other tasks of this thread
    /// go on elsewhere meanwhile.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Queue) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let changed = block_in_place(|| change(&mut self.state().queue));
        self.changed.notify_waiters();
        changed
    }

    /// Looks at the queue until there is something, `wait_ms` are over or the server stops.
    async fn look_until<T>(
        &self,
        wait_ms: u32,
        mut look: impl FnMut(&mut Queue, Instant) -> Option<T>,
    ) -> Option<T> {
        let wait = Duration::from_millis(wait_ms.into()).min(WAIT_MAX);
        let over = Instant::now() + wait;
        loop {
            // Registered before the look, so that no change in between is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let (found, is_over, lease_end) = {
                let mut state = self.state();
                let found = look(&mut state.queue, now);
                let is_over = state.stopping || now >= over;
                (found, is_over, state.queue.next_lease_end())
            };
            if found.is_some() || is_over {
                return found;
            }
            let until = lease_end.map_or(over, |end| end.min(over));
            tokio::select! {
                () = changed => {}
                () = sleep_until(until.into()) => {}
            }
        }
    }
}

impl JobsV1Async for Arc<Jobs> {
    async fn submit(&self, _call: &CallInfo<'_>, work: Vec<u8>) -> Result<u64, Refusal> {
        Ok(self.change(|queue| queue.submit(work))?)
    }

    /// When the caller is gone, the future is dropped where it waits, so no job is given to a dead worker.
    async fn take(&self, _call: &CallInfo<'_>, wait_ms: u32) -> Result<JobOffer, Refusal> {
        Ok(self.look_until(wait_ms, |queue, now| queue.take(now)).await)
    }

    async fn finish(
        &self,
        _call: &CallInfo<'_>,
        id: u64,
        result: Vec<u8>,
    ) -> Result<bool, Refusal> {
        Ok(self.change(|queue| queue.finish(id, result))?)
    }

    async fn watch(
        &self,
        _call: &CallInfo<'_>,
        id: u64,
        wait_ms: u32,
    ) -> Result<JobStatus, Refusal> {
        let is_last =
            |status: &JobStatus| matches!(status, JobStatus::Finished(_) | JobStatus::Unknown);
        let look = |queue: &mut Queue, _: Instant| Some(queue.status(id)).filter(is_last);
        let last = self.look_until(wait_ms, look).await;
        Ok(last.unwrap_or_else(|| self.state().queue.status(id)))
    }
}
