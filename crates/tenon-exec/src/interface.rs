//! An interface that can be run: its schema and the plans made from it.

use std::sync::{Arc, OnceLock};

use tenon_plan::{LowerError, Pass, Plans, Representation, VerifyError, lower, specialize, verify};
use tenon_schema::Schema;
use thiserror::Error;

#[cfg(feature = "jit")]
use crate::jit::Machine;
use crate::layout::{LayoutError, Layouts};

/// A schema and its plans.
#[derive(Debug, Clone)]
pub struct Interface {
    schema: Schema,
    plans: Plans,
    /// What is made when it is first needed; clones share it.
    made: Arc<Made>,
}

#[derive(Debug, Default)]
struct Made {
    layouts: OnceLock<Result<Layouts, LayoutError>>,
    #[cfg(feature = "jit")]
    machine: OnceLock<Option<Machine>>,
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
        let mut plans = lower(&schema, Representation::XDR)?;
        specialize(
            &schema,
            &mut plans,
            &[Pass::MergeArrays, Pass::Inline, Pass::MergeChecks],
        )?;
        Ok(Self {
            schema,
            plans,
            made: Arc::default(),
        })
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
        Ok(Self {
            schema,
            plans,
            made: Arc::default(),
        })
    }

    /// What the interface says.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How its values are moved.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Where its values lie in a frame.
    pub(crate) fn layouts(&self) -> Result<&Layouts, &LayoutError> {
        let layouts = self.made.layouts.get_or_init(|| Layouts::new(&self.schema));
        layouts.as_ref()
    }

    /// Makes the machine code of all types and procedures, unless it is there already; it is
    /// freed with the last clone of the interface. Whether there is some: not where no frame can
    /// hold the values or Cranelift has no target.
    #[cfg(feature = "jit")]
    pub fn compile(&self) -> bool {
        self.machine().is_some()
    }

    #[cfg(feature = "jit")]
    pub(crate) fn machine(&self) -> Option<&Machine> {
        let make = || Machine::new(self, self.layouts().ok()?);
        self.made.machine.get_or_init(make).as_ref()
    }
}
