//! The plan: what is to be moved, in which order and with which checks, for every type and
//! procedure of an interface. One plan serves both directions and every way to run it: source
//! back ends print it, the interpreter walks it, machine code is made from it.

mod graph;
pub mod links;
mod lower;
mod op;
mod size;

pub use lower::{LowerError, lower};
pub use op::{Arm, Body, Count, Op, Place, Plan, Plans, ProcedurePlan, Scalar, Size};
