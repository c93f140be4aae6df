//! Middleware: what stands around the calls of a client or of a service, alike for threads and for tasks.
//!
//! A middleware decides, and does not wait: it looks at a call before it is made or carried out, may refuse it, hold it
//! back or change what goes on with it, and looks at its outcome. The drivers of threads and of tasks do what it
//! decides (`layered_calls.rs`, `layered_service.rs` and their twins in `tenon-tokio`), by the steps of a
//! [`CallRun`].

mod hold;
mod hooks;
mod layered;
mod layered_calls;
mod layered_service;
mod outcome;
mod pair;
mod rejection;
mod run;
mod scope;
mod wait;

pub use hooks::Middleware;
pub use layered::Layered;
pub use layered_calls::LayeredPending;
#[doc(hidden)]
pub use layered_calls::{is_lost, outcome_of, outcome_of_error};
#[doc(hidden)]
pub use layered_service::{procedure_of, refusal_of};
pub use outcome::CallOutcome;
pub use rejection::Rejection;
#[doc(hidden)]
pub use run::{CallRun, RunStep};
pub use scope::{CallScope, Hedging};
#[doc(hidden)]
pub use wait::wait_until_released;
