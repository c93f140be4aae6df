//! The destination of the answer to a call that is carried out elsewhere than where it was received.

use std::sync::{Arc, Mutex, PoisonError};

use tenon_wire::Buffer;

use super::call_room::CallPermit;
use super::mailbox::{ReplyMailbox, ReplyTarget};

/// The destination of the answer to a call that is carried out elsewhere.
#[derive(Debug)]
pub(super) struct CallTarget {
    mailbox: Arc<ReplyMailbox>,
    to: ReplyTarget,
    /// Room among those calls, which is free again when it is answered or given up.
    room: Mutex<Option<CallPermit>>,
}

impl CallTarget {
    pub(super) fn new(mailbox: &Arc<ReplyMailbox>, to: ReplyTarget, room: CallPermit) -> Self {
        Self {
            mailbox: Arc::clone(mailbox),
            to,
            room: Mutex::new(Some(room)),
        }
    }

    /// Returns what the connection or port of the call takes its answer from.
    pub(super) fn mailbox(&self) -> &Arc<ReplyMailbox> {
        &self.mailbox
    }

    /// Returns which call it is.
    pub(super) fn to(&self) -> ReplyTarget {
        self.to
    }

    /// Answers the call.
    pub(super) fn answer(&self, reply: Buffer) {
        let room = self
            .room
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(room);
        self.mailbox.leave(self.to, reply);
    }
}
