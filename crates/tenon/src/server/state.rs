//! The state that all threads of a server share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tenon_core::serve::{
    CallToServe, DeferredCall, DeferredCalls, Discarded, HalfClose, ServerCounters, ServerShared,
};
use tenon_core::service::CancelFlag;
use tenon_core::wait::{Looking, Spinners, WaitContext, Waiting};
use tenon_net::{Accepted, PollRegistry, PollWaker, Stream, Watch};

use super::jobs::{AnswerTo, JobTarget};
use super::lock;
use super::slot::{LateAnswer, READY, SlotSocket, SlotState, SocketSlot};
use super::slot_table::SlotTable;
use super::stream_state::StreamState;
use super::tasks::Scheduler;
use super::watchdog::Watchdog;

/// Interval of checks whether the peers of half-closed connections have ended their side.
const HALF_CLOSE_TICK: Duration = Duration::from_millis(1);

/// The state that all threads of a server share.
pub(super) struct ServerState {
    pub(super) shared: ServerShared,
    pub(super) slots: SlotTable,
    /// The calls that were handed over.
    deferred: Arc<DeferredCalls<JobTarget>>,
    pub(super) scheduler: Scheduler,
    pub(super) watchdog: Watchdog,
    pub(super) poll_registry: PollRegistry,
    waker: PollWaker,
    /// The time at which the first connection or port is to be looked at even if nothing happens.
    next_deadline: Mutex<Option<Instant>>,
    /// The policy by which threads wait for the peers that they stay with.
    pub(super) waiting: Waiting,
    pub(super) spinners: Spinners,
    stopping: AtomicBool,
    /// Connections that their peers have not ended on their side yet, while the server stops.
    half_closed: Mutex<Vec<Arc<SocketSlot>>>,
}

impl ServerState {
    pub(super) fn new(
        shared: ServerShared,
        slots: SlotTable,
        scheduler: Scheduler,
        (poll_registry, waker): (PollRegistry, PollWaker),
        waiting: Waiting,
    ) -> Self {
        Self {
            deferred: DeferredCalls::new(&shared.limits),
            shared,
            slots,
            scheduler,
            watchdog: Watchdog::default(),
            poll_registry,
            waker,
            next_deadline: Mutex::default(),
            waiting,
            spinners: Spinners::new(),
            stopping: AtomicBool::new(false),
            half_closed: Mutex::default(),
        }
    }

    /// Returns what has been counted so far, and what the threads are at.
    pub(super) fn counters(&self) -> ServerCounters {
        let counters = self.deferred.count(self.slots.counters());
        let running = self.watchdog.running();
        let mut counters =
            (running.into_iter()).fold(counters, |counters, age| counters.with_running(1, age));
        counters.threads_busy = self.scheduler.busy() as u64;
        counters
    }

