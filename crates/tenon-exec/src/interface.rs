//! An interface that can be run: its schema and the plans made from it.

use std::sync::{Arc, OnceLock};

#[cfg(feature = "jit")]
use tenon_plan::Op;
use tenon_plan::{LowerError, Pass, Plans, Representation, VerifyError, lower, specialize, verify};
use tenon_schema::{Schema, TypeId};
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder};
use thiserror::Error;

use crate::Value;
use crate::frame::Key;
#[cfg(feature = "jit")]
use crate::jit::Machine;
use crate::layout::{LayoutError, Layouts};
use crate::program::Program;

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
    ready: OnceLock<Result<Ready, LayoutError>>,
    #[cfg(feature = "jit")]
    machine: OnceLock<Option<Machine>>,
}

/// What the interpreter walks.
#[derive(Debug)]
pub(crate) struct Ready {
    pub layouts: Layouts,
    pub program: Program,
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
    /// Makes the plans for XDR, with every pass.
    ///
    /// # Errors
    /// The schema has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(schema: Schema) -> Result<Self, InterfaceError> {
        Self::with_representation(schema, Representation::XDR)
    }

    /// Makes the plans for any representation, with every pass.
    ///
    /// # Errors
    /// The schema has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn with_representation(
        schema: Schema,
        representation: Representation,
    ) -> Result<Self, InterfaceError> {
        let mut plans = lower(&schema, representation)?;
        // Machine code, which is made of XDR alone, does not know blocks yet.
        let passes = match representation {
            Representation::XDR if cfg!(feature = "jit") => {
                &[Pass::MergeArrays, Pass::Inline, Pass::MergeChecks][..]
            }
            _ => Pass::ALL,
        };
        specialize(&schema, &mut plans, passes)?;
        Ok(Self::of(schema, plans))
    }

    fn of(schema: Schema, plans: Plans) -> Self {
        let made = Arc::default();
        Self {
            schema,
            plans,
            made,
        }
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
        Ok(Self::of(schema, plans))
    }

    /// What the interface says.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How its values are moved.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Appends a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The value is not one of this type; `type.field` says which part. What was appended is to
    /// be dropped.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn encode<R: tenon_wire::Representation>(
        &self,
        id: TypeId,
        value: &Value,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        self.encode_value(Key::Type(id), value, out)
    }

    /// Reads a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The bytes are not a value of this type; `type.field` and the offset say where.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn decode<R: tenon_wire::Representation>(
        &self,
        id: TypeId,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        self.decode_value(Key::Type(id), input)
    }

    pub(crate) fn encode_value<R: tenon_wire::Representation>(
        &self,
        key: Key,
        value: &Value,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        match self.message_of(key) {
            Ok(message) => message.frame(value)?.encode_by_interpreter(out),
            Err(_) => Err(EncodeError::new(EncodeErrorKind::Shape)),
        }
    }

    pub(crate) fn decode_value<R: tenon_wire::Representation>(
        &self,
        key: Key,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        match self.message_of(key) {
            Ok(message) => message.decode_value(input),
            Err(_) => Err(input.error(DecodeErrorKind::TooMuchMemory)),
        }
    }

    /// Where its values lie in a frame.
    #[cfg(feature = "jit")]
    pub(crate) fn layouts(&self) -> Result<&Layouts, &LayoutError> {
        self.ready().map(|ready| &ready.layouts)
    }

    /// What the interpreter walks, made when it is first needed.
    #[inline]
    pub(crate) fn ready(&self) -> Result<&Ready, &LayoutError> {
        let make = || {
            let layouts = Layouts::new(&self.schema)?;
            let program = Program::new(&self.schema, &self.plans, &layouts);
            Ok(Ready { layouts, program })
        };
        self.made.ready.get_or_init(make).as_ref()
    }

    /// Makes the machine code of all types and procedures, unless it is there already; it is
    /// freed with the last clone of the interface. Whether there is some: not where no frame can
    /// hold the values or Cranelift has no target.
    #[cfg(feature = "jit")]
    pub fn compile(&self) -> bool {
        self.machine().is_some_and(Machine::make_all)
    }

    #[cfg(feature = "jit")]
    pub(crate) fn machine(&self) -> Option<&Machine> {
        let knows = || self.plans.representation == Representation::XDR && knows_all(&self.plans);
        let make = || Machine::new(self, self.layouts().ok().filter(|_| knows())?);
        self.made.machine.get_or_init(make).as_ref()
    }
}

/// Whether machine code can be made of all operations.
#[cfg(feature = "jit")]
fn knows_all(plans: &Plans) -> bool {
    fn knows(body: &[Op]) -> bool {
        body.iter().all(|op| match op {
            Op::Align { .. } | Op::Zero { .. } | Op::PutElements { .. } => false,
            Op::Blit { .. } | Op::BlitCounted { .. } => false,
            Op::Loop { body, .. } | Op::Optional { body, .. } => knows(body),
            Op::Switch { arms, default, .. } => {
                arms.iter().all(|arm| knows(&arm.body)) && default.iter().all(|body| knows(body))
            }
            Op::Reserve { .. } | Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } => true,
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::List { .. } => true,
            Op::Call { .. } | Op::External { .. } => true,
        })
    }
    let procedures = plans.procedures.iter();
    let messages = procedures.flat_map(|plan| [&plan.arguments, &plan.result]);
    let mut all = plans.types.iter().chain(messages);
    all.all(|plan| knows(&plan.body))
}
