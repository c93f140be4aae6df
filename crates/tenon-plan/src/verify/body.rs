//! Holds one body against the type that it moves: each operation against the item that comes next.

use super::expected::{ExpectedItems, OpenStruct};
use super::holes::PendingPadding;
use super::{PlanVerifier, VerifyError, VerifyErrorKind};
use crate::item::{Blittable, Place};
use crate::layout::Layout;
use crate::op::{Count, Op};
use crate::position::MessagePosition;
use crate::representation::{COUNT_BYTES, Lists};
use crate::reserved::{BlockPart, FixedItem, FixedKind, ReservedBlock};

/// The state of the verification of a body.
pub(super) struct BodyVerifier<'v, 'p> {
    with: &'v PlanVerifier<'p>,
    layout: Layout<'v>,
    expected: ExpectedItems<'v>,
    opened: OpenStruct,
    holes: PendingPadding,
    position: MessagePosition,
}

impl<'v, 'p> BodyVerifier<'v, 'p> {
    /// Begins a body with `layout` as its `it`, at `position` of the message.
    pub fn new(with: &'v PlanVerifier<'p>, layout: Layout<'v>, position: MessagePosition) -> Self {
        Self {
            with,
            layout,
            expected: ExpectedItems::new(with.schema, with.sizes, layout),
            opened: OpenStruct::default(),
            holes: PendingPadding::none(),
            position,
        }
    }

    /// Takes the next operation.
    pub fn op(&mut self, op: &Op) -> Result<(), VerifyError> {
        match (op, op.place()) {
            (Op::Reserve(block), _) => return self.block(block),
            (Op::Align { to, before }, _) => {
                self.holes.owe(self.expected.ended());
                let aligned = self.holes.align((*to, *before), self.position);
                aligned.map_err(|problem| self.with.error("padding", problem))?;
            }
            (_, Some(place)) => {
                let at = self.layout.path(self.with.schema, place);
                let position = self.position;
                let item = self.take(place, &at, false, |this, at| this.is_aligned(op, at))?;
                self.with.item(op, item, &at, position)?;
            }
            (_, None) => return Err(self.with.error("", VerifyErrorKind::Order)),
        }
        self.position = self.position.behind(op, self.with.sizes);
        Ok(())
    }

    /// Takes the next operation, which is a block.
    pub fn block(&mut self, block: &ReservedBlock) -> Result<(), VerifyError> {
        self.opened.in_block = false;
        let mut filled = 0;
        let mut at = "padding".to_owned();
        for part in &block.parts {
            at = match part {
                BlockPart::Hole(_) => "padding".to_owned(),
                BlockPart::Item(item) => self.layout.path(self.with.schema, &item.place),
            };
            let bytes = part.bytes(&self.with.representation);
            if u64::from(part.offset()) != filled || filled + bytes > block.bytes.into() {
                return Err(self.with.error(&at, VerifyErrorKind::Offset));
            }
            filled += bytes;
            match part {
                BlockPart::Hole(hole) => {
                    self.holes.owe(self.expected.ended());
                    let padded = self.holes.hole(hole.bytes, self.position);
                    padded.map_err(|problem| self.with.error(&at, problem))?;
                }
                BlockPart::Item(item) => self.fixed(item, &at)?,
            }
            self.position = self.position.plus(bytes);
        }
        match filled == block.bytes.into() {
            true => Ok(()),
            false => Err(self.with.error(&at, VerifyErrorKind::Gap)),
        }
    }

    fn fixed(&mut self, item: &FixedItem, at: &str) -> Result<(), VerifyError> {
        let kind = &item.kind;
        let of = self.take(&item.place, at, true, |this, at| {
            this.is_fixed_aligned(kind, at)
        })?;
        match self.with.fits_fixed(kind, of) {
            true => Ok(()),
            false => Err(self.with.error(at, VerifyErrorKind::Type)),
        }
    }

