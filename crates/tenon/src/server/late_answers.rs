//! What handlers leave for a connection that they do not have: the one that has it takes it, and sends it.

use std::io::{self, IoSlice};

use tenon_core::serve::Sending;
use tenon_net::Stream;
use tenon_proto::connection::TransmitBatch;

use super::slot::{ANSWERS, LateAnswer, SocketSlot};
use super::stream_state::StreamState;

/// Takes the answers that other threads have left.
pub(super) fn take_answers(slot: &SocketSlot, state: &mut StreamState) {
    for answer in slot.take_answers() {
        match answer {
            LateAnswer::Deferred(id, mut reply) => state.served.answer_deferred(id, &mut reply),
            LateAnswer::Inline(mut reply) => {
                state.served.end_inline();
                state.served.push_reply(&mut reply);
            }
            LateAnswer::Memory(bytes) => state.served.release(bytes),
            LateAnswer::Items(number, items) => state.served.push_items(number, items),
            LateAnswer::ItemsTaken(number, bytes) => state.served.give_back(number, bytes),
            LateAnswer::ItemsUnwanted(number) => state.served.stop_receiving(number),
            LateAnswer::Callback(call, pending) => state.served.start_callback(call, pending),
            LateAnswer::CallbackCancelled(pending) => state.served.cancel_callback(&pending),
            LateAnswer::Datagram(..) => {}
        }
    }
}

/// Sends what a handler has left for its connection, on the thread of the handler; returns whether the connection has
/// nothing else to say. Otherwise it is to be served.
pub(super) fn flush(slot: &SocketSlot, state: &mut StreamState) -> bool {
    let Some(stream) = slot.stream() else {
        return false;
    };
    if state.signals != ANSWERS || state.ends.is_some() || state.overdue.is_some() {
        return false;
    }
    state.signals = 0;
    take_answers(slot, state);
    let sending = state.served.transmit(|batch| send(stream, batch));
    matches!(sending, Ok(Sending::Done))
}

/// Tells the peer of a connection of which every call is answered, and which is closed now, that no others are carried
/// out, if that has not been said: by ONC RPC it is the last message.
pub(super) fn push_close_notice(slot: &SocketSlot, state: &mut StreamState) {
    if let Some(stream) = slot.stream() {
        state.served.push_close_notice();
        // A caller that has gone need not be told.
        let _ = state.served.transmit(|batch| send(stream, batch));
    }
}

/// Sends as much of a batch as finds room.
#[inline(always)]
pub(super) fn send(stream: &Stream, batch: &TransmitBatch) -> io::Result<usize> {
    match batch.single_slice() {
        Some(bytes) => stream.try_send(bytes),
        None => stream.try_send_pieces(&batch.slices().map(IoSlice::new)),
    }
}
