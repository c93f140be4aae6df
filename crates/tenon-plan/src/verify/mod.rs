//! The verifier: whether plans move exactly what the interface says.
//!
//! It knows nothing of how plans are made. Each body is held against the types of the schema,
//! field by field in the order of the wire, and each reserved block against the items in it.

mod body;
mod expected;
mod fits;
mod holes;

use tenon_schema::{Field, Procedure, Schema, Type, TypeId};
use thiserror::Error;

use body::BodyVerifier;

use crate::blittable::BlittableTypes;
use crate::graph;
use crate::layout::Layout;
use crate::op::{Op, Plan, Plans, ProcedurePlan, WireSize};
use crate::position::MessagePosition;
use crate::representation::{Representation, WireExtent};
use crate::reserved::ReservedBlock;
use crate::size::Sizes;

/// A plan is wrong: a bug of Tenon, not of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("plan of {plan}: {at}: {problem}")]
pub struct VerifyError {
    /// The type or procedure.
    pub plan: String,
    /// The item, `it` if it is the whole value.
    pub at: String,
    /// The kind of the error.
    pub problem: VerifyErrorKind,
}

/// The kinds of errors in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VerifyErrorKind {
    /// The types or procedures of the schema and the plans are not the same.
    #[error("there is not one plan for each type and procedure, in their order")]
    Plans,
    /// The bytes on the wire are not those of the type.
    #[error("the size is not that of the type")]
    Size,
    /// The plan is wrong about whether the type can contain itself.
    #[error("recursion is marked where there is none, or is not marked")]
    Recursion,
    /// The item is not the next one of the type.
    #[error("this is not the item that comes next on the wire")]
    Order,
    /// An item is not moved.
    #[error("this item is not moved")]
    Missing,
    /// The operation moves something else than the type has at the place.
    #[error("the operation does not fit the type")]
    Type,
    /// The size of an element is wrong.
    #[error("the bytes of an element are not those of its type")]
    Element,
    /// The item may lie at a position that its type does not allow.
    #[error("the position of this is not aligned as it must be")]
    Alignment,
    /// The item does not lie right behind the item before it in its reserved block, or not in the block at all.
    #[error("the item does not follow the one before it in its reserved block")]
    Offset,
    /// The fields of a struct inside a record are not all in one block: the struct could not be read
    /// as a whole.
    #[error("the struct that this is a part of is not moved in one block")]
    Split,
    /// A block is not filled.
    #[error("the reserved block that this ends is not filled")]
    Gap,
}

/// Checks all plans of an interface.
///
/// # Errors
/// The first thing that is wrong.
///
/// # Panics
/// If the schema refers to a type that it does not have.
pub fn verify(schema: &Schema, plans: &Plans) -> Result<(), VerifyError> {
    let components = graph::components(schema);
    let sizes = Sizes::by_components(schema, plans.representation, &components);
    let blittables = BlittableTypes::new(schema, plans.representation);
    let verifier = PlanVerifier {
        schema,
        representation: plans.representation,
        sizes: &sizes,
        blittables: &blittables,
        plan: "",
    };
    if plans.types.len() != schema.types.len() {
        return Err(verifier.error("types", VerifyErrorKind::Plans));
    }
    for (plan, id) in plans.types.iter().zip((0..).map(TypeId)) {
        let recursive = graph::is_recursive(schema, &components, id);
        verifier.named(id, plan, recursive)?;
    }
    verifier.procedures(&plans.procedures)
}

struct PlanVerifier<'a> {
    schema: &'a Schema,
    representation: Representation,
    sizes: &'a Sizes<'a>,
    blittables: &'a BlittableTypes<'a>,
    /// The type or procedure in hand.
    plan: &'a str,
}

impl<'a> PlanVerifier<'a> {
    fn about(&self, plan: &'a str) -> Self {
        Self { plan, ..*self }
    }

    fn error(&self, at: &str, problem: VerifyErrorKind) -> VerifyError {
        VerifyError {
            plan: self.plan.to_owned(),
            at: if at.is_empty() { "it" } else { at }.to_owned(),
            problem,
        }
    }

