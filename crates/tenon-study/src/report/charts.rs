//! The tables as pictures.

use super::figures::{BASELINE, Figure, movements, procedural};
use super::tables::nanoseconds;
use crate::DESIGNS;
use crate::chart::{Axis, Bar, Chart, Colour, Panel, Row};
use crate::design::{Design, Engine, Movement};
use crate::paper;
use crate::study::{Direction, Study};
use crate::work::Work;

/// A picture, and what its file may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// Without an ending.
    pub name: String,
    /// The file.
    pub svg: String,
}

impl Study {
    /// One picture for each of the tables 1 to 4 and each direction.
    pub fn charts(&self) -> Vec<Plot> {
        let both = Direction::ALL.into_iter();
        both.flat_map(|direction| self.charts_of(direction))
            .collect()
    }

    fn charts_of(&self, direction: Direction) -> Vec<Plot> {
        let tables = [
            ("table1", self.example_chart(direction)),
            ("table2", self.designs_chart(direction)),
            ("table3", self.interpretation_chart(direction)),
            ("table4", self.calls_chart(direction)),
        ];
        let drawn = tables.map(|(table, chart)| Plot {
            name: format!("{table}-{}", direction.name()),
            svg: chart.svg(),
        });
        drawn.into()
    }

    /// Table 1: one integer by compiled stubs.
    fn example_chart(&self, direction: Direction) -> Chart {
        let compiled = DESIGNS.iter().copied().filter(|design| {
            design.engine == Engine::Compiled && matches!(design.movement, Movement::Single(_))
        });
        self.times(
            format!("One integer by compiled stubs: {}", direction.name()),
            compiled.collect(),
            &[Work::Single],
            direction,
        )
    }

    /// Table 2.
    fn designs_chart(&self, direction: Direction) -> Chart {
        let mut designs = DESIGNS.to_vec();
        designs.sort_by_key(|design| match design.engine {
            Engine::Interpreted => 0,
            Engine::Compiled => 1,
            Engine::Machine => 2,
        });
        self.times(
            format!("What each design of a stub costs: {}", direction.name()),
            designs,
            &Work::ALL,
            direction,
        )
    }

    fn times(
        &self,
        title: String,
        designs: Vec<Design>,
        works: &[Work],
        direction: Direction,
    ) -> Chart {
        let bar = |design: &Design, work| {
            let cell = self.cell(*design, work, direction)?;
            let Figure { here, paper } = self.multiple(cell)?;
            Some(Bar {
                value: here.median,
                text: time(cell.nanoseconds().median),
                mark: paper,
            })
        };
        let panel = |work: &Work| Panel {
            heading: work.notation().to_owned(),
            bars: designs.iter().map(|design| bar(design, *work)).collect(),
        };
        Chart {
            title,
            subtitle: format!(
                "Time as a multiple of that of \u{201c}{}\u{201d} for the same arguments ({})",
                BASELINE.name(),
                self.options.wire.representation().name
            ),
            axis: Axis::Multiples,
            panels: works.iter().map(panel).collect(),
            rows: designs
                .iter()
                .map(|design| row(design.name(), *design))
                .collect(),
            key: key(&designs),
            marks: marks(),
        }
    }

    /// Table 3.
    fn interpretation_chart(&self, direction: Direction) -> Chart {
        let movements: Vec<Movement> = movements().collect();
        let designs = movements.iter().map(|movement| Design {
            engine: Engine::Interpreted,
            movement: *movement,
        });
        let panel = |work| {
            let figures = movements
                .iter()
                .map(|movement| self.interpretation(*movement, work, direction));
            percentages(work, figures)
        };
        Chart {
            title: format!("What interpretation costs: {}", direction.name()),
            subtitle: "Per cent of an interpreted stub\u{2019}s time that a compiled one of the \
                       same movement would not take"
                .to_owned(),
            axis: Axis::Percent,
            panels: Work::ALL.map(panel).into(),
            rows: designs
                .map(|design| row(design.movement.name().to_owned(), design))
                .collect(),
            key: vec![(Engine::Interpreted.name().to_owned(), Colour::Orange)],
            marks: marks(),
        }
    }

    /// Table 4.
    fn calls_chart(&self, direction: Direction) -> Chart {
        let rows: Vec<_> = procedural().collect();
        let panel = |work| {
            let figures = rows
                .iter()
                .map(|design| self.procedure_calls(*design, work, direction));
            percentages(work, figures)
        };
        let designs: Vec<Design> = rows.iter().map(|(design, _)| *design).collect();
        Chart {
            title: format!("What procedure calls cost: {}", direction.name()),
            subtitle: "Per cent of a procedural stub\u{2019}s time that an inline one would not \
                       take"
                .to_owned(),
            axis: Axis::Percent,
            panels: Work::ALL.map(panel).into(),
            rows: designs
                .iter()
                .map(|design| row(design.name(), *design))
                .collect(),
            key: key(&designs),
            marks: marks(),
        }
    }
}

/// With a unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        few if few < 1000.0 => format!("{} ns", nanoseconds(few)),
        many => format!("{} \u{b5}s", nanoseconds(many / 1000.0)),
    }
}

fn percentages(work: Work, figures: impl Iterator<Item = Option<Figure>>) -> Panel {
    let bars = figures.map(|figure| {
        let Figure { here, paper } = figure?;
        Some(Bar {
            value: here.median,
            text: format!("{:.0}%", here.median),
            mark: paper,
        })
    });
    Panel {
        heading: work.notation().to_owned(),
        bars: bars.collect(),
    }
}

fn row(name: String, design: Design) -> Row {
    let colour = colour(design.engine);
    Row { name, colour }
}

fn colour(engine: Engine) -> Colour {
    match engine {
        Engine::Interpreted => Colour::Orange,
        Engine::Compiled => Colour::Blue,
        Engine::Machine => Colour::Green,
    }
}

fn key(designs: &[Design]) -> Vec<(String, Colour)> {
    let engines = [Engine::Interpreted, Engine::Compiled, Engine::Machine];
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
