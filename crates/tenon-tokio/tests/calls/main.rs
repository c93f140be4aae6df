//! Calls of tasks as both ends see them: accounts, connections of the program's own, and ways to wait.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod account;
mod ages;
mod established;
mod propagation;
mod waiting;
