//! Calls back over the connection of a client.

use std::sync::Arc;

use tenon_proto::connection::UnsentCall;

use super::ServedStream;
use super::waiting_callbacks::CallbackEvent;
use crate::callbacks::PendingCallback;

impl ServedStream {
    /// Has a call back sent as soon as the client takes it.
    #[cold]
    pub fn start_callback(&mut self, call: UnsentCall, pending: Arc<PendingCallback>) {
        self.callbacks.push(call, pending);
        self.callbacks.start(&mut self.connection);
    }

    /// Gives a call back up that is not waited for any more.
    #[cold]
    pub fn cancel_callback(&mut self, pending: &Arc<PendingCallback>) {
        self.callbacks.cancel(&mut self.connection, pending);
        self.callbacks.start(&mut self.connection);
    }

    /// Takes in that a call back has ended, or that the client has said something that may let others begin.
    #[cold]
    pub(super) fn handle_callback(&mut self, event: CallbackEvent) {
        self.callbacks.handle(event);
        self.callbacks.start(&mut self.connection);
    }

    /// Starts the calls back that wait, as far as the client takes them by now.
    #[cold]
    pub(super) fn resume_callbacks(&mut self) {
        self.callbacks.start(&mut self.connection);
    }

    /// Returns whether calls back are not answered.
    #[inline]
    pub(super) fn has_callbacks(&self) -> bool {
        self.connection.in_flight() > 0 || !self.callbacks.is_empty()
    }
}

impl Drop for ServedStream {
    fn drop(&mut self) {
        if self.has_callbacks() {
            self.callbacks.end(&mut self.connection);
        }
    }
}
