//! `fold_aligns`: where the interface fixes a position, its alignment is not computed at run time.
//!
//! Law: at a position that is known to be `r` modulo `m`, and `to` divides `m`,
//!
//! ```text
//! align to          =   (nothing)                 if r is a multiple of `to`
//! align to          =   reserve k: zero k @0      otherwise, k bytes short of the next multiple
//! ```
//!
//! and with `before b`, `r + b` in the place of `r`. A plan begins at a multiple of its `align`, a
//! message at one of 8. Behind an item of varying size a position may be known modulo less, or
//! not at all: there the operation stays.

use tenon_schema::Schema;

use crate::op::{Body, Op, Plan, Plans};
use crate::position::MessagePosition;
use crate::reserved::ReservedBlock;
use crate::size::Sizes;

/// Rewrites all plans.
pub(super) fn rewrite(schema: &Schema, plans: &mut Plans) {
    if plans.representation.aligned {
        let sizes = Sizes::new(schema, plans.representation);
        plans.plans_mut().for_each(|plan| fold(plan, &sizes));
    }
}

fn fold(plan: &mut Plan, sizes: &Sizes<'_>) {
    fold_body(&mut plan.body, MessagePosition::aligned(plan.align), sizes);
}

fn fold_body(body: &mut Body, mut position: MessagePosition, sizes: &Sizes<'_>) {
    let mut folded = Body::with_capacity(body.len());
    for mut op in body.drain(..) {
        let behind = position.behind(&op, sizes);
        let inside = position.inside(&op, sizes);
        for body in op.bodies_mut() {
            fold_body(body, inside, sizes);
        }
        match hole(&op, position) {
            Some(0) => {}
            Some(bytes) => folded.push(Op::Reserve(ReservedBlock::hole(bytes))),
            None => folded.push(op),
        }
        position = behind;
    }
    *body = folded;
}

fn hole(op: &Op, position: MessagePosition) -> Option<u32> {
    match op {
        Op::Align { to, before } => position.hole(*to, *before),
        _ => None,
    }
}
