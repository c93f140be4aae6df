//! Client and server engines over a simulated network. A seed decides everything that happens, so
//! that a failure is repeated by its seed; hours pass in microseconds.

#[path = "../common/mod.rs"]
mod common;
mod datagrams;
mod network;
mod streams;

/// Program, version and procedure of every simulated call.
const PROGRAM: u32 = 300;
const VERSION: u32 = 1;
const PROCEDURE: u32 = 1;
