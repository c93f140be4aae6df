//! `merge_checks`: one room check for each run of fixed-size items.
//!
//! Law: when one reserved block follows another, both checks may be made at once,
//!
//! ```text
//! reserve a              reserve a+b
//!     X                      X
//! reserve b      =           Y, its offsets raised by a
//!     Y
//! ```
//!
//! because `X` then moves exactly `a` bytes and nothing else moves the cursor. A message that
//! ends inside `Y` is refused before `X` is looked at and not after; it is refused all the same.

use crate::op::{Body, Op};

/// Most bytes of a merged block. Behind 64 KiB one more comparison cannot be measured, and a
/// block that fits into the first levels of cache is made room for and filled while it is
/// there. Larger items keep a check of their own.
const MAX_BLOCK: u32 = 64 << 10;

/// Rewrites a body and those inside it.
pub(super) fn rewrite(body: &mut Body) {
    let mut merged = Body::with_capacity(body.len());
    for mut op in body.drain(..) {
        op.bodies_mut().into_iter().for_each(rewrite);
        if let (Some(Op::Reserve(last)), Op::Reserve(next)) = (merged.last_mut(), &mut op)
            && last.append(next, MAX_BLOCK).is_some()
        {
            continue;
        }
        merged.push(op);
    }
    *body = merged;
}
