//! The verifier: whether plans move exactly what the interface says.
//!
//! It knows nothing of how plans are made. Each body is held against the types of the schema,
//! field by field in the order of the wire, and each reserved block against the items in it.

use tenon_schema::{Field, Length, Procedure, Schema, Type, TypeId, TypeKind, Union};
use thiserror::Error;

use crate::blittable::Blittables;
use crate::graph;
use crate::layout::Layout;
use crate::links::{is_link, linked_list};
use crate::op::{
    Arm, Blittable, Count, Element, Op, Place, Plan, Plans, ProcedurePlan, Scalar, Size,
};
use crate::position::Position;
use crate::representation::{COUNT_BYTES, Extent, Lists, Representation};
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
    /// The size of an element is wrong.
    #[error("the bytes of an element are not those of its type")]
    Element,
    /// The item may lie at a position that its type does not allow.
    #[error("the position of this is not aligned as it must be")]
    Alignment,
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
    let sizes = Sizes::by_components(schema, plans.representation, &components);
    let blittables = Blittables::new(schema, plans.representation);
    let verifier = Verifier {
        schema,
        representation: plans.representation,
        sizes: &sizes,
        blittables: &blittables,
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
    representation: Representation,
    sizes: &'a Sizes<'a>,
    blittables: &'a Blittables<'a>,
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
        let align = self.sizes.of_message();
        self.plan(&plan.arguments, arguments, (size, align), false)?;
        let (result, size) = match &definition.result {
            Some(ty) => (Layout::Use(ty), self.sizes.of(ty)),
            None => (Layout::Nothing, Size::exactly(0)),
        };
        self.plan(&plan.result, result, (size, align), false)
    }

    fn plan(
        &self,
        plan: &Plan,
        layout: Layout<'_>,
        expected: (Size, u32),
        recursive: bool,
    ) -> Result<(), VerifyError> {
        if (plan.size, plan.align) != expected {
            return Err(self.error("", Problem::Size));
        }
        if plan.recursive != recursive {
            return Err(self.error("", Problem::Recursion));
        }
        let start = Position::aligned(plan.align);
        self.body(&plan.body, layout, start, Block::default())
    }

    /// Of what a body is about, if all such values have the same size.
    fn extent(&self, layout: Layout<'_>) -> Option<Extent> {
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
        mut position: Position,
        mut block: Block,
    ) -> Result<(), VerifyError> {
        let mut expected = Expected::new(self.schema, layout);
        let mut opened = Opened::default();
        // Where padding began that no item has needed yet.
        let mut padded = None;
        for op in body {
            let at = op.place().map(|place| layout.path(self.schema, place));
            let at = at.unwrap_or_else(|| "padding".to_owned());
            let error = |problem| self.error(&at, problem);
            block.take(op, &self.representation).map_err(error)?;
            let is_needless = || padded.is_some_and(|before| self.is_aligned(op, before));
            if !self.is_aligned(op, position) || (op.place().is_some() && is_needless()) {
                return Err(error(Problem::Alignment));
            }
            if let Some(place) = op.place() {
                opened.take(op, place).map_err(error)?;
                let item = expected.take(place).ok_or_else(|| error(Problem::Order))?;
                self.item(op, item, &at, position)?;
                padded = None;
            } else if may_pad(op, position) {
                padded = padded.or(Some(position));
            } else if op.is_reserve() {
                opened.in_block = false;
            }
            position = position.behind(op, self.sizes);
        }
        block
            .close()
            .map_err(|problem| self.error("end", problem))?;
        if let Some(place) = expected.next() {
            return Err(self.error(&layout.path(self.schema, &place), Problem::Missing));
        }
        let align = self.extent(layout).map_or(1, |extent| extent.align);
        let is_needless = padded.is_some_and(|before| before.is_multiple_of(align));
        match position.is_multiple_of(align) && !is_needless {
            true => Ok(()),
            false => Err(self.error("end", Problem::Alignment)),
        }
    }

    /// Whether what an operation moves may lie at a position.
    fn is_aligned(&self, op: &Op, position: Position) -> bool {
        if !self.representation.aligned {
            return true;
        }
        let count = self.representation.count_align();
        let counted = |align: u32| {
            position.is_multiple_of(count) && position.hole(align, COUNT_BYTES) == Some(0)
        };
        match op {
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Copy { .. } => true,
            Op::Put { scalar, .. } | Op::PutArray { scalar, .. } => {
                position.is_multiple_of(self.representation.align(*scalar))
            }
            Op::Blit { item, .. } => position.is_multiple_of(unit_max(item)),
            Op::CopyCounted { .. } => position.is_multiple_of(count),
            Op::PutCounted { scalar, .. } => counted(self.representation.align(*scalar)),
            Op::BlitCounted { item, .. } => counted(unit_max(item)),
            Op::PutElements { count, element, .. } => match count {
                Count::Counted(_) => counted(element.align),
                Count::Fixed(_) => position.is_multiple_of(element.align),
            },
            Op::Loop { count, element, .. } => {
                let align = element.extent.map_or(1, |extent| extent.align);
                match count {
                    Count::Counted(_) => counted(align),
                    Count::Fixed(_) => position.is_multiple_of(align),
                }
            }
            Op::Switch { discriminant, .. } => {
                position.is_multiple_of(self.representation.align(*discriminant))
            }
            Op::Optional { .. } => true,
            Op::List {
                first_bare,
                element,
                ..
            } => match (self.representation.lists, first_bare) {
                (Lists::Counted, _) => position.is_multiple_of(count),
                (Lists::Flagged, false) => true,
                (Lists::Flagged, true) => {
                    position.is_multiple_of(self.sizes.align_of_named(*element))
                }
            },
            Op::Call { plan, .. } => position.is_multiple_of(self.sizes.align_of_named(*plan)),
            Op::External { ty, .. } => position.is_multiple_of(self.sizes.align_of_named(*ty)),
        }
    }

    /// Holds an operation against the type of the item it moves.
    fn item(
        &self,
        op: &Op,
        item: Layout<'_>,
        at: &str,
        position: Position,
    ) -> Result<(), VerifyError> {
        let fits = match item {
            Layout::Nothing => false,
            Layout::Record(fields) => self.is_whole_record(op, fields),
            Layout::Use(ty) => {
                self.fits(op, ty, at, position)? && !matches!(op, Op::External { .. })
            }
            Layout::Definition(id) => {
                self.fits(op, &Type::Named(id), at, position)? && !matches!(op, Op::Call { .. })
            }
        };
        match fits {
            true => Ok(()),
            false => Err(self.error(at, Problem::Type)),
        }
    }

    fn is_whole_record(&self, op: &Op, fields: &[Field]) -> bool {
        match op {
            Op::Blit { item, count: 1, .. } => {
                self.blittables.of_fields(fields).as_ref() == Some(item)
            }
            _ => false,
        }
    }

    fn fits(&self, op: &Op, ty: &Type, at: &str, position: Position) -> Result<bool, VerifyError> {
        let inside = position.inside(op, self.sizes);
        let resolved = self.schema.resolve(ty);
        let is = |expected: Type| *resolved == expected;
        Ok(match op {
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } => false,
            Op::Blit { item, count, .. } => self.is_blittable(ty, item, *count),
            Op::BlitCounted { item, bound, .. } => {
                self.is_array_where(resolved, Length::Counted(*bound), |element| {
                    self.blittables.of(element).as_ref() == Some(item)
                })
            }
            Op::PutElements {
                count,
                element,
                body,
                ..
            } => self.is_loop_of_blocks(resolved, *count, *element, body)?,
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
                element,
                body,
                ..
            } => self.is_loop(resolved, (*count, *element), body, at, inside)?,
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => self.is_switch(resolved, *discriminant, (arms, default.as_deref()), inside)?,
            Op::Optional { body, .. } => self.is_optional(ty, resolved, body, inside)?,
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
        self.is_array_where(ty, length, |element| self.is_scalar(element, scalar))
    }

    fn is_array_where(&self, ty: &Type, length: Length, is: impl FnOnce(&Type) -> bool) -> bool {
        matches!(ty, Type::Array(element, of) if *of == length && is(element))
    }

    /// A value as a whole, or the elements of a fixed array.
    fn is_blittable(&self, ty: &Type, item: &Blittable, count: u32) -> bool {
        let of = |ty: &Type| self.blittables.of(ty).as_ref() == Some(item);
        match self.schema.resolve(ty) {
            Type::Array(element, length) => *length == Length::Fixed(count) && of(element),
            _ => count == 1 && of(ty),
        }
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
        (count, element): (Count, Element),
        body: &[Op],
        at: &str,
        inside: Position,
    ) -> Result<bool, VerifyError> {
        let Type::Array(of, length) = ty else {
            return Ok(false);
        };
        if element != self.sizes.element(of) {
            return Err(self.error(at, Problem::Element));
        }
        self.body(body, Layout::Use(of), inside, Block::default())?;
        Ok(*length == length_of(count))
    }

    fn is_loop_of_blocks(
        &self,
        ty: &Type,
        count: Count,
        element: Extent,
        body: &[Op],
    ) -> Result<bool, VerifyError> {
        let Type::Array(of, length) = ty else {
            return Ok(false);
        };
        let start = Position::aligned(element.align);
        self.body(body, Layout::Use(of), start, Block::of(element.bytes))?;
        let is_fixed = self.sizes.fixed(of) == Some(element) && body.iter().all(Op::is_fixed);
        Ok(*length == length_of(count) && is_fixed)
    }

    fn is_optional(
        &self,
        ty: &Type,
        resolved: &Type,
        body: &[Op],
        inside: Position,
    ) -> Result<bool, VerifyError> {
        let Type::Optional(to) = resolved else {
            return Ok(false);
        };
        self.body(body, Layout::Use(to), inside, Block::default())?;
        Ok(linked_list(self.schema, ty).is_none())
    }

    fn is_switch(
        &self,
        ty: &Type,
        discriminant: Scalar,
        (arms, default): (&[Arm], Option<&[Op]>),
        inside: Position,
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
            self.arm(&arm.body, of.field.as_ref(), inside)?;
        }
        if let (Some(body), Some(of)) = (default, &union.default) {
            self.arm(body, of.as_ref(), inside)?;
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

    fn arm(&self, body: &[Op], field: Option<&Field>, inside: Position) -> Result<(), VerifyError> {
        self.body(body, Layout::of_arm(field), inside, Block::default())
    }
}

