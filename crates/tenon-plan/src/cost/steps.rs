//! The steps of a body in a row: engines take a step for the check of a block, and one for each of its parts.

use crate::reserved::ReservedBlock;
use crate::{BlockPart, FixedItem, Op};

/// A step of a body.
#[derive(Clone, Copy)]
pub(super) enum CostStep<'p> {
    /// The check of a block.
    Check(&'p ReservedBlock),
    /// A hole in a block.
    Hole,
    /// An item in a block.
    Item(&'p FixedItem),
    /// An operation that makes its own check.
    Op(&'p Op),
}

/// Returns the steps of a body.
pub(super) fn of(ops: &[Op]) -> Vec<CostStep<'_>> {
    let mut steps = Vec::new();
    for op in ops {
        match op {
            Op::Reserve(block) => {
                steps.push(CostStep::Check(block));
                steps.extend(of_parts(block));
            }
            op => steps.push(CostStep::Op(op)),
        }
    }
    steps
}

/// Returns the steps of a block that is checked already.
pub(super) fn of_parts(block: &ReservedBlock) -> impl Iterator<Item = CostStep<'_>> {
    block.parts.iter().map(|part| match part {
        BlockPart::Hole(_) => CostStep::Hole,
        BlockPart::Item(item) => CostStep::Item(item),
    })
}

impl CostStep<'_> {
    /// Returns whether it may find that bytes are missing, or a value that is none.
    pub fn can_fail(self) -> bool {
        match self {
            Self::Hole | Self::Item(_) | Self::Op(Op::Align { .. }) => false,
            Self::Check(_) | Self::Op(_) => true,
        }
    }
}
