//! Numbers of cells.

/// Names a cell.
pub(super) type CellId = u32;

/// No cell. The first one of a store is never handed out.
pub(super) const NONE: CellId = 0;
