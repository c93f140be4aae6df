//! The traits that a type gets: derived ones, and those that are written out.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use tenon_plan::Scalar;
use tenon_schema::{TypeId, TypeKind};

use super::shape::{TypeShape, TypeShapes};

/// Longest array for which the standard library has `Default`.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// The traits of the types of a schema.
pub struct TypeTraits<'a> {
    shapes: &'a TypeShapes<'a>,
    inexact: RefCell<HashMap<TypeId, bool>>,
    /// Of each recursive union, the position among its arms of the one that its default holds.
    default_arms: HashMap<TypeId, usize>,
}

impl<'a> TypeTraits<'a> {
    /// For the types that `shapes` knows.
    pub fn new(shapes: &'a TypeShapes<'a>) -> Self {
        Self {
            shapes,
            inexact: RefCell::default(),
            default_arms: default_arms(shapes),
        }
    }

    /// Returns whether equality of such a value is total, so that it can be `Eq` and `Hash`.
    pub fn is_exact(&self, id: TypeId) -> bool {
        !self.is_inexact(id)
    }

    /// Returns whether a floating point number or an unknown type is somewhere inside.
    fn is_inexact(&self, id: TypeId) -> bool {
        if let Some(known) = self.inexact.borrow().get(&id) {
            return *known;
        }
        let (mut seen, mut open) = (HashSet::new(), vec![id]);
        let mut inexact = false;
        while let Some(id) = open.pop().filter(|_| !inexact) {
            if seen.insert(id) {
                for shape in self.shapes.parts(id).iter().flatten() {
                    inexact |= inner_inexact(shape, &mut open);
                }
                inexact |= self.shapes.schema.type_def(id).kind == TypeKind::External;
            }
        }
        self.inexact.borrow_mut().insert(id, inexact);
        inexact
    }

    /// Returns whether `Default::default()` makes such a value.
    pub fn has_default(&self, shape: &TypeShape) -> bool {
        match shape {
            TypeShape::Bytes(bytes) => *bytes <= DEFAULT_ARRAY_MAX,
            TypeShape::Array(element, count) => {
                *count <= DEFAULT_ARRAY_MAX && self.has_default(element)
            }
            TypeShape::Boxed(to) | TypeShape::Alias(_, to) => self.has_default(to),
            TypeShape::Scalar(_) | TypeShape::Opaque | TypeShape::Text => true,
            TypeShape::Vec(_) | TypeShape::Option(_) | TypeShape::Named(_) => true,
        }
    }

    /// The position of the arm that the default of the union `id` holds.
    pub fn default_arm(&self, id: TypeId) -> usize {
        self.default_arms.get(&id).copied().unwrap_or(0)
    }
}

/// Returns whether the shape itself is inexact; named types inside go to `open`.
fn inner_inexact(shape: &TypeShape, open: &mut Vec<TypeId>) -> bool {
    match shape {
        TypeShape::Scalar(scalar) => matches!(scalar, Scalar::F32 | Scalar::F64),
        TypeShape::Bytes(_) | TypeShape::Opaque | TypeShape::Text => false,
        TypeShape::Named(id) => {
            open.push(*id);
            false
        }
        TypeShape::Array(to, _) | TypeShape::Vec(to) | TypeShape::Option(to) => {
            inner_inexact(to, open)
        }
        TypeShape::Boxed(to) | TypeShape::Alias(_, to) => inner_inexact(to, open),
    }
}

/// Finds an arm for each recursive union that does not lead back to it, so that defaults end.
/// In each round types are added if their parts were added in the rounds before.
fn default_arms(shapes: &TypeShapes<'_>) -> HashMap<TypeId, usize> {
    let ids = (0..shapes.schema.types.len() as u32).map(TypeId);
    let mut open: Vec<_> = ids.filter(|id| shapes.is_recursive(*id)).collect();
    let (mut ending, mut chosen) = (HashSet::new(), HashMap::new());
    loop {
        let before = open.len();
        open.retain(|id| {
            let parts = shapes.parts(*id);
            let ends = |part: &Option<TypeShape>| {
                part.as_ref()
                    .is_none_or(|shape| ends(shapes, shape, &ending))
            };
            let done = match &shapes.schema.type_def(*id).kind {
                TypeKind::Union(_) => match parts.iter().position(ends) {
                    Some(arm) => chosen.insert(*id, arm).is_none(),
                    None => false,
                },
                _ => parts.iter().all(ends),
            };
            if done {
                ending.insert(*id);
            }
            !done
        });
        if open.len() == before {
            return chosen;
        }
    }
}

fn ends(shapes: &TypeShapes<'_>, shape: &TypeShape, ending: &HashSet<TypeId>) -> bool {
    match shape {
        TypeShape::Named(id) => !shapes.is_recursive(*id) || ending.contains(id),
        TypeShape::Array(to, _) | TypeShape::Boxed(to) | TypeShape::Alias(_, to) => {
            ends(shapes, to, ending)
        }
        TypeShape::Scalar(_) | TypeShape::Bytes(_) | TypeShape::Opaque | TypeShape::Text => true,
        TypeShape::Vec(_) | TypeShape::Option(_) => true,
    }
}
