//! `hoist_checks`: a loop over elements of one size is checked once.
//!
//! Law: when an element is one reserved block, or a struct that is,
//!
//! ```text
//! loop es: <> of 8 bytes
//!     reserve 8                =    elements es: <> of 8 bytes
//!     put it.a: bool @0                 put it.a: bool @0
//!     put it.b: i32 @4                  put it.b: i32 @4
//! ```
//!
//! because `n` elements take `8 n` bytes, whatever they hold, so there is room for all of them or
//! not. A message that ends inside an element is refused before the first one is looked at.

use crate::op::{Body, ElementSize, Op, Plan, Plans};

/// Most items of a struct that stand in the loop itself; a larger one is worth its own check.
const MAX_ITEMS: usize = 16;

/// Rewrites all plans.
pub(super) fn rewrite(plans: &mut Plans) {
    let blocks: Vec<Option<Body>> = plans.types.iter().map(one_block).collect();
    plans
        .plans_mut()
        .for_each(|plan| hoist(&mut plan.body, &blocks));
}

/// The items of a type that is one block.
fn one_block(plan: &Plan) -> Option<Body> {
    let items = items(&plan.body)?;
    (!plan.recursive && items.len() <= MAX_ITEMS).then(|| items.to_vec())
}

/// Returns the items in the one block that a body consists of.
fn items(body: &Body) -> Option<&[Op]> {
    match body.as_slice() {
        [Op::Reserve { .. }, items @ ..] => items.iter().all(Op::is_fixed).then_some(items),
        _ => None,
    }
}

fn hoist(body: &mut Body, blocks: &[Option<Body>]) {
    for op in body {
        for inner in op.bodies_mut() {
            hoist(inner, blocks);
        }
        let Op::Loop {
            place,
            count,
            element:
                ElementSize {
                    extent: Some(element),
                    ..
                },
            body,
        } = op
        else {
            continue;
        };
        let items = match body.as_slice() {
            [Op::Call { plan, .. }] => blocks[plan.0 as usize].clone(),
            _ => items(body).map(<[Op]>::to_vec),
        };
        if let Some(body) = items {
            *op = Op::PutElements {
                place: std::mem::take(place),
                count: *count,
                element: *element,
                body,
            };
        }
    }
}
