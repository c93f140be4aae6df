//! A machine's parameters: exercises are timed, and what fits the times best is what each term of
//! their equations takes.

use tenon_exec::Value;
use tenon_plan::Representation;
use tenon_plan::cost::{Direction, Engine, Level, Levels, Parameters, Symbol};
use tenon_schema::{Schema, TypeId};

use super::corpus::{self, ValueShape};
use super::fit::{FitObservation, fit};
use super::planned::{PlannedInterface, TimedMessage, in_model};
use super::{CostError, PredictionErrors, processor};
use crate::design::{DESIGNS, DataMovement, StubDesign};
use crate::measure::MeasurementEffort;

/// The cost parameters that were measured for one engine and direction.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineCalibration {
    /// The engine that runs the plans.
    pub engine: Engine,
    /// Encoding or decoding.
    pub direction: Direction,
    /// The name of the representation.
    pub representation: String,
    /// Nanoseconds of the yardstick: the pace that the parameters are for.
    pub yardstick: f64,
    /// The parameters.
    pub parameters: Parameters,
    /// Errors of the parameters against the times that they were made of.
    pub errors: PredictionErrors,
}

/// Finds out the parameters of an engine for a representation, both directions.
///
/// # Errors
/// The engine does not work here.
pub fn calibrate(
    engine: Engine,
    representation: Representation,
    effort: MeasurementEffort,
    mut progress: impl FnMut(f64),
) -> Result<[EngineCalibration; 2], CostError> {
    let levels = processor::levels();
    let mut timed = Vec::new();
    let mut yardsticks = [f64::INFINITY; 2];
    let designs: Vec<&StubDesign> = designs(engine).collect();
    let count = designs.len() as f64;
    for (design, done) in designs.into_iter().zip(0..) {
        let progress = |part| progress((f64::from(done) + part) / count);
        let exercises = CalibrationCorpus::of(design.movement, &levels, effort);
        let (some, paces) =
            exercises.time(representation, *design, effort, yardsticks, progress)?;
        timed.extend(some);
        yardsticks = [0, 1].map(|way| yardsticks[way].min(paces[way]));
    }
    for timed in &mut timed {
        timed.taken = [0, 1].map(|way| timed.taken[way] * yardsticks[way]);
    }
    Ok(Direction::ALL.map(|direction| {
        let parameters = parameters(&timed, direction, &levels);
        let errors = PredictionErrors::of(timed.iter().map(|timed| {
            let at = direction as usize;
            (parameters.price(&timed.tallies[at]), timed.taken[at])
        }));
        EngineCalibration {
            engine,
            direction,
            representation: representation.name.to_owned(),
            yardstick: yardsticks[direction as usize],
            parameters,
            errors,
        }
    }))
}

/// Returns the designs that the study has for an engine: by all passes, and those that are about loops.
fn designs(engine: Engine) -> impl Iterator<Item = &'static StubDesign> {
    let is_of_engine = move |design: &&StubDesign| in_model(design.engine) == engine;
    DESIGNS.iter().filter(is_of_engine)
}

/// An interface and what is timed of it.
struct CalibrationCorpus {
    known_as: &'static str,
    text: &'static str,
    all: Vec<ValueShape>,
}

impl CalibrationCorpus {
    /// Large messages are left out where there is no time for them.
    fn of(movement: DataMovement, levels: &Levels, effort: MeasurementEffort) -> Self {
        let caches = match effort == MeasurementEffort::QUICK {
            true => &[],
            false => levels.caches.as_slice(),
        };
        match movement {
            DataMovement::EveryPass => Self {
                known_as: "corpus",
                text: corpus::TEXT,
                all: corpus::exercises(caches),
            },
            DataMovement::Single(_) | DataMovement::Blocks => Self {
                known_as: "moves",
                text: corpus::MOVES,
                all: corpus::moves(),
            },
        }
    }

    fn time(
        &self,
        representation: Representation,
        design: StubDesign,
        effort: MeasurementEffort,
        fastest: [f64; 2],
        progress: impl FnMut(f64),
    ) -> Result<(Vec<TimedMessage>, [f64; 2]), CostError> {
        let parsed = tenon_idl::parse_text("corpus.x", self.text, &tenon_idl::Options::default());
        let schema = parsed.schema.ok_or(CostError::Corpus)?;
        let values = self.all.iter().map(|exercise| value(&schema, exercise));
        let values = values.collect::<Result<_, _>>()?;
        let mut planned = PlannedInterface::new(&schema, representation, design)?;
        planned.known_as = Some(self.known_as);
        planned.time(values, effort, fastest, progress)
    }
}

fn value(schema: &Schema, exercise: &ValueShape) -> Result<(TypeId, Value), CostError> {
    let id = schema.find_type(exercise.name).ok_or(CostError::Corpus)?;
    Ok((id, exercise.value(schema, id)))
}

/// Returns the parameters that fit the times of a direction best.
fn parameters(timed: &[TimedMessage], direction: Direction, levels: &Levels) -> Parameters {
    let all = all_levels(levels);
    let rows = timed
        .iter()
        .map(|timed| row(timed, direction, levels, &all));
    let rows: Vec<FitObservation> = rows.collect();
    let found = fit(&rows);
    let is_measured = |column: usize| rows.iter().any(|row| row.times[column] > 0.0);
    let measured = all.iter().zip(found).enumerate();
    let measured = measured.filter(|(column, _)| is_measured(*column));
    let mut parameters = Parameters {
        levels: levels.clone(),
        nanoseconds: measured
            .map(|(_, (level, found))| (*level, found))
            .collect(),
    };
    parameters.fill(&all);
    parameters
}

/// Returns all levels that may be measured.
fn all_levels(levels: &Levels) -> Vec<Level> {
    let all = Symbol::ALL.into_iter().flat_map(|symbol| {
        let count = match symbol.is_by_level() {
            true => levels.count(),
            false => 1,
        };
        (0..count).map(move |level| Level { symbol, level })
    });
    all.collect()
}

fn row(
    timed: &TimedMessage,
    direction: Direction,
    levels: &Levels,
    all: &[Level],
) -> FitObservation {
    let at = direction as usize;
    let mut times = vec![0.0; all.len()];
    for (level, often) in timed.tallies[at].by_level(levels) {
        if let Some(column) = all.iter().position(|known| *known == level) {
            times[column] = often;
        }
    }
    FitObservation {
        times,
        taken: timed.taken[at],
    }
}
