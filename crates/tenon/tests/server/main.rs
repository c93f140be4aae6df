//! Servers of threads, and those that a program steps itself, by both protocols and every transport.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod call_memory;
mod cancelled;
mod datagrams;
mod exchange;
mod half_closed;
mod health;
mod killed;
mod lean;
mod order;
mod shutdown;
mod slow_handlers;
mod statuses;
mod stepped;
mod streams;
