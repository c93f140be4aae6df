//! Clients that block, by both protocols and every transport.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod batch;
mod broken;
mod datagram;
mod deadlines;
mod exchange;
mod flooded;
mod in_flight;
mod lean;
mod limits;
mod liveness;
mod ready;
mod restarts;
mod stepped;
mod stream;
mod streams;
mod threads;
