//! The study: all designs do all works, both ways.

use tenon_plan::{PlanError, Representation};
use thiserror::Error;

use crate::design::{DESIGNS, StubDesign};
use crate::engine::{self, DesignInterfaces, PreparedWorkload};
use crate::entry::CodecBenchmarks;
use crate::measure::{BenchmarkGroup, MeasurementEffort, QuartileSummary, TurnTimings};
use crate::model::StudyModel;
use crate::pace;
use crate::unrolling::{self, UnrollingCell};
use crate::work::{SampleValues, Workload};

/// Options of a study.
#[derive(Debug, Clone, Copy)]
pub struct StudyOptions {
    /// The layout of items on the wire.
    pub wire: WireFormat,
    /// The effort of each measurement.
    pub effort: MeasurementEffort,
}

/// The layout of items on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// External Data Representation, most significant byte first.
    Xdr,
    /// The sender's order of bytes, so that nothing changes on the way to the like of it.
    Lean,
}

/// Encoding or decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyDirection {
    /// Into a buffer that is used again.
    Encode,
    /// To an owned value, which is dropped.
    Decode,
}

/// The measurements of a study.
#[derive(Debug)]
pub struct StudyResults {
    pub(crate) options: StudyOptions,
    cells: Vec<StudyCell>,
    /// Arrays as loops and as unrolled code.
    pub(crate) unrolling: Vec<UnrollingCell>,
    /// What the cost model says, if it was [asked](crate::cost::predict).
    pub(crate) model: StudyModel,
}

/// One design at one work, one way.
#[derive(Debug)]
pub struct StudyCell {
    /// The design.
    pub design: StubDesign,
    /// The procedure.
    pub work: Workload,
    /// Encoding or decoding.
    pub direction: StudyDirection,
    /// Its turns.
    pub timing: TurnTimings,
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
        /// Name of the design.
        design: String,
        /// Name of the procedure.
        work: &'static str,
        /// The error.
        why: String,
    },
}

/// Lets all designs do all works. First each shows that it writes the bytes and reads the value
/// that it should. `progress` hears what is being done, and which part of that is done.
///
/// # Errors
/// A design writes other bytes or reads another value.
pub fn study(
    options: StudyOptions,
    mut progress: impl FnMut(&str, f64),
) -> Result<StudyResults, StudyError> {
    let interfaces = DesignInterfaces::new(options.wire)?;
    let sample = SampleValues::new();
    let mut cells = Vec::new();
    for work in Workload::ALL {
        let bytes = work.bytes(&sample, options.wire);
        let stage = PreparedWorkload {
            work,
            wire: options.wire,
            sample: &sample,
            bytes: &bytes,
            interfaces: &interfaces,
        };
        let mut contests = CodecBenchmarks::default();
        pace::enter_all(&mut contests, DESIGNS, |contests, design| {
            engine::enter(design, &stage, contests)
        })?;
        let CodecBenchmarks { encode, decode } = contests;
        for (direction, contest) in [
            (StudyDirection::Encode, encode),
            (StudyDirection::Decode, decode),
        ] {
            let doing = format!("{} {}", direction.name(), work.notation());
            let timings = run(contest, options.effort, |part| progress(&doing, part));
            let timings = pace::in_yardsticks(&timings);
            cells.extend(
                DESIGNS
                    .iter()
                    .zip(timings)
                    .map(|(design, (timing, yardsticks))| StudyCell {
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
    let unrolling = unrolling::measure(options.wire, options.effort, progress)?;
    Ok(StudyResults {
        options,
        cells,
        unrolling,
        model: StudyModel::default(),
    })
}

fn run(
    contest: BenchmarkGroup<'_>,
    effort: MeasurementEffort,
    mut progress: impl FnMut(f64),
) -> Vec<TurnTimings> {
    progress(0.0);
    contest.run(effort, progress)
}

impl WireFormat {
    /// Returns the representation as plans know it.
    pub fn representation(self) -> Representation {
        match self {
            Self::Xdr => Representation::XDR,
            Self::Lean => Representation::LEAN,
        }
    }
}

impl StudyDirection {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Encode, Self::Decode];

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

impl StudyResults {
    /// Returns everything that was measured.
    pub fn cells(&self) -> &[StudyCell] {
        &self.cells
    }

    /// Has a model say what each design should take for each work, in yardsticks. The tables show it
    /// beside what was measured.
    pub fn predict(&mut self, model: impl Fn(StubDesign, Workload, StudyDirection) -> Option<f64>) {
        for cell in &mut self.cells {
            let yardsticks = model(cell.design, cell.work, cell.direction);
            cell.predicted = yardsticks.map(|yardsticks| yardsticks * cell.yardstick);
        }
    }

    /// Returns the measurement of one design for one procedure, one way.
    pub fn cell(
        &self,
        design: StubDesign,
        work: Workload,
        direction: StudyDirection,
    ) -> Option<&StudyCell> {
        let is_it = |cell: &&StudyCell| {
            (cell.design, cell.work, cell.direction) == (design, work, direction)
        };
        self.cells.iter().find(is_it)
    }
}

impl StudyCell {
    /// Returns the nanoseconds.
    pub fn nanoseconds(&self) -> QuartileSummary {
        self.timing.summary()
    }
}
