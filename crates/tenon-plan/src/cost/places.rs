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
use super::symbol::{Engine, Symbol};
use crate::{Count, Mover, Op, Place, Scalar};

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
            Engine::Compiled => plan.body.len() > OFFERED_MAX && is_long(),
        }
    }

    /// Values that routines have made for a record, or arrays that were read before something else could
    /// fail.
    pub(super) fn put_in_place(&self, ops: &[Op]) -> Vec<CostTerm> {
        if !self.is_made_apart() {
            return Vec::new();
        }
        let arrays = (0..ops.len()).flat_map(|at| self.array_in_place(ops, at));
        let mut terms: Vec<CostTerm> = arrays.collect();
        if ops.iter().any(|op| self.is_handed(op)) {
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
    fn is_handed(&self, op: &Op) -> bool {
        let Op::Call { plan, .. } = op else {
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
            Op::Loop { count, body, .. } | Op::PutElements { count, body, .. } => {
                matches!(count, Count::Counted(_)) || self.has_memory(body)
            }
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
    fn array_in_place(&self, ops: &[Op], at: usize) -> Vec<CostTerm> {
        let (place, times, looped) = match &ops[at] {
            Op::PutArray { place, count, .. } => (place, *count, false),
            Op::Blit { place, count, .. } => (place, *count, false),
            Op::Loop {
                place,
                count: Count::Fixed(count),
                ..
            }
            | Op::PutElements {
                place,
                count: Count::Fixed(count),
                ..
            } => (place, *count, true),
            Op::Copy { place, bytes, .. } => (place, *bytes, false),
            _ => return Vec::new(),
        };
        let bytes = self.bytes_at(place, times, &ops[at]);
        let is_last = !ops[at + 1..].iter().any(can_fail);
        if bytes < BLOCK_MIN || bytes > self.array_max || is_last {
            return Vec::new();
        }
        let has_check = at > 0 && matches!(ops[at - 1], Op::Reserve { .. });
        let is_alone = has_check && ops.get(at + 1).is_none_or(can_fail);
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

    fn bytes_at(&self, place: &Place, times: u32, op: &Op) -> u64 {
        match op {
            Op::Copy { bytes, .. } => u64::from(*bytes),
            Op::Blit { item, count, .. } => item.bytes().saturating_mul(u64::from(*count)),
            _ => self.element_room(place).saturating_mul(u64::from(times)),
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
            Op::PutElements { body, .. } | Op::Loop { body, .. } | Op::Optional { body, .. } => {
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
            _ => 1,
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
            Op::Put { .. } if self.with.plans.moves.by == Mover::Procedure => RUN_TIME,
            Op::Put { scalar, .. } => self.check(*scalar).max(1),
            Op::Zero { .. } | Op::Copy { .. } | Op::Blit { .. } => 2,
            Op::Align { .. } if !self.is_decoding() => 2,
            Op::Align { .. } | Op::Reserve { .. } => CHECKED,
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

    /// About how many instructions it takes to see whether it is a value.
    fn check(&self, scalar: Scalar) -> u32 {
        match self.with.plans.representation.is_checked(scalar) {
            true => CHECKED,
            false => 0,
        }
    }
}

/// Returns whether an operation may find that bytes are missing, or a value that is none.
fn can_fail(op: &Op) -> bool {
    !matches!(
        op,
        Op::Put { .. }
            | Op::PutArray { .. }
            | Op::Copy { .. }
            | Op::Blit { .. }
            | Op::Zero { .. }
            | Op::Align { .. }
    )
}
