//! Sizes of the values of each type on the wire, and the positions at which they may begin.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};

use crate::WireSize;
use crate::graph::{self, StronglyConnectedComponents};
use crate::item::Scalar;
use crate::links::{LinkedList, is_link, linked_list, memory_fields};
use crate::op::ElementSize;
use crate::representation::{COUNT_BYTES, Lists, MESSAGE_ALIGN, Representation, WireExtent};

/// A size that has not been found to end (yet).
const ENDLESS: WireSize = WireSize {
    min: u64::MAX,
    max: None,
};

/// The sizes of all types of an interface in one representation.
#[derive(Debug)]
pub struct Sizes<'a> {
    schema: &'a Schema,
    representation: Representation,
    types: Vec<WireSize>,
    /// Extents of those types of which all values have the same size by their structure.
    fixed: Vec<Option<WireExtent>>,
}

impl<'a> Sizes<'a> {
    /// Computes them. A type with no finite value has a `min` of `u64::MAX`.
    ///
    /// # Panics
    /// If the schema refers to a type that it does not have, or has a typedef that leads only
    /// to itself; [`lower`](crate::lower) refuses such.
    pub fn new(schema: &'a Schema, representation: Representation) -> Self {
        Self::by_components(schema, representation, &graph::components(schema))
    }

    pub(crate) fn by_components(
        schema: &'a Schema,
        representation: Representation,
        components: &StronglyConnectedComponents,
    ) -> Self {
        let mut sizes = Self {
            schema,
            representation,
            types: vec![ENDLESS; schema.types.len()],
            fixed: vec![None; schema.types.len()],
        };
        for members in &components.order {
            for id in members.iter().filter(|id| !components.is_cyclic(**id)) {
                sizes.fixed[id.0 as usize] = sizes.fixed_definition(*id);
            }
            while sizes.improve(members) {}
            for id in members.iter().filter(|id| components.is_cyclic(**id)) {
                sizes.types[id.0 as usize].max = None;
            }
        }
        sizes
    }

    /// Returns the representation that the sizes are for.
    pub fn representation(&self) -> Representation {
        self.representation
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

    fn definition(&self, id: TypeId) -> WireSize {
        if let Some(extent) = self.fixed[id.0 as usize] {
            return WireSize::exactly(extent.bytes);
        }
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => self.of_scalar(Scalar::Enum(id)),
            TypeKind::External => WireSize { min: 0, max: None },
            TypeKind::Typedef(to) => self.of(to),
            TypeKind::Struct(_) => {
                self.of_fields(memory_fields(self.schema, id).unwrap_or_default())
            }
            TypeKind::Union(union) => self.of_union(union),
        }
    }

    fn of_union(&self, union: &Union) -> WireSize {
        let sizes = union.alternatives().map(|field| match field {
            Some(field) => self.behind_a_hole(self.of(&field.ty)),
            None => WireSize::exactly(0),
        });
        let held = sizes.reduce(WireSize::or).unwrap_or(ENDLESS);
        let discriminant = Scalar::of(self.schema, &union.discriminant_type);
        discriminant.map_or(ENDLESS, |scalar| self.of_scalar(scalar).then(held))
    }

