//! `inline`: a small struct inside a record is moved field by field, not called.
//!
//! Law: a call runs the body of its type, so that body may stand in its stead, `p` in front of
//! each place,
//!
//! ```text
//!                      reserve 8
//! call p: point   =    put p.x: i32 @0
//!                      put p.y: i32 @4
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

/// The body of a type that may be inlined, as one block.
#[derive(Clone)]
struct InlineCandidate {
    items: Body,
    bytes: u32,
}

impl InlineCandidate {
    fn push(&mut self, mut op: Op, representation: &Representation) -> Option<()> {
        let (_, bytes) = op.fixed(representation)?;
        *op.offset_mut()? = self.bytes;
        self.bytes += u32::try_from(bytes).ok()?;
        self.items.push(op);
        Some(())
    }

    /// The block, its items at `place`.
    fn at<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = Op> + 'a {
        let items = self.items.iter().cloned().map(|mut op| {
            if let Some(inner) = op.place_mut() {
                *inner = place.then(inner);
            }
            op
        });
        [Op::Reserve { bytes: self.bytes }].into_iter().chain(items)
    }
}

/// Of each type that has been seen, what may stand for a call of it.
struct InlineCandidates {
    representation: Representation,
    types: Vec<Option<InlineCandidate>>,
}

impl InlineCandidates {
    fn candidate(&self, plan: &Plan) -> Option<InlineCandidate> {
        let items = plan.body.iter().filter(|op| !op.is_reserve());
        let cost = items.clone().map(|op| self.cost(op)).sum();
        let fits =
            (1..=MAX_COST).contains(&cost) && plan.size.max.is_some_and(|max| max <= MAX_BYTES);
        if plan.recursive || !fits {
            return None;
        }
        let mut candidate = InlineCandidate {
            items: Body::new(),
            bytes: 0,
        };
        let mut items = items.cloned();
        items.try_for_each(|op| candidate.push(op, &self.representation))?;
        Some(candidate)
    }

    /// Returns the cost of an item that a block holds; nothing else is inlined.
    fn cost(&self, op: &Op) -> u32 {
        match op {
            Op::Zero { .. } | Op::Blit { .. } => 1,
            Op::Put { scalar, .. } | Op::PutArray { scalar, .. }
                if !self.representation.is_checked(*scalar) =>
            {
                1
            }
            _ => CHECKED_COST,
        }
    }

    fn called<'a>(&'a self, op: &'a Op) -> Option<(&'a InlineCandidate, &'a Place)> {
        match op {
            Op::Call { place, plan } => Some((self.types[plan.0 as usize].as_ref()?, place)),
            _ => None,
        }
    }

    fn open(&self, body: &mut Body) {
        let mut items = body.iter().filter(|op| !op.is_reserve()).count();
        let mut opened = Body::with_capacity(body.len());
        for (index, op) in body.iter().enumerate() {
            let candidate = self.called(op).filter(|(candidate, _)| {
                self.has_neighbour(body, index) && items + candidate.items.len() - 1 <= MAX_BODY
            });
            match candidate {
                Some((candidate, place)) => {
                    items += candidate.items.len() - 1;
                    opened.extend(candidate.at(place));
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
        around.any(|op| op.is_reserve() || op.is_fixed() || self.called(op).is_some())
    }
}
