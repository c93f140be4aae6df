//! The interpreter: walks a program over memory and bytes. It is what a plan means; whatever else
//! runs or prints a plan is held against it.
//!
//! What the interpreter has is a few words of state. Where something is refused, what is wrong and
//! at which step is put aside, and everybody returns; only then the field gets its name.

mod decode;
mod encode;
mod number;

pub(super) use decode::{Source, decode};
pub(super) use encode::{Sink, encode};

/// Something was refused; what is wrong is put aside.
#[derive(Debug)]
struct Stop;

type Done = Result<(), Stop>;
