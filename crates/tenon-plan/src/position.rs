//! Positions in a message as far as they are known: `rest` modulo `modulus`. The interface fixes them up to
//! the first item of varying size, and in part behind it.

use crate::item::Scalar;
use crate::op::{Count, Op};
use crate::representation::{COUNT_BYTES, MESSAGE_ALIGN};
use crate::size::Sizes;

/// A position, counted from the beginning of the message, modulo a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessagePosition {
    modulus: u32,
    rest: u32,
}

impl MessagePosition {
    /// A multiple of `align`.
    pub fn aligned(align: u32) -> Self {
        Self {
            modulus: align.max(1),
            rest: 0,
        }
    }

    /// Anywhere.
    pub const UNKNOWN: Self = Self {
        modulus: 1,
        rest: 0,
    };

    /// Zeros that [`Op::Align`] would put here, if that is known.
    pub fn hole(self, to: u32, before: u32) -> Option<u32> {
        let known = self.modulus >= to;
        known.then(|| (to - (self.rest + before) % to) % to)
    }

    /// The positions that this may be, each as well known as that of a message.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let (modulus, step) = (MESSAGE_ALIGN, self.modulus as usize);
        (self.rest..modulus)
            .step_by(step)
            .map(move |rest| Self { modulus, rest })
    }

    /// Returns whether an item may lie here.
    pub fn is_multiple_of(self, align: u32) -> bool {
        self.hole(align.max(1), 0) == Some(0)
    }

    /// So many bytes further.
    pub fn plus(self, bytes: u64) -> Self {
        let rest = (u64::from(self.rest) + bytes) % u64::from(self.modulus);
        Self {
            rest: rest as u32,
            ..self
        }
    }

    /// Behind any number of items of so many bytes.
    fn behind_any(self, bytes: u64) -> Self {
        let factor = 1 << bytes.trailing_zeros().min(3);
        let modulus = self.modulus.min(factor);
        Self {
            modulus,
            rest: self.rest % modulus,
        }
    }

    fn behind_counted(self, bytes: u64) -> Self {
        self.plus(COUNT_BYTES.into()).behind_any(bytes)
    }

    /// Returns the position at which the bodies inside of an operation begin.
    pub fn inside(self, op: &Op, sizes: &Sizes<'_>) -> Self {
        let representation = sizes.representation();
        match op {
            Op::Loop { element, .. } => match element.extent {
                Some(extent) => Self::aligned(extent.align),
                None => Self::UNKNOWN,
            },
            Op::Switch { discriminant, .. } => {
                self.plus(representation.bytes(*discriminant).into())
            }
            Op::Optional { .. } => self.plus(representation.bytes(Scalar::Bool).into()),
            Op::Reserve(_) | Op::Align { .. } | Op::PutElements { .. } => Self::UNKNOWN,
            Op::BlitCounted { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => {
                Self::UNKNOWN
            }
            Op::List { .. } | Op::Call { .. } | Op::External { .. } => Self::UNKNOWN,
        }
    }

    /// Behind an operation.
    pub fn behind(self, op: &Op, sizes: &Sizes<'_>) -> Self {
        let representation = sizes.representation();
        match op {
            Op::Reserve(block) => self.plus(block.bytes.into()),
            Op::Align { to, before } => match self.hole(*to, *before) {
                Some(hole) => self.plus(hole.into()),
                None => Self {
                    modulus: *to,
                    rest: (*to - *before % *to) % *to,
                },
            },
            Op::CopyCounted { .. } => self.behind_counted(representation.padding.into()),
            Op::PutCounted { scalar, .. } => {
                self.behind_counted(representation.bytes(*scalar).into())
            }
            Op::BlitCounted { item, .. } => self.behind_counted(item.bytes()),
            Op::PutElements { count, element, .. } => {
                self.behind_elements(*count, element.bytes.into())
            }
            Op::Loop { count, element, .. } => match element.extent {
                Some(extent) => self.behind_elements(*count, extent.bytes),
                None => Self::UNKNOWN,
            },
            Op::Call { plan, .. } => match sizes.fixed_named(*plan) {
                Some(extent) => self.plus(extent.bytes),
                None => Self::UNKNOWN,
            },
            Op::Switch { .. } | Op::Optional { .. } | Op::List { .. } => Self::UNKNOWN,
            Op::External { .. } => Self::UNKNOWN,
        }
    }

    fn behind_elements(self, count: Count, bytes: u64) -> Self {
        match count {
            Count::Fixed(count) => self.plus(bytes.saturating_mul(count.into())),
            Count::Counted(_) => self.behind_counted(bytes),
        }
    }
}
