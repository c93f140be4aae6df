//! All conversations of a server, by the numbers that their clients have chosen.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::conversation::Conversation;

/// All conversations. What is done for a packet concerns one of them, and asks for it several times: the
/// one that was asked for last is found without a search.
///
/// A client that finds out how to name conversations so that they collide makes a packet cost as much as there are
/// conversations of one host, which are few.
#[derive(Debug)]
pub(super) struct ConversationTable<A> {
    all: IndexMap<u64, Conversation<A>, RandomState>,
    /// The index of the one that was asked for last.
    last: usize,
}

impl<A> Default for ConversationTable<A> {
    fn default() -> Self {
        Self {
            all: IndexMap::default(),
            last: 0,
        }
    }
}

impl<A> ConversationTable<A> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Conversation<A>)> {
        self.all
            .iter()
            .map(|(id, conversation)| (*id, conversation))
    }

    #[inline]
    fn place(&self, id: u64) -> Option<usize> {
        match self.all.get_index(self.last) {
            Some((known, _)) if *known == id => Some(self.last),
            Some(_) | None => self.all.get_index_of(&id),
        }
    }

    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<&Conversation<A>> {
        let (_, conversation) = self.all.get_index(self.place(id)?)?;
        Some(conversation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Conversation<A>> {
        self.last = self.place(id)?;
        let (_, conversation) = self.all.get_index_mut(self.last)?;
        Some(conversation)
    }

    pub(super) fn insert(&mut self, id: u64, conversation: Conversation<A>) {
        self.all.insert(id, conversation);
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Conversation<A>> {
        self.all.swap_remove(&id)
    }
}
