//! Plans resolved onto memory: the one lowering that the interpreter's program and machine code are made of.
//!
//! A place has become an offset, an element has a stride, a pointer leads to so many bytes, and an item has the name
//! that errors in it have. What engines still decide is how they move things.

mod make;

use tenon_plan::{Blittable, BlockHole, Count, FixedKind, Representation, Scalar};
use tenon_schema::TypeId;

use crate::layout::MemoryModel;

/// All plans of an interface.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedPlans {
    /// Wire representation of the items.
    pub representation: Representation,
    /// How the values lie in memory.
    pub model: MemoryModel,
    /// One per named type: of a link, of an element without the others.
    pub types: Vec<ResolvedPlan>,
    /// The arguments and the result of each procedure.
    pub procedures: Vec<[ResolvedPlan; 2]>,
    /// The values of each named type that is an enum, in the order of the interface.
    pub members: Vec<Box<[i32]>>,
}

/// The operations that move one value.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedPlan {
    /// The type or procedure.
    pub name: String,
    /// The operations.
    pub body: Vec<ResolvedOp>,
    /// Bytes of the value in memory, without what it points to.
    pub bytes: u32,
    /// Fewest bytes on the wire.
    pub fewest: u64,
    /// Alignment on the wire.
    pub align: u32,
    /// A level is entered for each value.
    pub recursive: bool,
    /// Offset in an element of the pointer to the next one in C, if it is a link.
    pub link: Option<u32>,
}

/// One step of marshalling.
#[derive(Debug, PartialEq)]
pub(crate) enum ResolvedOp {
    /// Items of fixed size, with one check for all of them.
    Reserve(ResolvedBlock),
    /// Zeros up to the next position so that what lies `before` bytes further is at a multiple of `to`.
    Align { to: u32, before: u32 },
    /// An item that makes its own check.
    Item(ResolvedItem),
}

/// A reserved block.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedBlock {
    pub bytes: u32,
    pub parts: Vec<ResolvedPart>,
}

/// A part of a reserved block.
#[derive(Debug, PartialEq)]
pub(crate) enum ResolvedPart {
    Hole(BlockHole),
    Item(ResolvedFixedItem),
}

/// An item in a block.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedFixedItem {
    /// Offset in the value that the body moves.
    pub at: u32,
    /// Its name in errors, if it has another than what it lies in.
    pub name: Option<String>,
    /// Offset in the block.
    pub offset: u32,
    pub kind: FixedKind,
}

/// An item that is in no block.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedItem {
    /// Offset in the value that the body moves.
    pub at: u32,
    /// Its name in errors, if it has another than what it lies in.
    pub name: Option<String>,
    pub kind: ResolvedKind,
}

/// The kinds of items that are in no block, as [`Op`](tenon_plan::Op) has them.
#[derive(Debug, PartialEq)]
pub(crate) enum ResolvedKind {
    BlitCounted {
        item: Blittable,
        bound: u32,
    },
    PutElements {
        count: Count,
        /// Bytes of an element in memory.
        stride: u32,
        element: ResolvedBlock,
    },
    CopyCounted {
        bound: u32,
        text: bool,
    },
    PutCounted {
        scalar: Scalar,
        bound: u32,
    },
    Loop {
        count: Count,
        /// Fewest bytes of an element on the wire.
        fewest: u32,
        /// Bytes of an element in memory.
        stride: u32,
        body: Vec<ResolvedOp>,
    },
    Switch(ResolvedSwitch),
    Optional {
        /// Bytes of the value in memory.
        bytes: u32,
        body: Vec<ResolvedOp>,
    },
    List {
        first_bare: bool,
        element: TypeId,
    },
    Call {
        plan: TypeId,
    },
    External,
}

/// A discriminant and the arms that it selects from.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedSwitch {
    pub discriminant: Scalar,
    /// Offset of the arms in the union.
    pub arms_at: u32,
    pub arms: Vec<ResolvedArm>,
    /// `None`: other values are refused.
    pub default: Option<ResolvedArm>,
}

/// An arm of a union.
#[derive(Debug, PartialEq)]
pub(crate) struct ResolvedArm {
    /// The values that select it; none, if it is the default arm.
    pub values: Vec<i32>,
    /// Bytes of the value in memory, if it lies behind a pointer.
    pub boxed: Option<u32>,
    pub body: Vec<ResolvedOp>,
}

impl ResolvedPlans {
    /// The plan of a named type.
    pub fn of_type(&self, id: TypeId) -> &ResolvedPlan {
        &self.types[id.0 as usize]
    }
}

#[cfg(feature = "jit")]
impl ResolvedSwitch {
    /// All arms, the default one last.
    pub fn all_arms(&self) -> impl Iterator<Item = &ResolvedArm> {
        self.arms.iter().chain(&self.default)
    }
}

#[cfg(feature = "jit")]
impl ResolvedPart {
    /// Returns the offset in the block.
    pub fn offset(&self) -> u32 {
        match self {
            Self::Hole(hole) => hole.offset,
            Self::Item(item) => item.offset,
        }
    }
}

#[cfg(feature = "jit")]
impl ResolvedOp {
    /// Returns the number of items and checks: of a block, its check and each of its parts.
    pub fn steps(&self) -> usize {
        match self {
            Self::Reserve(block) => 1 + block.parts.len(),
            Self::Align { .. } | Self::Item(_) => 1,
        }
    }
}

/// Memory holds no item that does not fit; see [`TypeLayouts`](crate::layout::TypeLayouts).
pub(crate) fn narrow(bytes: u64) -> u32 {
    match u32::try_from(bytes) {
        Ok(bytes) => bytes,
        Err(_) => unreachable!("layouts and plans refuse what is so large"),
    }
}
