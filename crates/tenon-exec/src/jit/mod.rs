//! Machine code: encoders and decoders for frames, made from plans at run time.
//!
//! Each type, each procedure's arguments and each result becomes two functions. What an interface
//! fixes is straight-line code; what depends on a count calls a helper. Machine code only says yes
//! or no. It says yes to exactly what the interpreter accepts (a frame that takes more memory
//! than its bytes pay for aside), and after a no the interpreter is asked, which knows the error,
//! the field and the offset.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `machine` | all functions of an interface; entering and freeing them |
//! | `context` | the cursors that machine code and helpers share |
//! | `helpers` | what machine code calls |
//! | `emit` | what both directions emit: loads, stores, checks, loops, calls |
//! | `encode`, `decode` | one exhaustive match over the operations each |
//!
//! This is a room for `unsafe`: `machine` enters what was made, `helpers` are called by it.
#![allow(unsafe_code)]

mod context;
mod decode;
mod emit;
mod encode;
mod helpers;
mod machine;

pub(crate) use machine::Machine;
