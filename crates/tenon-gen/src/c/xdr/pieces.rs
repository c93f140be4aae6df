//! Blocks of fixed size, cut into what a routine asks a stream for at once.

use tenon_plan::{Body, Op, Place, Representation, Scalar};
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
        ops: Vec<&'p Op>,
    },
    /// One that is too large for a space.
    Large(&'p Op),
}

/// Returns the offset of an item in its block, and its bytes.
pub fn extent(op: &Op) -> (u32, u32) {
    match op.fixed(&Representation::XDR) {
        Some((offset, bytes)) => (offset, narrow(bytes)),
        None => unreachable!("the item lies in a block"),
    }
}

/// Bytes of an item: fewer than 2^30, or the plan refuses it.
pub fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Cuts a block up.
pub fn pieces(block: &[Op]) -> Vec<BlockPiece<'_>> {
    let mut pieces: Vec<BlockPiece<'_>> = Vec::new();
    for op in block {
        let (offset, size) = extent(op);
        match pieces.last_mut() {
            _ if size == 0 => {}
            _ if size > SPACE_MAX => pieces.push(BlockPiece::Large(op)),
            Some(BlockPiece::Items { bytes, ops, .. }) if *bytes + size <= SPACE_MAX => {
                *bytes += size;
                ops.push(op);
            }
            _ => pieces.push(BlockPiece::Items {
                start: offset,
                bytes: size,
                ops: vec![op],
            }),
        }
    }
    pieces
}

/// A step of a body: a block of fixed size, or an operation that makes its own check.
pub enum BodyStep<'p> {
    /// A block of so many bytes.
    Block(u32, &'p [Op]),
    /// An operation.
    Op(&'p Op),
}

/// The steps of a body.
pub fn steps(body: &[Op]) -> Vec<BodyStep<'_>> {
    let mut steps = Vec::new();
    let mut rest = body;
    while let [first, behind @ ..] = rest {
        let items = behind.iter().take_while(|op| op.is_fixed()).count();
        rest = match first {
            Op::Reserve { bytes } => {
                steps.push(BodyStep::Block(*bytes, &behind[..items]));
                &behind[items..]
            }
            op => {
                steps.push(BodyStep::Op(op));
                behind
            }
        };
    }
    steps
}

/// Returns whether a body moves anything: operations may do nothing, as those of no bytes.
pub fn moves(body: &[Op]) -> bool {
    steps(body).iter().any(|step| match step {
        BodyStep::Block(_, block) => !pieces(block).is_empty(),
        BodyStep::Op(_) => true,
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
            Op::Blit { place, item, .. } | Op::BlitCounted { place, item, .. } => {
                item.unit().is_some_and(|unit| unit != 2) && !at(place).has_long(of)
            }
            Op::Loop { place, body, .. } | Op::PutElements { place, body, .. } => {
                suits(of, &at(place).element(of, "0"), body)
            }
            Op::Optional { place, body } => suits(of, &at(place).target(of), body),
            Op::Switch { arms, default, .. } => {
                // Arms hold few numbers; those of a block are worth less than telling them apart.
                let mut bodies = arms.iter().map(|arm| &arm.body).chain(default);
                !bodies.any(has_blocks)
            }
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => true,
            Op::PutArray { .. } | Op::Copy { .. } | Op::CopyCounted { .. } => true,
            Op::PutCounted { .. } | Op::List { .. } | Op::Call { .. } | Op::External { .. } => true,
        }
    })
}

fn has_blocks(body: &Body) -> bool {
    body.iter().any(|op| match op {
        Op::Blit { .. } | Op::BlitCounted { .. } => true,
        Op::Loop { body, .. } | Op::PutElements { body, .. } | Op::Optional { body, .. } => {
            has_blocks(body)
        }
        Op::Switch { arms, default, .. } => arms
            .iter()
            .map(|arm| &arm.body)
            .chain(default)
            .any(has_blocks),
        Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::Put { .. } => false,
        Op::PutArray { .. } | Op::Copy { .. } | Op::CopyCounted { .. } => false,
        Op::PutCounted { .. } | Op::List { .. } | Op::Call { .. } | Op::External { .. } => false,
    })
}
