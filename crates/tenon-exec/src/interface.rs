//! An interface that can be run: its schema and the plans made from it.

use tenon_plan::{LowerError, Pass, Plans, VerifyError, lower, specialize, verify};
use tenon_schema::Schema;
use thiserror::Error;

/// A schema and its plans.
#[derive(Debug, Clone)]
pub struct Interface {
    schema: Schema,
    plans: Plans,
}

/// The interface cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InterfaceError {
    /// No plan can be made of it.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// A plan is wrong: a bug of Tenon.
    #[error("a bug in Tenon: {0}")]
    Verify(#[from] VerifyError),
}

impl Interface {
    /// Makes the plans, with every pass.
    ///
    /// # Errors
    /// The schema has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(schema: Schema) -> Result<Self, InterfaceError> {
        let mut plans = lower(&schema)?;
        specialize(&schema, &mut plans, Pass::ALL)?;
        Ok(Self { schema, plans })
    }

    /// Takes plans that were made for `schema`, by other passes for instance.
    ///
    /// # Errors
    /// They do not fit.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn with_plans(schema: Schema, plans: Plans) -> Result<Self, InterfaceError> {
        verify(&schema, &plans)?;
        Ok(Self { schema, plans })
    }

    /// What the interface says.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How its values are moved.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }
}
