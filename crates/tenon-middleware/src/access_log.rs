//! A line of the log for each call.

use std::time::Duration;

use tenon::{CallOutcome, CallScope, Middleware, Rejection};

/// The target of the events.
const TARGET: &str = "tenon::access";

/// Logs each call when it is over, by [`tracing`], at the level INFO and the target `tenon::access`: what was called, by
/// whom or at which address, what became of it, how long it took, and how often it was made. Arguments and results are not
/// logged, and neither is metadata.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessLog {
    slower_than: Duration,
}

impl AccessLog {
    /// A log of all calls.
    pub const fn new() -> Self {
        Self {
            slower_than: Duration::ZERO,
        }
    }

    /// Logs of the calls that succeed only those that took so long.
    #[must_use]
    pub const fn slower_than(self, slower_than: Duration) -> Self {
        Self { slower_than }
    }
}

impl Middleware for AccessLog {
    type State = ();

    #[inline]
    fn begin(&self, _call: &mut CallScope<'_>) -> Result<(), Rejection> {
        Ok(())
    }

    #[inline]
    fn end(&self, (): (), call: &CallScope<'_>, outcome: &CallOutcome<'_>) {
        if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
            return;
        }
        let took = call.started_at().elapsed();
        if !outcome.is_success() || took >= self.slower_than {
            log(call, outcome, took);
        }
    }
}

fn log(call: &CallScope<'_>, outcome: &CallOutcome<'_>, took: Duration) {
    let procedure = call.procedure();
    let peer = call.peer();
    tracing::info!(
        target: TARGET,
        side = if call.is_at_server() { "server" } else { "client" },
        service = procedure.service,
        procedure = procedure.name,
        program = call.program(),
        version = call.version(),
        number = procedure.number,
        protocol = %call.protocol(),
        server = call.address().map(tracing::field::display),
        peer = peer.and_then(|peer| peer.address).map(tracing::field::display),
        user = peer.and_then(|peer| peer.user),
        took_us = took.as_micros() as u64,
        attempts = call.attempts(),
        error = outcome.kind().map(tracing::field::display),
        reason = (!outcome.is_success()).then(|| tracing::field::display(outcome)),
        "call",
    );
}
