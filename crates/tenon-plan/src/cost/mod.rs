//! The cost model: what marshalling costs, as an equation that follows from the plan.
//!
//! ```text
//! Plans  -- Deriving -->  Equations  -- Tally::of (a shape of the value) -->  Tally
//!                            |                                                  |
//!                         Display                              price (parameters of a machine)
//! ```
//!
//! An equation is a sum of [`Symbol`]s, the parameters of a machine, times what the interface or
//! the value says. A [`Tally`] is an equation with its variables (lengths, arms, what is present)
//! filled in by a [`Shape`]: so often each parameter. The nanoseconds of a parameter are measured
//! by the study (`tenon-study`); the model only multiplies.
//!
//! The parameters are those of Table 6 of the paper that this follows (S. K. Chung, E. D. Lazowska,
//! D. Notkin and J. Zahorjan, "Performance Implications of Design Alternatives for Remote Procedure
//! Call Stubs"), and what a machine of today needs beside them.

mod derive;
mod elements;
mod equation;
mod moves;
mod pieces;
mod places;
mod price;
mod room;
mod shape;
mod sites;
mod steps;
mod symbol;
mod tally;

pub use derive::Deriving;
pub use equation::{ByteAmount, Choice, CostTerm, Equation, Equations, Variable};
pub use moves::{Mover, Moves, Unit};
pub use price::{Level, Levels, Parameters, Share};
pub use shape::{Assumed, Assumptions, Shape};
pub use symbol::{Direction, Engine, Symbol};
pub use tally::Tally;
