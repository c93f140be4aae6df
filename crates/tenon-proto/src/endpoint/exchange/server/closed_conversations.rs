//! Conversations that are over.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Conversations that are remembered to be over. Further ones are known until they are as old as all.
const CLOSED_MAX: usize = 1 << 16;

/// The time for which it is believed that there is no room, as to find out looks at all of them.
const FULL_FOR: Duration = Duration::from_millis(10);

/// Conversations that are over, each until its cookie is none any more: a packet of theirs that is under way must not
/// begin them again, and have a call carried out twice.
#[derive(Debug, Default)]
pub(in crate::endpoint::exchange) struct ClosedConversations {
    until: HashMap<u64, Instant>,
    /// The time at which it was last found that there is no room.
    full_at: Option<Instant>,
}

impl ClosedConversations {
    /// Returns whether a conversation is over.
    pub(in crate::endpoint::exchange) fn has(&self, id: u64, now: Instant) -> bool {
        self.until.get(&id).is_some_and(|until| now < *until)
    }

    /// Remembers that a conversation is over; false if there is no room to.
    pub(in crate::endpoint::exchange) fn add(
        &mut self,
        id: u64,
        until: Instant,
        now: Instant,
    ) -> bool {
        if now >= until {
            return true;
        }
        let has_room = self.until.len() < CLOSED_MAX || self.make_room(now);
        if has_room {
            self.until.insert(id, until);
        }
        has_room
    }

    /// Forgets those that are over for good; false if none is, or none was a moment ago.
    #[cold]
    fn make_room(&mut self, now: Instant) -> bool {
        if self.full_at.is_some_and(|at| now < at + FULL_FOR) {
            return false;
        }
        self.forget_old(now);
        let has_room = self.until.len() < CLOSED_MAX;
        self.full_at = if has_room { None } else { Some(now) };
        has_room
    }

    pub(in crate::endpoint::exchange) fn forget_old(&mut self, now: Instant) {
        self.until.retain(|_, until| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_over_only_if_there_is_room_to_remember_it() {
        let mut closed = ClosedConversations::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        for id in 0..CLOSED_MAX as u64 {
            assert!(closed.add(id, now + second, now));
        }
        assert!(!closed.add(u64::MAX, now + 9 * second, now), "it is full");
        assert!(!closed.has(u64::MAX, now));
        assert!(closed.has(7, now), "none makes way");
        let nearly = now + second - FULL_FOR / 2;
        assert!(!closed.add(u64::MAX, now + 9 * second, nearly));
        // Now they are over for good, but that is not looked for with every packet.
        assert!(!closed.add(u64::MAX, now + 9 * second, now + second));
        let free = nearly + FULL_FOR;
        assert!(closed.add(u64::MAX, now + 9 * second, free));
        assert!(closed.has(u64::MAX, free) && !closed.has(7, free));
        assert!(closed.add(5, now, now), "its cookie is none any more");
        assert!(!closed.has(5, now));
    }
}
