//! The study: all designs do all works, both ways.

use tenon_plan::{PlanError, Representation};
use thiserror::Error;

use crate::design::{DESIGNS, Design};
use crate::engine::{self, Interfaces, Stage};
use crate::entry::Contests;
use crate::measure::{Contest, Effort, Summary, Timing};
use crate::pace;
use crate::work::{Sample, Work};

/// What to study.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How items lie on the wire.
    pub wire: Wire,
    /// How long to measure.
    pub effort: Effort,
}

/// How items lie on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// External Data Representation, most significant byte first.
    Xdr,
    /// The sender's order of bytes, so that nothing changes on the way to the like of it.
    Lean,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into a buffer that is used again.
    Encode,
    /// To an owned value, which is dropped.
    Decode,
}

/// What was measured.
#[derive(Debug)]
pub struct Study {
    pub(crate) options: Options,
    cells: Vec<Cell>,
}

/// One design at one work, one way.
#[derive(Debug)]
pub struct Cell {
    /// Which design.
    pub design: Design,
    /// Which work.
    pub work: Work,
    /// Which way.
    pub direction: Direction,
    /// Its turns.
    pub timing: Timing,
    /// Nanoseconds that a yardstick took meanwhile.
    pub yardstick: f64,
    /// Nanoseconds that a model says it should take, at this pace of the machine.
    pub predicted: Option<f64>,
}

/// The study cannot be made, all of them bugs of Tenon.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The study's own interface.
    #[error("the interface of the study cannot be read")]
    Interface,
    /// The plans of a design.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A design does not do what it should.
    #[error("{design}: {work}: {why}")]
    Wrong {
        /// Which design.
        design: String,
        /// Which work.
        work: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// Lets all designs do all works. First each shows that it writes the bytes and reads the value
/// that it should. `progress` hears what is being done, and which part of that is done.
///
/// # Errors
/// A design writes other bytes or reads another value.
pub fn study(options: Options, mut progress: impl FnMut(&str, f64)) -> Result<Study, StudyError> {
    let interfaces = Interfaces::new(options.wire)?;
    let sample = Sample::new();
    let mut cells = Vec::new();
    for work in Work::ALL {
        let bytes = work.bytes(&sample, options.wire);
        let stage = Stage {
            work,
            wire: options.wire,
            sample: &sample,
            bytes: &bytes,
            interfaces: &interfaces,
        };
        let mut contests = Contests::default();
        pace::enter_all(&mut contests, DESIGNS, |contests, design| {
            engine::enter(design, &stage, contests)
        })?;
        let Contests { encode, decode } = contests;
        for (direction, contest) in [(Direction::Encode, encode), (Direction::Decode, decode)] {
            let doing = format!("{} {}", direction.name(), work.notation());
            let timings = run(contest, options.effort, |part| progress(&doing, part));
            let timings = pace::in_yardsticks(&timings);
            cells.extend(
                DESIGNS
                    .iter()
                    .zip(timings)
                    .map(|(design, (timing, yardsticks))| Cell {
                        design: *design,
                        work,
                        direction,
                        timing: timing.clone(),
                        yardstick: timing.summary().median / yardsticks,
                        predicted: None,
                    }),
            );
        }
    }
    Ok(Study { options, cells })
}

fn run(contest: Contest<'_>, effort: Effort, mut progress: impl FnMut(f64)) -> Vec<Timing> {
    progress(0.0);
    contest.run(effort, progress)
}

impl Wire {
    /// As plans know it.
    pub fn representation(self) -> Representation {
        match self {
            Self::Xdr => Representation::XDR,
            Self::Lean => Representation::LEAN,
        }
    }
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Encode, Self::Decode];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

impl Study {
    /// Everything that was measured.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Has a model say what each design should take for each work, in yardsticks. The tables show it
    /// beside what was measured.
    pub fn predict(&mut self, model: impl Fn(Design, Work, Direction) -> Option<f64>) {
        for cell in &mut self.cells {
            let yardsticks = model(cell.design, cell.work, cell.direction);
            cell.predicted = yardsticks.map(|yardsticks| yardsticks * cell.yardstick);
        }
    }

    /// What one design took for one work, one way.
    pub fn cell(&self, design: Design, work: Work, direction: Direction) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.design, cell.work, cell.direction) == (design, work, direction);
        self.cells.iter().find(is_it)
    }
}

impl Cell {
    /// Nanoseconds.
    pub fn nanoseconds(&self) -> Summary {
        self.timing.summary()
    }
}
