//! The figures of the paper's tables, from what was measured.

use tenon_plan::{Mover, Moves, Unit};

use crate::design::{Design, Engine, INLINE_ITEM, Movement};
use crate::measure::Summary;
use crate::paper;
use crate::study::{Cell, Direction, Study};
use crate::work::Work;

/// A figure beside the paper's.
pub struct Figure {
    /// Measured here.
    pub here: Summary,
    /// Published; not all are.
    pub paper: Option<f64>,
}

/// What times are given as multiples of: the paper's compiled stubs that move each number inline
/// and whole, at the same work.
pub const BASELINE: Design = Design {
    engine: Engine::Compiled,
    movement: INLINE_ITEM,
};

/// What one row of Table 3 is about: movements that are both interpreted and compiled.
pub fn movements() -> impl Iterator<Item = Movement> {
    let interpreted = crate::DESIGNS
        .iter()
        .filter(|design| design.engine == Engine::Interpreted);
    let movements = interpreted.map(|design| design.movement);
    movements.filter(|movement| {
        crate::DESIGNS.contains(&Design {
            engine: Engine::Compiled,
            movement: *movement,
        })
    })
}

/// What one row of Table 4 is about: designs that call a procedure for each number.
pub fn procedural() -> impl Iterator<Item = (Design, Unit)> {
    crate::DESIGNS
        .iter()
        .filter_map(|design| match design.movement {
            Movement::Single(Moves {
                by: Mover::Procedure,
                unit,
            }) => Some((*design, unit)),
            _ => None,
        })
}

impl Study {
    /// A time as a multiple of the baseline's.
    pub(super) fn multiple(&self, cell: &Cell) -> Option<Figure> {
        let baseline = self.cell(BASELINE, cell.work, cell.direction)?;
        let published = |design| paper::milliseconds(design, cell.work);
        Some(Figure {
            here: cell.timing.over(&baseline.timing),
            paper: published(cell.design)
                .zip(published(BASELINE))
                .map(|(own, baseline)| own / baseline),
        })
    }

    /// Table 3: per cent of the time of an interpreted stub that a compiled one would not take.
    pub(super) fn interpretation(
        &self,
        movement: Movement,
        work: Work,
        direction: Direction,
    ) -> Option<Figure> {
        let of = |engine| self.cell(Design { engine, movement }, work, direction);
        Some(Figure {
            here: saved(of(Engine::Interpreted)?, of(Engine::Compiled)?),
            paper: paper::interpretation(movement, work),
        })
    }

    /// Table 4: per cent of the time of a procedural stub that an inline one would not take.
    pub(super) fn procedure_calls(
        &self,
        (design, unit): (Design, Unit),
        work: Work,
        direction: Direction,
    ) -> Option<Figure> {
        let by = Mover::Inline;
        let inline = Design {
            movement: Movement::Single(Moves { by, unit }),
            ..design
        };
        let of = |design| self.cell(design, work, direction);
        Some(Figure {
            here: saved(of(design)?, of(inline)?),
            paper: paper::procedure_calls(design.engine, unit, work),
        })
    }
}

/// Per cent of the time of the slow one.
fn saved(slow: &Cell, fast: &Cell) -> Summary {
    let part = fast.timing.over(&slow.timing);
    let saved = |part: f64| 100.0 * (1.0 - part);
    Summary {
        median: saved(part.median),
        lower: saved(part.upper),
        upper: saved(part.lower),
    }
}
