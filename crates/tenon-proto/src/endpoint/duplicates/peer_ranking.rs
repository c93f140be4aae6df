//! Peers by the number of their replies, of which the largest is known at once.

use super::cell_id::{CellId, NONE};
use super::cells::CellPool;
use super::links::{CellLinks, CellList};

/// A list of peers for each number of replies.
#[derive(Debug)]
pub(super) struct PeerRanking {
    /// The first peer of the list for each number of replies.
    by_count: Vec<CellId>,
    /// The largest number of replies that a peer has.
    most: usize,
}

fn of_count<P>(cells: &mut CellPool<P>, peer: CellId) -> &mut CellLinks {
    &mut cells.peer_mut(peer).of_count
}

impl PeerRanking {
    /// A ranking of peers that have `replies` each at most.
    pub(super) fn new(replies: usize) -> Self {
        Self {
            by_count: vec![NONE; replies + 1],
            most: 0,
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.by_count.capacity() * size_of::<CellId>()
    }

    /// The peer with most replies; of several the one that has had that number for longest. `NONE` if no peer has a
    /// reply.
    #[inline]
    pub(super) fn largest(&self) -> CellId {
        if self.most == 0 {
            return NONE;
        }
        self.by_count[self.most]
    }

    /// Moves a peer that has one reply more.
    #[inline]
    pub(super) fn add_reply<P>(&mut self, cells: &mut CellPool<P>, peer: CellId) {
        self.remove(cells, peer);
        cells.peer_mut(peer).reply_count += 1;
        let count = self.insert(cells, peer);
        self.most = self.most.max(count);
    }

    /// Moves a peer that has one reply less.
    #[inline]
    pub(super) fn remove_reply<P>(&mut self, cells: &mut CellPool<P>, peer: CellId) {
        self.remove(cells, peer);
        cells.peer_mut(peer).reply_count -= 1;
        self.insert(cells, peer);
        // If it was the only one with most, it has one less than that now.
        if self.by_count[self.most] == NONE {
            self.most -= 1;
        }
    }

    fn remove<P>(&mut self, cells: &mut CellPool<P>, peer: CellId) {
        let count = cells.peer(peer).reply_count as usize;
        if count > 0 {
            let mut list = CellList::of(self.by_count[count]);
            list.remove(cells, peer, of_count);
            self.by_count[count] = list.first();
        }
    }

    fn insert<P>(&mut self, cells: &mut CellPool<P>, peer: CellId) -> usize {
        let count = cells.peer(peer).reply_count as usize;
        if count > 0 {
            let mut list = CellList::of(self.by_count[count]);
            list.push(cells, peer, of_count);
            self.by_count[count] = list.first();
        }
        count
    }
}
