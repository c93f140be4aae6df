//! The way back from a handler to its caller, over the connection of the call.

use std::fmt;
use std::sync::Arc;

use tenon_core::callbacks::{CallbackChannel, CallbackPort, CallbackSource};
use tenon_core::error::CallError;
use tenon_core::serve::CallToServe;
use tenon_core::service::Origin;
use tenon_net::Transport;

use super::mailbox::ReplyMailbox;

/// What the handler of a call gets the way back from. It costs nothing as long as it is not asked.
pub(super) struct WayBack<'c> {
    pub(super) mailbox: &'c Arc<ReplyMailbox>,
    pub(super) origin: &'c Origin,
    pub(super) call: &'c CallToServe,
}

impl CallbackSource for WayBack<'_> {
    fn channel(&self) -> Result<CallbackChannel, CallError> {
        let shared = &self.mailbox.shared;
        let CallToServe {
            service, procedure, ..
        } = *self.call;
        if let Transport::Udp | Transport::Xdp = self.origin.transport {
            let reason = "datagrams carry none";
            return Err(CallError::NoCallbacks { reason });
        }
        if shared.registry.keeps_order(service) {
            let reason = "the service wants the calls of a connection one after the other";
            return Err(CallError::NoCallbacks { reason });
        }
        shared.times.note_calls_back(service, procedure);
        let port: Arc<dyn CallbackPort> = Arc::<ReplyMailbox>::clone(self.mailbox);
        let Origin {
            transport, peer, ..
        } = *self.origin;
        let protocol = self.call.protocol();
        Ok(CallbackChannel::new(port, protocol, transport, peer))
    }
}

impl fmt::Debug for WayBack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WayBack")
            .field("origin", self.origin)
            .field("call", self.call)
            .finish_non_exhaustive()
    }
}
