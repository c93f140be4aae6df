//! How many bytes the values of each type take on the wire (RFC 4506).

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use crate::Size;
use crate::graph::{self, Components};
use crate::links::{linked_list, memory_fields};
use crate::op::Scalar;

/// A size that has not been found to end (yet).
const ENDLESS: Size = Size {
    min: u64::MAX,
    max: None,
};

/// The sizes of all types of an interface.
#[derive(Debug)]
pub struct Sizes<'a> {
    schema: &'a Schema,
    types: Vec<Size>,
}

impl<'a> Sizes<'a> {
    /// Computes them. A type with no finite value has a `min` of `u64::MAX`.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have, or has a typedef that leads only
    /// to itself; [`lower`](crate::lower) refuses such.
    pub fn new(schema: &'a Schema) -> Self {
        Self::by_components(schema, &graph::components(schema))
    }

    pub(crate) fn by_components(schema: &'a Schema, components: &Components) -> Self {
        let mut sizes = Self {
            schema,
            types: vec![ENDLESS; schema.types.len()],
        };
        for members in &components.order {
            while sizes.improve(members) {}
            for id in members.iter().filter(|id| components.is_cyclic(**id)) {
                sizes.types[id.0 as usize].max = None;
            }
        }
        sizes
    }

    /// Computes the members once more from each other. The fewest bytes only ever fall, and
    /// each round settles at least one of them.
    fn improve(&mut self, members: &[TypeId]) -> bool {
        let mut changed = false;
        for id in members {
            let size = self.definition(*id);
            let known = &mut self.types[id.0 as usize];
            changed |= size.min != known.min;
            *known = size;
        }
        changed
    }

    fn definition(&self, id: TypeId) -> Size {
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => Size::exactly(4),
            TypeKind::External => Size { min: 0, max: None },
            TypeKind::Typedef(to) => self.of(to),
            TypeKind::Struct(_) => {
                self.of_fields(memory_fields(self.schema, id).unwrap_or_default())
            }
            TypeKind::Union(union) => {
                let arms = union.arms.iter().map(|arm| &arm.field);
                let alternatives = arms.chain(&union.default);
                let sizes = alternatives.map(|field| self.of_fields(field.as_slice()));
                Size::exactly(4).then(sizes.reduce(Size::or).unwrap_or(ENDLESS))
            }
        }
    }

    /// Of fields one behind the other.
    pub fn of_fields(&self, fields: &[Field]) -> Size {
        let sizes = fields.iter().map(|field| self.of(&field.ty));
        sizes.fold(Size::exactly(0), Size::then)
    }

    /// Of a type as it is used.
    pub fn of(&self, ty: &Type) -> Size {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.of_list(list.element, list.first_bare);
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return Size::exactly(scalar.wire_bytes().into());
        }
        match self.schema.resolve(ty) {
            Type::Opaque(length) => bytes(*length),
            Type::String(bound) => bytes(Length::Counted(*bound)),
            Type::Array(element, Length::Fixed(count)) => self.of(element).times(*count),
            Type::Array(element, Length::Counted(bound)) => {
                Size::exactly(4).then(self.of(element).up_to(*bound))
            }
            Type::Optional(to) => Size::exactly(4).then(self.of(to).up_to(1)),
            Type::Named(id) => self.of_named(*id),
            _ => ENDLESS,
        }
    }

    /// Of what the plan of a named type moves: of a link, one element.
    pub fn of_named(&self, id: TypeId) -> Size {
        self.types[id.0 as usize]
    }

    fn of_list(&self, element: TypeId, first_bare: bool) -> Size {
        let first = if first_bare {
            self.of_named(element).min
        } else {
            0
        };
        Size {
            min: first.saturating_add(4),
            max: None,
        }
    }
}

fn bytes(length: Length) -> Size {
    let padded = |bytes: u32| Size::exactly(u64::from(bytes).next_multiple_of(4));
    match length {
        Length::Fixed(bytes) => padded(bytes),
        Length::Counted(u32::MAX) => Size { min: 4, max: None },
        Length::Counted(bound) => Size::exactly(4).then(padded(bound).up_to(1)),
    }
}

impl Size {
    /// Always so many bytes.
    pub fn exactly(bytes: u64) -> Self {
        Self {
            min: bytes,
            max: Some(bytes),
        }
    }

    /// The fewest bytes, as a plan holds them.
    pub(crate) fn min_u32(self) -> u32 {
        u32::try_from(self.min).unwrap_or(u32::MAX)
    }

    fn then(self, next: Self) -> Self {
        Self {
            min: self.min.saturating_add(next.min),
            max: both(self.max, next.max, u64::checked_add),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: both(self.max, other.max, |a, b| Some(a.max(b))),
        }
    }

    fn times(self, count: u32) -> Self {
        Self {
            min: self.min.saturating_mul(count.into()),
            max: self.max.and_then(|max| max.checked_mul(count.into())),
        }
    }

    /// From none to `bound` of them; `u32::MAX` is no bound.
    fn up_to(self, bound: u32) -> Self {
        let max = match bound {
            u32::MAX => None,
            bound => self.times(bound).max,
        };
        Self { min: 0, max }
    }
}

fn both(a: Option<u64>, b: Option<u64>, join: fn(u64, u64) -> Option<u64>) -> Option<u64> {
    join(a?, b?)
}
