//! `hoist_checks`: a loop over elements of one size is checked once.
//!
//! Law: when an element is one reserved block, or a struct that is,
//!
//! ```text
//! loop es: <> of 8 bytes
//!     reserve 8                =    elements es: <> of 8 bytes
//!         put it.a: bool @0             put it.a: bool @0
//!         put it.b: i32 @4              put it.b: i32 @4
//! ```
//!
//! because `n` elements take `8 n` bytes, whatever they hold, so there is room for all of them or
//! not. A message that ends inside an element is refused before the first one is looked at.

use crate::op::{Body, ElementSize, Op, Plan, Plans};
use crate::reserved::ReservedBlock;

/// Most items of a struct that stand in the loop itself; a larger one is worth its own check.
const MAX_ITEMS: usize = 16;

/// Rewrites all plans.
pub(super) fn rewrite(plans: &mut Plans) {
    let blocks: Vec<Option<ReservedBlock>> = plans.types.iter().map(of_type).collect();
    plans
        .plans_mut()
        .for_each(|plan| hoist(&mut plan.body, &blocks));
}

/// The block that a type is, if it is worth no check of its own.
fn of_type(plan: &Plan) -> Option<ReservedBlock> {
    let block = one_block(&plan.body)?;
    (!plan.recursive && block.parts.len() <= MAX_ITEMS).then(|| block.clone())
}

/// The one block that a body consists of.
fn one_block(body: &Body) -> Option<&ReservedBlock> {
    match body.as_slice() {
        [Op::Reserve(block)] => Some(block),
        _ => None,
    }
}

fn hoist(body: &mut Body, blocks: &[Option<ReservedBlock>]) {
    for op in body {
        for inner in op.bodies_mut() {
            hoist(inner, blocks);
        }
        let Op::Loop {
            place,
            count,
            element:
                ElementSize {
                    extent: Some(extent),
                    ..
                },
            body,
        } = op
        else {
            continue;
        };
        let element = match body.as_slice() {
            [Op::Call { plan, .. }] => blocks[plan.0 as usize].clone(),
            _ => one_block(body).cloned(),
        };
        if let Some(element) = element {
            *op = Op::PutElements {
                place: std::mem::take(place),
                count: *count,
                align: extent.align,
                element,
            };
        }
    }
}
