//! An interface with the plans of one movement, their equations, and messages that are timed.

use std::iter;

use tenon_exec::{Interface, Value};
use tenon_plan::Representation;
use tenon_plan::cost::{Deriving, Direction, Engine, Equations, Tally};
use tenon_schema::{Schema, TypeId};

use super::CostError;
use super::entrant::EncodedMessage;
use super::known::KnownValue;
use crate::design::{self, DataMovement, StubDesign};
use crate::entry::CodecBenchmarks;
use crate::measure::{MeasurementEffort, QuartileSummary};
use crate::pace;

/// The plans of an interface by one movement, and their equations in both directions.
pub struct PlannedInterface {
    /// The engine that runs the plans, in the terms of the model.
    pub engine: Engine,
    /// The design that the plans are made by.
    pub design: StubDesign,
    /// Name of the compiled stubs of the interface, if there are some.
    pub known_as: Option<&'static str>,
    /// The interface with the plans.
    pub interface: Interface,
    equations: [Equations; 2],
}

/// Returns the engine of the model that an engine of the study is.
pub fn in_model(engine: design::StubEngine) -> Engine {
    match engine {
        design::StubEngine::Interpreted => Engine::Interpreter,
        design::StubEngine::Compiled => Engine::Compiled,
        design::StubEngine::Machine => Engine::Machine,
    }
}

/// Returns the design by which an engine is used: every pass.
pub fn usual_design(engine: Engine) -> StubDesign {
    let engine = match engine {
        Engine::Interpreter => design::StubEngine::Interpreted,
        Engine::Compiled => design::StubEngine::Compiled,
        Engine::Machine => design::StubEngine::Machine,
    };
    StubDesign {
        engine,
        movement: DataMovement::EveryPass,
    }
}

/// A message that was timed.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedMessage {
    /// Its type.
    pub name: String,
    /// Uses of each parameter, in each direction.
    pub tallies: [Tally; 2],
    /// Yardsticks in each direction.
    pub taken: [f64; 2],
}

impl PlannedInterface {
    /// Makes the plans.
    ///
    /// # Errors
    /// None can be made.
    pub fn new(
        schema: &Schema,
        representation: Representation,
        design: StubDesign,
    ) -> Result<Self, CostError> {
        let engine = in_model(design.engine);
        let plans = design.plans(schema, representation)?;
        let interface = Interface::with_plans(schema.clone(), plans)?;
        let equations =
            Direction::ALL.map(|direction| deriving(&interface, design, direction).equations());
        Ok(Self {
            engine,
            design,
            known_as: None,
            interface,
            equations,
        })
    }

    /// Returns the name of a type.
    pub fn name_of(&self, id: TypeId) -> &str {
        &self.interface.schema().type_def(id).name
    }

    /// Returns the number of uses of each parameter, for a value of a type as a message.
    pub fn tally(&self, direction: Direction, id: TypeId, value: &Value) -> Tally {
        let message = deriving(&self.interface, self.design, direction).message(id);
        let equations = &self.equations[direction as usize];
        Tally::of(equations, &message, KnownValue::new(value))
    }

    /// Returns the equation of a type as a message, without a name, and those of the types in it.
    pub fn equation(&self, direction: Direction, id: TypeId) -> String {
        let message = deriving(&self.interface, self.design, direction).message(id);
        let below = self.equations[direction as usize].below(&message);
        let below = below.iter().map(|it| format!("; {} = {it}", it.owner));
        message.to_string() + &below.collect::<String>()
    }

    /// Times values as messages in both directions, and tells how many nanoseconds a yardstick is in
    /// each. `fastest` is the least that one is known to have been.
    ///
    /// # Errors
    /// The engine refuses one.
    pub fn time(
        &self,
        values: Vec<(TypeId, Value)>,
        effort: MeasurementEffort,
        fastest: [f64; 2],
        progress: impl FnMut(f64),
    ) -> Result<(Vec<TimedMessage>, [f64; 2]), CostError> {
        let messages = values.into_iter();
        let messages = messages.map(|(id, value)| EncodedMessage::new(self, id, value));
        let messages: Vec<EncodedMessage> = messages.collect::<Result<_, _>>()?;
        let sittings = match effort == MeasurementEffort::QUICK {
            true => vec![self.sit(&messages, effort, progress)?],
            false => self.sit_quietly(&messages, effort, fastest, progress)?,
        };
        let median = |of: &dyn Fn(&[MeasurementSession; 2]) -> f64| {
            QuartileSummary::of(sittings.iter().map(of)).median
        };
        let timed = messages.iter().enumerate();
        let timed = timed.map(|(at, EncodedMessage { id, value, .. })| TimedMessage {
            name: self.name_of(*id).to_owned(),
            tallies: Direction::ALL.map(|direction| self.tally(direction, *id, value)),
            taken: [0, 1].map(|way| median(&|sitting| sitting[way].taken[at])),
        });
        let yardsticks = [0, 1].map(|way| median(&|sitting| sitting[way].yardstick));
        Ok((timed.collect(), yardsticks))
    }

