//! Which traits a type gets: what can be derived, and what is written out.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use tenon_plan::Scalar;
use tenon_schema::{TypeId, TypeKind};

use super::shape::{Shape, Shapes};

/// Longest array for which the standard library has `Default`.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// Answers which traits the types of a schema have.
pub struct Traits<'a> {
    shapes: &'a Shapes<'a>,
    inexact: RefCell<HashMap<TypeId, bool>>,
    /// Of each recursive union, the position among its arms of the one that its default holds.
    default_arms: HashMap<TypeId, usize>,
}

impl<'a> Traits<'a> {
    /// For the types that `shapes` knows.
    pub fn new(shapes: &'a Shapes<'a>) -> Self {
        Self {
            shapes,
            inexact: RefCell::default(),
            default_arms: default_arms(shapes),
        }
    }

    /// Whether equality of such a value is total, so that it can be `Eq` and `Hash`.
    pub fn is_exact(&self, id: TypeId) -> bool {
        !self.is_inexact(id)
    }

    /// Whether a floating point number or an unknown type is somewhere inside.
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

    /// Whether `Default::default()` makes such a value.
    pub fn has_default(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Bytes(bytes) => *bytes <= DEFAULT_ARRAY_MAX,
            Shape::Array(element, count) => {
                *count <= DEFAULT_ARRAY_MAX && self.has_default(element)
            }
            Shape::Boxed(to) | Shape::Alias(_, to) => self.has_default(to),
            Shape::Scalar(_) | Shape::Opaque | Shape::Text => true,
            Shape::Vec(_) | Shape::Option(_) | Shape::Named(_) => true,
        }
    }

    /// The position of the arm that the default of the union `id` holds.
    pub fn default_arm(&self, id: TypeId) -> usize {
        self.default_arms.get(&id).copied().unwrap_or(0)
    }
}

/// Whether the shape itself is inexact; named types inside go to `open`.
fn inner_inexact(shape: &Shape, open: &mut Vec<TypeId>) -> bool {
    match shape {
        Shape::Scalar(scalar) => matches!(scalar, Scalar::F32 | Scalar::F64),
        Shape::Bytes(_) | Shape::Opaque | Shape::Text => false,
        Shape::Named(id) => {
            open.push(*id);
            false
        }
        Shape::Array(to, _) | Shape::Vec(to) | Shape::Option(to) => inner_inexact(to, open),
        Shape::Boxed(to) | Shape::Alias(_, to) => inner_inexact(to, open),
    }
}

/// Finds an arm for each recursive union that does not lead back to it, so that defaults end.
/// In each round types are added whose parts were there in the rounds before.
fn default_arms(shapes: &Shapes<'_>) -> HashMap<TypeId, usize> {
    let ids = (0..shapes.schema.types.len() as u32).map(TypeId);
    let mut open: Vec<_> = ids.filter(|id| shapes.is_recursive(*id)).collect();
    let (mut ending, mut chosen) = (HashSet::new(), HashMap::new());
    loop {
        let before = open.len();
        open.retain(|id| {
            let parts = shapes.parts(*id);
            let ends = |part: &Option<Shape>| {
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

fn ends(shapes: &Shapes<'_>, shape: &Shape, ending: &HashSet<TypeId>) -> bool {
    match shape {
        Shape::Named(id) => !shapes.is_recursive(*id) || ending.contains(id),
        Shape::Array(to, _) | Shape::Boxed(to) | Shape::Alias(_, to) => ends(shapes, to, ending),
        Shape::Scalar(_) | Shape::Bytes(_) | Shape::Opaque | Shape::Text => true,
        Shape::Vec(_) | Shape::Option(_) => true,
    }
}
