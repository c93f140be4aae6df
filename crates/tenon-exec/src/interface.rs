//! An interface that can be run: its schema and the plans made from it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use tenon_plan::{Pass, PlanError, Plans, Representation, verify};
use tenon_schema::{Schema, TypeId};
use tenon_wire::{DecodeError, DecodeErrorKind, Decoder, EncodeError, EncodeErrorKind, Encoder};

use crate::Value;
use crate::frame::MessageId;
#[cfg(feature = "jit")]
use crate::jit::MachineCode;
use crate::layout::{LayoutError, MemoryModel, TypeLayouts};
use crate::program::InterpreterProgram;
use crate::resolved::ResolvedPlans;

/// A schema and its plans.
#[derive(Debug, Clone)]
pub struct Interface {
    schema: Schema,
    plans: Plans,
    /// How the values lie in memory that its messages are moved from and to.
    model: MemoryModel,
    /// Parts that are made when they are first needed; clones share them.
    cache: Arc<InterfaceCache>,
}

#[derive(Debug, Default)]
struct InterfaceCache {
    resolved: OnceLock<Result<ResolvedInterface, LayoutError>>,
    #[cfg(feature = "jit")]
    machine: OnceLock<MachineCode>,
}

/// The plans resolved onto memory: the input of the engines.
#[derive(Debug)]
pub(crate) struct ResolvedInterface {
    pub layouts: TypeLayouts,
    /// What the program was made of, and machine code is.
    #[cfg(feature = "jit")]
    pub plans: Arc<ResolvedPlans>,
    pub program: InterpreterProgram,
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
        let cache = Arc::default();
        Self {
            schema,
            plans,
            model: MemoryModel::Frame,
            cache,
        }
    }

    /// Makes the plans for values in another model of memory. No frame holds them.
    pub(crate) fn in_model(
        schema: Schema,
        representation: Representation,
        model: MemoryModel,
    ) -> Result<Self, PlanError> {
        let interface = Self::with_representation(schema, representation)?;
        Ok(Self { model, ..interface })
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

    /// The schema of the interface.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The plans that move its values.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Appends a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The value is not one of this type; `type.field` says which part. What was appended is to
    /// be dropped. If C has no layout for a type of the interface, all values are refused, by the name of such a type.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn encode<R: tenon_wire::Representation>(
        &self,
        id: TypeId,
        value: &Value,
        out: &mut Encoder<'_, R>,
    ) -> Result<(), EncodeError> {
        self.encode_value(MessageId::Type(id), value, out)
    }

    /// Reads a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The bytes are not a value of this type; `type.field` and the offset say where. If C has no layout for a
    /// type of the interface, all bytes are refused, by the name of such a type.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn decode<R: tenon_wire::Representation>(
        &self,
        id: TypeId,
        input: &mut Decoder<'_, R>,
    ) -> Result<Value, DecodeError> {
        self.decode_value(MessageId::Type(id), input)
    }

    pub(crate) fn encode_value<R: tenon_wire::Representation>(
        &self,
        key: MessageId,
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
        key: MessageId,
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

    /// Returns the layouts, the plans resolved onto them, and the program for the interpreter, which are made when they
    /// are first needed.
    #[inline]
    pub(crate) fn resolved(&self) -> Result<&ResolvedInterface, &LayoutError> {
        let make = || {
            let layouts = TypeLayouts::in_model(&self.schema, self.model)?;
            let plans = ResolvedPlans::new(&self.schema, &self.plans.stripped(), &layouts);
            Ok(ResolvedInterface {
                layouts,
                program: InterpreterProgram::new(&plans),
                #[cfg(feature = "jit")]
                plans: Arc::new(plans),
            })
        };
        self.cache.resolved.get_or_init(make).as_ref()
    }

    /// Makes the machine code of all types and procedures, unless it is there already, and returns whether there
    /// is some: not where no frame can hold the values or Cranelift has no target. Equal interfaces share the
    /// code; it is freed with the last of them.
    ///
    /// Programs need not call this: a message that is encoded or decoded often is compiled without it.
    #[cfg(feature = "jit")]
    pub fn compile(&self) -> bool {
        self.machine().make_all(self)
    }

    #[cfg(feature = "jit")]
    #[inline]
    pub(crate) fn machine(&self) -> &MachineCode {
        self.cache
            .machine
            .get_or_init(|| MachineCode::new(&self.plans))
    }
}
