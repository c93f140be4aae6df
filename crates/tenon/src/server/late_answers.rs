//! What handlers leave for a connection that they do not have: the one that has it takes it, and sends it.

use std::io::{self, IoSlice};

use tenon_core::serve::{EndReason, Sending};
use tenon_net::Stream;
use tenon_proto::connection::TransmitBatch;

use super::slot::{ANSWERS, LateAnswer, READY, SocketSlot};
use super::state::ServerState;
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

/// Sends what a handler has left for its connection, on the thread of the handler, looks for a moment for the room that
/// it needs, and takes in credit that has come; returns whether the connection has nothing else to say. Otherwise it is
/// to be served.
pub(super) fn flush(server: &ServerState, slot: &SocketSlot, state: &mut StreamState) -> bool {
    let Some(stream) = slot.stream() else {
        return false;
    };
    state.signals |= slot.take_signals();
    let is_free = state.ends.is_none() && state.overdue.is_none() && !server.is_stopping();
    if state.signals & !(ANSWERS | READY) != 0 || !is_free {
        return false;
    }
    state.is_readable |= std::mem::take(&mut state.signals) & READY != 0;
    take_answers(slot, state);
    let flushed = receive_credit(server, stream, state).and_then(|is_all| {
        let sending = state.served.transmit(|batch| send(stream, batch))?;
        let is_sent = sending == Sending::Done
            // What has come for the connection meanwhile is served by another thread.
            || look_for_room(server, stream, state, || slot.has_signals())?;
        // A thread that runs a handler meanwhile leaves what came behind its call to the one that has the connection.
        Ok(is_all && is_sent && !state.served.has_unread())
    });
    flushed.unwrap_or_else(|reason| {
        state.end(reason);
        false
    })
}

/// Receives once if something has come, and takes it in; returns whether that was all, and no call is among it.
fn receive_credit(
    server: &ServerState,
    stream: &Stream,
    state: &mut StreamState,
) -> Result<bool, EndReason> {
    if !state.is_readable {
        return Ok(true);
    }
    if !state.may_receive() {
        return Ok(false);
    }
    let room = state.served.room()?;
    let length = room.len();
    match stream.try_recv(room) {
        // The end is looked at by the thread that serves the connection next.
        Ok(0) => Ok(false),
        Ok(bytes) => {
            state.is_readable = bytes == length;
            state.served.handle_received(bytes)?;
            let call = state.served.next_call(&server.shared)?;
            let has_call = call.is_some();
            if let Some(call) = call {
                state.served.hold(call);
            }
            // A peer that takes long for the rest of a message is looked after by the thread that parks the connection.
            let is_all = !has_call && !state.is_readable && !state.served.has_begun();
            Ok(is_all && stream.park())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            state.is_readable = false;
            Ok(stream.park())
        }
        Err(error) => Err(EndReason::Socket(error)),
    }
}

/// Looks for a moment for room for what waits to be sent, unless something `has_come`; returns whether all is sent.
#[cold]
pub(super) fn look_for_room(
    server: &ServerState,
    stream: &Stream,
    state: &mut StreamState,
    has_come: impl Fn() -> bool,
) -> Result<bool, EndReason> {
    let context = server.wait_context(state.looking);
    let served = &mut state.served;
    let mut sending = Sending::Blocked;
    (state.waiter.room).look(&context, || {
        sending = served.transmit(|batch| send(stream, batch))?;
        Ok::<_, EndReason>(sending == Sending::Done || has_come())
    })?;
    Ok(sending == Sending::Done)
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
