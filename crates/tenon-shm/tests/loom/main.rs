//! Every order in which two processes may see each other's writes: no byte is lost or made up, and nobody
//! who sleeps is forgotten.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tenon-rpc-shm --test loom`
#![allow(
    clippy::unwrap_used,
    unexpected_cfgs,
    reason = "tests may; loom is nobody's feature"
)]

#[cfg(loom)]
mod models;
