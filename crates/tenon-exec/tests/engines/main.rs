//! What the engines do: the interpreter, machine code and values of interfaces known at run time.

#[path = "../support/mod.rs"]
mod support;

mod amplification;
mod c_values;
mod hostile;
mod jit_differential;
mod jit_frames;
mod jit_representations;
mod json;
mod known_bytes;
mod nothing;
mod procedures;
mod random_schemas;
mod repository_interfaces;
mod representations;
mod round_trip;
mod slots;
