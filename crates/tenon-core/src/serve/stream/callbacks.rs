//! Calls back over the connection of a client.

use std::sync::Arc;

use tenon_proto::connection::UnsentCall;

use super::waiting_callbacks::CallbackEvent;
use super::{ServedStream, ServerShared};
use crate::callbacks::{CallbackChannel, CallbackPort, PendingCallback};
use crate::error::CallError;
use crate::serve::CallToServe;
use crate::service::Origin;

impl ServerShared {
    /// Returns the channel from the handler of a call back to its caller; `port` is the connection that the call came over.
    ///
    /// # Errors
    /// [`CallError::NoCallbacks`]: the call came in a datagram, or its service wants the calls of a connection one after the
    /// other.
    pub fn callback_channel<P: CallbackPort + 'static>(
        &self,
        call: &CallToServe,
        origin: &Origin,
        port: impl FnOnce() -> Arc<P>,
    ) -> Result<CallbackChannel, CallError> {
        let reason = match origin.transport {
            _ if origin.transport.is_datagram() => "datagrams carry none",
            _ if self.registry.keeps_order(call.service) => {
                "the service wants the calls of a connection one after the other"
            }
            transport => {
                self.times.note_calls_back(call.service, call.procedure);
                let (protocol, peer) = (call.protocol(), origin.peer);
                return Ok(CallbackChannel::new(port(), protocol, transport, peer));
            }
        };
        Err(CallError::NoCallbacks { reason })
    }
}

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
