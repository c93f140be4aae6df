//! The verifier: whether plans move exactly what the interface says.
//!
//! It knows nothing of how plans are made. Each body is held against the types of the schema,
//! field by field in the order of the wire, and each reserved block against the items in it.

use tenon_schema::{Field, Length, Procedure, Schema, Type, TypeId, TypeKind, Union};
use thiserror::Error;

use crate::graph;
use crate::layout::Layout;
use crate::links::{is_link, linked_list};
use crate::op::{Arm, Count, Op, Place, Plan, Plans, ProcedurePlan, Scalar, Size};
use crate::size::Sizes;

/// A plan is wrong: a bug of Tenon, not of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("plan of {plan}: {at}: {problem}")]
pub struct VerifyError {
    /// The type or procedure.
    pub plan: String,
    /// The item, `it` if it is the whole value.
    pub at: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The types or procedures of the schema and the plans are not the same.
    #[error("there is not one plan for each type and procedure, in their order")]
    Plans,
    /// The bytes on the wire are not those of the type.
    #[error("the size is not that of the type")]
    Size,
    /// Whether the type can contain itself is not what the plan says.
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
    /// The fewest bytes of an element are wrong.
    #[error("the fewest bytes of an element are not those of its type")]
    ElementMin,
    /// The item does not lie in a reserved block right behind the item before it.
    #[error("the item does not follow the one before it in a reserved block")]
    Offset,
    /// The fields of a struct inside a record are not all in one block: nobody could read the
    /// struct as a whole.
    #[error("the struct that this is a part of is not moved in one block")]
    Split,
    /// A block is not filled.
    #[error("a reserved block in front of this is not filled")]
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
    let sizes = Sizes::by_components(schema, &components);
    let verifier = Verifier {
        schema,
        sizes: &sizes,
        plan: "",
    };
    if plans.types.len() != schema.types.len() {
        return Err(verifier.error("types", Problem::Plans));
    }
    for (plan, id) in plans.types.iter().zip((0..).map(TypeId)) {
        let recursive = graph::is_recursive(schema, &components, id);
        verifier.named(id, plan, recursive)?;
    }
    verifier.procedures(&plans.procedures)
}

struct Verifier<'a> {
    schema: &'a Schema,
    sizes: &'a Sizes<'a>,
    /// The type or procedure in hand.
    plan: &'a str,
}

impl<'a> Verifier<'a> {
    fn about(&self, plan: &'a str) -> Self {
        Self { plan, ..*self }
    }

    fn error(&self, at: &str, problem: Problem) -> VerifyError {
        VerifyError {
            plan: self.plan.to_owned(),
            at: if at.is_empty() { "it" } else { at }.to_owned(),
            problem,
        }
    }

