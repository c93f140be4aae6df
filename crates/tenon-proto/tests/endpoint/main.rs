//! Endpoints over datagrams: ONC RPC and the packet exchange, without a network, over one that does what it likes, and
//! over real sockets.
#![allow(clippy::unwrap_used, reason = "what fails fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod duplicates;
mod exchange;
mod network;
mod onc_client;
mod onc_server;
mod onc_simulation;
mod sockets;