    /// Returns [`SITTINGS`] sittings without a disturbance, or those that were disturbed least of as many as there is
    /// time for.
    fn sit_quietly(
        &self,
        messages: &[EncodedMessage],
        effort: MeasurementEffort,
        mut fastest: [f64; 2],
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<[MeasurementSession; 2]>, CostError> {
        let mut sittings: Vec<[MeasurementSession; 2]> = Vec::new();
        let slowness = |sitting: &[MeasurementSession; 2], fastest: [f64; 2]| {
            let ways = sitting.iter().zip(fastest);
            let slower = ways.map(|(sitting, fastest)| sitting.yardstick / fastest);
            slower.fold(0.0, f64::max)
        };
        for _ in 0..SITTINGS_MAX {
            let quiet = sittings
                .iter()
                .filter(|it| slowness(it, fastest) < DISTURBED)
                .count();
            if quiet >= SITTINGS {
                break;
            }
            let progress = |part: f64| progress(((quiet as f64 + part) / SITTINGS as f64).min(1.0));
            let held = hold(sittings.len());
            let sitting = self.sit(messages, effort, progress)?;
            drop(held);
            fastest = [0, 1].map(|way| fastest[way].min(sitting[way].yardstick));
            sittings.push(sitting);
        }
        sittings.sort_by(|a, b| slowness(a, fastest).total_cmp(&slowness(b, fastest)));
        sittings.truncate(SITTINGS);
        Ok(sittings)
    }

    /// Times all messages, in both directions.
    fn sit(
        &self,
        messages: &[EncodedMessage],
        effort: MeasurementEffort,
        mut progress: impl FnMut(f64),
    ) -> Result<[MeasurementSession; 2], CostError> {
        let mut contests = CodecBenchmarks::default();
        pace::enter_all(&mut contests, messages, |contests, message| {
            contests.enter(self, message)
        })?;
        let CodecBenchmarks { encode, decode } = contests;
        let encode = encode.run(effort, |part| progress(part / 2.0));
        let decode = decode.run(effort, |part| progress(0.5 + part / 2.0));
        Ok([encode, decode].map(|timings| MeasurementSession {
            yardstick: pace::yardstick(&timings),
            taken: pace::in_yardsticks(&timings)
                .map(|(_, taken)| taken)
                .collect(),
        }))
    }
}

/// Number of times that messages are timed, each time with another layout of memory: that of a message, or of its
/// branches in the tables of the processor, is at a bad place now and then. The median counts.
const SITTINGS: usize = 3;

/// The most sittings.
const SITTINGS_MAX: usize = 6;

/// A sitting in which a yardstick took so much more than the fastest one was disturbed: by another program on the same
/// core, which takes more from some messages than from others.
const DISTURBED: f64 = 1.12;

/// Memory that is in use during a sitting, so that decoded values get other pieces than in those before:
/// as many of each size as an allocator keeps at hand.
fn hold(before: usize) -> Vec<Vec<u8>> {
    let sizes = (1..=64).map(|class| class * 16 + 8);
    let pieces = sizes.flat_map(|size| iter::repeat_n(size, 7 * before));
    pieces.map(Vec::with_capacity).collect()
}

/// Results of one sitting, in one direction.
struct MeasurementSession {
    /// Nanoseconds.
    yardstick: f64,
    /// Yardsticks of each message.
    taken: Vec<f64>,
}

fn deriving(interface: &Interface, design: StubDesign, direction: Direction) -> Deriving<'_> {
    Deriving {
        schema: interface.schema(),
        plans: interface.plans(),
        engine: in_model(design.engine),
        direction,
        moves: design.movement.moves(),
    }
}
