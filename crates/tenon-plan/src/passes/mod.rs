//! Passes: each makes plans better by one law and keeps their meaning. A new pass is a file of
//! its own, a variant of [`Pass`] and its lines below.

mod merge_checks;

use tenon_schema::Schema;

use crate::op::{Body, Plans};
use crate::verify::{VerifyError, verify};

/// A pass, to be switched on by naming it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// One room check for each run of fixed-size items.
    MergeChecks,
}

impl Pass {
    /// All of them, in the order in which they work best.
    pub const ALL: &'static [Self] = &[Self::MergeChecks];

    fn rewrite(self) -> fn(&mut Body) {
        match self {
            Self::MergeChecks => merge_checks::rewrite,
        }
    }
}

/// Runs `passes` in order, and the verifier after each.
///
/// # Errors
/// A pass, or what made the plans, is wrong: a bug of Tenon.
pub fn specialize(schema: &Schema, plans: &mut Plans, passes: &[Pass]) -> Result<(), VerifyError> {
    for pass in passes {
        let bodies = plans.plans_mut().map(|plan| &mut plan.body);
        bodies.for_each(pass.rewrite());
        verify(schema, plans)?;
    }
    Ok(())
}
