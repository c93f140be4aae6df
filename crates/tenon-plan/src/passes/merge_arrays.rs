//! `merge_arrays`: an array of numbers is moved at once.
//!
//! Law: when an element is one scalar in a block of its own,
//!
//! ```text
//! loop ns: [9] of 4 bytes      =    reserve 36
//!     reserve 4                         put ns: i32[9] @0
//!         put it: i32 @0
//! loop ns: <9> of 4 bytes      =    put ns: i32<9>
//!     reserve 4
//!         put it: i32 @0
//! ```
//!
//! because both move the same items one behind the other, and the bytes of all are known before
//! the first is moved. An engine then has the whole array in hand, for a kernel.

use crate::item::{Place, Scalar};
use crate::lower::MAX_FIXED;
use crate::op::{Body, Count, Op, Plans};
use crate::reserved::{FixedKind, ReservedBlock};

/// Rewrites all plans.
pub(super) fn rewrite(plans: &mut Plans) {
    plans.plans_mut().for_each(|plan| merge(&mut plan.body));
}

fn merge(body: &mut Body) {
    let mut merged = Body::with_capacity(body.len());
    for mut op in body.drain(..) {
        op.bodies_mut().into_iter().for_each(merge);
        match array(&op) {
            Some(array) => merged.push(array),
            None => merged.push(op),
        }
    }
    *body = merged;
}

/// Returns the operation that moves at once the numbers that a loop moves one by one.
fn array(op: &Op) -> Option<Op> {
    let Op::Loop {
        place,
        count,
        element,
        body,
    } = op
    else {
        return None;
    };
    let (scalar, place) = (number(body)?, place.clone());
    match *count {
        Count::Counted(bound) => Some(Op::PutCounted {
            place,
            scalar,
            bound,
        }),
        Count::Fixed(count) => {
            let bytes = element.extent?.bytes.checked_mul(count.into())?;
            let bytes = u32::try_from(bytes).ok();
            let bytes = bytes.filter(|bytes| u64::from(*bytes) <= MAX_FIXED)?;
            let array = FixedKind::PutArray { scalar, count };
            Some(Op::Reserve(ReservedBlock::of(place, array, bytes)))
        }
    }
}

/// The scalar that is all that a body moves.
fn number(body: &Body) -> Option<Scalar> {
    let [Op::Reserve(block)] = body.as_slice() else {
        return None;
    };
    let (place, scalar) = block.only_scalar()?;
    (*place == Place::it()).then_some(scalar)
}
