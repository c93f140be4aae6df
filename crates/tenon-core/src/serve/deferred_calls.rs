//! The calls of a server that are carried out elsewhere than where they were received: how many of them wait and run,
//! since when, and which of them are given up as they take too long.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::counters::ServerCounters;
use super::limits::ServerLimits;
use super::registry::CallToServe;
use super::shared::ServerShared;
use crate::service::CancelFlag;

/// Shortest time between two looks for calls and connections that take too long: there may be many.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The calls of a server that are carried out elsewhere. `T` is the target to which a driver answers them.
#[derive(Debug)]
pub struct DeferredCalls<T> {
    calls: Mutex<CallTable<T>>,
    timeouts: CallTimeouts,
}

#[derive(Debug)]
struct CallTable<T> {
    /// Each call in a place of its own, which it keeps.
    places: Vec<Option<Arc<CallProgress<T>>>>,
    /// The places without a call.
    free: Vec<usize>,
    /// Time at which the calls are looked at next.
    due: Option<Instant>,
}

/// Timeouts of a call: in the queue, and of its handler.
#[derive(Debug, Clone, Copy)]
struct CallTimeouts {
    queue: Option<Duration>,
    handler: Option<Duration>,
}

impl<T> CallTable<T> {
    /// Puts a call in the table, and returns its place.
    fn put(&mut self, call: Arc<CallProgress<T>>) -> usize {
        if let Some(place) = self.free.pop() {
            self.places[place] = Some(call);
            return place;
        }
        self.places.push(Some(call));
        self.places.len() - 1
    }

    /// Takes the call out that has this place. Without calls there are no places: after a time with many calls a look at
    /// those that run need not pass them all.
    fn take(&mut self, place: usize) -> Option<Arc<CallProgress<T>>> {
        let call = self.places[place].take();
        self.free.push(place);
        if self.free.len() == self.places.len() {
            self.places.clear();
            self.free.clear();
        }
        call
    }

    /// Returns the calls, in no order.
    fn calls(&self) -> impl Iterator<Item = &Arc<CallProgress<T>>> {
        self.places.iter().flatten()
    }
}

impl<T> DeferredCalls<T> {
    /// No calls yet of a server with these limits.
    pub fn new(limits: &ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::new(CallTable {
                places: Vec::new(),
                free: Vec::new(),
                due: None,
            }),
            timeouts: CallTimeouts {
                queue: limits.queue_timeout,
                handler: limits.handler_timeout,
            },
        })
    }

    fn lock(&self) -> MutexGuard<'_, CallTable<T>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, which waits for a thread or task from now on. Returns also when the calls are to be
    /// [looked at](Self::expire), if that is not known yet.
    pub fn add(
        self: &Arc<Self>,
        call: CallToServe,
        cancelled: CancelFlag,
        target: T,
    ) -> (DeferredCall<T>, Option<Instant>) {
        let now = Instant::now();
        let progress = Arc::new(CallProgress {
            call,
            cancelled,
            target,
            queued_at: now,
            state: AtomicU64::new(QUEUED),
            is_expired: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
        });
        let mut table = self.lock();
        let place = table.put(Arc::clone(&progress));
        let due = progress
            .due(&self.timeouts, now)
            .filter(|_| table.due.is_none());
        table.due = table.due.or(due);
        drop(table);
        let calls = Arc::clone(self);
        let call = DeferredCall {
            calls,
            place,
            progress,
        };
        (call, due)
    }

    /// Returns `counters` with the calls that wait and run now.
    pub fn count(&self, mut counters: ServerCounters) -> ServerCounters {
        let now = Instant::now();
        for call in self.lock().calls() {
            match call.state() {
                DeferredState::Queued => counters.calls_queued += 1,
                DeferredState::GivenUp => {}
                DeferredState::BegunAt(begun) => {
                    let age = now.saturating_duration_since(begun);
                    counters = counters.with_running(1, age);
                }
            }
        }
        counters
    }

    /// Gives up the calls that have taken too long by `now`, counts and logs them. Calls with a handler that runs are
    /// cancelled, too.
    pub fn expire(&self, shared: &ServerShared, now: Instant) -> ExpiredCalls<T> {
        let mut table = self.lock();
        let calls = table.calls();
        let is_late = |call: &&Arc<CallProgress<T>>| {
            call.due(&self.timeouts, now).is_some_and(|due| due <= now)
        };
        let late: Vec<_> = calls.filter(is_late).cloned().collect();
        let mut answers = Vec::new();
        for call in late {
            if let Some(reply) = call.give_up(shared, &self.timeouts, now) {
                answers.push((call, reply));
            }
        }
        let calls = table.calls();
        table.due = calls.filter_map(|call| call.due(&self.timeouts, now)).min();
        let next = table.due;
        drop(table);
        ExpiredCalls { answers, next }
    }
}

/// Calls that were given up, as they have taken too long.
#[derive(Debug)]
pub struct ExpiredCalls<T> {
    /// Calls that are to be answered now, and their replies.
    pub answers: Vec<(Arc<CallProgress<T>>, Buffer)>,
    /// Time at which the calls are to be looked at next.
    pub next: Option<Instant>,
}

