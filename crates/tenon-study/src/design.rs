//! The designs of stubs that are compared. Each is a way to run plans and what the plans are made
//! by; only the slower ways of moving a number (`moving.rs`) are of the study alone. `build.rs` reads
//! this table, too: it makes the stubs of the designs that are compiled.

use tenon_plan::cost::{Mover, Moves, Unit};
use tenon_plan::{Pass, PlanError, Plans, Representation};
use tenon_schema::Schema;

/// A way to make and run stubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StubDesign {
    /// The engine that runs the plans.
    pub engine: StubEngine,
    /// The way in which the plans move data.
    pub movement: DataMovement,
}

/// The engine that runs the plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StubEngine {
    /// A routine that is handed a description of the message.
    Interpreted,
    /// Source code that is made and compiled beforehand.
    Compiled,
    /// Machine code that is made when the interface becomes known.
    Machine,
}

/// The way in which data are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataMovement {
    /// Each number by itself, with a check for room of its own.
    Single(Moves),
    /// Arrays and records of numbers as blocks, each with a check of its own.
    Blocks,
    /// By all that the passes make of the plans.
    EveryPass,
}

/// Each byte, by the stub itself.
pub const INLINE_BYTE: DataMovement = single(Mover::Inline, Unit::Byte);
/// The number as a whole, by the stub itself.
pub const INLINE_ITEM: DataMovement = single(Mover::Inline, Unit::Item);
/// Each byte, by a procedure.
pub const PROCEDURAL_BYTE: DataMovement = single(Mover::Procedure, Unit::Byte);
/// The number as a whole, by a procedure.
pub const PROCEDURAL_ITEM: DataMovement = single(Mover::Procedure, Unit::Item);

/// All that are compared, in the order of the tables: first those of the paper.
pub const DESIGNS: &[StubDesign] = &[
    of(StubEngine::Interpreted, INLINE_BYTE),
    of(StubEngine::Interpreted, INLINE_ITEM),
    of(StubEngine::Interpreted, PROCEDURAL_BYTE),
    of(StubEngine::Interpreted, PROCEDURAL_ITEM),
    of(StubEngine::Interpreted, DataMovement::Blocks),
    of(StubEngine::Compiled, INLINE_BYTE),
    of(StubEngine::Compiled, INLINE_ITEM),
    of(StubEngine::Compiled, PROCEDURAL_BYTE),
    of(StubEngine::Compiled, PROCEDURAL_ITEM),
    of(StubEngine::Compiled, DataMovement::Blocks),
    of(StubEngine::Interpreted, DataMovement::EveryPass),
    of(StubEngine::Compiled, DataMovement::EveryPass),
    of(StubEngine::Machine, DataMovement::EveryPass),
];

const fn of(engine: StubEngine, movement: DataMovement) -> StubDesign {
    StubDesign { engine, movement }
}

const fn single(by: Mover, unit: Unit) -> DataMovement {
    DataMovement::Single(Moves { by, unit })
}

impl StubDesign {
    /// Returns the name for tables.
    pub fn name(self) -> String {
        format!("{}, {}", self.engine.name(), self.movement.name())
    }

    /// Its name as one word.
    pub fn word(self) -> String {
        let name = self.name().replace(", ", "_");
        name.replace(' ', "_")
    }

    /// Returns the plans that it runs.
    ///
    /// # Errors
    /// The schema cannot be marshalled, or a pass is wrong.
    pub fn plans(
        self,
        schema: &Schema,
        representation: Representation,
    ) -> Result<Plans, PlanError> {
        Plans::new(schema, representation, self.passes())
    }
}

impl StubDesign {
    /// Returns the passes that make its plans. A stub that calls a procedure for each number calls one for each record,
    /// too.
    pub fn passes(self) -> &'static [Pass] {
        match self.movement {
            INLINE_BYTE | INLINE_ITEM => &[Pass::Inline],
            DataMovement::Single(_) => &[],
            DataMovement::Blocks => &[Pass::MergeArrays, Pass::MergeBlocks],
            DataMovement::EveryPass => Pass::ALL,
        }
    }
}

impl StubEngine {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Compiled => "compiled",
            Self::Machine => "machine code",
        }
    }
}

impl DataMovement {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single(Moves { by, unit }) => match (by, unit) {
                (Mover::Inline, Unit::Byte) => "inline, byte copy",
                (Mover::Inline, Unit::Item) => "inline, item copy",
                (Mover::Procedure, Unit::Byte) => "procedural, byte copy",
                (Mover::Procedure, Unit::Item) => "procedural, item copy",
            },
            Self::Blocks => "block copy",
            Self::EveryPass => "every pass",
        }
    }

    /// Returns the way in which it moves a single number.
    pub fn moves(self) -> Moves {
        match self {
            Self::Single(moves) => moves,
            Self::Blocks | Self::EveryPass => Moves::default(),
        }
    }
}
