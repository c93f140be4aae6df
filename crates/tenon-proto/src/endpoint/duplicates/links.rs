//! Lists of cells that know their neighbours, each a ring: both ends are found, and any cell leaves, at once.

use super::cell_id::{CellId, NONE};

/// The neighbours of a cell in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellLinks {
    previous: CellId,
    next: CellId,
}

/// A list of cells.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellList {
    first: CellId,
}

/// Finds the neighbours of a cell in the lists of one kind.
pub(super) type LinksOf<C> = fn(&mut C, CellId) -> &mut CellLinks;

impl CellList {
    /// The list that has this cell first.
    #[inline]
    pub(super) fn of(first: CellId) -> Self {
        Self { first }
    }

    /// The first cell, which was put in before all others; `NONE` if there is none.
    #[inline]
    pub(super) fn first(self) -> CellId {
        self.first
    }

    /// Puts a cell behind all others.
    #[inline]
    pub(super) fn push<C>(&mut self, cells: &mut C, id: CellId, links: LinksOf<C>) {
        if self.first == NONE {
            self.first = id;
            *links(cells, id) = CellLinks {
                previous: id,
                next: id,
            };
            return;
        }
        let next = self.first;
        let previous = std::mem::replace(&mut links(cells, next).previous, id);
        links(cells, previous).next = id;
        *links(cells, id) = CellLinks { previous, next };
    }

    /// Takes out a cell that is in this list.
    #[inline]
    pub(super) fn remove<C>(&mut self, cells: &mut C, id: CellId, links: LinksOf<C>) {
        let CellLinks { previous, next } = *links(cells, id);
        if next == id {
            self.first = NONE;
            return;
        }
        links(cells, previous).next = next;
        links(cells, next).previous = previous;
        if self.first == id {
            self.first = next;
        }
    }
}
