//! The paper's tables 1 to 6 in Markdown that is also readable as it is.

use tenon_plan::cost::Symbol;
use tenon_plan::cost::{Mover, Moves, Unit};

use super::figures::{BASELINE, PaperComparison, movements, procedural};
use crate::DESIGNS;
use crate::cost::PredictionErrors;
use crate::design::{DataMovement, StubDesign, StubEngine};
use crate::model::ModelParameter;
use crate::paper;
use crate::study::{StudyCell, StudyDirection, StudyResults};
use crate::work::Workload;

/// Part of what was measured by which a prediction that is named is wrong.
const FAR_OFF: f64 = 0.3;

/// A heading, then rows; the first cell of each is words.
pub(super) type Grid = Vec<Vec<String>>;

impl StudyResults {
    /// Tables 1 to 5, for encoding, then for decoding, and Table 6, the last two if the cost model was asked; then
    /// unrolled code.
    pub fn tables(&self) -> String {
        let both = StudyDirection::ALL.map(|direction| self.tables_of(direction));
        let unrolled = self.unrolling_tables();
        self.explained() + &both.concat() + &self.table_6() + &self.predictions() + &unrolled
    }

    /// Returns a table of the predictions' errors, if there are predictions.
    fn predictions(&self) -> String {
        let errors = StudyDirection::ALL.map(|direction| {
            let cells = self.cells().iter();
            let cells = cells.filter(|cell| cell.direction == direction);
            let pairs = cells.filter_map(|cell| Some((cell.predicted?, cell.nanoseconds().median)));
            (direction.name(), PredictionErrors::of(pairs))
        });
        let errors = errors.into_iter().filter(|(_, errors)| errors.count > 0);
        let lines = errors.map(|(name, errors)| {
            format!(
                "\nIn parentheses what the cost model predicted of {name}: median error {:.0} %, \
                 worst {:.0} %, of {} cells.\n",
                errors.median * 100.0,
                errors.worst * 100.0,
                errors.count,
            )
        });
        lines.collect::<String>() + &self.far_off()
    }