    /// Returns what the waiters of the server's connections and ports share.
    #[inline]
    pub(super) fn wait_context(&self, looking: Looking) -> WaitContext<'_> {
        WaitContext {
            spinners: &self.spinners,
            looking,
            tally: &self.shared.tally.waits,
        }
    }

    /// Returns whether nothing further is to be begun.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Nothing further is begun from now on.
    pub(super) fn stop(self: &Arc<Self>) {
        self.scheduler.accept_last(self);
        self.stopping.store(true, Ordering::SeqCst);
        self.scheduler.close();
        self.waker.wake();
    }

    /// Ends the direction of the replies of a connection that is over, and keeps the other until the peer has ended it, too.
    pub(super) fn half_close(&self, slot: &Arc<SocketSlot>) {
        if slot.half_close() {
            lock(&self.half_closed).push(Arc::clone(slot));
        }
    }

    /// Waits until the peers of half-closed connections have ended their sides, or are silent for a moment.
    pub(super) fn close_half_closed(&self) {
        let half_closed = std::mem::take(&mut *lock(&self.half_closed));
        let begin = Instant::now();
        let left = half_closed
            .into_iter()
            .map(|slot| (slot, HalfClose::new(begin)));
        let mut left: Vec<_> = left.collect();
        while !left.is_empty() {
            let now = Instant::now();
            left.retain_mut(|(slot, half_close)| {
                let discarded = slot
                    .stream()
                    .map(|stream| half_close.discard_received(stream, now));
                !matches!(discarded, None | Some(Discarded::Over)) && now < half_close.deadline()
            });
            thread::sleep(HALF_CLOSE_TICK);
        }
    }

    /// Has something looked at by `at` even if nothing happens.
    pub(super) fn note_deadline(&self, at: Instant) {
        let mut next = lock(&self.next_deadline);
        if next.is_none_or(|next| at < next) {
            *next = Some(at);
            drop(next);
            // The thread that polls may have gone to sleep for longer.
            if !self.scheduler.is_stepped() {
                self.waker.wake();
            }
        }
    }

    /// Has the next poll return at once.
    pub(super) fn wake_poller(&self) {
        self.waker.wake();
    }

    /// Returns when something is to be looked at even if nothing happens.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        *lock(&self.next_deadline)
    }

    /// Takes that time if it has come; what is still to be looked at later is noted anew.
    pub(super) fn take_deadline(&self, now: Instant) -> bool {
        lock(&self.next_deadline).take_if(|at| *at <= now).is_some()
    }

    /// Takes in or refuses a connection that was accepted.
    pub(super) fn take_in(self: &Arc<Self>, accepted: Accepted) {
        match accepted {
            Accepted::Stream(stream) => {
                self.admit(stream);
            }
            Accepted::Excess(connection) => self.shared.refuse_excess(&connection),
        }
    }

    /// Takes a new connection in, unless there are too many; returns whether it did.
    pub(super) fn admit(self: &Arc<Self>, stream: Stream) -> bool {
        let Some(slot) = self.add(stream) else {
            return false;
        };
        if self.is_stopping() {
            // The thread that ends the connections may not have found it.
            slot.stop_receiving();
            if let Some(state) = slot.signal(READY) {
                self.scheduler.push_ready(self, &slot, state);
            }
        }
        true
    }

    fn add(self: &Arc<Self>, stream: Stream) -> Option<Arc<SocketSlot>> {
        let host = self.shared.admit_host(&stream)?;
        let peer = stream.peer();
        let (tally, limit) = (&self.shared.tally, self.shared.limits.connections);
        let slot = match self.slots.add(SlotSocket::Stream(stream), limit) {
            Ok(slot) => slot,
            Err(SlotSocket::Stream(stream)) => {
                self.shared.refuse_one_too_many(&stream);
                return None;
            }
            Err(SlotSocket::Port(_)) => return None,
        };
        tally.connections_accepted.up();
        tracing::debug!(id = slot.id, ?peer, "a connection");
        let SlotSocket::Stream(stream) = &slot.socket else {
            return None;
        };
        let state = StreamState::new(
            &self.shared,
            slot.id,
            self.waiting,
            stream.transport(),
            host,
        );
        let deadline = state.served.deadline();
        self.register(&slot, Box::new(SlotState::Stream(state)));
        if let Some(at) = deadline {
            self.note_deadline(at);
        }
        Some(slot)
    }

    /// Waits for what a connection or port says from now on.
    pub(super) fn register(self: &Arc<Self>, slot: &Arc<SocketSlot>, state: Box<SlotState>) {
        slot.lend(state);
        if let Err(error) = self.poll_registry.add(&**slot, slot.id, Watch::Receive) {
            tracing::error!(id = slot.id, %error, "the system cannot wait for one more: closed");
            return self.slots.remove(slot.id);
        }
        let is_parked = slot.stream().is_none_or(Stream::park);
        if !is_parked && let Some(state) = slot.signal(READY) {
            self.scheduler.push_ready(self, slot, state);
        }
    }

    /// Puts back the state of a connection or port that has nothing to say; returns it if there is something to do after
    /// all: something has happened, or the server has begun to stop and has not found it.
    pub(super) fn put_back(
        &self,
        slot: &SocketSlot,
        state: Box<SlotState>,
    ) -> Option<Box<SlotState>> {
        let is_told = match &*state {
            SlotState::Stream(state) => state.ends.is_some() || state.is_blocked(),
            SlotState::Port(_) => true,
        };
        let state = slot.put_back(state);
        if is_told || !self.is_stopping() {
            return state;
        }
        state.or_else(|| slot.claim())
    }

    /// Notes that a call is handed over, and is to be answered by what its slot sends to `to`.
    #[cold]
    pub(super) fn defer(
        &self,
        slot: &Arc<SocketSlot>,
        call: &CallToServe,
        cancelled: CancelFlag,
        to: AnswerTo,
    ) -> DeferredCall<JobTarget> {
        let slot = Arc::clone(slot);
        let (call, due) = (self.deferred).add(*call, cancelled, JobTarget { slot, to });
        if let Some(at) = due {
            self.note_deadline(at);
        }
        call
    }

    /// Answers the calls that have taken too long by `now`.
    pub(super) fn expire_calls(self: &Arc<Self>, now: Instant) {
        let expired = self.deferred.expire(&self.shared, now);
        for (call, reply) in expired.answers {
            let JobTarget { slot, to } = call.target();
            self.answer_late(slot, to.with(reply));
        }
        self.scheduler.drop_given_up(self);
        if let Some(at) = expired.next {
            self.note_deadline(at);
        }
    }

    /// Hands in the answer to a call that was carried out elsewhere.
    pub(super) fn answer_late(self: &Arc<Self>, slot: &Arc<SocketSlot>, answer: LateAnswer) {
        if let Some(state) = slot.leave_answer(answer) {
            self.scheduler.push_ready_here(slot, state);
        }
    }
}
