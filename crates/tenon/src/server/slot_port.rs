//! The way from the handler of a call with streams to its connection.

use std::sync::Arc;

use tenon_core::streams::StreamPort;
use tenon_wire::Buffer;

use super::late_answers::flush;
use super::slot::{LateAnswer, SlotState, SocketSlot};
use super::state::ServerState;

/// Times that a handler serves its connection at most before another thread does.
const FLUSHES_MAX: usize = 4;

/// The connection of a call with streams, as its handler reaches it.
pub(super) struct SlotPort {
    server: Arc<ServerState>,
    slot: Arc<SocketSlot>,
}

impl SlotPort {
    pub(super) fn new(server: &Arc<ServerState>, slot: &Arc<SocketSlot>) -> Self {
        Self {
            server: Arc::clone(server),
            slot: Arc::clone(slot),
        }
    }

    pub(super) fn slot(&self) -> &SocketSlot {
        &self.slot
    }

    /// Notes that what the connection receives is needed by a handler: no thread waits for it alone from now on.
    pub(super) fn expect_answers(&self) {
        if self.slot.note_streams() {
            self.server.scheduler.begin_streams(&self.server);
        }
    }

    /// Leaves something to the thread that has the connection; if none has, another thread than this one serves it, as this
    /// one may wait for what comes of it.
    pub(super) fn leave_for_others(&self, answer: LateAnswer) {
        if let Some(state) = self.slot.leave_answer(answer) {
            self.push_ready(state);
        }
    }

    /// Has another thread serve the connection.
    fn push_ready(&self, state: Box<SlotState>) {
        (self.server.scheduler).push_ready(&self.server, &self.slot, state);
    }

    /// Leaves something to the thread that has the connection. If none has, it is sent by this one: to wake another
    /// would take longer.
    pub(super) fn leave(&self, answer: LateAnswer) {
        let mut place = self.slot.leave_answer(answer);
        for _ in 0..FLUSHES_MAX {
            let Some(mut state) = place else {
                return;
            };
            let is_done = match &mut *state {
                SlotState::Stream(state) => flush(&self.server, &self.slot, state),
                SlotState::Port(_) => false,
            };
            if !is_done {
                return self.push_ready(state);
            }
            place = self.server.put_back(&self.slot, state);
        }
        if let Some(state) = place {
            self.push_ready(state);
        }
    }
}

impl StreamPort for SlotPort {
    fn send(&self, number: u32, messages: Buffer) {
        self.leave(LateAnswer::Items(number, messages));
    }

    fn give_back(&self, number: u32, bytes: u64) {
        self.leave(LateAnswer::ItemsTaken(number, bytes));
    }

    fn stop_receiving(&self, number: u32) {
        self.leave(LateAnswer::ItemsUnwanted(number));
    }
}
