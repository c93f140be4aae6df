//! Values that take no bytes: structs without fields, arrays of no elements, and all that consists of
//! nothing else. A count of such elements has no bytes behind it that it could be held against, so
//! a small message could make an engine look at many of them. This module sees to it that none does.
//!
//! Engines run a plan [stripped](Plans::stripped) of what moves nothing. A source back end of a
//! language in which values are made by naming their parts needs those operations; how many it
//! may be made to run is bounded, as an interface with more of them [in place](in_place) is
//! refused.

use tenon_schema::{Field, Length, Schema, Type, TypeId, TypeKind};

use crate::graph::StronglyConnectedComponents;
use crate::links::{linked_list, memory_fields};
use crate::op::{Body, Count, ElementSize, Op, Plans, WireSize};
use crate::representation::WireExtent;

/// Most items without bytes that a value holds in place. An item without bytes costs a byte of what
/// a message pays for, and for so many every message pays by being there.
pub(crate) const MAX_IN_PLACE: u64 = 64 << 10;

/// Returns the number of items without bytes that a value of each named type holds, without those that lie behind a
/// count or a pointer.
pub(crate) fn in_place(schema: &Schema, components: &StronglyConnectedComponents) -> Vec<u64> {
    let mut known = vec![0; schema.types.len()];
    for id in components.order.iter().flatten() {
        known[id.0 as usize] = of_definition(schema, &known, *id);
    }
    known
}

fn of_definition(schema: &Schema, known: &[u64], id: TypeId) -> u64 {
    match &schema.type_def(id).kind {
        TypeKind::Enum(_) | TypeKind::External => 0,
        TypeKind::Typedef(to) => of_use(schema, known, to),
        TypeKind::Struct(_) => match memory_fields(schema, id).unwrap_or_default() {
            [] => 1,
            fields => of_fields(schema, known, fields),
        },
        TypeKind::Union(union) => {
            let held = union.fields().map(|field| of_use(schema, known, &field.ty));
            held.max().unwrap_or(0)
        }
    }
}

fn of_fields(schema: &Schema, known: &[u64], fields: &[Field]) -> u64 {
    let each = fields.iter().map(|field| of_use(schema, known, &field.ty));
    each.fold(0, u64::saturating_add)
}

/// The same of a type as it is used.
fn of_use(schema: &Schema, known: &[u64], ty: &Type) -> u64 {
    if linked_list(schema, ty).is_some() {
        return 0;
    }
    match schema.resolve(ty) {
        Type::Array(_, Length::Fixed(0)) | Type::Opaque(Length::Fixed(0)) => 1,
        Type::Array(element, Length::Fixed(count)) => {
            of_use(schema, known, element).saturating_mul((*count).into())
        }
        Type::Named(id) => known[id.0 as usize],
        _ => 0,
    }
}

/// The most of a type as it is used, or of what lies behind its counts and pointers. Named types are
/// looked at on their own.
pub(crate) fn behind_use(schema: &Schema, known: &[u64], ty: &Type) -> u64 {
    let (mut at, mut most) = (ty, 0);
    loop {
        most = most.max(of_use(schema, known, at));
        at = match schema.resolve(at) {
            Type::Array(element, _) => element,
            Type::Optional(to) => to,
            _ => return most,
        };
    }
}

impl Plans {
    /// Returns the same plans without the operations that move nothing, for engines. Bytes,
    /// errors and prices stay: of elements without bytes there is a count, and nothing behind it.
    #[must_use]
    pub fn stripped(&self) -> Self {
        let is_nothing = |plan: &crate::Plan| plan.size == WireSize::exactly(0);
        let nothings: Vec<bool> = self.types.iter().map(is_nothing).collect();
        let mut stripped = self.clone();
        for plan in stripped.plans_mut() {
            strip(&mut plan.body, &nothings);
        }
        stripped
    }
}

fn strip(body: &mut Body, nothings: &[bool]) {
    body.retain(|op| !is_nothing(op, nothings));
    for op in body {
        match count_alone(op) {
            Some(count) => *op = count,
            None => {
                for inside in op.bodies_mut() {
                    strip(inside, nothings);
                }
            }
        }
    }
}

/// Returns whether an operation of its own moves nothing. Items in a block cost nothing when they are empty.
fn is_nothing(op: &Op, nothings: &[bool]) -> bool {
    match op {
        Op::Call { plan, .. } => nothings[plan.0 as usize],
        Op::PutElements {
            count: Count::Fixed(count),
            element,
            ..
        } => *count == 0 || element.bytes == 0,
        Op::Loop {
            count: Count::Fixed(count),
            element,
            ..
        } => *count == 0 || element.extent.is_some_and(|extent| extent.bytes == 0),
        Op::PutElements { .. } | Op::Loop { .. } | Op::List { .. } => false,
        Op::BlitCounted { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => false,
        Op::Reserve(_) | Op::Align { .. } => false,
        Op::Switch { .. } | Op::Optional { .. } | Op::External { .. } => false,
    }
}

/// Returns the operation that moves the count of elements without bytes, if that is all that `op` does.
fn count_alone(op: &Op) -> Option<Op> {
    let (place, count, align) = match op {
        Op::BlitCounted { place, item, bound } if item.bytes() == 0 => {
            let align = item.runs.iter().map(|run| run.unit).max();
            (place, Count::Counted(*bound), align.unwrap_or(1))
        }
        Op::PutElements {
            place,
            count,
            align,
            element,
        } if element.bytes == 0 => (place, *count, *align),
        Op::Loop {
            place,
            count,
            element:
                ElementSize {
                    extent: Some(WireExtent { bytes: 0, align }),
                    ..
                },
            ..
        } => (place, *count, *align),
        _ => return None,
    };
    Some(Op::Loop {
        place: place.clone(),
        count,
        element: ElementSize {
            min: 0,
            extent: Some(WireExtent { bytes: 0, align }),
        },
        body: Body::new(),
    })
}
