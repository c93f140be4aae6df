//! The tables as pictures.

use super::figures::{BASELINE, PaperComparison, movements, procedural};
use super::tables::nanoseconds;
use crate::DESIGNS;
use crate::chart::{BarChart, BarColour, ChartAxis, ChartBar, ChartPanel, ChartRow};
use crate::design::{DataMovement, StubDesign, StubEngine};
use crate::paper;
use crate::study::{StudyDirection, StudyResults};
use crate::work::Workload;

/// A picture, and what its file may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgChart {
    /// Without an ending.
    pub name: String,
    /// The file.
    pub svg: String,
}

impl StudyResults {
    /// Returns one picture for each of the tables 1 to 4 and each direction.
    pub fn charts(&self) -> Vec<SvgChart> {
        let both = StudyDirection::ALL.into_iter();
        both.flat_map(|direction| self.charts_of(direction))
            .collect()
    }

    fn charts_of(&self, direction: StudyDirection) -> Vec<SvgChart> {
        let tables = [
            ("table1", self.example_chart(direction)),
            ("table2", self.designs_chart(direction)),
            ("table3", self.interpretation_chart(direction)),
            ("table4", self.calls_chart(direction)),
        ];
        let drawn = tables.map(|(table, chart)| SvgChart {
            name: format!("{table}-{}", direction.name()),
            svg: chart.svg(),
        });
        drawn.into()
    }

    /// Returns the chart of Table 1: one integer by compiled stubs.
    fn example_chart(&self, direction: StudyDirection) -> BarChart {
        let compiled = DESIGNS.iter().copied().filter(|design| {
            design.engine == StubEngine::Compiled
                && matches!(design.movement, DataMovement::Single(_))
        });
        self.times(
            format!("One integer by compiled stubs: {}", direction.name()),
            compiled.collect(),
            &[Workload::Single],
            direction,
        )
    }

    /// Returns the chart of Table 2.
    fn designs_chart(&self, direction: StudyDirection) -> BarChart {
        let mut designs = DESIGNS.to_vec();
        designs.sort_by_key(|design| match design.engine {
            StubEngine::Interpreted => 0,
            StubEngine::Compiled => 1,
            StubEngine::Machine => 2,
        });
        self.times(
            format!("What each design of a stub costs: {}", direction.name()),
            designs,
            &Workload::ALL,
            direction,
        )
    }

    fn times(
        &self,
        title: String,
        designs: Vec<StubDesign>,
        works: &[Workload],
        direction: StudyDirection,
    ) -> BarChart {
        let bar = |design: &StubDesign, work| {
            let cell = self.cell(*design, work, direction)?;
            let PaperComparison { here, paper } = self.multiple(cell)?;
            Some(ChartBar {
                value: here.median,
                text: time(cell.nanoseconds().median),
                mark: paper,
            })
        };
        let panel = |work: &Workload| ChartPanel {
            heading: work.notation().to_owned(),
            bars: designs.iter().map(|design| bar(design, *work)).collect(),
        };
        BarChart {
            title,
            subtitle: format!(
                "Time as a multiple of that of \u{201c}{}\u{201d} for the same arguments ({})",
                BASELINE.name(),
                self.options.wire.representation().name
            ),
            axis: ChartAxis::Multiples,
            panels: works.iter().map(panel).collect(),
            rows: designs
                .iter()
                .map(|design| row(design.name(), *design))
                .collect(),
            key: key(&designs),
            marks: marks(),
        }
    }

    /// Returns the chart of Table 3.
    fn interpretation_chart(&self, direction: StudyDirection) -> BarChart {
        let movements: Vec<DataMovement> = movements().collect();
        let designs = movements.iter().map(|movement| StubDesign {
            engine: StubEngine::Interpreted,
            movement: *movement,
        });
        let panel = |work| {
            let figures = movements
                .iter()
                .map(|movement| self.interpretation(*movement, work, direction));
            percentages(work, figures)
        };
        BarChart {
            title: format!("What interpretation costs: {}", direction.name()),
            subtitle: "Per cent of an interpreted stub\u{2019}s time that a compiled one of the \
                       same movement would not take"
                .to_owned(),
            axis: ChartAxis::Percent,
            panels: Workload::ALL.map(panel).into(),
            rows: designs
                .map(|design| row(design.movement.name().to_owned(), design))
                .collect(),
            key: vec![(StubEngine::Interpreted.name().to_owned(), BarColour::Orange)],
            marks: marks(),
        }
    }

    /// Returns the chart of Table 4.
    fn calls_chart(&self, direction: StudyDirection) -> BarChart {
        let rows: Vec<_> = procedural().collect();
        let panel = |work| {
            let figures = rows
                .iter()
                .map(|design| self.procedure_calls(*design, work, direction));
            percentages(work, figures)
        };
        let designs: Vec<StubDesign> = rows.iter().map(|(design, _)| *design).collect();
        BarChart {
            title: format!("What procedure calls cost: {}", direction.name()),
            subtitle: "Per cent of a procedural stub\u{2019}s time that an inline one would not \
                       take"
                .to_owned(),
            axis: ChartAxis::Percent,
            panels: Workload::ALL.map(panel).into(),
            rows: designs
                .iter()
                .map(|design| row(design.name(), *design))
                .collect(),
            key: key(&designs),
            marks: marks(),
        }
    }
}

/// Returns a time with a unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        few if few < 1000.0 => format!("{} ns", nanoseconds(few)),
        many => format!("{} \u{b5}s", nanoseconds(many / 1000.0)),
    }
}

fn percentages(
    work: Workload,
    figures: impl Iterator<Item = Option<PaperComparison>>,
) -> ChartPanel {
    let bars = figures.map(|figure| {
        let PaperComparison { here, paper } = figure?;
        Some(ChartBar {
            value: here.median,
            text: format!("{:.0}%", here.median),
            mark: paper,
        })
    });
    ChartPanel {
        heading: work.notation().to_owned(),
        bars: bars.collect(),
    }
}

fn row(name: String, design: StubDesign) -> ChartRow {
    let colour = colour(design.engine);
    ChartRow { name, colour }
}

fn colour(engine: StubEngine) -> BarColour {
    match engine {
        StubEngine::Interpreted => BarColour::Orange,
        StubEngine::Compiled => BarColour::Blue,
        StubEngine::Machine => BarColour::Green,
    }
}

fn key(designs: &[StubDesign]) -> Vec<(String, BarColour)> {
    let engines = [
        StubEngine::Interpreted,
        StubEngine::Compiled,
        StubEngine::Machine,
    ];
    let shown = engines
        .into_iter()
        .filter(|engine| designs.iter().any(|design| design.engine == *engine));
    shown
        .map(|engine| (format!("{}, here", engine.name()), colour(engine)))
        .collect()
}

fn marks() -> String {
    format!("in the paper ({})", paper::MACHINE)
}
