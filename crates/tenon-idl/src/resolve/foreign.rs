//! Numbers that only C knows: names from `%` lines, C's headers or a Makefile, where the interface is read for
//! rpcgen's C ([`Undeclared::OfLibtirpc`]). Their spelling is passed on; the schema gets placeholders.

use std::collections::{BTreeSet, HashSet};

use tenon_schema::Arm;

use crate::ast::Expression;
use crate::options::Undeclared;
use crate::source::Span;

use super::SchemaResolver;

/// The expressions with values that are left to C, by their spans.
#[derive(Debug, Default)]
pub(super) struct ForeignExpressions(HashSet<Span>);

impl ForeignExpressions {
    /// Returns whether C alone knows the value of `expression`.
    pub(super) fn has(&self, expression: &Expression) -> bool {
        self.0.contains(&expression.span)
    }
}

impl SchemaResolver<'_> {
    /// Returns whether the interface is read for rpcgen's C, which is compiled by a C compiler.
    pub(super) fn is_for_c(&self) -> bool {
        self.options.undeclared == Undeclared::OfLibtirpc
    }

    /// Leaves the value of `expression` to C, if the interface is read for it; false otherwise.
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

/// Returns the numbers, with a unique one in place of each that C alone knows.
pub(super) fn fill_numbers(numbers: &[Option<u32>]) -> Vec<u32> {
    let used: BTreeSet<u32> = numbers.iter().flatten().copied().collect();
    let mut free = (0..=u32::MAX).rev().filter(|number| !used.contains(number));
    let filled = numbers.iter();
    filled
        .map(|number| number.or_else(|| free.next()).unwrap_or_default())
        .collect()
}
