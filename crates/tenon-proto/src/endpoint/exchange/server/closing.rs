//! Conversations that end before their time: closed by their clients, or forgotten for want of room.

use std::time::{Duration, Instant};

use super::{PeerAddress, ServerCore};
use crate::endpoint::exchange::packet::{DropReason, PacketHeader};

/// Silence after which a conversation may be forgotten for want of room.
const RECLAIM_AFTER: Duration = Duration::from_secs(1);

/// The time for which it is believed that there is room, or is none: to find out looks at all conversations.
const ROOM_KNOWN_FOR: Duration = Duration::from_millis(10);

impl<A: PeerAddress> ServerCore<A> {
    /// The client makes no calls any more.
    #[cold]
    pub(super) fn handle_goodbye(
        &mut self,
        now: Instant,
        from: A,
        header: &PacketHeader,
        body: &[u8],
    ) -> Result<(), DropReason> {
        if !body.is_empty() || header.fragments != 0 {
            return Err(DropReason::Malformed);
        }
        match self.conversations.get(header.conversation) {
            Some(conversation) if conversation.peer == from => {}
            Some(_) => return Err(DropReason::OtherAddress),
            None => return Err(DropReason::Stale),
        }
        match self.end_conversation(header.conversation, now) {
            true => Ok(()),
            false => Err(DropReason::Full),
        }
    }

    /// Forgets a conversation so that it cannot begin again; false if there is no room to remember that it is over.
    fn end_conversation(&mut self, id: u64, now: Instant) -> bool {
        let Some(conversation) = self.conversations.get(id) else {
            return true;
        };
        let is_noted = self.over.add(id, conversation.cookie_expiry, now);
        if is_noted {
            self.forget(id);
            self.room_found = None;
        }
        is_noted
    }

    /// Returns whether there is room for a conversation, or can be made.
    pub(super) fn may_find_room(&mut self, now: Instant, from: A) -> bool {
        if self.has_room(from) {
            return true;
        }
        let host = from.host();
        match self.room_found {
            Some((of, at, found)) if of == host && now < at + ROOM_KNOWN_FOR => found,
            _ => {
                let found = self.find_silent(now, from).is_some();
                self.room_found = Some((host, now, found));
                found
            }
        }
    }

    /// Makes room for a conversation, if there is none, by forgetting the one that was not heard of for longest.
    pub(super) fn make_room(&mut self, now: Instant, from: A) -> bool {
        if self.has_room(from) {
            return true;
        }
        let Some((id, heard_at)) = self.find_silent(now, from) else {
            return false;
        };
        // What is said to clients of how long a conversation is known must not count it in.
        self.reclaimed_heard_at = self.reclaimed_heard_at.max(Some(heard_at));
        self.end_conversation(id, now)
    }

    /// Finds the conversation that was not heard of for longest among those that may be forgotten: of the same host, if
    /// that has as many as it may.
    fn find_silent(&self, now: Instant, from: A) -> Option<(u64, Instant)> {
        let host = from.host();
        let of_host = self.hosts.get(&host).map_or(0, |host| host.conversations);
        let is_own = of_host >= self.limits.conversations_of_host;
        let silent = self.conversations.iter().filter(|(_, conversation)| {
            (!is_own || conversation.peer.host() == host)
                && now >= conversation.heard_at + RECLAIM_AFTER
                && conversation.is_idle()
        });
        silent
            .map(|(id, conversation)| (id, conversation.heard_at))
            .min_by_key(|(_, heard_at)| *heard_at)
    }
}
