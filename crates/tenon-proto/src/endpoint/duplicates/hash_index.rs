//! Finds calls and peers among the cells. The table is as large from the start as it will ever be, so that no call has
//! to wait until it has grown; the system gives it memory page by page as it is used.

use std::hash::{BuildHasher, Hash, RandomState};

use super::cell_id::{CellId, NONE};
use super::cells::{CellContent, CellPool};

/// Chains of cells, by the hashes of what is in them.
#[derive(Debug)]
pub(super) struct HashIndex {
    /// The first cell of each chain. Their number is a power of two.
    chains: Vec<CellId>,
    /// Peers choose what is hashed, so they must not be able to make chains long: this is SipHash, with a random key.
    state: RandomState,
}

impl HashIndex {
    /// An index of up to `cells` cells.
    pub(super) fn new(cells: usize) -> Self {
        Self {
            chains: vec![NONE; Self::chains_of(cells)],
            state: RandomState::new(),
        }
    }

    fn chains_of(cells: usize) -> usize {
        cells.next_power_of_two()
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.chains.capacity() * size_of::<CellId>()
    }

    #[inline]
    pub(super) fn hash(&self, key: impl Hash) -> u32 {
        self.state.hash_one(key) as u32
    }

    #[inline]
    fn chain(&mut self, hash: u32) -> &mut CellId {
        let mask = self.chains.len() - 1;
        &mut self.chains[hash as usize & mask]
    }

    /// Returns the cell with this hash and the content that is looked for; `NONE` if there is none.
    #[inline]
    pub(super) fn find<P>(
        &self,
        cells: &CellPool<P>,
        hash: u32,
        is_wanted: impl Fn(&CellContent<P>) -> bool,
    ) -> CellId {
        let mut id = self.chains[hash as usize & (self.chains.len() - 1)];
        while id != NONE {
            let cell = cells.cell(id);
            if cell.hash == hash && is_wanted(&cell.content) {
                break;
            }
            id = cell.next;
        }
        id
    }

    /// Adds a cell.
    #[inline]
    pub(super) fn insert<P>(&mut self, cells: &mut CellPool<P>, hash: u32, id: CellId) {
        let next = std::mem::replace(self.chain(hash), id);
        let cell = cells.cell_mut(id);
        (cell.hash, cell.next) = (hash, next);
    }

    /// Takes out a cell that was added.
    #[inline]
    pub(super) fn remove<P>(&mut self, cells: &mut CellPool<P>, id: CellId) {
        let (hash, next) = (cells.cell(id).hash, cells.cell(id).next);
        let chain = self.chain(hash);
        if *chain == id {
            *chain = next;
            return;
        }
        let mut before = *chain;
        while before != NONE {
            let cell = cells.cell_mut(before);
            if cell.next == id {
                cell.next = next;
                return;
            }
            before = cell.next;
        }
    }
}
