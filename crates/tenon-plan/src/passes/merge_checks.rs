//! `merge_checks`: one room check for each run of fixed-size items.
//!
//! Law: when only items inside reserved blocks stand between two checks, both checks may be
//! made at once,
//!
//! ```text
//! reserve a            reserve a+b
//!   X                    X
//! reserve b      =       Y, its offsets raised by a
//!   Y
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
    let mut block = None;
    for mut op in body.drain(..) {
        op.bodies_mut().into_iter().for_each(rewrite);
        if let Op::Reserve { bytes } = op {
            if extend(&mut merged, &mut block, bytes) {
                continue;
            }
            block = Some(MergedBlock {
                position: merged.len(),
                base: 0,
                bytes,
            });
        } else if let Some(offset) = op.offset_mut() {
            *offset += block.as_ref().map_or(0, |block| block.base);
        } else {
            block = None;
        }
        merged.push(op);
    }
    *body = merged;
}

/// The block that items are being added to.
struct MergedBlock {
    /// Of its `Reserve` in the merged body.
    position: usize,
    /// Bytes that are added to the offsets of the items that come now.
    base: u32,
    bytes: u32,
}

/// Makes the present block larger by `bytes`, if there is one and it may grow so far.
fn extend(merged: &mut Body, block: &mut Option<MergedBlock>, bytes: u32) -> bool {
    let Some(block) = block else { return false };
    let Some(total) = block
        .bytes
        .checked_add(bytes)
        .filter(|total| *total <= MAX_BLOCK)
    else {
        return false;
    };
    block.base = block.bytes;
    block.bytes = total;
    merged[block.position] = Op::Reserve { bytes: total };
    true
}
