//! Every order in which threads of one process may see each other's writes: nothing is had by two, nothing that was
//! said is forgotten, and no thread sleeps for ever.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tenon-rpc-sync --test loom`
#![allow(
    clippy::unwrap_used,
    unexpected_cfgs,
    reason = "tests may; loom is nobody's feature"
)]

#[cfg(loom)]
mod models;
