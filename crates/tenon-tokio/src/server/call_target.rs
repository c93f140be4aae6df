//! What a call that is carried out elsewhere than where it was received is answered by.

use std::sync::{Arc, Mutex, PoisonError};

use tenon_wire::Buffer;

use super::call_room::TakenRoom;
use super::mailbox::{Mailbox, To};

/// What a call that is carried out elsewhere is answered by.
#[derive(Debug)]
pub(super) struct CallTarget {
    mailbox: Arc<Mailbox>,
    to: To,
    /// Room among those calls, which is free again when it is answered or given up.
    room: Mutex<Option<TakenRoom>>,
}

impl CallTarget {
    pub(super) fn new(mailbox: &Arc<Mailbox>, to: To, room: TakenRoom) -> Self {
        Self {
            mailbox: Arc::clone(mailbox),
            to,
            room: Mutex::new(Some(room)),
        }
    }

    /// Returns which call it is.
    pub(super) fn to(&self) -> To {
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
