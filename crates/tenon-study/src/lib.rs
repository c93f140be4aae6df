//! Measures marshalling: what each choice in a stub costs on this machine.

pub mod measure;
