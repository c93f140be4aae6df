//! Checks that each hole between items has a purpose.

use std::cmp::Ordering;

use super::VerifyErrorKind;
use crate::position::MessagePosition;
use crate::representation::MESSAGE_ALIGN;

/// The padding since the latest item.
#[derive(Debug)]
pub(super) struct PendingPadding {
    /// Alignment that a position before the next item must have: structs of
    /// fixed size have ended, each with a hole behind it, so that its like may follow.
    due: u32,
    /// Padding that is for none of those structs: for each position where it may begin, how many
    /// bytes it is then. None if there is no such padding.
    before: Vec<(MessagePosition, u32)>,
}

impl PendingPadding {
    pub fn none() -> Self {
        Self {
            due: 1,
            before: Vec::new(),
        }
    }

    /// Notes that a struct has ended with a size that is a multiple of `align`.
    pub fn owe(&mut self, align: u32) {
        self.due = self.due.max(align);
    }

    /// Takes a hole at `position` in a block.
    ///
    /// # Errors
    /// A struct cannot be known to have a hole behind it.
    pub fn hole(&mut self, bytes: u32, position: MessagePosition) -> Result<(), VerifyErrorKind> {
        let due = self.due_at(position)?;
        match bytes.cmp(&due) {
            // A struct inside another may have ended with it: then they have a hole each.
            Ordering::Less => return Ok(()),
            Ordering::Equal => {}
            Ordering::Greater => self.grow(position.plus(due.into()), |_| bytes - due),
        }
        self.due = 1;
        Ok(())
    }

    /// Takes an alignment at `position`.
    ///
    /// # Errors
    /// A struct has no hole behind it, or nothing can be aligned so.
    pub fn align(
        &mut self,
        (to, before): (u32, u32),
        position: MessagePosition,
    ) -> Result<(), VerifyErrorKind> {
        let is_due = self.due_at(position)? > 0;
        if !matches!(to, 2 | 4 | 8) || before >= to || is_due {
            return Err(VerifyErrorKind::Alignment);
        }
        if position.hole(to, before) != Some(0) {
            self.grow(position, |at| at.hole(to, before).unwrap_or(0));
        }
        self.due = 1;
        Ok(())
    }

    /// Returns the bytes that have to be padded at `position` for what has ended.
    fn due_at(&self, position: MessagePosition) -> Result<u32, VerifyErrorKind> {
        let due = position.hole(self.due, 0);
        due.ok_or(VerifyErrorKind::Alignment)
    }

    /// Takes padding that begins at `position`, or behind what is there already; `bytes` says how many
    /// bytes it is from a position on that is known.
    fn grow(&mut self, position: MessagePosition, bytes: impl Fn(MessagePosition) -> u32) {
        if self.before.is_empty() {
            self.before = position.each().map(|begin| (begin, 0)).collect();
        }
        for (begin, known) in &mut self.before {
            *known = known.saturating_add(bytes(begin.plus((*known).into())));
        }
    }

    /// Returns whether what comes next may begin at `position`, and no earlier.
    pub fn close(
        self,
        position: MessagePosition,
        is_aligned: impl Fn(MessagePosition) -> bool,
    ) -> bool {
        let Self { due, before } = self;
        let is_early = |(begin, bytes): (MessagePosition, u32)| {
            // Alignments come again and again behind so many.
            let mut earlier = 0..bytes.min(MESSAGE_ALIGN);
            earlier.any(|bytes| is_aligned(begin.plus(bytes.into())))
        };
        position.is_multiple_of(due) && is_aligned(position) && !before.into_iter().any(is_early)
    }
}
