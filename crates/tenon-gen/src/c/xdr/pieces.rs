//! Blocks of fixed size, cut into what a routine asks a stream for at once.

use tenon_plan::{
    Blittable, Body, FixedItem, FixedKind, Op, Place, Representation, ReservedBlock, Scalar,
};
use tenon_schema::Type;
use tenon_schema::written::Spelling;

use crate::c::spot::CLvalue;
use crate::c::{Interface, names};

/// Most bytes of a block that are asked for at once: with a word behind them they fit into the space that `runtime.c`
/// has for streams that give no room. A larger block is asked for in pieces, which costs nothing beside moving it.
pub const SPACE_MAX: u32 = 1024;

/// A part of a block.
pub enum BlockPiece<'p> {
    /// Items that are moved with one check.
    Items {
        /// The offset of the first one in the block.
        start: u32,
        /// Bytes.
        bytes: u32,
        /// The items.
        items: Vec<&'p FixedItem>,
    },
    /// One that is too large for a space.
    Large(&'p FixedItem),
}

/// Returns the bytes of an item.
pub fn size(item: &FixedItem) -> u32 {
    narrow(item.bytes(&Representation::XDR))
}

/// Bytes of an item: fewer than 2^30, or the plan refuses it.
pub fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Cuts a block up. Blocks of XDR have no holes.
pub fn pieces(block: &ReservedBlock) -> Vec<BlockPiece<'_>> {
    let mut pieces: Vec<BlockPiece<'_>> = Vec::new();
    for item in block.items() {
        let size = size(item);
        match pieces.last_mut() {
            _ if size == 0 => {}
            _ if size > SPACE_MAX => pieces.push(BlockPiece::Large(item)),
            Some(BlockPiece::Items { bytes, items, .. }) if *bytes + size <= SPACE_MAX => {
                *bytes += size;
                items.push(item);
            }
            _ => pieces.push(BlockPiece::Items {
                start: item.offset,
                bytes: size,
                items: vec![item],
            }),
        }
    }
    pieces
}

/// Returns whether a body moves anything: operations may do nothing, as those of no bytes.
pub fn moves(body: &[Op]) -> bool {
    body.iter().any(|op| match op {
        Op::Reserve(block) => !pieces(block).is_empty(),
        _ => true,
    })
}

/// The bytes of a number of an array, if C holds it as it lies on the wire but for the order of its bytes.
pub fn is_plain_number(of: Interface<'_>, ty: &Type, spelling: &Spelling) -> Option<u32> {
    let scalar = Scalar::of(of.schema, ty)?;
    match scalar {
        Scalar::I32 | Scalar::U32 if names::is_long(spelling) => None,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => Some(4),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => Some(8),
        _ => None,
    }
}

/// The layout in which C holds numbers of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberLayout {
    /// As they lie on the wire, but for the order of so many bytes.
    Plain(u32),
    /// In another size or with other values: one by one.
    Single,
}

/// Returns the layout in which C holds the numbers of the array at `spot`.
pub fn numbers<'a>(of: Interface<'a>, spot: &CLvalue<'a>, scalar: Scalar) -> NumberLayout {
    match scalar {
        Scalar::I32 | Scalar::U32 if spot.element(of, "0").has_long(of) => NumberLayout::Single,
        Scalar::I32 | Scalar::U32 | Scalar::F32 | Scalar::Enum(_) => NumberLayout::Plain(4),
        Scalar::I64 | Scalar::U64 | Scalar::F64 => NumberLayout::Plain(8),
        Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => NumberLayout::Single,
        Scalar::Bool | Scalar::F128 => NumberLayout::Single,
    }
}

/// Returns whether C has the layout in memory that the blocks of `body` assume: numbers of one size, and no `long`.
pub fn suits<'a>(of: Interface<'a>, spot: &CLvalue<'a>, body: &Body) -> bool {
    body.iter().all(|op| {
        let at = |place: &Place| spot.at(of, place);
        match op {
            Op::Reserve(block) => suits_block(of, spot, block),
            Op::BlitCounted { place, item, .. } => is_like_c(of, &at(place), item),
            Op::PutElements { place, element, .. } => {
                suits_block(of, &at(place).element(of, "0"), element)
            }
            Op::Loop { place, body, .. } => suits(of, &at(place).element(of, "0"), body),
            Op::Optional { place, body } => suits(of, &at(place).target(of), body),
            Op::Switch { arms, default, .. } => {
                // Arms hold few numbers; those of a block are worth less than telling them apart.
                let mut bodies = arms.iter().map(|arm| &arm.body).chain(default);
                !bodies.any(has_blits)
            }
            Op::Align { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => true,
            Op::List { .. } | Op::Call { .. } | Op::External { .. } => true,
        }
    })
}

fn suits_block<'a>(of: Interface<'a>, spot: &CLvalue<'a>, block: &ReservedBlock) -> bool {
    block.items().all(|item| match &item.kind {
        FixedKind::Blit { item: blit, .. } => is_like_c(of, &spot.at(of, &item.place), blit),
        FixedKind::Put { .. } | FixedKind::PutArray { .. } | FixedKind::Copy { .. } => true,
    })
}

/// Returns whether the numbers of a block lie in C's memory as the plan assumes.
fn is_like_c<'a>(of: Interface<'a>, at: &CLvalue<'a>, item: &Blittable) -> bool {
    item.unit().is_some_and(|unit| unit != 2) && !at.has_long(of)
}

/// Returns whether a body has anything that is moved as it lies in memory.
fn has_blits(body: &Body) -> bool {
    body.iter().any(|op| match op {
        Op::Reserve(block) | Op::PutElements { element: block, .. } => block
            .items()
            .any(|item| matches!(item.kind, FixedKind::Blit { .. })),
        Op::BlitCounted { .. } => true,
        Op::Loop { body, .. } | Op::Optional { body, .. } => has_blits(body),
        Op::Switch { arms, default, .. } => arms
            .iter()
            .map(|arm| &arm.body)
            .chain(default)
            .any(has_blits),
        Op::Align { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => false,
        Op::List { .. } | Op::Call { .. } | Op::External { .. } => false,
    })
}
