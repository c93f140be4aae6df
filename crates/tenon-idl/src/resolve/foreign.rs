//! Numbers that only C knows: names from `%` lines, C's headers or a Makefile, where the interface is read for
//! rpcgen's C ([`Undeclared::OfLibtirpc`]). What is written is passed on; the schema gets placeholders.

use std::collections::{BTreeSet, HashSet};

use tenon_schema::Arm;

use crate::ast::Expression;
use crate::options::Undeclared;
use crate::source::Span;

use super::Resolver;

/// The expressions whose value is left to C, by their places.
#[derive(Debug, Default)]
pub(super) struct Foreign(HashSet<Span>);

impl Foreign {
    /// Whether C alone knows the value of `expression`.
    pub(super) fn has(&self, expression: &Expression) -> bool {
        self.0.contains(&expression.span)
    }
}

impl Resolver<'_> {
    /// Whether the interface is read for rpcgen's C, which has a compiler behind it.
    pub(super) fn is_for_c(&self) -> bool {
        self.options.undeclared == Undeclared::OfLibtirpc
    }

    /// Leaves the value of `expression` to C, if there is a C compiler to ask; false if there is none.
    pub(super) fn leave_to_c(&mut self, expression: &Expression) -> bool {
        if self.is_for_c() {
            self.foreign.0.insert(expression.span);
        }
        self.is_for_c()
    }
}

/// Gives each of the labels at `places` (an arm, a label of it) a value that no other label of the union has.
pub(super) fn fill_labels(arms: &mut [Arm], places: &[(usize, usize)]) {
    let known = arms.iter().enumerate().flat_map(|(arm, it)| {
        let cases = it.cases.iter().enumerate();
        cases.map(move |(case, it)| ((arm, case), it.value))
    });
    let used: BTreeSet<i32> = known
        .filter(|(place, _)| !places.contains(place))
        .map(|(_, value)| value)
        .collect();
    let free = (i32::MIN..=i32::MAX).filter(|value| !used.contains(value));
    for ((arm, case), value) in places.iter().zip(free) {
        arms[*arm].cases[*case].value = value;
    }
}

/// The numbers, with one that no other has in the place of each that C alone knows.
pub(super) fn fill_numbers(numbers: &[Option<u32>]) -> Vec<u32> {
    let used: BTreeSet<u32> = numbers.iter().flatten().copied().collect();
    let mut free = (0..=u32::MAX).rev().filter(|number| !used.contains(number));
    let filled = numbers.iter();
    filled
        .map(|number| number.or_else(|| free.next()).unwrap_or_default())
        .collect()
}
