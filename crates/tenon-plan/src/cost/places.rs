//! The cost of the places in which compiled stubs make values: each is made in a place of its own, as something
//! behind might fail, and is then moved to where it belongs.
//!
//! A value that was made piece by piece is then read as a whole, before it has got as far as the cache. That
//! waits, once for all values that are put in place together.

use std::cell::RefCell;
use std::collections::HashMap;
use std::slice;

use tenon_schema::TypeId;

use super::derive::{BLOCK_MIN, TermBuilder};
use super::equation::{ByteAmount, CostTerm};
use super::moves::Mover;
use super::steps::CostStep;
use super::symbol::{Engine, Symbol};
use crate::{BlockPart, Count, FixedItem, FixedKind, Op, Place, Scalar};

/// Bytes of a value that a routine can give back in registers.
const REGISTERS: u64 = 16;

/// Most instructions of a routine with several callers that compilers inline into them.
const WITHIN_MAX: u32 = 28;

/// Operations of a routine that stubs offer to their callers; a larger one is one for the linker.
const OFFERED_MAX: usize = 8;

/// Most operations of a routine that machine code has where it is called from, as `tenon-exec` does.
const MACHINE_MAX: u32 = 6;

/// About how many instructions it takes to see whether something failed, and to say so; and to get to a
/// routine of the run time and back.
const CHECKED: u32 = 8;
const RUN_TIME: u32 = 16;

