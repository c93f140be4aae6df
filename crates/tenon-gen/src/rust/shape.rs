//! The shapes of values in memory. The one place that decides on boxes; boxed are:
//!
//! - a struct or union inside itself, through whatever lies between, unless a `Vec` does;
//! - a fixed array of more than [`ARRAY_MAX`] bytes, and one of more than [`NESTED_ARRAY_MAX`] inside
//!   a struct or union that contains itself;
//! - an arm of a union of more than [`ARM_MAX`] bytes beside arms that are much smaller.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use tenon_plan::links::{linked_list, memory_fields};
use tenon_plan::{ARRAY_MAX, NESTED_ARRAY_MAX, Plans, Scalar, TypeClass};
use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind, Union};

/// Most bytes of an arm that is no box though the others are smaller.
const ARM_MAX: u64 = 512;

/// The factor by which an arm must be larger than the next to be boxed.
const ARM_RATIO: u64 = 4;

/// Most bytes of a type that is `Copy`.
const COPY_MAX: u64 = 64;

/// The shape of an item in memory: its Rust type.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeShape {
    /// A number, a boolean or an enum.
    Scalar(Scalar),
    /// `[u8; n]`
    Bytes(u32),
    /// `Vec<u8>`
    Opaque,
    /// `BString`
    Text,
    /// `[T; n]`
    Array(Box<TypeShape>, u32),
    /// `Vec<T>`
    Vec(Box<TypeShape>),
    /// `Option<T>`
    Option(Box<TypeShape>),
    /// `Box<T>`
    Boxed(Box<TypeShape>),
    /// A struct, a union or an external type.
    Named(TypeId),
    /// A typedef and the shape that it stands for.
    Alias(TypeId, Box<TypeShape>),
}

impl TypeShape {
    /// The shape behind typedefs.
    pub fn real(&self) -> &TypeShape {
        match self {
            Self::Alias(_, shape) => shape.real(),
            shape => shape,
        }
    }

    /// Returns the struct, union or external type that it is.
    ///
    /// # Panics
    /// If it is none: the verifier lets plans look for fields and arms where there are some.
    pub fn definition(&self) -> TypeId {
        match self.real() {
            Self::Named(id) => *id,
            other => unreachable!("{other:?} has no parts, though a plan leads to some"),
        }
    }

    /// Returns the shape of the elements of an array, or of what an option holds.
    ///
    /// # Panics
    /// If it is none of these: the verifier lets plans look for elements where there are some.
    pub fn element(&self) -> &Self {
        match self.real() {
            Self::Array(element, _) | Self::Vec(element) | Self::Option(element) => element,
            Self::Boxed(inner) => inner.element(),
            other => unreachable!("{other:?} has no elements, though a plan leads to some"),
        }
    }
}

/// The shapes of the types of a schema.
pub struct TypeShapes<'a> {
    /// The interface.
    pub schema: &'a Schema,
    plans: &'a Plans,
    sizes: RefCell<HashMap<TypeId, u64>>,
    flat: RefCell<HashMap<TypeId, bool>>,
}

impl<'a> TypeShapes<'a> {
    /// The shapes of the types of `schema`, which has `plans`.
    pub fn new(schema: &'a Schema, plans: &'a Plans) -> Self {
        Self {
            schema,
            plans,
            sizes: RefCell::default(),
            flat: RefCell::default(),
        }
    }

    /// The shape of a parameter or a result.
    pub fn of(&self, ty: &Type) -> TypeShape {
        self.inside(ty, None)
    }

    /// The fields of the struct `id` in memory, with their shapes.
    pub fn fields(&self, id: TypeId) -> Vec<(&'a Field, TypeShape)> {
        let fields = memory_fields(self.schema, id).unwrap_or_default().iter();
        fields
            .map(|field| (field, self.inside(&field.ty, Some(id))))
            .collect()
    }

    /// Returns the shape that the typedef `id` stands for.
    pub fn target(&self, id: TypeId, to: &Type) -> TypeShape {
        self.inside(to, Some(id))
    }

