//! The lean protocol as docs/lean-protocol.md specifies it.
#![allow(clippy::unwrap_used)]

mod binding;
mod client;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod golden;
mod preamble;
mod reader;
mod server;
mod simulation;
mod stamps;
mod support;