/// A call in the table of those that are carried out elsewhere. Dropping it takes it out.
#[derive(Debug)]
pub struct DeferredCall<T> {
    calls: Arc<DeferredCalls<T>>,
    /// Its place in the table.
    place: usize,
    progress: Arc<CallProgress<T>>,
}

impl<T> DeferredCall<T> {
    /// Notes that a handler begins to carry the call out; returns false if it is given up already.
    pub fn begin(&self) -> bool {
        self.progress.begin()
    }

    /// Returns whether the call was given up before its handler began.
    pub fn is_given_up(&self) -> bool {
        matches!(self.progress.state(), DeferredState::GivenUp)
    }

    /// Returns whether the call is still to be answered, which the calling thread does then.
    pub fn claim_answer(&self) -> bool {
        self.progress.claim_answer()
    }

    /// Returns the flag that is set when the call is cancelled.
    pub fn cancelled(&self) -> &CancelFlag {
        &self.progress.cancelled
    }

    /// Returns the target to which the call is answered.
    pub fn target(&self) -> &T {
        &self.progress.target
    }
}

impl<T> Drop for DeferredCall<T> {
    fn drop(&mut self) {
        let removed = self.calls.lock().take(self.place);
        drop(removed);
    }
}

/// The state of a call that waits for a thread or task.
const QUEUED: u64 = 0;

/// The state of a call that was given up while it waited.
const GIVEN_UP: u64 = u64::MAX;

/// Progress of a call that is carried out elsewhere.
#[derive(Debug)]
pub struct CallProgress<T> {
    call: CallToServe,
    cancelled: CancelFlag,
    target: T,
    queued_at: Instant,
    /// [`QUEUED`], [`GIVEN_UP`], or after how many nanoseconds its handler has begun, and one.
    state: AtomicU64,
    /// True if its handler has taken too long.
    is_expired: AtomicBool,
    is_answered: AtomicBool,
}

enum DeferredState {
    Queued,
    GivenUp,
    BegunAt(Instant),
}

impl<T> CallProgress<T> {
    /// Returns the target to which the call is answered.
    pub fn target(&self) -> &T {
        &self.target
    }

    fn state(&self) -> DeferredState {
        match self.state.load(Ordering::Relaxed) {
            QUEUED => DeferredState::Queued,
            GIVEN_UP => DeferredState::GivenUp,
            nanos => DeferredState::BegunAt(self.queued_at + Duration::from_nanos(nanos - 1)),
        }
    }

    fn leave_queue(&self, state: u64) -> bool {
        let ordering = Ordering::Relaxed;
        let changed = (self.state).compare_exchange(QUEUED, state, ordering, ordering);
        changed.is_ok()
    }

    fn begin(&self) -> bool {
        let waited = self.queued_at.elapsed().as_nanos() as u64;
        self.leave_queue(waited.saturating_add(1).min(GIVEN_UP - 1))
    }

    fn claim_answer(&self) -> bool {
        !self.is_answered.swap(true, Ordering::Relaxed)
    }

    /// Returns when the call is to be looked at: its handler may begin any time.
    fn due(&self, timeouts: &CallTimeouts, now: Instant) -> Option<Instant> {
        match self.state() {
            DeferredState::GivenUp => None,
            DeferredState::Queued => {
                let queue = timeouts.queue.map(|limit| self.queued_at + limit);
                let handler = timeouts.handler.map(|limit| now + limit);
                [queue, handler].into_iter().flatten().min()
            }
            DeferredState::BegunAt(begun) => {
                let is_expired = self.is_expired.load(Ordering::Relaxed);
                timeouts
                    .handler
                    .filter(|_| !is_expired)
                    .map(|limit| begun + limit)
            }
        }
    }

    /// Gives up a call that has taken too long; returns the answer to it, if it is to be answered now.
    fn give_up(
        &self,
        shared: &ServerShared,
        timeouts: &CallTimeouts,
        now: Instant,
    ) -> Option<Buffer> {
        let mut reply = Buffer::default();
        if self.leave_queue(GIVEN_UP) {
            shared.note_shed(&self.call);
            let text = "it waited for a thread for longer than the server's queue_timeout";
            self.call.refuse(Status::OVERLOADED, text, &mut reply);
            self.claim_answer().then_some(reply)
        } else if self.due(timeouts, now).is_none_or(|due| due > now) {
            // It has begun just now.
            None
        } else {
            self.is_expired.store(true, Ordering::Relaxed);
            shared.note_handler_timeout(&self.call);
            // The next call of a connection that keeps order must not begin before its handler has returned. Of others
            // the answer is claimed before the handler is told, which may return at once.
            let keeps_order = shared.registry.keeps_order(self.call.service);
            let is_claimed = !keeps_order && self.claim_answer();
            self.cancelled.set();
            let text = "its handler took longer than the server's handler_timeout";
            self.call.refuse(Status::DEADLINE, text, &mut reply);
            is_claimed.then_some(reply)
        }
    }
}
