//! System calls of clients and servers, as strace counts them.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tenon-gen/tests/golden/hprpc.rs"]
mod hprpc;
#[path = "../common/hprpc_service.rs"]
mod hprpc_service;

mod client;
mod client_exchange;
mod client_lean;
mod client_threads;
mod crowd;
mod generated;
mod server;
mod shm;