    fn fixed_definition(&self, id: TypeId) -> Option<WireExtent> {
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => Some(self.extent_of(Scalar::Enum(id))),
            TypeKind::Typedef(to) => self.fixed(to),
            TypeKind::Struct(fields) if !is_link(self.schema, id) => self.fixed_fields(fields),
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::External => None,
        }
    }

    /// Of a type as it is used, if all its values have the same size by their structure.
    pub fn fixed(&self, ty: &Type) -> Option<WireExtent> {
        if linked_list(self.schema, ty).is_some() {
            return None;
        }
        if let Some(scalar) = Scalar::of(self.schema, ty) {
            return Some(self.extent_of(scalar));
        }
        match self.schema.resolve(ty) {
            Type::Opaque(Length::Fixed(bytes)) => Some(WireExtent {
                bytes: self.representation.padded(u64::from(*bytes)),
                align: 1,
            }),
            Type::Array(element, Length::Fixed(count)) => Some(self.fixed(element)?.times(*count)),
            Type::Named(id) => self.fixed_named(*id),
            _ => None,
        }
    }

    /// Of a named type, if all its values have the same size by their structure.
    pub fn fixed_named(&self, id: TypeId) -> Option<WireExtent> {
        self.fixed[id.0 as usize]
    }

    /// Of fields one behind the other, as [`fixed`](Self::fixed).
    pub fn fixed_fields(&self, fields: &[Field]) -> Option<WireExtent> {
        let mut extents = fields.iter().map(|field| self.fixed(&field.ty));
        let all = extents.try_fold(WireExtent::NOTHING, |all, extent| Some(all.then(extent?)));
        all.map(WireExtent::closed)
    }

    fn extent_of(&self, scalar: Scalar) -> WireExtent {
        WireExtent {
            bytes: self.representation.bytes(scalar).into(),
            align: self.representation.align(scalar),
        }
    }

    fn of_scalar(&self, scalar: Scalar) -> WireSize {
        WireSize::exactly(self.representation.bytes(scalar).into())
    }

    /// Of fields one behind the other.
    pub fn of_fields(&self, fields: &[Field]) -> WireSize {
        if let Some(extent) = self.fixed_fields(fields) {
            return WireSize::exactly(extent.bytes);
        }
        let sizes = fields.iter().map(|field| self.of(&field.ty));
        sizes.fold(WireSize::exactly(0), |all, size| {
            all.then(self.behind_a_hole(size))
        })
    }

    /// Of a type as it is used.
    pub fn of(&self, ty: &Type) -> WireSize {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.of_list(list);
        }
        if let Some(extent) = self.fixed(ty) {
            return WireSize::exactly(extent.bytes);
        }
        match self.schema.resolve(ty) {
            Type::Opaque(length) => self.of_bytes(*length),
            Type::String(bound) => self.of_bytes(Length::Counted(*bound)),
            Type::Array(element, Length::Fixed(count)) => {
                self.behind_a_hole(self.of(element)).times(*count)
            }
            Type::Array(element, Length::Counted(bound)) => {
                let element = self.behind_a_hole(self.of(element));
                WireSize::exactly(COUNT_BYTES.into()).then(element.up_to(*bound))
            }
            Type::Optional(to) => {
                let held = self.behind_a_hole(self.of(to));
                self.of_scalar(Scalar::Bool).then(held.up_to(1))
            }
            Type::Named(id) => self.of_named(*id),
            _ => ENDLESS,
        }
    }

    /// Of what the plan of a named type moves: of a link, one element.
    pub fn of_named(&self, id: TypeId) -> WireSize {
        self.types[id.0 as usize]
    }

    /// Returns the known size of the elements of an array.
    pub fn element(&self, ty: &Type) -> ElementSize {
        ElementSize {
            min: self.of(ty).min_u32(),
            extent: self.fixed(ty),
        }
    }

    fn of_list(&self, list: LinkedList) -> WireSize {
        let first = match list.first_bare {
            true => self.of_named(list.element).min,
            false => 0,
        };
        let rest = match self.representation.lists {
            Lists::Flagged => self.representation.bytes(Scalar::Bool),
            Lists::Counted => COUNT_BYTES,
        };
        WireSize {
            min: first.saturating_add(rest.into()),
            max: None,
        }
    }

    fn of_bytes(&self, length: Length) -> WireSize {
        let padded = |bytes: u32| WireSize::exactly(self.representation.padded(bytes.into()));
        let count = WireSize::exactly(COUNT_BYTES.into());
        match length {
            Length::Fixed(bytes) => padded(bytes),
            Length::Counted(u32::MAX) => WireSize { max: None, ..count },
            Length::Counted(bound) => count.then(padded(bound).up_to(1)),
        }
    }

    /// Adds the hole that there may be in front of an item that follows another, if items are aligned.
    fn behind_a_hole(&self, size: WireSize) -> WireSize {
        let hole = match self.representation.aligned {
            true => u64::from(MESSAGE_ALIGN) - 1,
            false => 0,
        };
        let max = size.max.and_then(|max| max.checked_add(hole));
        WireSize { max, ..size }
    }

    /// Returns the alignment of the position of a value, as it is used.
    pub fn align(&self, ty: &Type) -> u32 {
        if let Some(list) = linked_list(self.schema, ty) {
            return self.align_of_list(list);
        }
        if let Some(extent) = self.fixed(ty) {
            return extent.align;
        }
        match self.schema.resolve(ty) {
            Type::Array(element, Length::Fixed(_)) => self.align(element),
            Type::Opaque(_) | Type::String(_) | Type::Array(..) => {
                self.representation.count_align()
            }
            Type::Optional(_) => self.representation.align(Scalar::Bool),
            Type::Named(id) => self.align_of_named(*id),
            _ => 1,
        }
    }

    /// Returns the alignment of the position of a value that the plan of a named type moves.
    pub fn align_of_named(&self, id: TypeId) -> u32 {
        if let Some(extent) = self.fixed_named(id) {
            return extent.align;
        }
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(_) => self.representation.align(Scalar::Enum(id)),
            TypeKind::External => self.of_message(),
            TypeKind::Typedef(to) => self.align(to),
            TypeKind::Struct(_) => {
                self.align_of_fields(memory_fields(self.schema, id).unwrap_or_default())
            }
            TypeKind::Union(union) => self.align(&union.discriminant_type),
        }
    }

    /// Of fields one behind the other. Up to the first one of varying size they then lie at known
    /// offsets.
    fn align_of_fields(&self, fields: &[Field]) -> u32 {
        let varies = |field: &Field| self.fixed(&field.ty).is_none();
        let known = fields
            .iter()
            .position(varies)
            .map_or(fields.len(), |at| at + 1);
        let aligns = fields[..known].iter().map(|field| self.align(&field.ty));
        aligns.max().unwrap_or(1)
    }

    fn align_of_list(&self, list: LinkedList) -> u32 {
        match (self.representation.lists, list.first_bare) {
            (Lists::Counted, _) => self.representation.count_align(),
            (Lists::Flagged, false) => self.representation.align(Scalar::Bool),
            (Lists::Flagged, true) => self.align_of_named(list.element),
        }
    }

    /// Returns the alignment of the position of a message.
    pub fn of_message(&self) -> u32 {
        match self.representation.aligned {
            true => MESSAGE_ALIGN,
            false => 1,
        }
    }
}

impl WireSize {
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
