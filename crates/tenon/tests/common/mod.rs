//! What tests have in common: peers made by hand, services, networks that misbehave, and ways to count.
#![allow(dead_code, reason = "every program of tests uses its own part")]

pub mod caller;
pub mod counting;
pub mod gate;
pub mod half_closed;
pub mod hosts;
pub mod interloper;
pub mod lean_caller;
pub mod lean_peer;
pub mod lean_steady;
pub mod meeting;
pub mod onc_peer;
pub mod own_process;
pub mod place;
pub mod relay;
pub mod restarts;
pub mod serving;
pub mod slow_path;
pub mod steady;
pub mod swallowing;
