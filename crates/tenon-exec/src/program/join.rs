//! Steps that become one: what lies together both in memory and on the wire moves at once.

use super::make::narrow;
use super::{Item, Number, Step};

/// Numbers of one size, one behind the other both in memory and in a reserved block.
struct Span {
    unit: u32,
    at: u32,
    offset: u32,
    bytes: u32,
    /// Whether the plan moves them as a block.
    is_block: bool,
}

impl Span {
    /// What a step moves, if all of it is that.
    fn of(step: &Step) -> Option<Self> {
        let (unit, at, offset, bytes, is_block) = match *step {
            Step::Put { number, at, offset } => {
                let unit = number.unit()?;
                (unit, at, offset, number.wire_bytes() as u32, false)
            }
            Step::PutArray {
                number,
                at,
                count,
                offset,
            } => {
                let bytes = (number.wire_bytes() as u32).checked_mul(count)?;
                (number.unit()?, at, offset, bytes, false)
            }
            Step::Blit {
                item: Item::Units(unit),
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

/// Both as one block, if a block goes on in memory as on the wire. The plan does not say where
/// structs that are no blocks themselves lie in memory; here it is known. Where the plan has no
/// blocks, none are made.
pub(super) fn join(last: &Step, next: &Step) -> Option<Step> {
    let (last, next) = (Span::of(last)?, Span::of(next)?);
    let is_behind = last.at + last.bytes == next.at && last.offset + last.bytes == next.offset;
    let is_one = last.unit == next.unit && (last.is_block || next.is_block);
    (is_behind && is_one).then_some(Step::Blit {
        item: Item::Units(last.unit),
        at: last.at,
        bytes: last.bytes.checked_add(next.bytes)?,
        offset: last.offset,
    })
}

/// Moves an array of numbers of which every pattern of bytes is a value as a block, and a block of
/// one number as that.
pub(super) fn settle(step: &mut Step) {
    *step = match *step {
        Step::Blit {
            item: Item::Units(4),
            at,
            bytes: 4,
            offset,
        } => Step::Put {
            number: Number::Four,
            at,
            offset,
        },
        Step::Blit {
            item: Item::Units(8),
            at,
            bytes: 8,
            offset,
        } => Step::Put {
            number: Number::Eight,
            at,
            offset,
        },
        Step::PutArray {
            number,
            at,
            count,
            offset,
        } => match number.unit() {
            Some(unit) => Step::Blit {
                item: Item::Units(unit),
                at,
                bytes: narrow(number.wire_bytes() as u64 * u64::from(count)),
                offset,
            },
            None => return,
        },
        Step::PutCounted { number, at, bound } => match number.unit() {
            Some(unit) => Step::BlitCounted {
                item: Item::Units(unit),
                stride: number.wire_bytes() as u32,
                at,
                bound,
            },
            None => return,
        },
        _ => return,
    };
}