    /// Returns the shape that each arm of the union `id` holds, the default arm last; `None` is nothing.
    pub fn arms(&self, id: TypeId, union: &Union) -> Vec<Option<TypeShape>> {
        let default = union.default.iter().map(Option::as_ref);
        let held = union
            .arms
            .iter()
            .map(|arm| arm.field.as_ref())
            .chain(default);
        let shapes: Vec<_> = held
            .map(|field| field.map(|field| self.inside(&field.ty, Some(id))))
            .collect();
        let mut sizes: Vec<_> = shapes
            .iter()
            .flatten()
            .map(|shape| self.size(shape))
            .collect();
        sizes.sort_unstable();
        let box_above = sizes
            .iter()
            .rev()
            .nth(1)
            .map_or(0, |next| next * ARM_RATIO)
            .max(ARM_MAX);
        let boxed = |shape| match self.size(&shape) > box_above && shapes.len() > 1 {
            true => TypeShape::Boxed(Box::new(shape)),
            false => shape,
        };
        shapes
            .iter()
            .cloned()
            .map(|shape| shape.map(boxed))
            .collect()
    }

    /// Returns the shapes that a struct or a union holds: of each field, or of each arm, the default last.
    pub fn parts(&self, id: TypeId) -> Vec<Option<TypeShape>> {
        match &self.schema.type_def(id).kind {
            TypeKind::Struct(_) => {
                let fields = self.fields(id).into_iter();
                fields.map(|(_, shape)| Some(shape)).collect()
            }
            TypeKind::Union(union) => self.arms(id, union),
            TypeKind::Typedef(to) => vec![Some(self.target(id, to))],
            TypeKind::Enum(_) | TypeKind::External => Vec::new(),
        }
    }

    /// Returns whether a value may hold another of its type, lists of it apart.
    pub fn is_recursive(&self, id: TypeId) -> bool {
        self.plans.of_type(id).recursive
    }

    /// The shape of `ty` inside the type `owner`.
    fn inside(&self, ty: &Type, owner: Option<TypeId>) -> TypeShape {
        if let (Some(list), false) = (linked_list(self.schema, ty), self.is_typedef(ty)) {
            return TypeShape::Vec(Box::new(TypeShape::Named(list.element)));
        }
        let inner = |ty: &Type| Box::new(self.inside(ty, owner));
        match TypeClass::of(ty) {
            TypeClass::Scalar(scalar) => TypeShape::Scalar(scalar),
            TypeClass::Named(id) => self.named(id, owner),
            TypeClass::Opaque(Length::Fixed(bytes)) => self.spread(TypeShape::Bytes(bytes), owner),
            TypeClass::Opaque(Length::Counted(_)) => TypeShape::Opaque,
            TypeClass::String(_) => TypeShape::Text,
            TypeClass::Array(element, Length::Fixed(count)) => {
                self.spread(TypeShape::Array(inner(element), count), owner)
            }
            TypeClass::Array(element, Length::Counted(_)) => {
                TypeShape::Vec(Box::new(self.of(element)))
            }
            TypeClass::Optional(to) => TypeShape::Option(inner(to)),
        }
    }

    fn is_typedef(&self, ty: &Type) -> bool {
        let Type::Named(id) = ty else { return false };
        matches!(self.schema.type_def(*id).kind, TypeKind::Typedef(_))
    }

    fn named(&self, id: TypeId, owner: Option<TypeId>) -> TypeShape {
        match &self.schema.type_def(id).kind {
            TypeKind::Typedef(to) => {
                let target = TypeShape::Alias(id, Box::new(self.target(id, to)));
                match target.real() {
                    TypeShape::Bytes(_) | TypeShape::Array(..) => self.spread(target, owner),
                    _ => target,
                }
            }
            TypeKind::Enum(_) => TypeShape::Scalar(Scalar::Enum(id)),
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::External => {
                match owner.is_some_and(|owner| self.contains(id, owner)) {
                    true => TypeShape::Boxed(Box::new(TypeShape::Named(id))),
                    false => TypeShape::Named(id),
                }
            }
        }
    }

    /// A fixed array inside the type `owner`, in a box if it is large.
    fn spread(&self, shape: TypeShape, owner: Option<TypeId>) -> TypeShape {
        let most = match owner.is_some_and(|owner| self.is_recursive(owner)) {
            true => NESTED_ARRAY_MAX,
            false => ARRAY_MAX,
        };
        match self.size(&shape) > most {
            true => TypeShape::Boxed(Box::new(shape)),
            false => shape,
        }
    }

    /// Returns whether a value of `outer` may hold one of `inner` with no `Vec` between them.
    fn contains(&self, outer: TypeId, inner: TypeId) -> bool {
        if !self.is_recursive(outer) {
            return false;
        }
        let (mut seen, mut open) = (HashSet::new(), vec![outer]);
        while let Some(id) = open.pop() {
            if id == inner {
                return true;
            }
            if seen.insert(id) {
                open.extend(self.held_directly(id));
            }
        }
        false
    }