    /// Takes the item at `place`, which is called `at` in errors, if that comes next and its position is aligned as
    /// its type and its operation want it.
    fn take(
        &mut self,
        place: &Place,
        at: &str,
        in_block: bool,
        is_aligned: impl Fn(&Self, MessagePosition) -> bool,
    ) -> Result<Layout<'v>, VerifyError> {
        let error = |problem| self.with.error(at, problem);
        self.holes.owe(self.expected.ended());
        let next = self.expected.take(place);
        let begins = next.map_or(1, |(_, align)| align);
        let align = self.align_of(place).max(begins);
        let holes = std::mem::replace(&mut self.holes, PendingPadding::none());
        let fits = |at: MessagePosition| at.is_multiple_of(align) && is_aligned(self, at);
        if !holes.close(self.position, fits) {
            return Err(error(VerifyErrorKind::Alignment));
        }
        self.opened.take(place, in_block).map_err(error)?;
        let (item, _) = next.ok_or_else(|| error(VerifyErrorKind::Order))?;
        Ok(item)
    }

    /// Ends the body.
    pub fn end(mut self) -> Result<(), VerifyError> {
        self.holes.owe(self.expected.ended());
        if let Some(place) = self.expected.next() {
            let at = self.layout.path(self.with.schema, &place);
            return Err(self.with.error(&at, VerifyErrorKind::Missing));
        }
        let align = self.with.extent(self.layout);
        let align = align.map_or(1, |extent| extent.align);
        match self
            .holes
            .close(self.position, |at| at.is_multiple_of(align))
        {
            true => Ok(()),
            false => Err(self.with.error("end", VerifyErrorKind::Alignment)),
        }
    }

    /// Returns the alignment of the position of the item at `place`, by its type alone.
    fn align_of(&self, place: &Place) -> u32 {
        match self.layout.at(self.with.schema, place) {
            Some(Layout::Use(ty)) => self.with.sizes.align(ty),
            _ => 1,
        }
    }

    /// Returns whether an item of fixed size may lie at a position.
    fn is_fixed_aligned(&self, kind: &FixedKind, position: MessagePosition) -> bool {
        let representation = &self.with.representation;
        match kind {
            _ if !representation.aligned => true,
            FixedKind::Put { scalar } | FixedKind::PutArray { scalar, .. } => {
                position.is_multiple_of(representation.align(*scalar))
            }
            FixedKind::Copy { .. } => true,
            FixedKind::Blit { item, .. } => position.is_multiple_of(unit_max(item)),
        }
    }

    /// Returns whether what an operation moves may lie at a position.
    fn is_aligned(&self, op: &Op, position: MessagePosition) -> bool {
        let (representation, sizes) = (&self.with.representation, self.with.sizes);
        let count = representation.count_align();
        let counted = |align: u32| {
            position.is_multiple_of(count) && position.hole(align, COUNT_BYTES) == Some(0)
        };
        let repeated = |count: &Count, align: u32| match count {
            Count::Counted(_) => counted(align),
            Count::Fixed(_) => position.is_multiple_of(align),
        };
        match op {
            _ if !representation.aligned => true,
            Op::Reserve(_) | Op::Align { .. } | Op::Optional { .. } => true,
            Op::CopyCounted { .. } => position.is_multiple_of(count),
            Op::PutCounted { scalar, .. } => counted(representation.align(*scalar)),
            Op::BlitCounted { item, .. } => counted(unit_max(item)),
            Op::PutElements { count, align, .. } => repeated(count, *align),
            Op::Loop { count, element, .. } => {
                repeated(count, element.extent.map_or(1, |extent| extent.align))
            }
            Op::Switch { discriminant, .. } => {
                position.is_multiple_of(representation.align(*discriminant))
            }
            Op::List {
                first_bare,
                element,
                ..
            } => match (representation.lists, first_bare) {
                (Lists::Counted, _) => position.is_multiple_of(count),
                (Lists::Flagged, false) => true,
                (Lists::Flagged, true) => position.is_multiple_of(sizes.align_of_named(*element)),
            },
            Op::Call { plan: id, .. } | Op::External { ty: id, .. } => {
                position.is_multiple_of(sizes.align_of_named(*id))
            }
        }
    }
}

/// Returns the alignment of the position of a block of numbers.
fn unit_max(item: &Blittable) -> u32 {
    item.runs.iter().map(|run| run.unit).max().unwrap_or(1)
}
