//! Conversations that are over.

use std::collections::HashMap;
use std::time::Instant;

/// Conversations that are remembered to be over. Further ones are known until they are as old as all.
const CLOSED_MAX: usize = 1 << 16;

/// Conversations that are over, each until its cookie is none any more: a packet of theirs that is under way must not
/// begin them again, and have a call carried out twice.
#[derive(Debug, Default)]
pub(super) struct ClosedConversations {
    until: HashMap<u64, Instant>,
}

impl ClosedConversations {
    /// Whether a conversation is over.
    pub(super) fn has(&self, id: u64, now: Instant) -> bool {
        self.until.get(&id).is_some_and(|until| now < *until)
    }

    /// Remembers that a conversation is over; false if there is no room to.
    pub(super) fn add(&mut self, id: u64, until: Instant, now: Instant) -> bool {
        if now >= until {
            return true;
        }
        if self.until.len() >= CLOSED_MAX {
            self.forget_old(now);
        }
        let has_room = self.until.len() < CLOSED_MAX;
        if has_room {
            self.until.insert(id, until);
        }
        has_room
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        self.until.retain(|_, until| now < *until);
    }
}
