//! Calls that another thread carries out, or that wait for memory.

use std::mem;
use std::sync::Arc;

use tenon_core::serve::{CallMemory, CallToServe};
use tenon_core::streams::ServedStreams;
use tenon_proto::connection::ReceivedCall;
use tenon_proto::lean::Status;
use tenon_wire::Buffer;

use super::jobs::{AnswerTo, CallJob};
use super::slot::{LateAnswer, SlotState, stream_of};
use super::slot_port::SlotPort;
use super::stream::StreamTurn;
use super::stream_state::StreamState;

impl StreamTurn<'_> {
    /// Takes memory for a call with so many bytes; `None` if it has to wait.
    fn take_room(&self, state: &mut StreamState, bytes: usize) -> Option<CallMemory> {
        if !self.is_below_limits(state, bytes) {
            return None;
        }
        let counted = state.served.counted_bytes(bytes);
        let memory = self.server.scheduler.room.take(counted, state.is_next)?;
        if mem::take(&mut state.is_next) {
            // The call may take long, and others may find room beside it.
            self.server.scheduler.note_decided(self.server, self.slot);
        }
        Some(memory)
    }

    /// Has a call carried out by another thread; returns false if it has to wait.
    #[cold]
    pub(super) fn hand_over(
        &self,
        state: &mut StreamState,
        call: CallToServe,
        mut received: ReceivedCall,
    ) -> bool {
        if self.waits_for_order(state, &received) {
            state.served.hold(received);
            return false;
        }
        state.served.compact(&mut received);
        let bytes = received.message.capacity();
        let room = match received.streams.any() {
            // It is told that there is no room: what other streams need stands behind it.
            true if !state.served.reserve_items(received.streams) => None,
            true => self.server.scheduler.room.take(0, true),
            false => self.take_room(state, bytes),
        };
        let has_room = room.is_some();
        let deferred = room.and_then(|memory| Some((state.served.defer(&call, bytes)?, memory)));
        let Some(((id, cancelled), memory)) = deferred else {
            if has_room {
                // It was taken for nothing, and others may have begun to wait for it.
                self.server.scheduler.serve_held(self.server);
            }
            if received.streams.any() {
                self.refuse_streaming(state, &call);
                return true;
            }
            return self.hold_back(state, received, !has_room);
        };
        let target = AnswerTo::Deferred(id);
        let progress = self.server.defer(self.slot, &call, cancelled, target);
        let number = id.number();
        let streams = received.streams;
        let job = CallJob::of_stream((call, progress), received, memory);
        if !streams.any() {
            self.server.scheduler.push_job(self.server, job);
            return true;
        }
        let port = SlotPort::new(self.server, self.slot);
        let limits = &self.server.shared.limits;
        if self.slot.note_streams() {
            self.server.scheduler.begin_streams(self.server);
        }
        let streams = ServedStreams::new(
            state.served.open_streams(&call),
            Arc::new(port),
            (number, streams),
            limits.message_bytes,
            call.deadline,
        );
        let job = job.with_streams(streams);
        self.server.scheduler.push_streaming_job(self.server, job);
        true
    }

    /// Refuses a call with streams for which there is no room.
    #[cold]
    fn refuse_streaming(&self, state: &mut StreamState, call: &CallToServe) {
        let mut reply = Buffer::default();
        let text = "the server has as many calls as it takes";
        call.refuse(Status::OVERLOADED, text, &mut reply);
        state.served.refuse_streaming(call, &mut reply);
    }

    /// Keeps a call in its connection until there is room for it, or the call is answered that it waits for.
    #[cold]
    pub(super) fn hold_back(
        &self,
        state: &mut StreamState,
        received: ReceivedCall,
        lacks_room: bool,
    ) -> bool {
        self.server.shared.tally.calls_held_back.up();
        state.served.hold(received);
        if lacks_room && self.is_below_limits(state, state.served.held_bytes()) {
            self.await_room(state);
        }
        false
    }

    /// Has the memory of a call counted while its handler runs; `None` if it has to wait.
    #[cold]
    pub(super) fn charge_large(&self, state: &mut StreamState, bytes: usize) -> Option<CallMemory> {
        let memory = self.take_room(state, bytes)?;
        state.served.charge(bytes);
        Some(memory)
    }

    /// Notes that the memory of such a call is free.
    #[cold]
    pub(super) fn release_large(
        &mut self,
        place: &mut Option<Box<SlotState>>,
        memory: CallMemory,
        bytes: usize,
    ) {
        drop(memory);
        self.server.scheduler.serve_held(self.server);
        match stream_of(place) {
            Some(state) => state.served.release(bytes),
            None => self.leave_answer(place, LateAnswer::Memory(bytes)),
        }
    }

    /// Has the connection served again when there is room for the call that waits in it, of which there was none just now.
    #[cold]
    pub(super) fn await_room(&self, state: &mut StreamState) {
        if state.awaits_room {
            return;
        }
        let scheduler = &self.server.scheduler;
        scheduler
            .room
            .wait(self.slot, mem::take(&mut state.is_next));
        state.awaits_room = true;
        // What was freed just before it began to wait.
        let counted = state.served.counted_bytes(state.served.held_bytes());
        if scheduler.room.has(counted, true) {
            scheduler.serve_held(self.server);
        }
    }
}
