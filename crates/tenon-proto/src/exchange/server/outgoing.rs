//! What is to be sent.

use std::time::Instant;

use tenon_wire::Buffer;

use super::conversation::Limited;
use super::{Address, Core};
use crate::exchange::packet::Prototype;

impl<A: Address> Core<A> {
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Buffer) -> Option<A> {
        if let Some(stray) = self.stray.pop_front() {
            let prototype = Prototype::new(stray.header.conversation);
            prototype.put(out, &stray.header, |out| {
                if let Some(welcome) = &stray.welcome {
                    welcome.put(out);
                }
            });
            return Some(stray.to);
        }
        loop {
            let (id, number) = self.ready.pop_front()?;
            let Some(conversation) = self.conversations.get_mut(&id) else {
                continue;
            };
            let Some(index) = conversation.index_of(number) else {
                continue;
            };
            conversation.lanes[index].is_ready = false;
            match conversation.transmit(index, now, &mut self.order, &mut self.chance, out) {
                None => {}
                Some(Limited::Done) => return Some(conversation.peer),
                Some(Limited::More) => {
                    let peer = conversation.peer;
                    self.make_ready(id, number);
                    return Some(peer);
                }
            }
        }
    }
}
