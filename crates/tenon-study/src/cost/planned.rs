//! An interface with the plans of one movement, their equations, and messages that are timed.

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
    /// each.
    ///
    /// # Errors
    /// The engine refuses one.
    pub fn time(
        &self,
        values: Vec<(TypeId, Value)>,
        effort: Effort,
        mut progress: impl FnMut(f64),
    ) -> Result<(Vec<Timed>, [f64; 2]), CostError> {
        let messages = values.into_iter();
        let messages = messages.map(|(id, value)| Message::new(self, id, value));
        let messages: Vec<Message> = messages.collect::<Result<_, _>>()?;
        let count = match effort == Effort::QUICK {
            true => 1,
            false => SITTINGS,
        };
        let mut sittings = Vec::new();
        for done in 0..count {
            let progress = |part| progress((done as f64 + part) / count as f64);
            sittings.push(self.sit(&messages, effort, progress)?);
        }
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
