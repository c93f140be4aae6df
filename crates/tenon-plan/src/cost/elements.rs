//! From a plan to its equation: what has elements. Arrays, counted items and linked lists.

use tenon_schema::TypeId;

use super::derive::{TermBuilder, once};
use super::equation::{ByteAmount, CostTerm, Variable};
use super::moves::{Mover, Moves};
use super::steps;
use super::symbol::{Engine, Symbol};
use crate::representation::{COUNT_BYTES, Lists};
use crate::reserved::ReservedBlock;
use crate::{Blittable, Count, Op, Place, Run, Scalar, memory};

/// Elements that compiled stubs first have room for in a list, if one has no more than
/// [`FIRST_ROOM_MAX`] bytes, as `tenon-wire` does.
const FIRST_ROOM: u64 = 4;
const FIRST_ROOM_MAX: u64 = 64;

impl TermBuilder<'_, '_> {
    pub(super) fn array(&self, place: &Place, scalar: Scalar, count: u32) -> Vec<CostTerm> {
        let mut terms = once([Symbol::Array]);
        terms.push(match self.with.block_unit(scalar) {
            Some(unit) => {
                let bytes = self.with.plans.representation.bytes(scalar);
                let units = count.saturating_mul(bytes / unit);
                self.with.run(Run { unit, units })
            }
            None => self.numbers(place, scalar, Count::Fixed(count)),
        });
        terms
    }

    /// Numbers that are moved one by one by one operation.
    fn numbers(&self, place: &Place, scalar: Scalar, count: Count) -> CostTerm {
        let mut body = once([Symbol::Loop]);
        body.extend(self.with.number(scalar));
        self.repeat(place, count, body)
    }

    fn repeat(&self, place: &Place, count: Count, body: Vec<CostTerm>) -> CostTerm {
        let (times, bound) = match count {
            Count::Fixed(times) => (Some(times), times),
            Count::Counted(bound) => (None, bound),
        };
        let of = self.variable(place, bound);
        CostTerm::Loop { of, times, body }
    }

    pub(super) fn put_counted(&self, place: &Place, scalar: Scalar, bound: u32) -> Vec<CostTerm> {
        let bytes = self.with.plans.representation.bytes(scalar);
        match self.with.block_unit(scalar) {
            Some(unit) => {
                let start = self.with.starts(unit);
                self.counted_block(place, bound, start, bytes.into(), 1)
            }
            None => {
                let mut terms = self.counted(place, bound, memory::of_scalar(scalar).bytes);
                let count = Count::Counted(bound);
                let CostTerm::Loop {
                    of,
                    times,
                    mut body,
                } = self.numbers(place, scalar, count)
                else {
                    unreachable!("numbers are moved by a loop")
                };
                body.push(CostTerm::Wire(bytes.into()));
                terms.push(CostTerm::Loop { of, times, body });
                terms
            }
        }
    }

    pub(super) fn blit(&self, place: &Place, item: &Blittable, count: u32) -> Vec<CostTerm> {
        let uniform = match self.with.is_foreign() {
            true => item.unit(),
            false => Some(1),
        };
        let mut terms = once([Symbol::Array]);
        match uniform {
            Some(unit) => {
                let bytes = item.bytes().saturating_mul(count.into());
                let units = u32::try_from(bytes / u64::from(unit)).unwrap_or(u32::MAX);
                terms.push(self.with.run(Run { unit, units }));
            }
            None if count == 1 => terms.extend(self.runs(item)),
            None => {
                let mut body = once([Symbol::Element]);
                body.extend(self.runs(item));
                terms.push(self.repeat(place, Count::Fixed(count), body));
            }
        }
        terms
    }

    fn runs(&self, item: &Blittable) -> impl Iterator<Item = CostTerm> {
        let with = self.with;
        item.runs.iter().map(|run| with.run(*run))
    }

    pub(super) fn blit_counted(
        &self,
        place: &Place,
        item: &Blittable,
        bound: u32,
    ) -> Vec<CostTerm> {
        let uniform = match self.with.is_foreign() {
            true => item.unit(),
            false => Some(1),
        };
        match uniform {
            Some(unit) => {
                let start = self.with.starts(unit);
                self.counted_block(place, bound, start, item.bytes(), 1)
            }
            None => {
                let mut terms = self.counted(place, bound, item.bytes());
                let mut body = once([Symbol::Element]);
                body.extend(self.runs(item));
                body.push(CostTerm::Wire(item.bytes()));
                terms.push(self.repeat(place, Count::Counted(bound), body));
                terms
            }
        }
    }

    pub(super) fn put_elements(
        &self,
        place: &Place,
        count: Count,
        element: &ReservedBlock,
    ) -> Vec<CostTerm> {
        let mut terms = match count {
            Count::Fixed(_) => once([Symbol::Check, Symbol::Array]),
            Count::Counted(bound) => self.counted(place, bound, self.element_room(place)),
        };
        let mut body = once([round(Some(element))]);
        let steps: Vec<_> = steps::of_parts(element).collect();
        body.extend(self.inside(self.element(place), place).steps(&steps));
        body.push(CostTerm::Wire(element.bytes.into()));
        terms.push(self.repeat(place, count, body));
        terms.extend(self.array_elsewhere(place, count));
        terms
    }

    pub(super) fn each(&self, place: &Place, count: Count, ops: &[Op]) -> Vec<CostTerm> {
        let mut terms = match count {
            Count::Fixed(_) => once([Symbol::Array]),
            Count::Counted(bound) => self.counted(place, bound, self.element_room(place)),
        };
        let body = match self.is_vector(count, ops) {
            true => vec![
                CostTerm::Times(1, Symbol::Vector),
                CostTerm::Wire(of_reserved(ops)),
            ],
            false => {
                let mut body = once([round(only_block(ops))]);
                body.extend(self.left(ops));
                body.extend(self.inside(self.element(place), place).terms(ops));
                body
            }
        };
        terms.push(self.repeat(place, count, body));
        terms.extend(self.array_elsewhere(place, count));
        terms
    }

