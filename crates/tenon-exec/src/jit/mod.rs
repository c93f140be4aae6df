//! Machine code: encoders and decoders for frames, made from [resolved](crate::resolved) plans at run time.
//!
//! A function moves a named type, the arguments or the result of a procedure, in one direction; it is made
//! when a message needs it, and serves all types that are moved alike. Items of fixed size are moved by
//! straight-line code with the cursor in a register: plain items that are neighbours in memory and
//! on the wire are moved as vectors, all items of a block are checked together, and
//! an encoder makes room once for all that is short. Strings, memory and long arrays take helpers.
//!
//! Machine code only says yes or no. It says yes to exactly what the interpreter accepts, and takes
//! the same memory for it; after a no the interpreter repeats the work, which finds the error, the field
//! and the offset.
//!
//! | file | contents |
//! | --- | --- |
//! | `machine` | machine code of the messages of an interface: entering it, and deciding when it is made |
//! | `code` | the code that was made; equal interfaces share it |
//! | `linker` | the functions there are, and the memory that they are in |
//! | `entry` | the functions that a program calls |
//! | `context` | the context that machine code and helpers share |
//! | `helpers`, `c_helpers` | the functions that machine code calls; those for values that a program in C holds |
//! | `given` | the input of the compilation: the resolved plans, and which types are inlined |
//! | `alike` | types that share one function |
//! | `emit` | code that both directions emit: the cursor, loads, stores, checks, calls |
//! | `control` | loops, conditions, arms of unions |
//! | `scalar`, `blit` | single items; blocks of memory |
//! | `encode`, `decode` | one exhaustive match over the operations each |
//!
//! This is a room for `unsafe`: `machine` enters what was made, `helpers` are called by it.
#![allow(unsafe_code)]

mod alike;
mod blit;
mod c_helpers;
mod code;
mod context;
mod control;
mod decode;
mod emit;
mod encode;
mod entry;
mod given;
mod helpers;
mod linker;
mod machine;
mod scalar;

pub(crate) use given::MAX_COVERED;
pub(crate) use machine::{
    CompileTrigger, CompiledDecoder, CompiledEncoder, EntryPoints, MachineCode, SpareCapacity,
};
