//! An interface that can be run: its schema and the plans made from it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use tenon_plan::{Pass, PlanError, Plans, Representation, verify};
use tenon_schema::{Schema, TypeId};
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder};

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
    machine: OnceLock<Machine>,
}

/// What the interpreter walks.
#[derive(Debug)]
pub(crate) struct Ready {
    pub layouts: Layouts,
    pub program: Program,
}

impl Interface {
    /// Makes the plans for XDR, with every pass.
    ///
    /// # Errors
    /// The schema has types that no message can hold.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have.
    pub fn new(schema: Schema) -> Result<Self, PlanError> {
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
    ) -> Result<Self, PlanError> {
        let plans = Plans::new(&schema, representation, Pass::ALL)?;
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
    pub fn with_plans(schema: Schema, plans: Plans) -> Result<Self, PlanError> {
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
    /// be dropped. Of an interface whose types C cannot hold, all values are refused, by the name of such a type.
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
    /// The bytes are not a value of this type; `type.field` and the offset say where. Of an
    /// interface whose types C cannot hold, all are refused, by the name of such a type.
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
            Ok(message) => message.frame(value)?.encode(out),
            Err(fault) => {
                let mut error = EncodeError::new(EncodeErrorKind::Unholdable);
                error.field = Cow::Owned(fault.name().to_owned());
                Err(error)
            }
        }
    }

    pub(crate) fn decode_value<R: tenon_wire::Representation>(
        &self,
        key: Key,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        match self.message_of(key) {
            Ok(message) => message.decode_value(input),
            Err(fault) => {
                let mut error = input.error(DecodeErrorKind::Unholdable);
                error.field = Cow::Owned(fault.name().to_owned());
                Err(error)
            }
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
            let program = Program::new(&self.schema, &self.plans.stripped(), &layouts);
            Ok(Ready { layouts, program })
        };
        self.made.ready.get_or_init(make).as_ref()
    }

    /// Makes the machine code of all types and procedures, unless it is there already. Equal
    /// interfaces share it; it is freed with the last of them. Whether there is some: not where no
    /// frame can hold the values or Cranelift has no target.
    ///
    /// Nobody has to ask for it: code is made of a message that is encoded or decoded often.
    #[cfg(feature = "jit")]
    pub fn compile(&self) -> bool {
        self.machine().make_all(self)
    }

    #[cfg(feature = "jit")]
    #[inline]
    pub(crate) fn machine(&self) -> &Machine {
        self.made.machine.get_or_init(|| Machine::new(&self.plans))
    }
}
