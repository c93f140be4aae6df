//! Two connections against each other, without a socket.
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod layer;
mod pieces;
mod simulation;
