//! Lowering: a plan for every type and procedure of an interface.
//!
//! Naive and obviously right. Each fixed-size item has a room check of its own, what may have to
//! be aligned is, and each named struct and union is called; typedefs are followed where they
//! stand. Passes make it good.

use tenon_schema::{Field, Length, Procedure, Schema, Type, TypeId, TypeKind, Union};

mod checks;

pub use checks::LowerError;

use crate::graph::{self, StronglyConnectedComponents};
use crate::item::{Place, Scalar, TypeClass};
use crate::links::{LinkedList, linked_list, memory_fields};
use crate::op::{Arm, Body, Count, Op, Plan, Plans, ProcedurePlan, StreamPlans};
use crate::representation::{COUNT_BYTES, Representation};
use crate::reserved::{FixedKind, ReservedBlock};
use crate::size::Sizes;

/// Most bytes of one fixed-size item or block; a larger one fits into no message.
pub(crate) const MAX_FIXED: u64 = 1 << 30;

/// Makes the plan of every named type, and of the arguments and the result of every procedure.
///
/// # Errors
/// The interface has types that no message can hold.
///
/// # Panics
/// If the schema refers to a type that it does not have.
pub fn lower(schema: &Schema, representation: Representation) -> Result<Plans, LowerError> {
    let components = graph::components(schema);
    checks::before_sizes(schema, &components)?;
    checks::nothings(schema, &components)?;
    let sizes = Sizes::by_components(schema, representation, &components);
    checks::ends(schema, &sizes)?;
    let with = LoweringContext {
        schema,
        representation,
        sizes: &sizes,
    };
    let ids = (0..schema.types.len() as u32).map(TypeId);
    let types = ids.map(|id| named_plan(with, &components, id));
    Ok(Plans {
        representation,
        types: types.collect::<Result<_, _>>()?,
        procedures: procedure_plans(with)?,
    })
}

/// The inputs that every body is made from.
#[derive(Clone, Copy)]
struct LoweringContext<'a> {
    schema: &'a Schema,
    representation: Representation,
    sizes: &'a Sizes<'a>,
}

fn named_plan(
    with: LoweringContext<'_>,
    components: &StronglyConnectedComponents,
    id: TypeId,
) -> Result<Plan, LowerError> {
    let def = with.schema.type_def(id);
    let mut lowering = BodyBuilder::new(with, &def.name);
    match &def.kind {
        TypeKind::Enum(_) => lowering.scalar(Scalar::Enum(id), Place::it()),
        TypeKind::Struct(_) => {
            lowering.fields(memory_fields(with.schema, id).unwrap_or_default())?;
        }
        TypeKind::Union(union) => lowering.union(union)?,
        TypeKind::Typedef(to) => lowering.aligned_item(to, Place::it())?,
        TypeKind::External => lowering.body.push(Op::External {
            place: Place::it(),
            ty: id,
        }),
    }
    Ok(Plan {
        body: lowering.body,
        size: with.sizes.of_named(id),
        align: with.sizes.align_of_named(id),
        recursive: graph::is_recursive(with.schema, components, id),
    })
}

fn procedure_plans(with: LoweringContext<'_>) -> Result<Vec<ProcedurePlan>, LowerError> {
    let mut plans = Vec::new();
    for (program, definition) in with.schema.programs.iter().enumerate() {
        for (version, definition) in definition.versions.iter().enumerate() {
            for (procedure, definition) in definition.procedures.iter().enumerate() {
                let messages = (&*definition.arguments, definition.result.as_ref());
                let plan =
                    procedure_plan(with, (program, version, procedure), definition, messages)?;
                let streams = stream_plans(with, &plan, definition)?;
                plans.push(ProcedurePlan {
                    streams: streams.map(Box::new),
                    ..plan
                });
            }
        }
    }
    Ok(plans)
}

/// Makes the plan of a procedure with these arguments and this result.
fn procedure_plan(
    with: LoweringContext<'_>,
    (program, version, procedure): (usize, usize, usize),
    definition: &Procedure,
    (arguments, result): (&[Field], Option<&Type>),
) -> Result<ProcedurePlan, LowerError> {
    let name = &definition.name;
    Ok(ProcedurePlan {
        program,
        version,
        procedure,
        arguments: record_plan(with, name, arguments)?,
        result: result_plan(with, name, result)?,
        streams: None,
    })
}

