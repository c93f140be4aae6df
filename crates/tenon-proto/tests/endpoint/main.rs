//! The packet exchange protocol as docs/exchange.md specifies it.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod golden;
mod hostile;
mod losses;
mod memory;
mod network;
mod simulation;
mod support;