/// Whether an operation may write padding.
fn may_pad(op: &Op, position: Position) -> bool {
    match op {
        Op::Align { to, before } => position.hole(*to, *before) != Some(0),
        Op::Zero { bytes, .. } => *bytes > 0,
        _ => false,
    }
}

fn length_of(count: Count) -> Length {
    match count {
        Count::Fixed(count) => Length::Fixed(count),
        Count::Counted(bound) => Length::Counted(bound),
    }
}

/// What the position of a block of numbers is a multiple of.
fn unit_max(item: &Blittable) -> u32 {
    item.runs.iter().map(|run| run.unit).max().unwrap_or(1)
}

/// The items that are still to come. A struct may be moved as a whole or field by field.
struct Expected<'a> {
    schema: &'a Schema,
    /// The next one last.
    items: Vec<(Place, Layout<'a>)>,
}

impl<'a> Expected<'a> {
    fn new(schema: &'a Schema, layout: Layout<'a>) -> Self {
        Self {
            schema,
            items: vec![(Place::it(), layout)],
        }
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
        let in_block = op.is_fixed();
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
    fn of(bytes: u64) -> Self {
        Self { bytes, filled: 0 }
    }

    /// Opens a block, takes an item into it, or closes it in front of an operation that makes its
    /// own check.
    fn take(&mut self, op: &Op, representation: &Representation) -> Result<(), Problem> {
        if let Op::Reserve { bytes } = op {
            self.close()?;
            *self = Self::of(u64::from(*bytes));
            return Ok(());
        }
        let Some((offset, bytes)) = op.fixed(representation) else {
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
