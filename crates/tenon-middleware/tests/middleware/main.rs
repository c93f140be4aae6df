//! Middleware around clients and services, of threads and of tasks, over real connections.

#![allow(clippy::unwrap_used, missing_docs)]

mod client;
#[cfg(feature = "opentelemetry")]
mod otel;
#[cfg(feature = "policy")]
mod policy;
#[cfg(feature = "prometheus")]
mod prometheus;
mod server;
mod shelf;
mod storm;
mod tasks;
#[cfg(feature = "tower")]
mod tower;

/// What `idempotent.x` declares.
#[allow(dead_code, missing_docs, unreachable_pub)]
#[allow(clippy::all, clippy::pedantic)]
#[path = "../../../tenon-gen/tests/golden/idempotent.rs"]
mod generated;
