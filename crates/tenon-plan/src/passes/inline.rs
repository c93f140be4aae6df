//! `inline`: a small struct inside a record is moved field by field, not called.
//!
//! Law: a call runs the body of its type, so that body may stand in its stead, `p` in front of
//! each place,
//!
//! ```text
//!                      reserve 8
//! call p: point   =        put p.x: i32 @0
//!                          put p.y: i32 @4
//! ```
//!
//! when the struct cannot contain itself (a call would count a level) and has only fixed-size
//! items. They come as one block, which no later pass takes apart: so a source back end can
//! read such a struct as one literal.
//!
//! The gain is the check: `merge_checks` joins the block to its neighbours. Where there
//! is no such neighbour (an element of an array, an arm, an item between variable ones) a call
//! says the same in less code, and stays.

use tenon_schema::Schema;

use crate::graph;
use crate::item::Place;
use crate::op::{Body, Op, Plan, Plans};
use crate::representation::Representation;
use crate::reserved::{BlockPart, FixedKind, ReservedBlock};

/// Highest cost of the items of a struct that is not called, in items that cannot fail: as much
/// code as a call takes with its room check and the test of its result. Measured on compiled
/// stubs for x86-64: three uses of a struct of 16 integers take 950 bytes to decode when
/// inlined, and 1383 bytes and a function of 461 when called; of two booleans 2201, or 1366 and
/// 789. So up to here inlining makes code smaller as well as faster, however often a type is
/// used, and the literal that a source back end prints is still read at a glance.
const MAX_COST: u32 = 16;

/// Cost of an item with a value that must be checked: its failure has a name and a way out.
const CHECKED_COST: u32 = 8;

/// Most bytes of a struct that is not called: moving more takes so long that the call is free.
const MAX_BYTES: u64 = 256;

/// Most items of a body that structs are inlined into. A longer one is a function that compilers
/// take more than linear time for, and that runs once through the instruction cache.
const MAX_BODY: usize = 128;

/// Rewrites the records of all plans, contained types before those that contain them.
pub(super) fn rewrite(schema: &Schema, plans: &mut Plans) {
    let mut candidates = InlineCandidates {
        representation: plans.representation,
        types: vec![None; plans.types.len()],
    };
    for id in graph::components(schema).order.into_iter().flatten() {
        let plan = &mut plans.types[id.0 as usize];
        candidates.open(&mut plan.body);
        candidates.types[id.0 as usize] = candidates.candidate(plan);
    }
    for plan in &mut plans.procedures {
        candidates.open(&mut plan.arguments.body);
        if let Some(streams) = &mut plan.streams {
            candidates.open(&mut streams.call.arguments.body);
        }
    }
}

/// Of each type that has been seen, the block that may stand for a call of it.
struct InlineCandidates {
    representation: Representation,
    types: Vec<Option<ReservedBlock>>,
}

impl InlineCandidates {
    fn candidate(&self, plan: &Plan) -> Option<ReservedBlock> {
        let mut block = ReservedBlock {
            bytes: 0,
            parts: Vec::new(),
        };
        for op in &plan.body {
            let Op::Reserve(next) = op else { return None };
            block.append(&mut next.clone(), u32::MAX)?;
        }
        let cost = block.parts.iter().map(|part| self.cost(part)).sum();
        let fits =
            (1..=MAX_COST).contains(&cost) && plan.size.max.is_some_and(|max| max <= MAX_BYTES);
        (!plan.recursive && fits).then_some(block)
    }

    fn cost(&self, part: &BlockPart) -> u32 {
        let is_checked = match part {
            BlockPart::Hole(_) => false,
            BlockPart::Item(item) => match item.kind {
                FixedKind::Put { scalar } | FixedKind::PutArray { scalar, .. } => {
                    self.representation.is_checked(scalar)
                }
                FixedKind::Copy { .. } => true,
                FixedKind::Blit { .. } => false,
            },
        };
        if is_checked { CHECKED_COST } else { 1 }
    }

    fn called<'a>(&'a self, op: &'a Op) -> Option<(&'a ReservedBlock, &'a Place)> {
        match op {
            Op::Call { place, plan } => Some((self.types[plan.0 as usize].as_ref()?, place)),
            _ => None,
        }
    }

    fn open(&self, body: &mut Body) {
        let mut items = body.iter().map(items).sum::<usize>();
        let mut opened = Body::with_capacity(body.len());
        for (index, op) in body.iter().enumerate() {
            let candidate = self.called(op).filter(|(block, _)| {
                self.has_neighbour(body, index) && items + block.parts.len() - 1 <= MAX_BODY
            });
            match candidate {
                Some((block, place)) => {
                    items += block.parts.len() - 1;
                    opened.push(Op::Reserve(block.inside(place)));
                }
                None => opened.push(op.clone()),
            }
        }
        *body = opened;
    }

    /// Returns whether a block stands or will stand right before or behind an operation.
    fn has_neighbour(&self, body: &Body, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|before| body.get(before));
        let mut around = before.into_iter().chain(body.get(index + 1));
        around.any(|op| matches!(op, Op::Reserve(_)) || self.called(op).is_some())
    }
}

/// The items that an operation moves.
fn items(op: &Op) -> usize {
    match op {
        Op::Reserve(block) => block.parts.len(),
        _ => 1,
    }
}
