//! Servers of tasks, and of threads where both have to do the same.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod attacked;
mod call_memory;
mod calls;
mod dead_clients;
mod descriptors;
mod half_closed;
mod health;
mod operator;
mod packets;
mod parallel;
mod signals;
