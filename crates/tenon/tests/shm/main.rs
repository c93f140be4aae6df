//! Calls over shared memory.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod killed;
mod scribbled;