    fn named(&self, id: TypeId, plan: &Plan, recursive: bool) -> Result<(), VerifyError> {
        let verifier = self.about(&self.schema.type_def(id).name);
        let layout = Layout::of_type(self.schema, id);
        let expected = (self.sizes.of_named(id), self.sizes.align_of_named(id));
        verifier.plan(plan, layout, expected, recursive)
    }

    fn procedures(&self, plans: &[ProcedurePlan]) -> Result<(), VerifyError> {
        let mut plans = plans.iter();
        for (program, definition) in self.schema.programs.iter().enumerate() {
            for (version, definition) in definition.versions.iter().enumerate() {
                for (procedure, definition) in definition.procedures.iter().enumerate() {
                    let plan = plans.next().filter(|plan| {
                        (plan.program, plan.version, plan.procedure)
                            == (program, version, procedure)
                    });
                    let plan =
                        plan.ok_or_else(|| self.error("procedures", VerifyErrorKind::Plans))?;
                    self.about(&definition.name).procedure(plan, definition)?;
                }
            }
        }
        match plans.next() {
            Some(_) => Err(self.error("procedures", VerifyErrorKind::Plans)),
            None => Ok(()),
        }
    }

    fn procedure(&self, plan: &ProcedurePlan, definition: &Procedure) -> Result<(), VerifyError> {
        self.arguments(&plan.arguments, &definition.arguments)?;
        self.result(&plan.result, definition.result.as_ref())?;
        let items = (definition.argument_item(), definition.result_item());
        let Some(streams) = &plan.streams else {
            return match items {
                (None, None) => Ok(()),
                _ => Err(self.error("", VerifyErrorKind::Plans)),
            };
        };
        self.arguments(&streams.call.arguments, definition.call_arguments())?;
        self.result(&streams.call.result, definition.call_result())?;
        let argument = items.0.map(|field| &field.ty);
        for (plan, item) in [(&streams.argument, argument), (&streams.result, items.1)] {
            match (plan, item) {
                (Some(plan), Some(item)) => self.result(plan, Some(item))?,
                (None, None) => {}
                _ => return Err(self.error("", VerifyErrorKind::Plans)),
            }
        }
        Ok(())
    }

    fn arguments(&self, plan: &Plan, fields: &[Field]) -> Result<(), VerifyError> {
        let size = self.sizes.of_fields(fields);
        let expected = (size, self.sizes.of_message());
        self.plan(plan, Layout::Record(fields), expected, false)
    }

    fn result(&self, plan: &Plan, result: Option<&Type>) -> Result<(), VerifyError> {
        let (layout, size) = match result {
            Some(ty) => (Layout::Use(ty), self.sizes.of(ty)),
            None => (Layout::Nothing, WireSize::exactly(0)),
        };
        self.plan(plan, layout, (size, self.sizes.of_message()), false)
    }

    fn plan(
        &self,
        plan: &Plan,
        layout: Layout<'_>,
        expected: (WireSize, u32),
        recursive: bool,
    ) -> Result<(), VerifyError> {
        if (plan.size, plan.align) != expected {
            return Err(self.error("", VerifyErrorKind::Size));
        }
        if plan.recursive != recursive {
            return Err(self.error("", VerifyErrorKind::Recursion));
        }
        let start = MessagePosition::aligned(plan.align);
        self.body(&plan.body, layout, start)
    }

    /// Of what a body is about, if all such values have the same size.
    fn extent(&self, layout: Layout<'_>) -> Option<WireExtent> {
        match layout {
            Layout::Nothing => None,
            Layout::Record(fields) => self.sizes.fixed_fields(fields),
            Layout::Definition(id) => self.sizes.fixed_named(id),
            Layout::Use(ty) => self.sizes.fixed(ty),
        }
    }

    /// Holds a body that begins at `position` against what its `it` is.
    fn body(
        &self,
        body: &[Op],
        layout: Layout<'_>,
        position: MessagePosition,
    ) -> Result<(), VerifyError> {
        let mut held = BodyVerifier::new(self, layout, position);
        body.iter().try_for_each(|op| held.op(op))?;
        held.end()
    }

    /// Holds a block that begins at `position` against the element that it is.
    fn element(
        &self,
        block: &ReservedBlock,
        layout: Layout<'_>,
        position: MessagePosition,
    ) -> Result<(), VerifyError> {
        let mut held = BodyVerifier::new(self, layout, position);
        held.block(block)?;
        held.end()
    }
}
