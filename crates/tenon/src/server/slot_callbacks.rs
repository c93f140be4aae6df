//! The channel from a handler back to its caller, over the connection of the call.

use std::fmt;
use std::sync::Arc;

use tenon_core::callbacks::{CallbackChannel, CallbackPort, CallbackSource, PendingCallback};
use tenon_core::error::CallError;
use tenon_core::serve::{CallToServe, lost_callback};
use tenon_proto::connection::UnsentCall;

use super::slot::{LateAnswer, SocketSlot};
use super::slot_port::SlotPort;
use super::state::ServerState;

/// Opens the channel from the handler of a call back to its caller. It costs nothing until it is asked.
pub(super) struct SlotCallbacks<'c> {
    server: &'c Arc<ServerState>,
    slot: &'c Arc<SocketSlot>,
    call: &'c CallToServe,
}

impl<'c> SlotCallbacks<'c> {
    #[inline]
    pub(super) fn new(
        server: &'c Arc<ServerState>,
        slot: &'c Arc<SocketSlot>,
        call: &'c CallToServe,
    ) -> Self {
        Self { server, slot, call }
    }
}

impl CallbackSource for SlotCallbacks<'_> {
    fn channel(&self) -> Result<CallbackChannel, CallError> {
        if self.server.scheduler.is_stepped() {
            let reason = "a server that is stepped does not receive while a handler runs";
            return Err(CallError::NoCallbacks { reason });
        }
        let (shared, origin) = (&self.server.shared, self.slot.origin());
        shared.callback_channel(self.call, &origin, || {
            Arc::new(SlotPort::new(self.server, self.slot))
        })
    }
}

impl CallbackPort for SlotPort {
    fn call(&self, call: UnsentCall, pending: Arc<PendingCallback>) {
        self.expect_answers();
        self.leave_for_others(LateAnswer::Callback(call, pending));
        if self.slot().is_over() {
            end_callbacks(self.slot());
        }
    }

    fn cancel(&self, pending: Arc<PendingCallback>) {
        self.leave(LateAnswer::CallbackCancelled(pending));
    }
}

/// Ends the calls back that were left for a connection that is over.
pub(super) fn end_callbacks(slot: &SocketSlot) {
    for answer in slot.take_answers() {
        if let LateAnswer::Callback(_, pending) = answer {
            pending.finish(lost_callback(false));
        }
    }
}

impl fmt::Debug for SlotCallbacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotCallbacks")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