/// Makes the plans of what a procedure with streams sends by itself.
fn stream_plans(
    with: LoweringContext<'_>,
    plan: &ProcedurePlan,
    definition: &Procedure,
) -> Result<Option<StreamPlans>, LowerError> {
    let (argument, result) = (definition.argument_item(), definition.result_item());
    if argument.is_none() && result.is_none() {
        return Ok(None);
    }
    let position = (plan.program, plan.version, plan.procedure);
    let messages = (definition.call_arguments(), definition.call_result());
    let item = |ty: Option<&Type>| {
        let plan = ty.map(|ty| result_plan(with, &definition.name, Some(ty)));
        plan.transpose()
    };
    Ok(Some(StreamPlans {
        call: procedure_plan(with, position, definition, messages)?,
        argument: item(argument.map(|field| &field.ty))?,
        result: item(result)?,
    }))
}

fn record_plan(
    with: LoweringContext<'_>,
    name: &str,
    fields: &[Field],
) -> Result<Plan, LowerError> {
    let mut lowering = BodyBuilder::new(with, name);
    lowering.fields(fields)?;
    Ok(Plan {
        body: lowering.body,
        size: with.sizes.of_fields(fields),
        align: with.sizes.of_message(),
        recursive: false,
    })
}

fn result_plan(
    with: LoweringContext<'_>,
    name: &str,
    result: Option<&Type>,
) -> Result<Plan, LowerError> {
    let mut lowering = BodyBuilder::new(with, name);
    if let Some(ty) = result {
        lowering.aligned_item(ty, Place::it())?;
    }
    Ok(Plan {
        body: lowering.body,
        size: result.map_or(crate::WireSize::exactly(0), |ty| with.sizes.of(ty)),
        align: with.sizes.of_message(),
        recursive: false,
    })
}

/// One body in the making.
struct BodyBuilder<'a> {
    with: LoweringContext<'a>,
    /// The type or procedure it belongs to.
    name: &'a str,
    body: Body,
}

impl<'a> BodyBuilder<'a> {
    fn new(with: LoweringContext<'a>, name: &'a str) -> Self {
        Self {
            with,
            name,
            body: Body::new(),
        }
    }

    fn fields(&mut self, fields: &[Field]) -> Result<(), LowerError> {
        for (position, field) in fields.iter().enumerate() {
            self.item(&field.ty, Place::field(position))?;
        }
        // Behind a record of fixed size its like may begin.
        if let Some(extent) = self.with.sizes.fixed_fields(fields) {
            self.align(extent.align, 0);
        }
        Ok(())
    }

    fn align(&mut self, to: u32, before: u32) {
        if to > 1 {
            self.body.push(Op::Align { to, before });
        }
    }

    /// An item behind others.
    fn item(&mut self, ty: &Type, place: Place) -> Result<(), LowerError> {
        match self.elements_align(ty) {
            Some(to) => self.align(to, COUNT_BYTES),
            None => self.align(self.with.sizes.align(ty), 0),
        }
        self.moved(ty, place)
    }

    /// An item at a position that already has the alignment of its type.
    fn aligned_item(&mut self, ty: &Type, place: Place) -> Result<(), LowerError> {
        if let Some(to) = self.elements_align(ty) {
            self.align(to, COUNT_BYTES);
        }
        self.moved(ty, place)
    }

    /// The elements of a counted array begin right behind the count. What their positions are a
    /// multiple of, if it is more than that of the count.
    fn elements_align(&self, ty: &Type) -> Option<u32> {
        match self.with.schema.resolve(ty) {
            Type::Array(element, Length::Counted(_)) => {
                let align = self.with.sizes.fixed(element)?.align;
                (align > COUNT_BYTES).then_some(align)
            }
            _ => None,
        }
    }