    /// Returns whether compilers make a loop over numbers one over vectors, checks and all. When a stub encodes, a
    /// check may have to make room, and they do not.
    fn is_vector(&self, count: Count, ops: &[Op]) -> bool {
        let Some((_, scalar)) = only_block(ops).and_then(ReservedBlock::only_scalar) else {
            return false;
        };
        let is_plain =
            self.with.moves == Moves::default() && self.with.block_unit(scalar).is_some();
        let is_known = matches!(count, Count::Fixed(_));
        is_plain && is_known && self.with.engine == Engine::Compiled && self.is_decoding()
    }

    /// Returns the cost of reloading the length left: it lies in memory in a loop over records with a check for
    /// each number, and each check waits for the one before.
    fn left(&self, ops: &[Op]) -> Option<CostTerm> {
        let ops = match ops {
            [Op::Call { plan, .. }] if !self.is_called(*plan) => {
                &self.with.plans.of_type(*plan).body
            }
            ops => ops,
        };
        let checks = ops.iter().filter(|op| matches!(op, Op::Reserve(_)));
        let checks = checks.count() as u64;
        let is_inline = self.with.engine == Engine::Compiled && self.with.moves.by == Mover::Inline;
        let is_left = is_inline && self.is_decoding() && checks > 1;
        is_left.then_some(CostTerm::Times(checks, Symbol::Left))
    }

    /// A large fixed array has memory of its own.
    fn array_elsewhere(&self, place: &Place, count: Count) -> Option<CostTerm> {
        let Count::Fixed(count) = count else {
            return None;
        };
        let bytes = self.element_room(place).saturating_mul(count.into());
        let is_taken = self.is_decoding() && bytes > self.array_max;
        is_taken.then_some(CostTerm::Allocate(ByteAmount::Fixed(bytes)))
    }

    /// Returns the terms of the beginning of a counted value, with items of `room` bytes of memory each.
    fn counted(&self, place: &Place, bound: u32, room: u64) -> Vec<CostTerm> {
        let mut terms = once([Symbol::Check, Symbol::Item, Symbol::Counted]);
        terms.push(CostTerm::Wire(COUNT_BYTES.into()));
        if self.is_decoding() {
            let of = self.variable(place, bound);
            terms.push(CostTerm::Allocate(ByteAmount::PerItem(room, of)));
        }
        terms
    }

    /// Counted items that are moved as one block.
    pub(super) fn counted_block(
        &self,
        place: &Place,
        bound: u32,
        start: Symbol,
        bytes: u64,
        padding: u32,
    ) -> Vec<CostTerm> {
        let mut terms = self.counted(place, bound, bytes);
        terms.push(CostTerm::Block {
            start,
            bytes: ByteAmount::PerItem(bytes, self.variable(place, bound)),
            padding: Some(padding),
        });
        terms
    }

    pub(super) fn list(&self, place: &Place, first_bare: bool, element: TypeId) -> Vec<CostTerm> {
        let representation = self.with.plans.representation;
        let flag = u64::from(representation.bytes(Scalar::Bool));
        let of = self.variable(place, u32::MAX);
        let (mut terms, link) = match representation.lists {
            Lists::Flagged => {
                let last = if first_bare { 0 } else { flag };
                let terms = vec![CostTerm::Times(1, Symbol::List), CostTerm::Wire(last)];
                (
                    terms,
                    vec![CostTerm::Times(1, Symbol::Link), CostTerm::Wire(flag)],
                )
            }
            Lists::Counted => {
                let mut terms = once([Symbol::Check, Symbol::Item, Symbol::List]);
                terms.push(CostTerm::Wire(COUNT_BYTES.into()));
                let to = self.with.plans.of_type(element).align;
                let align = (to > 1).then_some(CostTerm::Align { to, before: 0 });
                let link = align.into_iter().chain(once([Symbol::Link]));
                (terms, link.collect())
            }
        };
        if self.is_decoding() {
            terms.push(self.list_room(representation.lists, element, of.clone()));
        }
        terms.push(CostTerm::List {
            of,
            element,
            name: self.type_name(element),
            link,
        });
        terms
    }

    /// Memory for the elements of a list. Where it is flagged, their number is not known before the last one.
    fn list_room(&self, lists: Lists, element: TypeId, of: Variable) -> CostTerm {
        let each = self.facts.rooms.of_element(element);
        let bytes = ByteAmount::PerItem(each, of);
        let first = match self.with.engine {
            Engine::Compiled if each <= FIRST_ROOM_MAX => FIRST_ROOM,
            _ => 1,
        };
        match lists {
            Lists::Flagged => CostTerm::Grow { bytes, first },
            Lists::Counted => CostTerm::Allocate(bytes),
        }
    }
}

/// Bytes that are checked for at the beginning.
fn of_reserved(ops: &[Op]) -> u64 {
    match ops {
        [Op::Reserve(block), ..] => block.bytes.into(),
        _ => 0,
    }
}

/// The one block that a body is.
fn only_block(ops: &[Op]) -> Option<&ReservedBlock> {
    match ops {
        [Op::Reserve(block)] => Some(block),
        _ => None,
    }
}

/// Returns the symbol of one round, in which there may be one block: of a loop over numbers, or of one over records.
fn round(block: Option<&ReservedBlock>) -> Symbol {
    match block.and_then(ReservedBlock::only_scalar) {
        Some(_) => Symbol::Loop,
        None => Symbol::Element,
    }
}
