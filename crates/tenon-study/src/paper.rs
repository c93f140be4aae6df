//! What was published: S. K. Chung, E. D. Lazowska, D. Notkin and J. Zahorjan, "Performance
//! Implications of Design Alternatives for Remote Procedure Call Stubs", measured on a MicroVAX-II
//! under Ultrix 2.0.

use tenon_plan::cost::Symbol;
use tenon_plan::cost::{Mover, Moves, Unit};

use crate::design::{DataMovement, StubDesign, StubEngine};
use crate::study::StudyDirection;
use crate::unrolling::{self, CodeForm};
use crate::work::Workload;

/// The machine of the paper.
pub const MACHINE: &str = "MicroVAX-II";

/// Milliseconds of Table 2. Neither what has come since is in it, nor the structure by compiled
/// stubs that copy bytes inline: that cell is illegible in the copy at hand.
pub fn milliseconds(design: StubDesign, work: Workload) -> Option<f64> {
    let row = match (design.engine, design.movement) {
        (StubEngine::Interpreted, DataMovement::Single(moves)) => match way(moves) {
            (Mover::Inline, Unit::Byte) => [0.085, 4.75, 23.3],
            (Mover::Inline, Unit::Item) => [0.079, 3.40, 19.0],
            (Mover::Procedure, Unit::Byte) => [0.108, 11.2, 35.7],
            (Mover::Procedure, Unit::Item) => [0.101, 9.90, 31.0],
        },
        (StubEngine::Compiled, DataMovement::Single(moves)) => match way(moves) {
            (Mover::Inline, Unit::Byte) => [0.015, 4.60, f64::NAN],
            (Mover::Inline, Unit::Item) => [0.010, 3.32, 9.65],
            (Mover::Procedure, Unit::Byte) => [0.040, 11.3, 28.9],
            (Mover::Procedure, Unit::Item) => [0.035, 10.0, 25.8],
        },
        (StubEngine::Interpreted, DataMovement::Blocks) => [0.079, 0.585, 15.7],
        (StubEngine::Compiled, DataMovement::Blocks) => [0.035, 0.457, 4.08],
        (StubEngine::Machine, _) | (_, DataMovement::EveryPass) => return None,
    };
    Some(row[column(work)]).filter(|cell| !cell.is_nan())
}

/// Returns a parameter of Table 6 in microseconds. For a byte of a block it has `b(1024)`, 382 in all.
pub fn parameter(symbol: Symbol) -> Option<f64> {
    Some(match symbol {
        Symbol::Bytewise => 15.0,
        Symbol::Item => 10.0,
        Symbol::Loop => 3.0,
        Symbol::Procedure => 25.0,
        Symbol::CopyByte => 382.0 / 1024.0,
        Symbol::Copy => 40.0,
        Symbol::Begin => 45.0,
        Symbol::Array => 128.0,
        Symbol::Operation => 23.0,
        _ => return None,
    })
}

/// Returns the figure of Table 3: per cent of the time that are due to interpretation.
pub fn interpretation(movement: DataMovement, work: Workload) -> Option<f64> {
    let row = match movement {
        DataMovement::Single(moves) => match way(moves) {
            (Mover::Inline, Unit::Byte) => [80.0, 4.0, 51.0],
            (Mover::Inline, Unit::Item) => [86.0, 6.0, 63.0],
            (Mover::Procedure, Unit::Byte) => [63.0, 2.0, 33.0],
            (Mover::Procedure, Unit::Item) => [67.0, 2.0, 39.0],
        },
        DataMovement::Blocks => [86.0, 4.0, 76.0],
        DataMovement::EveryPass => return None,
    };
    Some(row[column(work)])
}

/// Returns the figure of Table 4: per cent of the time that are due to procedure calls.
pub fn procedure_calls(engine: StubEngine, unit: Unit, work: Workload) -> Option<f64> {
    let row = match (engine, unit) {
        (StubEngine::Interpreted, Unit::Byte) => [23.0, 57.0, 36.0],
        (StubEngine::Interpreted, Unit::Item) => [25.0, 65.0, 42.0],
        (StubEngine::Compiled, Unit::Byte) => [63.0, 57.0, 52.0],
        (StubEngine::Compiled, Unit::Item) => [83.0, 64.0, 59.0],
        (StubEngine::Machine, _) => return None,
    };
    Some(row[column(work)])
}

/// Returns how many times as fast as generic code G. Muller, E.-N. Volanschi and R. Marlet found the code that writes an
/// array of so many integers (Table 1 of "Automatic Optimization of the Sun RPC Protocol Implementation via Partial
/// Evaluation", on a Sun 4/50). They did not measure how it is read.
pub fn unrolling_speedup(form: CodeForm, length: usize, direction: StudyDirection) -> Option<f64> {
    let row = match (form, direction) {
        (CodeForm::Unrolled, StudyDirection::Encode) => [3.5, 3.5, 3.0, 2.3],
        (CodeForm::Looped, StudyDirection::Encode) => [3.4, 3.5, 3.0, 2.9],
        _ => return None,
    };
    let column = unrolling::LENGTHS.iter().position(|it| *it == length)?;
    Some(row[column])
}

fn way(moves: Moves) -> (Mover, Unit) {
    (moves.by, moves.unit)
}

fn column(work: Workload) -> usize {
    match work {
        Workload::Single => 0,
        Workload::Numbers => 1,
        Workload::Structure => 2,
    }
}