/// Caches facts about types, each found once: types may hold each other in very many ways.
#[derive(Default)]
pub(super) struct QueryCache(RefCell<HashMap<(TypeQuery, TypeId), u32>>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TypeQuery {
    IsCalled,
    IsBranched,
    HasMemory,
    TakesMemory,
    Operations,
    Instructions,
}

impl TermBuilder<'_, '_> {
    fn asked(&self, question: TypeQuery, ty: TypeId, find: impl FnOnce(&[Op]) -> u32) -> u32 {
        let QueryCache(known) = &self.facts.remembered;
        if let Some(known) = known.borrow().get(&(question, ty)) {
            return *known;
        }
        let found = find(&self.with.plans.of_type(ty).body);
        known.borrow_mut().insert((question, ty), found);
        found
    }

    fn is_so(&self, question: TypeQuery, ty: TypeId, find: impl FnOnce(&[Op]) -> bool) -> bool {
        self.asked(question, ty, |ops| find(ops).into()) > 0
    }

    /// Returns whether the plan of another type is a routine that is called. A compiler puts what has one caller,
    /// or is short, where it is called from; `tenon-exec` what has few operations. When a stub encodes, what is
    /// branched is taken for a call, which costs little then.
    pub(super) fn is_called(&self, ty: TypeId) -> bool {
        self.is_so(TypeQuery::IsCalled, ty, |_| self.find_called(ty))
    }

    fn find_called(&self, ty: TypeId) -> bool {
        let plan = self.with.plans.of_type(ty);
        let is_shared = self.facts.sites.are_many(ty);
        let is_long = || self.instructions(&plan.body) > WITHIN_MAX;
        match self.with.engine {
            Engine::Interpreter => true,
            _ if plan.recursive => true,
            Engine::Machine => self.operations(&plan.body) > MACHINE_MAX,
            Engine::Compiled if is_shared && self.is_decoding() => is_long(),
            Engine::Compiled if is_shared => self.is_branched(&plan.body) || is_long(),
            Engine::Compiled => {
                let steps: usize = plan.body.iter().map(Op::steps).sum();
                steps > OFFERED_MAX && is_long()
            }
        }
    }

    /// Values that routines have made for a record, or arrays that were read before something else could
    /// fail.
    pub(super) fn put_in_place(&self, steps: &[CostStep<'_>]) -> Vec<CostTerm> {
        if !self.is_made_apart() {
            return Vec::new();
        }
        let arrays = (0..steps.len()).flat_map(|at| self.array_in_place(steps, at));
        let mut terms: Vec<CostTerm> = arrays.collect();
        if steps.iter().any(|step| self.is_handed(*step)) {
            terms.push(CostTerm::Times(1, Symbol::Hand));
        }
        terms
    }

    /// The value of an arm, where it depends on the value what is moved, of a union that may have memory to give
    /// back. Taking memory lasts longer than such a value has to wait.
    pub(super) fn put_in_union(&self, ops: &[Op], has_memory: bool) -> Option<CostTerm> {
        let [Op::Call { plan, .. }] = ops else {
            return None;
        };
        let is_large = self.facts.rooms.of_element(*plan) > REGISTERS;
        let is_put = has_memory && is_large && self.is_branched(ops) && !self.takes_memory(ops);
        (self.is_made_apart() && is_put).then_some(CostTerm::Times(1, Symbol::Hand))
    }

    fn is_made_apart(&self) -> bool {
        self.with.engine == Engine::Compiled && self.is_decoding()
    }

    /// Returns whether a routine makes a value that is too large for registers, and takes no memory for it.
    fn is_handed(&self, step: CostStep<'_>) -> bool {
        let CostStep::Op(Op::Call { plan, .. }) = step else {
            return false;
        };
        let is_large = self.facts.rooms.of_element(*plan) > REGISTERS;
        let has_memory = || self.has_memory(&self.with.plans.of_type(*plan).body);
        is_large && self.is_called(*plan) && !has_memory()
    }

    /// Returns whether values have memory elsewhere, whatever they are: strings, sequences, or parts that have.
    fn takes_memory(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| match op {
            Op::Call { plan, .. } => {
                let is_recursive = self.with.plans.of_type(*plan).recursive;
                is_recursive
                    || self.is_so(TypeQuery::TakesMemory, *plan, |ops| self.takes_memory(ops))
            }
            Op::Switch { .. } | Op::Optional { .. } => false,
            op => self.has_memory(slice::from_ref(op)),
        })
    }

    /// Returns whether values may have memory elsewhere.
    pub(super) fn has_memory(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| match op {
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::BlitCounted { .. } => true,
            Op::List { .. } => true,
            Op::Loop { count, body, .. } => {
                matches!(count, Count::Counted(_)) || self.has_memory(body)
            }
            Op::PutElements { count, .. } => matches!(count, Count::Counted(_)),
            Op::Optional { body, .. } => self.has_memory(body),
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.into_iter().any(|body| self.has_memory(body))
            }
            Op::Call { plan, .. } => {
                let is_recursive = self.with.plans.of_type(*plan).recursive;
                is_recursive || self.is_so(TypeQuery::HasMemory, *plan, |ops| self.has_memory(ops))
            }
            _ => false,
        })
    }

    /// An array, if something can fail behind it: it is copied once if it is swapped, twice if it was read by a
    /// loop, and three times if it was read by a check of its own, with a value or an error as its result.
    fn array_in_place(&self, steps: &[CostStep<'_>], at: usize) -> Vec<CostTerm> {
        let Some((bytes, looped)) = self.array_bytes(steps[at]) else {
            return Vec::new();
        };
        let is_last = !steps[at + 1..].iter().any(|step| step.can_fail());
        if bytes < BLOCK_MIN || bytes > self.array_max || is_last {
            return Vec::new();
        }
        let has_check = at > 0 && matches!(steps[at - 1], CostStep::Check(_));
        let is_alone = has_check && steps.get(at + 1).is_none_or(|step| step.can_fail());
        let copies = match (looped, is_alone) {
            (true, _) => 2,
            (false, true) => 3,
            (false, false) => usize::from(self.with.is_foreign()),
        };
        let copy = CostTerm::Block {
            start: Symbol::Copy,
            bytes: ByteAmount::Fixed(bytes),
            padding: None,
        };
        vec![copy; copies]
    }

    /// Returns the bytes in memory of an array of fixed length, and whether it is read by a loop.
    fn array_bytes(&self, step: CostStep<'_>) -> Option<(u64, bool)> {
        let elements =
            |place: &Place, count: u32| self.element_room(place).saturating_mul(u64::from(count));
        match step {
            CostStep::Item(FixedItem { place, kind, .. }) => match kind {
                FixedKind::Put { .. } => None,
                FixedKind::PutArray { count, .. } => Some((elements(place, *count), false)),
                FixedKind::Copy { bytes } => Some((u64::from(*bytes), false)),
                FixedKind::Blit { item, count } => {
                    Some((item.bytes().saturating_mul(u64::from(*count)), false))
                }
            },
            CostStep::Op(
                Op::Loop {
                    place,
                    count: Count::Fixed(count),
                    ..
                }
                | Op::PutElements {
                    place,
                    count: Count::Fixed(count),
                    ..
                },
            ) => Some((elements(place, *count), true)),
            CostStep::Check(_) | CostStep::Hole | CostStep::Op(_) => None,
        }
    }

    /// Returns whether what is moved depends on the value.
    fn is_branched(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| match op {
            Op::Switch { .. } | Op::Optional { .. } | Op::List { .. } => true,
            Op::Loop { count, .. } | Op::PutElements { count, .. } => {
                matches!(count, Count::Counted(_))
            }
            Op::Call { plan, .. } => {
                let is_recursive = self.with.plans.of_type(*plan).recursive;
                !is_recursive
                    && self.is_so(TypeQuery::IsBranched, *plan, |ops| self.is_branched(ops))
            }
            _ => false,
        })
    }

    /// Returns the number of operations and arms that machine code has for a type.
    fn operations(&self, ops: &[Op]) -> u32 {
        let of = |op: &Op| match op {
            Op::PutElements { element, .. } => 1 + element.parts.len() as u32,
            Op::Loop { body, .. } | Op::Optional { body, .. } => {
                self.operations(body).saturating_add(1)
            }
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.fold(0, |sum: u32, body| {
                    sum.saturating_add(1).saturating_add(self.operations(body))
                })
            }
            Op::Call { plan, .. } if !self.is_called(*plan) => {
                self.asked(TypeQuery::Operations, *plan, |ops| self.operations(ops))
            }
            op => op.steps() as u32,
        };
        ops.iter().map(of).fold(0, u32::saturating_add)
    }

    /// About how many instructions a routine is, without those of its loops.
    fn instructions(&self, ops: &[Op]) -> u32 {
        let each = ops.iter().map(|op| self.instructions_of(op));
        each.fold(0, u32::saturating_add)
    }

    fn instructions_of(&self, op: &Op) -> u32 {
        match op {
            Op::Reserve(block) => {
                let parts = block
                    .parts
                    .iter()
                    .map(|part| self.instructions_in_block(part));
                parts.fold(CHECKED, u32::saturating_add)
            }
            Op::Align { .. } if !self.is_decoding() => 2,
            Op::Align { .. } => CHECKED,
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                let selected = CHECKED + self.check(*discriminant);
                let each = bodies.map(|body| self.instructions(body));
                each.fold(selected, u32::saturating_add)
            }
            Op::Optional { body, .. } => CHECKED.saturating_add(self.instructions(body)),
            Op::Call { plan, .. } => match self.is_called(*plan) {
                true => RUN_TIME,
                false => self.asked(TypeQuery::Instructions, *plan, |ops| self.instructions(ops)),
            },
            _ => RUN_TIME,
        }
    }

    fn instructions_in_block(&self, part: &BlockPart) -> u32 {
        match part.item().map(|item| &item.kind) {
            Some(FixedKind::Put { .. }) if self.with.moves.by == Mover::Procedure => RUN_TIME,
            Some(FixedKind::Put { scalar }) => self.check(*scalar).max(1),
            Some(FixedKind::PutArray { .. }) => RUN_TIME,
            Some(FixedKind::Copy { .. } | FixedKind::Blit { .. }) | None => 2,
        }
    }

    /// About how many instructions it takes to see whether it is a value.
    fn check(&self, scalar: Scalar) -> u32 {
        match self.with.plans.representation.is_checked(scalar) {
            true => CHECKED,
            false => 0,
        }
    }
}
