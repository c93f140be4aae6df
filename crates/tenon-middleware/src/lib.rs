//! What stands around calls in production: [`Middleware`](tenon::Middleware) for clients and services, of threads and of
//! tasks alike, to be put around them by [`Layered`](tenon::Layered).
//!
//! | you want to | see | at |
//! | --- | --- | --- |
//! | bound the time of calls | [`Timeout`] | both |
//! | make calls again that failed, and not too many of them | [`Retry`], [`RetryBudget`] | clients |
//! | take the first of two answers where one may be late | [`Hedge`] | clients |
//! | say all that for each procedure in a file, and change it while the program runs | `Policy` (feature `policy`) | clients |
//! | bound how many calls there are at a time, or in a time | [`ConcurrencyLimit`], [`RateLimit`] | both |
//! | refuse calls before all become slow | [`LoadShed`] | both |
//! | know callers by a token, and let them call by rules | [`BearerCheck`], [`Authorization`] | servers |
//! | have a line in the log for each call | [`AccessLog`] | both |
//! | count and time calls | [`Metrics`] | both |
//! | let Prometheus read that | `MetricsCollector`, `MetricsServer` (feature `prometheus`) | both |
//! | follow calls through a system | `OtelTraces`, `OtelMetrics` (feature `opentelemetry`) | both |
//! | use middleware that is made for tower | `TowerService` and others (feature `tower`) | both, of tasks |
//!
//! A panic of a handler needs none: every server catches it, counts and logs it, and its caller is told that the call
//! failed. Middleware sees it as [`CallOutcome::Panicked`](tenon::CallOutcome::Panicked).
//!
//! # Order
//!
//! The first stands furthest out. A call goes through them in the order in which they were put around it, and its outcome
//! in the reverse order. So a [`Timeout`] in front of a [`Retry`] bounds all attempts together, and [`Metrics`] behind
//! it count each attempt.
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tenon/docs/example.rs")); }
//! # use example::{Host, greeter::{GreeterV1Client, GreeterV1Service, Visitor}};
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tenon::{Layered, Server};
//! use tenon_middleware::{AccessLog, ConcurrencyLimit, LoadShed, Metrics, Retry, Timeout};
//!
//! let metrics = Arc::new(Metrics::new());
//! let service = Layered::new(GreeterV1Service(Host), AccessLog::new())
//!     .with(Arc::clone(&metrics))
//!     .with(LoadShed::new(Duration::from_millis(50)))
//!     .with(ConcurrencyLimit::new(1000));
//! let server = Server::builder().listen("tcp://127.0.0.1:0")?.service(service).start()?;
//!
//! let client = GreeterV1Client::connect(&format!("lean+{}", server.addresses()[0]))?;
//! let around = Layered::new(client.0, Timeout::new(Duration::from_secs(2))).with(Retry::new(3));
//! let greeter = GreeterV1Client(around);
//! greeter.greet(&Visitor::default())?;
//!
//! let counted = &metrics.snapshot()[0];
//! assert_eq!((counted.procedure.as_str(), counted.calls()), ("GREET", 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_log;
mod authorization;
mod bearer_check;
mod concurrency_limit;
mod hedge;
mod load_shed;
mod metrics;
#[cfg(feature = "opentelemetry")]
mod otel;
#[cfg(feature = "policy")]
mod policy;
#[cfg(feature = "prometheus")]
mod prometheus;
mod rate_limit;
mod retry;
mod retry_budget;
mod timeout;
#[cfg(feature = "tower")]
mod tower;

pub use access_log::AccessLog;
pub use authorization::{Authorization, RuleError};
pub use bearer_check::BearerCheck;
pub use concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
pub use hedge::Hedge;
pub use load_shed::LoadShed;
pub use metrics::{Metrics, ProcedureMetrics};
#[cfg(feature = "opentelemetry")]
pub use otel::{OtelMetrics, OtelTraces};
#[cfg(feature = "policy")]
pub use policy::{Policy, PolicyError};
#[cfg(feature = "prometheus")]
pub use prometheus::{MetricsCollector, MetricsServer};
pub use rate_limit::RateLimit;
pub use retry::Retry;
pub use retry_budget::RetryBudget;
pub use timeout::Timeout;
#[cfg(feature = "tower")]
pub use tower::{InnerService, TowerCalls, TowerFailure, TowerRefusal, TowerService};
