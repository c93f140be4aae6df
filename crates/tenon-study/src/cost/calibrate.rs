//! A machine's parameters: exercises are timed, and what fits the times best is what each term of
//! their equations takes.

use tenon_exec::Value;
use tenon_plan::Representation;
use tenon_plan::cost::{Direction, Engine, Level, Levels, Parameters, Symbol};
use tenon_schema::{Schema, TypeId};

use super::corpus::{self, Exercise};
use super::fit::{Row, fit};
use super::planned::{Planned, Timed, in_model};
use super::{CostError, Errors, processor};
use crate::design::{DESIGNS, Design, Movement};
use crate::measure::Effort;

/// What was found out about one engine and direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// What runs the plans.
    pub engine: Engine,
    /// Which way.
    pub direction: Direction,
    /// The name of the representation.
    pub representation: String,
    /// Nanoseconds of the yardstick: the pace that the parameters are for.
    pub yardstick: f64,
    /// The parameters.
    pub parameters: Parameters,
    /// How far they are from the times that they were made of.
    pub errors: Errors,
}

/// Finds out the parameters of an engine for a representation, both directions.
///
/// # Errors
/// The engine does not work here.
pub fn calibrate(
    engine: Engine,
    representation: Representation,
    effort: Effort,
    mut progress: impl FnMut(f64),
) -> Result<[Calibration; 2], CostError> {
    let levels = processor::levels();
    let mut timed = Vec::new();
    let mut yardsticks = [f64::INFINITY; 2];
    let designs: Vec<&Design> = designs(engine).collect();
    let count = designs.len() as f64;
    for (design, done) in designs.into_iter().zip(0..) {
        let progress = |part| progress((f64::from(done) + part) / count);
        let exercises = Exercises::of(design.movement, &levels, effort);
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
        let errors = Errors::of(timed.iter().map(|timed| {
            let at = direction as usize;
            (parameters.price(&timed.tallies[at]), timed.taken[at])
        }));
        Calibration {
            engine,
            direction,
            representation: representation.name.to_owned(),
            yardstick: yardsticks[direction as usize],
            parameters,
            errors,
        }
    }))
}

/// What the study has for an engine: by all passes, and those that are about loops.
fn designs(engine: Engine) -> impl Iterator<Item = &'static Design> {
    let is_of_engine = move |design: &&Design| in_model(design.engine) == engine;
    DESIGNS.iter().filter(is_of_engine)
}

/// An interface and what is timed of it.
struct Exercises {
    known_as: &'static str,
    text: &'static str,
    all: Vec<Exercise>,
}

impl Exercises {
    /// Large messages are left out where there is no time for them.
    fn of(movement: Movement, levels: &Levels, effort: Effort) -> Self {
        let caches = match effort == Effort::QUICK {
            true => &[],
            false => levels.caches.as_slice(),
        };
        match movement {
            Movement::EveryPass => Self {
                known_as: "corpus",
                text: corpus::TEXT,
                all: corpus::exercises(caches),
            },
            Movement::Single(_) | Movement::Blocks => Self {
                known_as: "moves",
                text: corpus::MOVES,
                all: corpus::moves(),
            },
        }
    }

    fn time(
        &self,
        representation: Representation,
        design: Design,
        effort: Effort,
        fastest: [f64; 2],
        progress: impl FnMut(f64),
    ) -> Result<(Vec<Timed>, [f64; 2]), CostError> {
        let parsed = tenon_idl::parse_text("corpus.x", self.text, &tenon_idl::Options::default());
        let schema = parsed.schema.ok_or(CostError::Corpus)?;
        let values = self.all.iter().map(|exercise| value(&schema, exercise));
        let values = values.collect::<Result<_, _>>()?;
        let mut planned = Planned::new(&schema, representation, design)?;
        planned.known_as = Some(self.known_as);
        planned.time(values, effort, fastest, progress)
    }
}

fn value(schema: &Schema, exercise: &Exercise) -> Result<(TypeId, Value), CostError> {
    let id = schema.find_type(exercise.name).ok_or(CostError::Corpus)?;
    Ok((id, exercise.value(schema, id)))
}

/// The parameters that fit the times of a direction best.
fn parameters(timed: &[Timed], direction: Direction, levels: &Levels) -> Parameters {
    let all = all_levels(levels);
    let rows = timed
        .iter()
        .map(|timed| row(timed, direction, levels, &all));
    let rows: Vec<Row> = rows.collect();
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

/// All that may be measured.
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

fn row(timed: &Timed, direction: Direction, levels: &Levels, all: &[Level]) -> Row {
    let at = direction as usize;
    let mut times = vec![0.0; all.len()];
    for (level, often) in timed.tallies[at].by_level(levels) {
        if let Some(column) = all.iter().position(|known| *known == level) {
            times[column] = often;
        }
    }
    Row {
        times,
        taken: timed.taken[at],
    }
}