    fn named(&self, id: TypeId, plan: &Plan, recursive: bool) -> Result<(), VerifyError> {
        let verifier = self.about(&self.schema.type_def(id).name);
        let layout = Layout::of_type(self.schema, id);
        verifier.plan(plan, layout, self.sizes.of_named(id), recursive)
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
                    let plan = plan.ok_or_else(|| self.error("procedures", Problem::Plans))?;
                    self.about(&definition.name).procedure(plan, definition)?;
                }
            }
        }
        match plans.next() {
            Some(_) => Err(self.error("procedures", Problem::Plans)),
            None => Ok(()),
        }
    }

    fn procedure(&self, plan: &ProcedurePlan, definition: &Procedure) -> Result<(), VerifyError> {
        let arguments = Layout::Record(&definition.arguments);
        let size = self.sizes.of_fields(&definition.arguments);
        self.plan(&plan.arguments, arguments, size, false)?;
        let (result, size) = match &definition.result {
            Some(ty) => (Layout::Use(ty), self.sizes.of(ty)),
            None => (Layout::Nothing, Size::exactly(0)),
        };
        self.plan(&plan.result, result, size, false)
    }

    fn plan(
        &self,
        plan: &Plan,
        layout: Layout<'_>,
        size: Size,
        recursive: bool,
    ) -> Result<(), VerifyError> {
        if plan.size != size {
            return Err(self.error("", Problem::Size));
        }
        if plan.recursive != recursive {
            return Err(self.error("", Problem::Recursion));
        }
        self.body(&plan.body, layout)
    }

    /// Holds a body against what its `it` is.
    fn body(&self, body: &[Op], layout: Layout<'_>) -> Result<(), VerifyError> {
        let mut expected = Expected::new(self.schema, layout);
        let mut block = Block::default();
        let mut opened = Opened::default();
        for op in body {
            let Some(place) = op.place() else {
                block
                    .open(op)
                    .map_err(|problem| self.error("reserve", problem))?;
                opened.in_block = false;
                continue;
            };
            let at = layout.path(self.schema, place);
            let error = |problem| self.error(&at, problem);
            block.fill(op).map_err(error)?;
            opened.take(op, place).map_err(error)?;
            let item = expected.take(place).ok_or_else(|| error(Problem::Order))?;
            self.item(op, item, &at)?;
        }
        block
            .close()
            .map_err(|problem| self.error("end", problem))?;
        match expected.next() {
            Some(place) => Err(self.error(&layout.path(self.schema, &place), Problem::Missing)),
            None => Ok(()),
        }
    }

    /// Holds an operation against the type of the item it moves.
    fn item(&self, op: &Op, item: Layout<'_>, at: &str) -> Result<(), VerifyError> {
        let fits = match item {
            Layout::Nothing | Layout::Record(_) => false,
            Layout::Use(ty) => self.fits(op, ty, at)? && !matches!(op, Op::External { .. }),
            Layout::Definition(id) => {
                self.fits(op, &Type::Named(id), at)? && !matches!(op, Op::Call { .. })
            }
        };
        match fits {
            true => Ok(()),
            false => Err(self.error(at, Problem::Type)),
        }
    }

    fn fits(&self, op: &Op, ty: &Type, at: &str) -> Result<bool, VerifyError> {
        let resolved = self.schema.resolve(ty);
        let is = |expected: Type| *resolved == expected;
        Ok(match op {
            Op::Reserve { .. } => false,
            Op::Put { scalar, .. } => self.is_scalar(ty, *scalar),
            Op::PutArray { scalar, count, .. } => {
                self.is_array_of(resolved, *scalar, Length::Fixed(*count))
            }
            Op::PutCounted { scalar, bound, .. } => {
                self.is_array_of(resolved, *scalar, Length::Counted(*bound))
            }
            Op::Copy { bytes, .. } => is(Type::Opaque(Length::Fixed(*bytes))),
            Op::CopyCounted { bound, text, .. } => match text {
                true => is(Type::String(*bound)),
                false => is(Type::Opaque(Length::Counted(*bound))),
            },
            Op::Loop {
                count,
                element_min,
                body,
                ..
            } => self.is_loop(resolved, *count, *element_min, body, at)?,
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => self.is_switch(resolved, *discriminant, arms, default.as_deref())?,
            Op::Optional { body, .. } => self.is_optional(ty, resolved, body)?,
            Op::List {
                first_bare,
                element,
                ..
            } => linked_list(self.schema, ty)
                .is_some_and(|list| (list.element, list.first_bare) == (*element, *first_bare)),
            Op::Call { plan, .. } => is(Type::Named(*plan)) && self.is_called(*plan),
            Op::External { ty, .. } => {
                is(Type::Named(*ty)) && self.schema.type_def(*ty).kind == TypeKind::External
            }
        })
    }

    fn is_scalar(&self, ty: &Type, scalar: Scalar) -> bool {
        Scalar::of(self.schema, ty) == Some(scalar)
    }

    fn is_array_of(&self, ty: &Type, scalar: Scalar, length: Length) -> bool {
        matches!(ty, Type::Array(element, of) if *of == length && self.is_scalar(element, scalar))
    }

    fn is_called(&self, id: TypeId) -> bool {
        match self.schema.type_def(id).kind {
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::External => {
                !is_link(self.schema, id)
            }
            TypeKind::Enum(_) | TypeKind::Typedef(_) => false,
        }
    }

    fn is_loop(
        &self,
        ty: &Type,
        count: Count,
        element_min: u32,
        body: &[Op],
        at: &str,
    ) -> Result<bool, VerifyError> {
        let length = match count {
            Count::Fixed(count) => Length::Fixed(count),
            Count::Counted(bound) => Length::Counted(bound),
        };
        let Type::Array(element, of) = ty else {
            return Ok(false);
        };
        if element_min != self.sizes.of(element).min_u32() {
            return Err(self.error(at, Problem::ElementMin));
        }
        self.body(body, Layout::Use(element))?;
        Ok(*of == length)
    }

    fn is_optional(&self, ty: &Type, resolved: &Type, body: &[Op]) -> Result<bool, VerifyError> {
        let Type::Optional(to) = resolved else {
            return Ok(false);
        };
        self.body(body, Layout::Use(to))?;
        Ok(linked_list(self.schema, ty).is_none())
    }

    fn is_switch(
        &self,
        ty: &Type,
        discriminant: Scalar,
        arms: &[Arm],
        default: Option<&[Op]>,
    ) -> Result<bool, VerifyError> {
        let Some(union) = self.union(ty) else {
            return Ok(false);
        };
        if arms.len() != union.arms.len() || default.is_some() != union.default.is_some() {
            return Ok(false);
        }
        for (arm, of) in arms.iter().zip(&union.arms) {
            let cases = of.cases.iter().map(|case| &case.value);
            if !arm.values.iter().eq(cases) {
                return Ok(false);
            }
            self.arm(&arm.body, of.field.as_ref())?;
        }
        if let (Some(body), Some(of)) = (default, &union.default) {
            self.arm(body, of.as_ref())?;
        }
        Ok(
            discriminant.is_discriminant()
                && self.is_scalar(&union.discriminant_type, discriminant),
        )
    }

    fn union(&self, ty: &Type) -> Option<&'a Union> {
        let Type::Named(id) = ty else { return None };
        match &self.schema.type_def(*id).kind {
            TypeKind::Union(union) => Some(union),
            _ => None,
        }
    }

    fn arm(&self, body: &[Op], field: Option<&Field>) -> Result<(), VerifyError> {
        self.body(body, Layout::of_arm(field))
    }
}

