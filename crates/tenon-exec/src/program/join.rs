//! Merging of steps: items that are neighbours both in memory and on the wire move at once.

use super::{BlockItem, NumberFormat, ProgramStep};
use crate::resolved::narrow;

/// Numbers of one size, one behind the other both in memory and in a reserved block.
struct ContiguousSpan {
    unit: u32,
    at: u32,
    offset: u32,
    bytes: u32,
    /// Set if the plan moves them as a block.
    is_block: bool,
}

impl ContiguousSpan {
    /// Returns the numbers that a step moves, if it moves nothing else.
    fn of(step: &ProgramStep) -> Option<Self> {
        let (unit, at, offset, bytes, is_block) = match *step {
            ProgramStep::Put { number, at, offset } => {
                let unit = number.unit()?;
                (unit, at, offset, number.wire_bytes() as u32, false)
            }
            ProgramStep::PutArray {
                number,
                at,
                count,
                offset,
            } => {
                let bytes = (number.wire_bytes() as u32).checked_mul(count)?;
                (number.unit()?, at, offset, bytes, false)
            }
            ProgramStep::Blit {
                item: BlockItem::Units(unit),
                at,
                bytes,
                offset,
            } => (unit, at, offset, bytes, true),
            _ => return None,
        };
        Some(Self {
            unit,
            at,
            offset,
            bytes,
            is_block,
        })
    }
}

/// Merges both steps into one block, if they are neighbours in memory as on the wire. The plan does not say where
/// structs that are no blocks themselves lie in memory; here it is known. Where the plan has no blocks, none are
/// made.
pub(super) fn join(last: &ProgramStep, next: &ProgramStep) -> Option<ProgramStep> {
    let (last, next) = (ContiguousSpan::of(last)?, ContiguousSpan::of(next)?);
    let is_behind = last.at + last.bytes == next.at && last.offset + last.bytes == next.offset;
    let is_one = last.unit == next.unit && (last.is_block || next.is_block);
    (is_behind && is_one).then_some(ProgramStep::Blit {
        item: BlockItem::Units(last.unit),
        at: last.at,
        bytes: last.bytes.checked_add(next.bytes)?,
        offset: last.offset,
    })
}

/// Moves an array of numbers of which every pattern of bytes is a value as a block, and a block of
/// one number as that.
pub(super) fn settle(step: &mut ProgramStep) {
    *step = match *step {
        ProgramStep::Blit {
            item: BlockItem::Units(4),
            at,
            bytes: 4,
            offset,
        } => ProgramStep::Put {
            number: NumberFormat::Four,
            at,
            offset,
        },
        ProgramStep::Blit {
            item: BlockItem::Units(8),
            at,
            bytes: 8,
            offset,
        } => ProgramStep::Put {
            number: NumberFormat::Eight,
            at,
            offset,
        },
        ProgramStep::PutArray {
            number,
            at,
            count,
            offset,
        } => match number.unit() {
            Some(unit) => ProgramStep::Blit {
                item: BlockItem::Units(unit),
                at,
                bytes: narrow(number.wire_bytes() as u64 * u64::from(count)),
                offset,
            },
            None => return,
        },
        ProgramStep::PutCounted { number, at, bound } => match number.unit() {
            Some(unit) => ProgramStep::BlitCounted {
                item: BlockItem::Units(unit),
                stride: number.wire_bytes() as u32,
                at,
                bound,
            },
            None => return,
        },
        _ => return,
    };
}
