//! `merge_blocks`: what lies on the wire as it lies in memory is moved as a block.
//!
//! Law: when a value's items lie behind each other in memory as on the wire, none of them must be
//! looked at and there is no hole,
//!
//! ```text
//! call p: point                 =    reserve 8
//!                                        blit p: 2 of 4 @0
//! loop ps: [9] of 8 bytes       =    reserve 72
//!     call it: point                     blit ps: [9] 2 of 4 @0
//! loop ps: <9> of 8 bytes       =    blit ps: <9> 2 of 4
//!     call it: point
//! ```
//!
//! because moving a block moves each of its items, and changes the order of the bytes of each
//! number where the two sides differ in it. The plan of such a struct becomes a block, too.

use tenon_schema::{Length, Procedure, Schema, Type, TypeId, TypeKind};

use crate::blittable::BlittableTypes;
use crate::item::{Blittable, Place};
use crate::layout::Layout;
use crate::links::is_link;
use crate::lower::MAX_FIXED;
use crate::op::{Body, Op, Plans, StreamPlans};
use crate::reserved::{FixedKind, ReservedBlock};

/// Rewrites all plans.
pub(super) fn rewrite(schema: &Schema, plans: &mut Plans) {
    let blocks = BlockMerger {
        schema,
        blittables: BlittableTypes::new(schema, plans.representation),
    };
    for id in (0..schema.types.len() as u32).map(TypeId) {
        let plan = plans.of_type_mut(id);
        match blocks.of_struct(id) {
            Some(whole) => plan.body = vec![whole],
            None => blocks.body(&mut plan.body, Layout::of_type(schema, id)),
        }
    }
    for plan in &mut plans.procedures {
        let version = &schema.programs[plan.program].versions[plan.version];
        let procedure = &version.procedures[plan.procedure];
        let arguments = Layout::Record(&procedure.arguments);
        blocks.body(&mut plan.arguments.body, arguments);
        if let Some(result) = &procedure.result {
            blocks.body(&mut plan.result.body, Layout::Use(result));
        }
        if let Some(streams) = plan.streams.as_deref_mut() {
            blocks.streams(streams, procedure);
        }
    }
}

struct BlockMerger<'a> {
    schema: &'a Schema,
    blittables: BlittableTypes<'a>,
}

impl<'a> BlockMerger<'a> {
    fn streams(&self, plans: &mut StreamPlans, procedure: &Procedure) {
        let arguments = Layout::Record(procedure.call_arguments());
        self.body(&mut plans.call.arguments.body, arguments);
        if let Some(result) = procedure.call_result() {
            self.body(&mut plans.call.result.body, Layout::Use(result));
        }
        if let (Some(plan), Some(item)) = (&mut plans.argument, procedure.argument_item()) {
            self.body(&mut plan.body, Layout::Use(&item.ty));
        }
        if let (Some(plan), Some(item)) = (&mut plans.result, procedure.result_item()) {
            self.body(&mut plan.body, Layout::Use(item));
        }
    }

    fn of_struct(&self, id: TypeId) -> Option<Op> {
        match &self.schema.type_def(id).kind {
            TypeKind::Struct(fields) if !is_link(self.schema, id) => {
                block(Place::it(), self.blittables.of_fields(fields)?, 1)
            }
            _ => None,
        }
    }

    fn body(&self, body: &mut Body, layout: Layout<'a>) {
        let mut merged = Body::with_capacity(body.len());
        for mut op in body.drain(..) {
            let at = op.place().and_then(|place| layout.at(self.schema, place));
            match at.and_then(|at| self.whole(&op, at)) {
                Some(block) => merged.push(block),
                None => {
                    self.inside(&mut op, at.unwrap_or(Layout::Nothing));
                    merged.push(op);
                }
            }
        }
        *body = merged;
    }

    /// Returns the operation that moves the item of `op` as a block, if it is one and not moved so already.
    fn whole(&self, op: &Op, at: Layout<'a>) -> Option<Op> {
        let Layout::Use(ty) = at else { return None };
        match (op, self.schema.resolve(ty)) {
            (Op::Call { place, .. }, _) => block(place.clone(), self.blittables.of(ty)?, 1),
            (Op::Loop { place, .. }, Type::Array(element, Length::Fixed(count))) => {
                block(place.clone(), self.blittables.of(element)?, *count)
            }
            (Op::Loop { place, .. }, Type::Array(element, Length::Counted(bound))) => {
                Some(Op::BlitCounted {
                    place: place.clone(),
                    item: self.blittables.of(element)?,
                    bound: *bound,
                })
            }
            _ => None,
        }
    }

    fn inside(&self, op: &mut Op, at: Layout<'a>) {
        match op {
            Op::Loop { body, .. } | Op::Optional { body, .. } => {
                let element = at.element(self.schema);
                self.body(body, element.unwrap_or(Layout::Nothing));
            }
            Op::Switch { arms, default, .. } => {
                let Some(union) = at.union(self.schema) else {
                    return;
                };
                for (arm, definition) in arms.iter_mut().zip(&union.arms) {
                    self.body(&mut arm.body, Layout::of_arm(definition.field.as_ref()));
                }
                if let (Some(body), Some(field)) = (default, &union.default) {
                    self.body(body, Layout::of_arm(field.as_ref()));
                }
            }
            Op::Reserve(_) | Op::Align { .. } | Op::PutElements { .. } => {}
            Op::BlitCounted { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => {}
            Op::List { .. } | Op::Call { .. } | Op::External { .. } => {}
        }
    }
}

fn block(place: Place, item: Blittable, count: u32) -> Option<Op> {
    let bytes = item.bytes().checked_mul(count.into())?;
    let bytes = u32::try_from(bytes).ok();
    let bytes = bytes.filter(|bytes| u64::from(*bytes) <= MAX_FIXED)?;
    let blit = FixedKind::Blit { item, count };
    Some(Op::Reserve(ReservedBlock::of(place, blit, bytes)))
}
