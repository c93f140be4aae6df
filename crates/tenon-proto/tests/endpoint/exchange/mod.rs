//! The packet exchange protocol as docs/exchange.md specifies it.

mod byte_streams;
mod calls;
mod endpoints;
mod golden;
mod hostile;
mod losses;
mod memory;
mod simulation;
pub mod support;
