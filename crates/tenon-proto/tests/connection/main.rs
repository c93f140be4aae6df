//! A connection and its receiving half, without a socket: first what a stream delivers, then two ends against each
//! other.
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod fields;
mod framing;
mod layer;
mod pieces;
mod simulation;
