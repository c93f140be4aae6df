//! Passes: each makes plans better by one law and keeps their meaning. A new pass is a file of
//! its own, a variant of [`Pass`] and its lines below.

mod fold_aligns;
mod hoist_checks;
mod inline;
mod merge_arrays;
mod merge_blocks;
mod merge_checks;

use tenon_schema::Schema;
use thiserror::Error;

use crate::lower::{LowerError, lower};
use crate::op::Plans;
use crate::representation::Representation;
use crate::verify::{VerifyError, verify};

/// A pass, to be switched on by naming it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Alignment is not computed at run time where the interface fixes a position.
    FoldAligns,
    /// An array of numbers is moved at once.
    MergeArrays,
    /// A value that lies on the wire as it lies in memory is moved as a block.
    MergeBlocks,
    /// Small structs inside records are moved field by field.
    Inline,
    /// One room check for each run of fixed-size items.
    MergeChecks,
    /// One room check for all elements of a loop, if they have one size.
    HoistChecks,
}

impl Pass {
    /// All of them, in the order in which they work best.
    pub const ALL: &'static [Self] = &[
        Self::FoldAligns,
        Self::MergeArrays,
        Self::MergeBlocks,
        Self::Inline,
        Self::MergeChecks,
        Self::HoistChecks,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::FoldAligns => "fold_aligns",
            Self::MergeArrays => "merge_arrays",
            Self::MergeBlocks => "merge_blocks",
            Self::Inline => "inline",
            Self::MergeChecks => "merge_checks",
            Self::HoistChecks => "hoist_checks",
        }
    }

    fn rewrite(self, schema: &Schema, plans: &mut Plans) {
        match self {
            Self::FoldAligns => fold_aligns::rewrite(schema, plans),
            Self::MergeArrays => merge_arrays::rewrite(plans),
            Self::MergeBlocks => merge_blocks::rewrite(schema, plans),
            Self::Inline => inline::rewrite(schema, plans),
            Self::MergeChecks => {
                let bodies = plans.plans_mut().map(|plan| &mut plan.body);
                bodies.for_each(merge_checks::rewrite);
            }
            Self::HoistChecks => hoist_checks::rewrite(plans),
        }
    }
}

/// No plans of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// None can be made of it.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// One is wrong: a bug of Tenon.
    #[error("a bug in Tenon: {0}")]
    Verify(#[from] VerifyError),
}

impl Plans {
    /// The plans of an interface: lowered, then specialised by `passes`.
    ///
    /// # Errors
    /// The interface has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(
        schema: &Schema,
        representation: Representation,
        passes: &[Pass],
    ) -> Result<Self, PlanError> {
        let mut plans = lower(schema, representation)?;
        specialize(schema, &mut plans, passes)?;
        Ok(plans)
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
