//! An interface with the plans of one movement, their equations, and messages that are timed.

use std::iter;

use tenon_exec::{Interface, Value};
use tenon_plan::Representation;
use tenon_plan::cost::{Deriving, Direction, Engine, Equations, Tally};
use tenon_schema::{Schema, TypeId};

use super::CostError;
use super::entrant::Message;
use super::known::Known;
use crate::design::{self, Design, Movement};
use crate::entry::Contests;
use crate::measure::{Effort, Summary};
use crate::pace;

/// The plans of an interface by one movement, and their equations in both directions.
pub struct Planned {
    /// What runs the plans, in the terms of the model.
    pub engine: Engine,
    /// What they are made by.
    pub design: Design,
    /// What the compiled stubs of the interface are called, if there are some.
    pub known_as: Option<&'static str>,
    /// The interface with the plans.
    pub interface: Interface,
    equations: [Equations; 2],
}

/// The engine of the model that an engine of the study is.
pub fn in_model(engine: design::Engine) -> Engine {
    match engine {
        design::Engine::Interpreted => Engine::Interpreter,
        design::Engine::Compiled => Engine::Compiled,
        design::Engine::Machine => Engine::Machine,
    }
}

/// The design by which an engine is used: every pass.
pub fn usual_design(engine: Engine) -> Design {
    let engine = match engine {
        Engine::Interpreter => design::Engine::Interpreted,
        Engine::Compiled => design::Engine::Compiled,
        Engine::Machine => design::Engine::Machine,
    };
    Design {
        engine,
        movement: Movement::EveryPass,
    }
}

/// A message that was timed.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Its type.
    pub name: String,
    /// How often each parameter, in each direction.
    pub tallies: [Tally; 2],
    /// Yardsticks in each direction.
    pub taken: [f64; 2],
}

impl Planned {
    /// Makes the plans.
    ///
    /// # Errors
    /// None can be made.
    pub fn new(
        schema: &Schema,
        representation: Representation,
        design: Design,
    ) -> Result<Self, CostError> {
        let engine = in_model(design.engine);
        let plans = design.plans(schema, representation)?;
        let interface = Interface::with_plans(schema.clone(), plans)?;
        let equations =
            Direction::ALL.map(|direction| deriving(&interface, engine, direction).equations());
        Ok(Self {
            engine,
            design,
            known_as: None,
            interface,
            equations,
        })
    }

    /// The name of a type.
    pub fn name_of(&self, id: TypeId) -> &str {
        &self.interface.schema().type_def(id).name
    }

    /// How often each parameter, for a value of a type as a message.
    pub fn tally(&self, direction: Direction, id: TypeId, value: &Value) -> Tally {
        let message = deriving(&self.interface, self.engine, direction).message(id);
        let equations = &self.equations[direction as usize];
        Tally::of(equations, &message, Known::new(value))
    }

    /// Times values as messages in both directions, and tells how many nanoseconds a yardstick is in
    /// each. `fastest` is the least that one is known to have been.
    ///
    /// # Errors
    /// The engine refuses one.
    pub fn time(
        &self,
        values: Vec<(TypeId, Value)>,
        effort: Effort,
        fastest: [f64; 2],
        progress: impl FnMut(f64),
    ) -> Result<(Vec<Timed>, [f64; 2]), CostError> {
        let messages = values.into_iter();
        let messages = messages.map(|(id, value)| Message::new(self, id, value));
        let messages: Vec<Message> = messages.collect::<Result<_, _>>()?;
        let sittings = match effort == Effort::QUICK {
            true => vec![self.sit(&messages, effort, progress)?],
            false => self.sit_quietly(&messages, effort, fastest, progress)?,
        };
        let median =
            |of: &dyn Fn(&[Sitting; 2]) -> f64| Summary::of(sittings.iter().map(of)).median;
        let timed = messages.iter().enumerate();
        let timed = timed.map(|(at, Message { id, value, .. })| Timed {
            name: self.name_of(*id).to_owned(),
            tallies: Direction::ALL.map(|direction| self.tally(direction, *id, value)),
            taken: [0, 1].map(|way| median(&|sitting| sitting[way].taken[at])),
        });
        let yardsticks = [0, 1].map(|way| median(&|sitting| sitting[way].yardstick));
        Ok((timed.collect(), yardsticks))
    }

    /// [`SITTINGS`] in which nobody disturbed, or those that were disturbed least of as many as there is
    /// time for.
    fn sit_quietly(
        &self,
        messages: &[Message],
        effort: Effort,
        mut fastest: [f64; 2],
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<[Sitting; 2]>, CostError> {
        let mut sittings: Vec<[Sitting; 2]> = Vec::new();
        let slowness = |sitting: &[Sitting; 2], fastest: [f64; 2]| {
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
        messages: &[Message],
        effort: Effort,
        mut progress: impl FnMut(f64),
    ) -> Result<[Sitting; 2], CostError> {
        let mut contests = Contests::default();
        pace::enter_all(&mut contests, messages, |contests, message| {
            contests.enter(self, message)
        })?;
        let Contests { encode, decode } = contests;
        let encode = encode.run(effort, |part| progress(part / 2.0));
        let decode = decode.run(effort, |part| progress(0.5 + part / 2.0));
        Ok([encode, decode].map(|timings| Sitting {
            yardstick: pace::yardstick(&timings),
            taken: pace::in_yardsticks(&timings)
                .map(|(_, taken)| taken)
                .collect(),
        }))
    }
}

/// How often messages are timed, each time as somebody else's memory lies: that of a message, or of
/// its branches in the tables of the processor, is at a bad place now and then. The median counts.
const SITTINGS: usize = 3;

/// How often at most.
const SITTINGS_MAX: usize = 6;

/// A sitting in which a yardstick took so much more than the fastest one was disturbed: by somebody else
/// on the same core, who takes more from some messages than from others.
const DISTURBED: f64 = 1.12;

/// Memory that is in use during a sitting, so that decoded values get other pieces than in those before:
/// as many of each size as an allocator keeps at hand.
fn hold(before: usize) -> Vec<Vec<u8>> {
    let sizes = (1..=64).map(|class| class * 16 + 8);
    let pieces = sizes.flat_map(|size| iter::repeat_n(size, 7 * before));
    pieces.map(Vec::with_capacity).collect()
}

/// What was found out at once, in one direction.
struct Sitting {
    /// Nanoseconds.
    yardstick: f64,
    /// Yardsticks of each message.
    taken: Vec<f64>,
}

fn deriving(interface: &Interface, engine: Engine, direction: Direction) -> Deriving<'_> {
    Deriving {
        schema: interface.schema(),
        plans: interface.plans(),
        engine,
        direction,
    }
}
