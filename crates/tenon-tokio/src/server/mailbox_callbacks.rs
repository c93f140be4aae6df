//! The channel from a handler back to its caller, over the connection of the call.

use std::fmt;
use std::sync::Arc;

use tenon_core::callbacks::{CallbackChannel, CallbackSource};
use tenon_core::error::CallError;
use tenon_core::serve::CallToServe;
use tenon_core::service::Origin;

use super::mailbox::ReplyMailbox;

/// Opens the channel from the handler of a call back to its caller. It costs nothing until it is asked.
pub(super) struct MailboxCallbacks<'c> {
    pub(super) mailbox: &'c Arc<ReplyMailbox>,
    pub(super) origin: &'c Origin,
    pub(super) call: &'c CallToServe,
}

impl CallbackSource for MailboxCallbacks<'_> {
    fn channel(&self) -> Result<CallbackChannel, CallError> {
        let shared = &self.mailbox.shared;
        shared.callback_channel(self.call, self.origin, || {
            Arc::<ReplyMailbox>::clone(self.mailbox)
        })
    }
}

impl fmt::Debug for MailboxCallbacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailboxCallbacks")
            .field("origin", self.origin)
            .field("call", self.call)
            .finish_non_exhaustive()
    }
}
