//! Arrays as loops and as unrolled code, beside what was published of stubs that a partial evaluator makes.

use serde_json::{Value, json};

use super::json::summary;
use super::tables::{Grid, nanoseconds, titled};
use crate::measure::QuartileSummary;
use crate::paper;
use crate::study::{StudyDirection, StudyResults};
use crate::unrolling::{CodeForm, LENGTHS, UnrollingCell};

impl StudyResults {
    fn unrolling_cell(
        &self,
        form: CodeForm,
        length: usize,
        direction: StudyDirection,
    ) -> Option<&UnrollingCell> {
        let is_it = |cell: &&UnrollingCell| {
            (cell.form, cell.length, cell.direction) == (form, length, direction)
        };
        self.unrolling.iter().find(is_it)
    }

    /// Returns how many times as fast as the generic form a cell is.
    fn speedup(&self, cell: &UnrollingCell) -> Option<QuartileSummary> {
        let generic = self.unrolling_cell(CodeForm::Generic, cell.length, cell.direction)?;
        Some(generic.timing.over(&cell.timing))
    }

    /// Returns the tables, for encoding and for decoding.
    pub(super) fn unrolling_tables(&self) -> String {
        let table = |direction: StudyDirection| {
            let cell = |form, length| {
                let cell = self.unrolling_cell(form, length, direction)?;
                let time = nanoseconds(cell.timing.summary().median);
                if form == CodeForm::Generic {
                    return Some(time);
                }
                let here = self.speedup(cell)?.median;
                let paper = paper::unrolling_speedup(form, length, direction);
                let paper = paper.map_or("-".to_owned(), |times| format!("{times:.1}"));
                Some(format!("{time} ({here:.1} / {paper})"))
            };
            let heading = ["code".to_owned()].into_iter();
            let heading: Vec<String> = heading
                .chain(LENGTHS.map(|length| format!("(A[{length}] I)")))
                .collect();
            let rows = CodeForm::ALL.into_iter().map(|form| {
                let name = [form.name().to_owned()].into_iter();
                let cells = LENGTHS.map(|length| cell(form, length).unwrap_or("-".to_owned()));
                name.chain(cells).collect()
            });
            let grid: Grid = [heading].into_iter().chain(rows).collect();
            let title = format!(
                "Unrolled code, {}: ns (times as fast as generic code, here / partial evaluation of Sun RPC)",
                direction.name()
            );
            titled(&title, grid)
        };
        match self.unrolling.is_empty() {
            true => String::new(),
            false => StudyDirection::ALL.map(table).concat(),
        }
    }

    pub(super) fn unrolling_json(&self) -> Vec<Value> {
        let cells = self.unrolling.iter().map(|cell| {
            json!({
                "form": cell.form.name(),
                "length": cell.length,
                "direction": cell.direction.name(),
                "ns": summary(cell.timing.summary()),
                "over_generic": self.speedup(cell).map(summary),
                "paper": paper::unrolling_speedup(cell.form, cell.length, cell.direction),
            })
        });
        cells.collect()
    }
}
