//! Looking in shared memory for the items that come next, while the handlers of a connection wait for them.

use std::io;

use tenon_core::serve::EndReason;
use tenon_core::wait::LOOKS;
use tenon_net::Stream;

use super::slot::{SlotState, stream_of};
use super::stream::StreamTurn;
use super::stream_state::StreamState;

impl StreamTurn<'_> {
    /// Looks for a moment for what comes next over a connection in shared memory whose handlers wait for items: to sleep, and
    /// have the peer ring for each few items, takes longer than the items do. At a socket each look is a system call, and
    /// the peer need not ring. Returns whether the connection is to be served again.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn look_for_items(
        &mut self,
        place: &mut Option<Box<SlotState>>,
    ) -> Result<bool, EndReason> {
        match (stream_of(place), self.slot.stream()) {
            (Some(state), Some(stream)) if state.served.has_streams() && !stream.is_socket() => {
                self.look_for_some(stream, state)
            }
            _ => Ok(false),
        }
    }

    #[cold]
    fn look_for_some(
        &mut self,
        stream: &Stream,
        state: &mut StreamState,
    ) -> Result<bool, EndReason> {
        let (slot, server) = (self.slot, self.server);
        if !state.served.expects_items()
            || !state.may_receive()
            || state.is_blocked()
            || server.is_stopping()
        {
            return Ok(false);
        }
        state.served.take_writers().wake();
        state.served.lend(&mut self.thread.memory);
        let room = state.served.room()?;
        let length = room.len();
        let context = server.wait_context(state.looking);
        let (mut looks, mut received) = (0, None);
        let has_come = (state.waiter.items).look(&context, || {
            stream.look(looks);
            looks = LOOKS;
            match stream.try_recv(room) {
                Ok(bytes) => {
                    received = Some(bytes);
                    Ok(true)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Ok(slot.has_signals() || server.is_stopping())
                }
                Err(error) => Err(EndReason::Socket(error)),
            }
        })?;
        if let Some(bytes) = received {
            // The end of the stream is looked at in the next turn.
            state.is_readable = bytes == length || bytes == 0 || state.has_ended;
            if bytes > 0 {
                state.served.handle_received(bytes)?;
            }
        }
        Ok(has_come)
    }
}