    /// Returns the cells whose predictions are off by more than [`FAR_OFF`], each with both times.
    fn far_off(&self) -> String {
        let is_far = |cell: &&StudyCell| {
            let measured = cell.nanoseconds().median;
            let error = cell.predicted.map(|it| (it - measured).abs() / measured);
            error.is_some_and(|error| error > FAR_OFF)
        };
        let far = self.cells().iter().filter(is_far);
        let lines = far.map(|cell| {
            let predicted = nanoseconds(cell.predicted.unwrap_or_default());
            format!(
                "- {} {}, {}: {} ({predicted})\n",
                cell.direction.name(),
                cell.work.notation(),
                cell.design.name(),
                nanoseconds(cell.nanoseconds().median),
            )
        });
        let lines: String = lines.collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("\nOff by more than {:.0} %:\n\n{lines}", FAR_OFF * 100.0),
        }
    }

    fn explained(&self) -> String {
        let effort = self.options.effort;
        format!(
            "Times to encode into a buffer that is used again, and to decode to an owned value and \
             drop it.\nRepresentation {}; each the median of {} turns of {:?}, taken in rotation; \
             in brackets\nthe middle half of the turns. Multiples are of `{}` for the same\n\
             arguments, beside the paper's ({}).\n",
            self.options.wire.representation().name,
            effort.rounds,
            effort.turn,
            BASELINE.name(),
            paper::MACHINE,
        )
    }

    fn tables_of(&self, direction: StudyDirection) -> String {
        let name = direction.name();
        [
            titled(
                &format!("Table 1, {name}: (I) by compiled stubs, ns"),
                self.example(direction),
            ),
            titled(
                &format!("Table 2, {name}: ns"),
                self.per_design(direction, |cell| Some(self.time(cell))),
            ),
            titled(
                &format!("Table 2, {name}: multiples, here / in the paper"),
                self.per_design(direction, |cell| Some(beside(&self.multiple(cell)?))),
            ),
            titled(
                &format!("Table 3, {name}: per cent due to interpretation, here / in the paper"),
                self.interpretations(direction),
            ),
            titled(
                &format!("Table 4, {name}: per cent due to procedure calls, here / in the paper"),
                self.calls(direction),
            ),
            titled(
                &format!("Table 5, {name}: equations of (A[256] I), and ns measured (predicted)"),
                self.equations(direction),
            ),
        ]
        .concat()
    }

    /// Returns Table 5.
    fn equations(&self, direction: StudyDirection) -> Grid {
        let equations = self.model.equations.iter();
        let equations = equations.filter(|equation| equation.direction == direction);
        let rows = equations.filter_map(|equation| {
            let cell = self.cell(equation.design, Workload::Numbers, direction)?;
            let name = equation.design.name();
            Some(vec![name, equation.text.clone(), self.time(cell)])
        });
        let heading = ["stub", "equation", "time"].map(str::to_owned).to_vec();
        [heading].into_iter().chain(rows).collect()
    }

    /// Returns Table 6.
    fn table_6(&self) -> String {
        let columns = [
            StubEngine::Interpreted,
            StubEngine::Compiled,
            StubEngine::Machine,
        ];
        let value = |engine, direction, symbol| {
            let mut known = self.model.parameters.iter();
            let is_it = |it: &&ModelParameter| {
                (it.engine, it.direction, it.symbol) == (engine, direction, symbol)
            };
            let found = known.find(is_it);
            found.map_or("-".to_owned(), |it| format!("{:.3}", it.nanoseconds))
        };
        let occurs = |symbol: &Symbol| self.model.parameters.iter().any(|it| it.symbol == *symbol);
        let rows = Symbol::ALL.into_iter().filter(occurs).map(|symbol| {
            let mut row = vec![format!("`{}` {}", symbol.letter(), symbol.meaning())];
            row.extend(columns.map(|engine| {
                let ways = StudyDirection::ALL.map(|way| value(engine, way, symbol));
                ways.join(" / ")
            }));
            let paper = paper::parameter(symbol);
            row.push(paper.map_or("-".to_owned(), |it| nanoseconds(1000.0 * it)));
            row
        });
        let mut heading = vec!["parameter".to_owned()];
        heading.extend(columns.map(|engine| engine.name().to_owned()));
        heading.push("the paper".to_owned());
        let title = "Table 6: parameters, ns to encode / to decode, in the nearest cache";
        titled(title, [heading].into_iter().chain(rows).collect())
    }

    fn time(&self, cell: &StudyCell) -> String {
        let (time, figures) = (cell.nanoseconds(), nanoseconds);
        let predicted = cell.predicted.map(|time| format!(" ({})", figures(time)));
        format!(
            "{}{} [{}-{}]",
            figures(time.median),
            predicted.unwrap_or_default(),
            figures(time.lower),
            figures(time.upper)
        )
    }

    /// Returns Table 1.
    fn example(&self, direction: StudyDirection) -> Grid {
        let time = |by, unit| {
            let movement = DataMovement::Single(Moves { by, unit });
            let engine = StubEngine::Compiled;
            let cell = self.cell(StubDesign { engine, movement }, Workload::Single, direction)?;
            Some(cell.nanoseconds().median)
        };
        let row = |unit| Some([time(Mover::Inline, unit)?, time(Mover::Procedure, unit)?]);
        let (Some(bytes), Some(items)) = (row(Unit::Byte), row(Unit::Item)) else {
            return Grid::new();
        };
        let cells = |name: &str, [inline, procedural]: [f64; 2]| {
            let figures = [inline, procedural, procedural - inline];
            with_name(name, figures.map(nanoseconds))
        };
        let overhead = [bytes[0] - items[0], bytes[1] - items[1]].map(nanoseconds);
        let [inline, procedural] = overhead;
        vec![
            with_name(
                "",
                ["inline", "procedural", "procedure call overhead"].map(str::to_owned),
            ),
            cells("byte copy", bytes),
            cells("item copy", items),
            with_name("byte copy overhead", [inline, procedural, String::new()]),
        ]
    }

    /// Returns Table 2.
    fn per_design(
        &self,
        direction: StudyDirection,
        figure: impl Fn(&StudyCell) -> Option<String>,
    ) -> Grid {
        let rows = DESIGNS.iter().map(|design| {
            let name = design.name();
            self.row(&name, |work| figure(self.cell(*design, work, direction)?))
        });
        with_heading("stub", rows)
    }

    /// Returns Table 3.
    fn interpretations(&self, direction: StudyDirection) -> Grid {
        let rows = movements().map(|movement| {
            self.row(movement.name(), |work| {
                Some(percent(&self.interpretation(movement, work, direction)?))
            })
        });
        with_heading("interpreted stub", rows)
    }

    /// Returns Table 4.
    fn calls(&self, direction: StudyDirection) -> Grid {
        let rows = procedural().map(|design| {
            self.row(&design.0.name(), |work| {
                Some(percent(&self.procedure_calls(design, work, direction)?))
            })
        });
        with_heading("stub", rows)
    }

    fn row(&self, name: &str, figure: impl Fn(Workload) -> Option<String>) -> Vec<String> {
        let cells = Workload::ALL.map(|work| figure(work).unwrap_or_else(|| "-".to_owned()));
        with_name(name, cells)
    }
}