/// The items that are still to come. A struct may be moved as a whole or field by field.
struct Expected<'a> {
    schema: &'a Schema,
    /// The next one last.
    items: Vec<(Place, Layout<'a>)>,
}

impl<'a> Expected<'a> {
    fn new(schema: &'a Schema, layout: Layout<'a>) -> Self {
        let items = vec![(Place::it(), layout)];
        let mut expected = Self { schema, items };
        if matches!(layout, Layout::Nothing | Layout::Record(_)) {
            expected.open();
        }
        expected
    }

    /// What is at `place`, if that comes next.
    fn take(&mut self, place: &Place) -> Option<Layout<'a>> {
        while self.items.last()?.0 != *place {
            self.open().then_some(())?;
        }
        self.items.pop().map(|(_, layout)| layout)
    }

    /// The first item that was not taken. What has no fields needs no operation.
    fn next(&mut self) -> Option<Place> {
        while self.items.last()?.1.fields(self.schema) == Some(&[]) {
            self.items.pop();
        }
        self.items.pop().map(|(place, _)| place)
    }

    /// Puts the fields of the next item in its stead, if it has any.
    fn open(&mut self) -> bool {
        let Some((place, fields)) = self
            .items
            .last()
            .and_then(|(place, layout)| Some((place.clone(), layout.fields(self.schema)?)))
        else {
            return false;
        };
        self.items.pop();
        let positions = (0..fields.len() as u32).rev();
        self.items
            .extend(positions.zip(fields.iter().rev()).map(|(position, field)| {
                let mut place = place.clone();
                place.0.push(position);
                (place, Layout::Use(&field.ty))
            }));
        true
    }
}

/// The struct inside a record whose fields are being moved.
#[derive(Default)]
struct Opened {
    /// Its position in the record.
    position: Option<u32>,
    /// Whether its latest item lies in the present block.
    in_block: bool,
}

impl Opened {
    fn take(&mut self, op: &Op, place: &Place) -> Result<(), Problem> {
        let position = match place.0.as_slice() {
            [] | [_] => None,
            [position, ..] => Some(*position),
        };
        let in_block = op.fixed().is_some();
        if position.is_some() && position == self.position && !(in_block && self.in_block) {
            return Err(Problem::Split);
        }
        *self = Self { position, in_block };
        Ok(())
    }
}

/// The latest reserved block.
#[derive(Default)]
struct Block {
    bytes: u64,
    filled: u64,
}

impl Block {
    fn open(&mut self, reserve: &Op) -> Result<(), Problem> {
        self.close()?;
        if let Op::Reserve { bytes } = reserve {
            self.bytes = u64::from(*bytes);
        }
        Ok(())
    }

    /// Takes an item into the block, or closes the block in front of one that makes its own
    /// check.
    fn fill(&mut self, op: &Op) -> Result<(), Problem> {
        let Some((offset, bytes)) = op.fixed() else {
            return self.close();
        };
        if u64::from(offset) != self.filled || self.filled + bytes > self.bytes {
            return Err(Problem::Offset);
        }
        self.filled += bytes;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        if self.filled != self.bytes {
            return Err(Problem::Gap);
        }
        *self = Self::default();
        Ok(())
    }
}
