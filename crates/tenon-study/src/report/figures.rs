//! The figures of the paper's tables, from what was measured.

use tenon_plan::cost::{Mover, Moves, Unit};

use crate::design::{DataMovement, INLINE_ITEM, StubDesign, StubEngine};
use crate::measure::QuartileSummary;
use crate::paper;
use crate::study::{StudyCell, StudyDirection, StudyResults};
use crate::work::Workload;

/// A figure beside the paper's.
pub struct PaperComparison {
    /// Measured here.
    pub here: QuartileSummary,
    /// Published; not all are.
    pub paper: Option<f64>,
}

/// The design that all times are given as multiples of: the paper's compiled stubs that move each number inline and
/// whole, at the same work.
pub const BASELINE: StubDesign = StubDesign {
    engine: StubEngine::Compiled,
    movement: INLINE_ITEM,
};

/// Returns the subjects of the rows of Table 3: movements that are both interpreted and compiled.
pub fn movements() -> impl Iterator<Item = DataMovement> {
    let interpreted = crate::DESIGNS
        .iter()
        .filter(|design| design.engine == StubEngine::Interpreted);
    let movements = interpreted.map(|design| design.movement);
    movements.filter(|movement| {
        crate::DESIGNS.contains(&StubDesign {
            engine: StubEngine::Compiled,
            movement: *movement,
        })
    })
}

/// Returns the subjects of the rows of Table 4: designs that call a procedure for each number.
pub fn procedural() -> impl Iterator<Item = (StubDesign, Unit)> {
    crate::DESIGNS
        .iter()
        .filter_map(|design| match design.movement {
            DataMovement::Single(Moves {
                by: Mover::Procedure,
                unit,
            }) => Some((*design, unit)),
            _ => None,
        })
}

impl StudyResults {
    /// Returns a time as a multiple of the baseline's.
    pub(super) fn multiple(&self, cell: &StudyCell) -> Option<PaperComparison> {
        let baseline = self.cell(BASELINE, cell.work, cell.direction)?;
        let published = |design| paper::milliseconds(design, cell.work);
        Some(PaperComparison {
            here: cell.timing.over(&baseline.timing),
            paper: published(cell.design)
                .zip(published(BASELINE))
                .map(|(own, baseline)| own / baseline),
        })
    }

    /// Returns the figure of Table 3: per cent of the time of an interpreted stub that a compiled one would not take.
    pub(super) fn interpretation(
        &self,
        movement: DataMovement,
        work: Workload,
        direction: StudyDirection,
    ) -> Option<PaperComparison> {
        let of = |engine| self.cell(StubDesign { engine, movement }, work, direction);
        Some(PaperComparison {
            here: saved(of(StubEngine::Interpreted)?, of(StubEngine::Compiled)?),
            paper: paper::interpretation(movement, work),
        })
    }

    /// Returns the figure of Table 4: per cent of the time of a procedural stub that an inline one would not take.
    pub(super) fn procedure_calls(
        &self,
        (design, unit): (StubDesign, Unit),
        work: Workload,
        direction: StudyDirection,
    ) -> Option<PaperComparison> {
        let by = Mover::Inline;
        let inline = StubDesign {
            movement: DataMovement::Single(Moves { by, unit }),
            ..design
        };
        let of = |design| self.cell(design, work, direction);
        Some(PaperComparison {
            here: saved(of(design)?, of(inline)?),
            paper: paper::procedure_calls(design.engine, unit, work),
        })
    }
}

/// Returns the per cent of the time of the slow one that the fast one saves.
fn saved(slow: &StudyCell, fast: &StudyCell) -> QuartileSummary {
    let part = fast.timing.over(&slow.timing);
    let saved = |part: f64| 100.0 * (1.0 - part);
    QuartileSummary {
        median: saved(part.median),
        lower: saved(part.upper),
        upper: saved(part.lower),
    }
}
