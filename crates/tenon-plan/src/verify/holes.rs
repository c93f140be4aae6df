//! What the holes between items are for.

use super::Problem;
use crate::op::Op;
use crate::position::Position;
use crate::representation::MESSAGE_ALIGN;

/// The padding since the latest item.
#[derive(Debug)]
pub(super) struct Holes {
    /// What there has to be a position that is a multiple of, before the next item: structs of
    /// fixed size have ended, each with a hole behind it, so that its like may follow.
    due: u32,
    /// Padding that is for none of those structs: where it begins, and of how many bytes it is, or
    /// one if that is not known.
    before: Option<(Position, u32)>,
}

impl Holes {
    pub fn none() -> Self {
        Self {
            due: 1,
            before: None,
        }
    }

    /// A struct has ended whose size is a multiple of `align`.
    pub fn owe(&mut self, align: u32) {
        self.due = self.due.max(align);
    }

    /// Takes an operation at `position` that may pad, or does nothing there.
    ///
    /// # Errors
    /// A struct has no hole behind it.
    pub fn pad(&mut self, op: &Op, position: Position) -> Result<(), Problem> {
        let due = position.hole(self.due, 0).ok_or(Problem::Alignment)?;
        match op {
            // A struct inside another may have ended with it: then they have a hole each.
            Op::Zero { bytes, .. } if *bytes < due => return Ok(()),
            Op::Zero { bytes, .. } if *bytes > due => self.grow(position, due, *bytes),
            Op::Align { .. } if due > 0 => return Err(Problem::Alignment),
            Op::Align { to, before } if position.hole(*to, *before) != Some(0) => {
                self.grow(position, 0, 1);
            }
            Op::Zero { .. } | Op::Align { .. } => {}
            _ => return Ok(()),
        }
        self.due = 1;
        Ok(())
    }

    /// Takes what is behind the first `due` of so many bytes at `position`.
    fn grow(&mut self, position: Position, due: u32, bytes: u32) {
        let (_, known) = self.before.get_or_insert((position.plus(due.into()), 0));
        *known = known.saturating_add(bytes - due);
    }

    /// Whether what comes next may begin at `position`, and no earlier.
    pub fn close(&mut self, position: Position, is_aligned: impl Fn(Position) -> bool) -> bool {
        let Self { due, before } = std::mem::replace(self, Self::none());
        let is_early = |(begin, bytes): (Position, u32)| {
            // Alignments come again and again behind so many.
            let mut earlier = 0..bytes.min(MESSAGE_ALIGN);
            earlier.any(|bytes| is_aligned(begin.plus(bytes.into())))
        };
        position.is_multiple_of(due) && is_aligned(position) && !before.is_some_and(is_early)
    }
}
