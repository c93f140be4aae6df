//! Packets to clients.

use std::time::Instant;

use tenon_wire::Buffer;

use super::conversation::SendStatus;
use super::{CloseRecipients, PeerAddress, ServerCore};
use crate::endpoint::exchange::packet::HeaderTemplate;

impl<A: PeerAddress> ServerCore<A> {
    #[cold]
    pub(super) fn send_close(&mut self, to: CloseRecipients) {
        let told = self.conversations.iter();
        let told =
            told.filter(|(_, conversation)| to == CloseRecipients::ToAll || conversation.is_idle());
        self.leaving = told.map(|(id, _)| id).collect();
    }

    /// Appends the last packet of a conversation.
    #[inline]
    fn put_goodbye(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        loop {
            let id = self.leaving.pop()?;
            let Some(conversation) = self.conversations.get(id) else {
                continue;
            };
            conversation.put_goodbye(self.incarnation, out);
            let peer = conversation.peer;
            self.forget(id);
            self.farewell_at = Some(now);
            return Some(peer);
        }
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        if let Some(stray) = self.stray.pop_front() {
            let prototype = HeaderTemplate::new(stray.header.conversation);
            prototype.put(out, &stray.header, |out| {
                if let Some(welcome) = &stray.welcome {
                    welcome.put(out);
                }
            });
            return Some(stray.to);
        }
        loop {
            let Some((id, number)) = self.ready.pop_front() else {
                return self.put_goodbye(now, out);
            };
            let Some(conversation) = self.conversations.get_mut(id) else {
                continue;
            };
            let Some(index) = conversation.index_of(number) else {
                continue;
            };
            conversation.lanes[index].is_ready = false;
            match conversation.transmit(index, now, &mut self.order, &mut self.rng, out) {
                None => {}
                Some(SendStatus::Done) => return Some(conversation.peer),
                Some(SendStatus::More) => {
                    let (peer, timer) = (conversation.peer, conversation.lanes[index].timer);
                    self.expect(timer);
                    self.make_ready(id, number);
                    return Some(peer);
                }
            }
        }
    }
}
