//! Shapes of values, which fill in the variables of an equation: of a real value, or of what is assumed of one.

use super::equation::{Choice, Equations, Variable};
use crate::Place;

/// The known facts about a value. A question about something that the value does not have is answered with nothing.
pub trait Shape: Copy {
    /// True if all values of a type at a depth are alike, so that one stands for all.
    const IS_ALIKE: bool;

    /// The item at a place.
    fn at(self, place: &Place) -> Self;

    /// Returns the number of its elements or bytes.
    fn length(self, of: &Variable) -> u64;

    /// The elements, each with how many are like it; `times`, if that is always the same.
    fn elements(self, of: &Variable, times: Option<u32>) -> impl Iterator<Item = (u64, Self)>;

    /// Returns what a pointer leads to, if there is something.
    fn held(self, of: &Variable) -> Option<Self>;

    /// Returns the arm that is selected, `None` for the default one, and what it holds.
    fn arm(self, of: &Choice) -> (Option<usize>, Self);

    /// The value of a named type, of which there are already so many around it.
    fn entered(self, depth: u32) -> Self;
}

/// Assumptions about the values of an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumptions {
    /// Length of everything that has one, unless its bound is less.
    pub length: u64,
    /// Lengths by name: a field, or the type and the field with a dot between them.
    pub lengths: Vec<(String, u64)>,
    /// Labels of arms by name, in the same way.
    pub arms: Vec<(String, String)>,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            length: 16,
            lengths: Vec::new(),
            arms: Vec::new(),
        }
    }
}

impl Assumptions {
    /// Returns a name that means nothing in these equations, if there is one.
    pub fn unknown(&self, equations: &Equations) -> Option<&str> {
        let known = equations.variables();
        let lengths = self.lengths.iter().map(|(name, _)| name);
        let mut names = lengths.chain(self.arms.iter().map(|(name, _)| name));
        let is_unknown = |name: &&String| !known.keys().any(|full| is_called(full, name));
        names.find(is_unknown).map(String::as_str)
    }

    /// Returns a length by name that nothing called so can have, if there is one, and the most that it can be.
    pub fn over_bound(&self, equations: &Equations) -> Option<(&str, u64, u32)> {
        let known = equations.variables();
        let bound_of = |name: &str| {
            let called_so = known.iter().filter(|(full, _)| is_called(full, name));
            called_so.map(|(_, bound)| *bound).max()
        };
        self.lengths.iter().find_map(|(name, length)| {
            let bound = bound_of(name)?;
            (*length > bound.into()).then_some((name.as_str(), *length, bound))
        })
    }

    fn named_length(&self, of: &Variable) -> Option<u64> {
        let mut named = self.lengths.iter().rev();
        let named = named.find(|(name, _)| of.is_called(name));
        named.map(|(_, length)| *length)
    }

    fn length_of(&self, of: &Variable) -> u64 {
        let length = self.named_length(of).unwrap_or(self.length);
        length.min(of.bound.into())
    }

    /// An optional value is a sequence of at most one.
    fn is_there(&self, of: &Variable) -> bool {
        self.named_length(of) != Some(0)
    }

    /// The arm that is named, else the first that is not nothing, else the first.
    fn arm_of(&self, of: &Choice) -> Option<usize> {
        let mut named = self.arms.iter().rev();
        match named.find(|(name, _)| of.of.is_called(name)) {
            Some((_, label)) => of.arms.iter().position(|(_, known, _)| known == label),
            None => {
                let holds = |(_, _, terms): &(_, _, Vec<_>)| !terms.is_empty();
                let first = (!of.arms.is_empty()).then_some(0);
                of.arms.iter().position(holds).or(first)
            }
        }
    }
}

impl Variable {
    fn is_called(&self, name: &str) -> bool {
        is_called(&self.name(), name)
    }
}

/// Returns whether a name means what has this full name: all of it, or what is behind some dot.
fn is_called(full: &str, name: &str) -> bool {
    let before = full.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// A value of which nothing is known but what is assumed.
#[derive(Debug, Clone, Copy)]
pub struct Assumed<'a> {
    assumptions: &'a Assumptions,
    /// Number of values of its type that are around it.
    depth: u32,
}

impl<'a> Assumed<'a> {
    /// A value as `assumptions` describe it.
    pub fn new(assumptions: &'a Assumptions) -> Self {
        Self {
            assumptions,
            depth: 0,
        }
    }

    /// A recursive type holds one more of its kind, and that holds none.
    fn is_spent(self) -> bool {
        self.depth > 1
    }
}

impl Shape for Assumed<'_> {
    const IS_ALIKE: bool = true;

    fn at(self, _: &Place) -> Self {
        self
    }

    fn length(self, of: &Variable) -> u64 {
        match self.is_spent() {
            true => 0,
            false => self.assumptions.length_of(of),
        }
    }

    fn elements(self, of: &Variable, times: Option<u32>) -> impl Iterator<Item = (u64, Self)> {
        let length = times.map_or_else(|| self.length(of), u64::from);
        (length > 0).then_some((length, self)).into_iter()
    }

    fn held(self, of: &Variable) -> Option<Self> {
        let is_there = !self.is_spent() && self.assumptions.is_there(of);
        is_there.then_some(self)
    }

    fn arm(self, of: &Choice) -> (Option<usize>, Self) {
        let arm = match self.is_spent() {
            true => of.shortest,
            false => self.assumptions.arm_of(of),
        };
        (arm, self)
    }

    fn entered(self, depth: u32) -> Self {
        Self { depth, ..self }
    }
}
