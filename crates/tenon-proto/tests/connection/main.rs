//! A connection and its receiving half, without a socket: first what a stream delivers, then two ends against each
//! other.
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

mod binding;
mod calls;
mod closing;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod ends;
mod fields;
mod framing;
mod golden;
mod layer;
mod liveness;
mod lone_replies;
mod metadata;
mod onc_serving;
mod packet_times;
mod pair;
mod pieces;
mod preambles;
mod received;
mod renewal;
mod restarting;
mod sending;
mod serving;
mod simulation;
mod stamps;
mod stream_simulation;
mod streams;
mod violations;
