//! What all threads of a server share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tenon_core::serve::ServerShared;
use tenon_core::wait::{Spinners, Waiting};
use tenon_net::{PollRegistry, PollWaker, Stream, Watch};

use super::lock;
use super::slot::{LateAnswer, READY, Slot, SlotSocket, SlotState};
use super::slot_table::SlotTable;
use super::stream_state::StreamState;
use super::tasks::Scheduler;
use super::watchdog::Watchdog;

/// What all threads of a server share.
pub(super) struct ServerState {
    pub(super) shared: ServerShared,
    pub(super) slots: SlotTable,
    pub(super) scheduler: Scheduler,
    pub(super) watchdog: Watchdog,
    pub(super) poll_registry: PollRegistry,
    waker: PollWaker,
    /// When the first connection or port is to be looked at even if nothing happens.
    next_deadline: Mutex<Option<Instant>>,
    /// How threads wait for the peers that they stay with.
    pub(super) waiting: Waiting,
    pub(super) spinners: Spinners,
    stopping: AtomicBool,
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
        }
    }

    /// Whether nothing further is to be begun.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Nothing further is begun from now on.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.scheduler.close();
        self.waker.wake();
    }

    /// Something is to be looked at by `at` even if nothing happens.
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

    /// When something is to be looked at even if nothing happens.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        *lock(&self.next_deadline)
    }

    /// Takes that time if it has come; what is still to be looked at later is noted anew.
    pub(super) fn take_deadline(&self, now: Instant) -> bool {
        lock(&self.next_deadline).take_if(|at| *at <= now).is_some()
    }

    /// Takes a new connection in, unless there are too many.
    pub(super) fn admit(self: &Arc<Self>, stream: Stream) {
        let peer = stream.peer();
        let (tally, limit) = (&self.shared.tally, self.shared.limits.connections);
        let slot = match self.slots.add(SlotSocket::Stream(stream), limit) {
            Ok(slot) => slot,
            Err(_closed_when_counted) => {
                tally.connections_refused.up();
                tracing::warn!(?peer, limit, "too many connections: closing the newest");
                return;
            }
        };
        tally.connections_accepted.up();
        tracing::debug!(id = slot.id, ?peer, "a connection");
        let SlotSocket::Stream(stream) = &slot.socket else {
            return;
        };
        let state = SlotState::Stream(StreamState::new(
            &self.shared,
            slot.id,
            self.waiting,
            stream.transport(),
        ));
        self.register(&slot, Box::new(state));
    }

    /// Waits for what a connection or port says from now on.
    pub(super) fn register(self: &Arc<Self>, slot: &Arc<Slot>, state: Box<SlotState>) {
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

    /// Hands in the answer to a call that was carried out elsewhere.
    pub(super) fn answer_late(self: &Arc<Self>, slot: &Arc<Slot>, answer: LateAnswer) {
        if let Some(state) = slot.leave_answer(answer) {
            self.scheduler.push_ready_here(slot, state);
        }
    }
}
