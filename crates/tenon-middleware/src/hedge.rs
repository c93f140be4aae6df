//! Calls that are made a second time before they have failed.

use std::sync::Arc;
use std::time::Duration;

use tenon::{CallOutcome, CallScope, Hedging, Middleware, Rejection};

use crate::retry_budget::RetryBudget;

/// Makes calls of a client once more beside those that take long, and takes the first result: against the rare call that
/// takes much longer than others (Dean and Barroso, The tail at scale, 2013). Only those of procedures that the interface
/// declares `idempotent`. What stands further in sees one call, and [`CallScope::attempts`] says how often it was made.
#[derive(Debug, Clone)]
pub struct Hedge {
    hedging: Hedging,
    budget: Arc<RetryBudget>,
}

impl Hedge {
    /// Makes a call once more after each `delay` without an outcome, up to `attempts` in all. A good delay is one that
    /// nineteen calls of twenty do not take.
    pub fn new(delay: Duration, attempts: u32) -> Self {
        Self {
            hedging: Hedging { delay, attempts },
            budget: Arc::default(),
        }
    }

    /// Sets the budget, which others may share. While it is used up, calls are made once.
    #[must_use]
    pub fn budget(self, budget: Arc<RetryBudget>) -> Self {
        Self { budget, ..self }
    }
}

impl Middleware for Hedge {
    /// The attempts that were made before, if the call may be made several times.
    type State = Option<u32>;

    #[inline]
    fn begin(&self, call: &mut CallScope<'_>) -> Result<Option<u32>, Rejection> {
        if call.is_at_server() || !call.procedure().is_idempotent {
            return Ok(None);
        }
        self.budget.count_call();
        if !self.budget.has_some() {
            return Ok(None);
        }
        call.hedge(self.hedging);
        Ok(Some(call.attempts()))
    }

    #[inline]
    fn end(&self, before: Option<u32>, call: &CallScope<'_>, _outcome: &CallOutcome<'_>) {
        if let Some(before) = before {
            let further = call.attempts().saturating_sub(before + 1);
            if further > 0 {
                self.budget.charge(further);
            }
        }
    }
}
