//! The interpreter: walks a program over memory and bytes. It defines the meaning of a plan; everything else that
//! runs or prints a plan is tested against it.
//!
//! The interpreter has a few words of state. If something is refused, the kind of error and its step are recorded, and
//! all calls return; only then the name of the field is looked up.

mod decode;
mod encode;
mod number;

pub(super) use decode::{DecodeSource, decode};
#[cfg(feature = "jit")]
pub(crate) use encode::chain_length;
pub(super) use encode::{EncodeSink, NO_LIMIT, encode};
pub(super) use number::discriminant;
pub use number::{NumberMover, WholeNumberMover};

/// Something was refused; the error is recorded in the interpreter.
#[derive(Debug)]
struct ErrorRecorded;

type StepResult = Result<(), ErrorRecorded>;
