//! Calls as both ends see them: accounts, errors, connections of the program's own, and ways to wait.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod account;
mod error_texts;
mod established;
mod waiting;
