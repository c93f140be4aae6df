//! Clients that live in tasks.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod calls;
mod exchange;
mod in_flight;
mod limits;
mod liveness;
mod peers;
mod ready;
mod restarts;
mod streams;
mod system_calls;
