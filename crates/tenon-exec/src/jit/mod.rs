//! Machine code: encoders and decoders for frames, made from plans at run time.
//!
//! A function moves a named type, the arguments or the result of a procedure, in one way; it is made
//! when a message needs it, and serves all types that are moved alike. What an interface fixes is
//! straight-line code with the cursor in a register: plain items that are neighbours in memory and
//! on the wire are moved as vectors, whatever is wrong with a block's items is refused at once, and
//! an encoder makes room once for all that is short. Strings, memory and long arrays take helpers.
//!
//! Machine code only says yes or no. It says yes to exactly what the interpreter accepts, and takes
//! the same memory for it; after a no the interpreter is asked, which knows the error, the field
//! and the offset.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `machine` | the messages of an interface: entering their code, and when it is made |
//! | `code` | the code that was made; equal interfaces share it |
//! | `linker` | the functions there are, and the memory that they are in |
//! | `entry` | the functions that a program calls |
//! | `context` | what machine code and helpers share |
//! | `helpers` | what machine code calls |
//! | `given` | what functions are made from: the plans, where fields lie |
//! | `alike` | which types one function serves |
//! | `emit` | what both directions emit: the cursor, loads, stores, checks, calls |
//! | `control` | loops, conditions, arms of unions |
//! | `scalar`, `blit` | single items; blocks of memory |
//! | `encode`, `decode` | one exhaustive match over the operations each |
//!
//! This is a room for `unsafe`: `machine` enters what was made, `helpers` are called by it.
#![allow(unsafe_code)]

mod alike;
mod blit;
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

pub(crate) use machine::{Decode, Doors, Encode, Machine, Spare, When};