    fn moved(&mut self, ty: &Type, place: Place) -> Result<(), LowerError> {
        let schema = self.with.schema;
        if let Some(list) = linked_list(schema, ty) {
            self.list(list, place);
            return Ok(());
        }
        match TypeClass::of(schema.resolve(ty)) {
            TypeClass::Scalar(scalar) => self.scalar(scalar, place),
            TypeClass::Opaque(Length::Fixed(bytes)) => self.copy(bytes, place)?,
            TypeClass::Opaque(Length::Counted(bound)) => self.copy_counted(bound, false, place),
            TypeClass::String(bound) => self.copy_counted(bound, true, place),
            TypeClass::Array(element, length) => self.array(element, length, place)?,
            TypeClass::Optional(to) => {
                let body = self.inner(to)?;
                self.body.push(Op::Optional { place, body });
            }
            TypeClass::Named(id) => match Scalar::of(schema, ty) {
                Some(scalar) => self.scalar(scalar, place),
                None => self.body.push(Op::Call { place, plan: id }),
            },
        }
        Ok(())
    }

    /// The body of what lies inside an item, where `it` is that.
    fn inner(&self, ty: &Type) -> Result<Body, LowerError> {
        let mut inner = BodyBuilder::new(self.with, self.name);
        inner.item(ty, Place::it())?;
        Ok(inner.body)
    }

    /// The body of an element. Those of one size lie one behind the other.
    fn element(&self, ty: &Type) -> Result<Body, LowerError> {
        let mut inner = BodyBuilder::new(self.with, self.name);
        match self.with.sizes.fixed(ty) {
            Some(_) => inner.aligned_item(ty, Place::it())?,
            None => inner.item(ty, Place::it())?,
        }
        Ok(inner.body)
    }

    fn list(&mut self, list: LinkedList, place: Place) {
        self.body.push(Op::List {
            place,
            first_bare: list.first_bare,
            element: list.element,
        });
    }

    fn scalar(&mut self, scalar: Scalar, place: Place) {
        let bytes = self.with.representation.bytes(scalar);
        let block = ReservedBlock::of(place, FixedKind::Put { scalar }, bytes);
        self.body.push(Op::Reserve(block));
    }

    fn copy(&mut self, bytes: u32, place: Place) -> Result<(), LowerError> {
        let padded = self.with.representation.padded(bytes.into());
        if padded > MAX_FIXED {
            return Err(LowerError::TooLarge(self.name.to_owned(), padded));
        }
        let block = ReservedBlock::of(place, FixedKind::Copy { bytes }, padded as u32);
        self.body.push(Op::Reserve(block));
        Ok(())
    }

    fn copy_counted(&mut self, bound: u32, text: bool, place: Place) {
        self.body.push(Op::CopyCounted { place, bound, text });
    }

    fn array(&mut self, element: &Type, length: Length, place: Place) -> Result<(), LowerError> {
        let op = Op::Loop {
            place,
            count: match length {
                Length::Fixed(count) => Count::Fixed(count),
                Length::Counted(bound) => Count::Counted(bound),
            },
            element: self.with.sizes.element(element),
            body: self.element(element)?,
        };
        self.check_size(element, length)?;
        self.body.push(op);
        Ok(())
    }

    /// Refuses a fixed array of fixed elements that fits into no message.
    fn check_size(&self, element: &Type, length: Length) -> Result<(), LowerError> {
        let (Length::Fixed(count), Some(element)) = (length, self.with.sizes.fixed(element)) else {
            return Ok(());
        };
        match element.bytes.saturating_mul(count.into()) {
            bytes if bytes > MAX_FIXED => Err(LowerError::TooLarge(self.name.to_owned(), bytes)),
            _ => Ok(()),
        }
    }

    fn union(&mut self, union: &Union) -> Result<(), LowerError> {
        let discriminant = Scalar::of(self.with.schema, &union.discriminant_type)
            .ok_or_else(|| LowerError::Discriminant(self.name.to_owned()))?;
        let arms = union.arms.iter().map(|arm| {
            Ok(Arm {
                values: arm.cases.iter().map(|case| case.value).collect(),
                body: self.arm(arm.field.as_ref())?,
            })
        });
        let op = Op::Switch {
            place: Place::it(),
            discriminant,
            arms: arms.collect::<Result<_, _>>()?,
            default: union
                .default
                .as_ref()
                .map(|field| self.arm(field.as_ref()))
                .transpose()?,
        };
        self.body.push(op);
        Ok(())
    }

    fn arm(&self, field: Option<&Field>) -> Result<Body, LowerError> {
        field.map_or(Ok(Body::new()), |field| self.inner(&field.ty))
    }
}