/// Returns a table with its title; nothing if there are no rows.
pub(super) fn titled(title: &str, grid: Grid) -> String {
    match grid.len() {
        0 | 1 => String::new(),
        _ => format!("\n### {title}\n\n{}", aligned(&grid)),
    }
}

fn with_name(name: &str, cells: [String; 3]) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(cells);
    row
}

fn with_heading(name: &str, rows: impl Iterator<Item = Vec<String>>) -> Grid {
    let heading = with_name(name, Workload::ALL.map(|work| work.notation().to_owned()));
    [heading].into_iter().chain(rows).collect()
}

/// Returns a time with three significant digits or more.
pub fn nanoseconds(time: f64) -> String {
    match time.abs() {
        few if few < 10.0 => format!("{time:.2}"),
        some if some < 100.0 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    }
}

fn beside(figure: &PaperComparison) -> String {
    let paper = figure.paper.map_or("-".to_owned(), multiple);
    format!("{} / {paper}", multiple(figure.here.median))
}

/// Returns a multiple with two significant digits or more.
fn multiple(times: f64) -> String {
    match times {
        part if part < 0.1 => format!("{part:.3}"),
        some if some < 10.0 => format!("{some:.2}"),
        many => format!("{many:.1}"),
    }
}

fn percent(figure: &PaperComparison) -> String {
    let paper = figure.paper.map(|percent| format!("{percent:.0}"));
    let paper = paper.unwrap_or_else(|| "-".to_owned());
    format!("{:.0} / {paper}", figure.here.median)
}

/// Columns line up: the first to the left, the others, which are figures, to the right.
fn aligned(grid: &Grid) -> String {
    let columns = grid.first().map_or(0, Vec::len);
    let width = |column: usize| grid.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|column| width(column).max(3)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("| {cell:<width$} "),
            _ => format!("| {cell:>width$} "),
        });
        cells.collect::<String>() + "|\n"
    };
    let rule = widths
        .iter()
        .enumerate()
        .map(|(column, width)| match column {
            0 => format!("| {} ", "-".repeat(*width)),
            _ => format!("| {}: ", "-".repeat(width - 1)),
        });
    let rule = rule.collect::<String>() + "|\n";
    let mut lines = grid.iter().map(line);
    let heading = lines.next().unwrap_or_default();
    heading + &rule + &lines.collect::<String>()
}
