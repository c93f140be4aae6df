//! Passes: each makes plans better by one law and keeps their meaning. A new pass is a file of
//! its own, a variant of [`Pass`] and its lines below.

mod inline;
mod merge_checks;

use tenon_schema::Schema;

use crate::op::Plans;
use crate::verify::{VerifyError, verify};

/// A pass, to be switched on by naming it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Small structs inside records are moved field by field.
    Inline,
    /// One room check for each run of fixed-size items.
    MergeChecks,
}

impl Pass {
    /// All of them, in the order in which they work best.
    pub const ALL: &'static [Self] = &[Self::Inline, Self::MergeChecks];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::MergeChecks => "merge_checks",
        }
    }

    fn rewrite(self, schema: &Schema, plans: &mut Plans) {
        match self {
            Self::Inline => inline::rewrite(schema, plans),
            Self::MergeChecks => {
                let bodies = plans.plans_mut().map(|plan| &mut plan.body);
                bodies.for_each(merge_checks::rewrite);
            }
        }
    }
}

/// Runs `passes` in order, and the verifier after each.
///
/// # Errors
/// A pass, or what made the plans, is wrong: a bug of Tenon.
pub fn specialize(schema: &Schema, plans: &mut Plans, passes: &[Pass]) -> Result<(), VerifyError> {
    passes.iter().try_for_each(|pass| {
        pass.rewrite(schema, plans);
        verify(schema, plans)
    })
}
