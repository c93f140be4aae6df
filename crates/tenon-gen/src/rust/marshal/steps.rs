//! A body as it is printed: operations one by one, but for items that share a reserved block.

use tenon_plan::{Body, Op};

/// A step of a body: operations that are printed together.
#[derive(Debug)]
pub enum MarshalStep<'a> {
    /// Items in a block of so many bytes.
    Block(u32, BlockContents<'a>),
    /// An operation that makes its own check.
    Op(&'a Op),
}

/// The contents of a block.
#[derive(Debug, Default)]
pub struct BlockContents<'a> {
    /// The items, in order.
    pub items: Vec<&'a Op>,
    /// Offsets and bytes of the holes. They stand apart: one may lie within a struct that is moved
    /// field by field.
    pub holes: Vec<(u32, u32)>,
}

/// The steps of a body.
pub fn of(body: &Body) -> Vec<MarshalStep<'_>> {
    let mut steps = Vec::new();
    for op in body {
        match op {
            Op::Reserve { bytes } => {
                steps.push(MarshalStep::Block(*bytes, BlockContents::default()))
            }
            op if op.is_fixed() => match steps.last_mut() {
                Some(MarshalStep::Block(_, inside)) => inside.push(op),
                _ => unreachable!("the verifier wants a block around an item of fixed size"),
            },
            op => steps.push(MarshalStep::Op(op)),
        }
    }
    steps
}

/// Returns the contents of the block that an element is.
pub fn element(body: &Body) -> BlockContents<'_> {
    let mut inside = BlockContents::default();
    body.iter().for_each(|op| inside.push(op));
    inside
}

impl<'a> BlockContents<'a> {
    fn push(&mut self, op: &'a Op) {
        match op {
            Op::Zero { bytes, offset } => self.holes.push((*offset, *bytes)),
            op => self.items.push(op),
        }
    }

    /// The item that the block consists of, if it is only one.
    pub fn only(&self) -> Option<&'a Op> {
        match (self.items.as_slice(), self.holes.as_slice()) {
            ([only], []) => Some(only),
            _ => None,
        }
    }
}