    /// The named types that a value of `id` holds with no `Vec` between them.
    fn held_directly(&self, id: TypeId) -> Vec<TypeId> {
        let types: Vec<&Type> = match &self.schema.type_def(id).kind {
            TypeKind::Struct(_) => {
                let fields = memory_fields(self.schema, id).unwrap_or_default();
                fields.iter().map(|field| &field.ty).collect()
            }
            TypeKind::Union(union) => fields_of(union).map(|field| &field.ty).collect(),
            TypeKind::Typedef(to) => vec![to],
            TypeKind::Enum(_) | TypeKind::External => Vec::new(),
        };
        types
            .into_iter()
            .filter_map(|ty| self.named_directly(ty))
            .collect()
    }

    fn named_directly(&self, ty: &Type) -> Option<TypeId> {
        match ty {
            _ if linked_list(self.schema, ty).is_some() => None,
            Type::Named(id) => Some(*id),
            Type::Optional(to) | Type::Array(to, Length::Fixed(_)) => self.named_directly(to),
            _ => None,
        }
    }

    /// Estimates the bytes of memory that the shape takes, without those that it points to.
    pub fn size(&self, shape: &TypeShape) -> u64 {
        match shape {
            TypeShape::Scalar(scalar) => scalar_size(*scalar),
            TypeShape::Bytes(bytes) => u64::from(*bytes),
            TypeShape::Opaque | TypeShape::Text | TypeShape::Vec(_) => 24,
            TypeShape::Array(element, count) => {
                self.size(element).saturating_mul(u64::from(*count))
            }
            TypeShape::Option(to) => match **to {
                TypeShape::Boxed(_) => 8,
                _ => self.size(to).saturating_add(8),
            },
            TypeShape::Boxed(_) => 8,
            TypeShape::Named(id) => self.size_of_named(*id),
            TypeShape::Alias(_, to) => self.size(to),
        }
    }

    fn size_of_named(&self, id: TypeId) -> u64 {
        if let Some(size) = self.sizes.borrow().get(&id) {
            return *size;
        }
        let size = match &self.schema.type_def(id).kind {
            TypeKind::Union(union) => {
                let arms = self.arms(id, union);
                let largest = arms.iter().flatten().map(|shape| self.size(shape)).max();
                largest.unwrap_or(0).saturating_add(8)
            }
            _ => {
                let fields = self.fields(id);
                let sizes = fields.iter().map(|(_, shape)| self.size(shape));
                sizes.fold(0, u64::saturating_add)
            }
        };
        self.sizes.borrow_mut().insert(id, size);
        size
    }

    /// Returns whether a value is copied by copying its bytes, and small enough to be `Copy`.
    pub fn is_copy(&self, shape: &TypeShape) -> bool {
        self.size(shape) <= COPY_MAX && self.is_flat(shape)
    }

    fn is_flat(&self, shape: &TypeShape) -> bool {
        match shape {
            TypeShape::Scalar(_) | TypeShape::Bytes(_) => true,
            TypeShape::Opaque | TypeShape::Text | TypeShape::Vec(_) | TypeShape::Boxed(_) => false,
            TypeShape::Array(to, _) | TypeShape::Option(to) | TypeShape::Alias(_, to) => {
                self.is_flat(to)
            }
            TypeShape::Named(id) => self.is_named_flat(*id),
        }
    }

    fn is_named_flat(&self, id: TypeId) -> bool {
        if let Some(known) = self.flat.borrow().get(&id) {
            return *known;
        }
        let is_known = self.schema.type_def(id).kind != TypeKind::External;
        let flat = is_known
            && self.size_of_named(id) <= COPY_MAX
            && self
                .parts(id)
                .iter()
                .flatten()
                .all(|shape| self.is_flat(shape));
        self.flat.borrow_mut().insert(id, flat);
        flat
    }
}

/// Returns the fields that the arms of a union hold, the default arm last.
fn fields_of(union: &Union) -> impl Iterator<Item = &Field> {
    let default = union.default.iter().flatten();
    union
        .arms
        .iter()
        .filter_map(|arm| arm.field.as_ref())
        .chain(default)
}

fn scalar_size(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::I8 | Scalar::U8 | Scalar::Bool => 1,
        Scalar::I16 | Scalar::U16 => 2,
        Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::Enum(_) => 4,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        Scalar::F128 => 16,
    }
}
