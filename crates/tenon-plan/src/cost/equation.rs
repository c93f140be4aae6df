//! Equations: sums of terms, and their text form.

use std::collections::BTreeMap;
use std::fmt;

use tenon_schema::TypeId;

use super::symbol::{Direction, Engine, Symbol};
use crate::Place;

/// The equations of a whole interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Equations {
    /// The engine that runs the plans.
    pub engine: Engine,
    /// Direction of the messages.
    pub direction: Direction,
    /// One per named type, in the order of the schema. Of a link: of one element.
    pub types: Vec<Equation>,
    /// The arguments and the result of each procedure, in the order of the plans.
    pub procedures: Vec<[Equation; 2]>,
}

/// The cost of running one plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Equation {
    /// The type or the procedure that the plan belongs to.
    pub owner: String,
    /// The sum.
    pub terms: Vec<CostTerm>,
}

/// One part of a sum.
#[derive(Debug, Clone, PartialEq)]
pub enum CostTerm {
    /// So many times a parameter.
    Times(u64, Symbol),
    /// Bytes of the message that cost nothing by themselves.
    Wire(u64),
    /// Bytes up to a position that, with so many more, is a multiple of `to`.
    Align {
        /// 2, 4 or 8.
        to: u32,
        /// The bytes more.
        before: u32,
    },
    /// `b(n)` or `s(n)`.
    Block {
        /// [`Symbol::Copy`] or [`Symbol::Swap`].
        start: Symbol,
        /// Number of bytes.
        bytes: ByteAmount,
        /// If the bytes are not those of a reserved block: what they are padded to.
        padding: Option<u32>,
    },
    /// `a(n)`: nothing is taken for no bytes.
    Allocate(ByteAmount),
    /// `a(n)` for a list of unknown length: its room doubles when it is full.
    Grow {
        /// Bytes of all elements.
        bytes: ByteAmount,
        /// Elements that there is room for at first.
        first: u64,
    },
    /// `a(n)` for the value of a message as a whole.
    Frame(u64),
    /// Once for each element.
    Loop {
        /// The array.
        of: Variable,
        /// Number of rounds, if that is always the same.
        times: Option<u32>,
        /// One element.
        body: Vec<CostTerm>,
    },
    /// A linked list.
    List {
        /// The list.
        of: Variable,
        /// The type of the elements.
        element: TypeId,
        /// Its name.
        name: String,
        /// For each element, beside its plan.
        link: Vec<CostTerm>,
    },
    /// One of several sums.
    Choice(Choice),
    /// Only if the value is there.
    Maybe {
        /// The value.
        of: Variable,
        /// Cost of moving it.
        body: Vec<CostTerm>,
    },
    /// The equation of a named type.
    Call {
        /// Place in memory.
        place: Place,
        /// The type.
        ty: TypeId,
        /// Its name.
        name: String,
    },
    /// The unknown cost of the user's own routine.
    Unknown {
        /// The type that the interface only names.
        name: String,
    },
}

/// A quantity that the interface leaves open: a length, an arm, whether something is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its place, from the `it` of its body.
    pub place: Place,
    /// The type or procedure it belongs to.
    pub owner: String,
    /// The fields that lead to it from there, with dots between them; empty if it is the owner.
    pub path: String,
    /// The most it can be, if it is a length; `u32::MAX` is no bound.
    pub bound: u32,
}

/// So many bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum ByteAmount {
    /// Always the same.
    Fixed(u64),
    /// So many for each of what varies.
    PerItem(u64, Variable),
}

/// One of several sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The union.
    pub of: Variable,
    /// The arms: the values that select them, the label of the first, and what they cost.
    pub arms: Vec<(Vec<i32>, String, Vec<CostTerm>)>,
    /// The default arm.
    pub default: Option<Vec<CostTerm>>,
    /// The arm of the fewest bytes, `None` for the default one: where a value that contains others of its type ends.
    pub shortest: Option<usize>,
}

impl Variable {
    /// Its full name, `owner.path`.
    pub fn name(&self) -> String {
        match self.path.is_empty() {
            true => self.owner.clone(),
            false => format!("{}.{}", self.owner, self.path),
        }
    }
}

impl Equations {
    /// Returns the equations of named types that an equation stands on, each once, in the order in which
    /// a reader comes upon them.
    pub fn below(&self, equation: &Equation) -> Vec<&Equation> {
        let mut found = equation.calls();
        let mut next = 0;
        while let Some(id) = found.get(next) {
            let further = self.types[id.0 as usize].calls();
            let new: Vec<TypeId> = further
                .into_iter()
                .filter(|id| !found.contains(id))
                .collect();
            found.extend(new);
            next += 1;
        }
        let ids = found.into_iter();
        ids.map(|id| &self.types[id.0 as usize]).collect()
    }

    /// Returns the full names of everything that the interface leaves open, in order, and the most that each can be;
    /// `u32::MAX` is no bound.
    pub fn variables(&self) -> BTreeMap<String, u32> {
        let mut found = BTreeMap::new();
        let all = self.types.iter().chain(self.procedures.iter().flatten());
        all.for_each(|equation| variables(&equation.terms, &mut found));
        found
    }

    /// An equation and all below it, one a line.
    pub fn text(&self, equation: &Equation) -> String {
        let mut text = format!("{} = {equation}\n", equation.owner);
        for below in self.below(equation) {
            text += &format!("    {} = {below}\n", below.owner);
        }
        text
    }
}

impl Equation {
    /// Returns the named types with an equation in it, each once, in their order.
    pub fn calls(&self) -> Vec<TypeId> {
        let mut found = Vec::new();
        calls(&self.terms, &mut found);
        found
    }
}

fn calls(terms: &[CostTerm], found: &mut Vec<TypeId>) {
    for term in terms {
        match term {
            CostTerm::Call { ty: id, .. } | CostTerm::List { element: id, .. } => {
                if !found.contains(id) {
                    found.push(*id);
                }
            }
            CostTerm::Loop { body, .. } | CostTerm::Maybe { body, .. } => calls(body, found),
            CostTerm::Choice(choice) => {
                let arms = choice.arms.iter().map(|(_, _, terms)| terms);
                arms.chain(&choice.default)
                    .for_each(|terms| calls(terms, found));
            }
            CostTerm::Times(..) | CostTerm::Wire(_) | CostTerm::Align { .. } => {}
            CostTerm::Block { .. } | CostTerm::Allocate(_) | CostTerm::Grow { .. } => {}
            CostTerm::Frame(_) | CostTerm::Unknown { .. } => {}
        }
    }
}

fn variables(terms: &[CostTerm], found: &mut BTreeMap<String, u32>) {
    for term in terms {
        match term {
            CostTerm::Block { bytes, .. }
            | CostTerm::Allocate(bytes)
            | CostTerm::Grow { bytes, .. } => {
                if let ByteAmount::PerItem(_, of) = bytes {
                    note_variable(of, found);
                }
            }
            CostTerm::Loop { of, body, .. } | CostTerm::Maybe { of, body } => {
                note_variable(of, found);
                variables(body, found);
            }
            CostTerm::List { of, link, .. } => {
                note_variable(of, found);
                variables(link, found);
            }
            CostTerm::Choice(choice) => {
                note_variable(&choice.of, found);
                let arms = choice.arms.iter().map(|(_, _, terms)| terms);
                arms.chain(&choice.default)
                    .for_each(|terms| variables(terms, found));
            }
            CostTerm::Times(..) | CostTerm::Wire(_) | CostTerm::Align { .. } => {}
            CostTerm::Frame(_) | CostTerm::Call { .. } | CostTerm::Unknown { .. } => {}
        }
    }
}

fn note_variable(variable: &Variable, found: &mut BTreeMap<String, u32>) {
    let bound = found.entry(variable.name()).or_insert(variable.bound);
    *bound = variable.bound.min(*bound);
}

impl fmt::Display for Equation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", DisplayTerms(&self.terms))
    }
}

/// Terms as people write them: like ones are put together, what costs nothing is left out.
struct DisplayTerms<'a>(&'a [CostTerm]);

impl fmt::Display for DisplayTerms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = parts(self.0);
        match parts.is_empty() {
            true => f.write_str("0"),
            false => f.write_str(&parts.join(" + ")),
        }
    }
}

fn parts(terms: &[CostTerm]) -> Vec<String> {
    let mut parts = Vec::new();
    for symbol in Symbol::ALL {
        match times(terms, symbol) {
            0 => {}
            1 => parts.push(symbol.to_string()),
            times => parts.push(format!("{times} {symbol}")),
        }
    }
    parts.extend(terms.iter().filter_map(part));
    together(parts)
}

fn times(terms: &[CostTerm], symbol: Symbol) -> u64 {
    let of = |term: &CostTerm| match term {
        CostTerm::Times(times, of) if *of == symbol => *times,
        _ => 0,
    };
    terms.iter().map(of).sum()
}

/// `b(8) + b(8)` is `2 b(8)`, where the first one stood.
fn together(parts: Vec<String>) -> Vec<String> {
    let mut counted: Vec<(u32, String)> = Vec::new();
    for part in parts {
        match counted.iter_mut().find(|(_, known)| *known == part) {
            Some((times, _)) => *times += 1,
            None => counted.push((1, part)),
        }
    }
    let texts = counted.into_iter().map(|(times, part)| match times {
        1 => part,
        times => format!("{times} {part}"),
    });
    texts.collect()
}

fn part(term: &CostTerm) -> Option<String> {
    Some(match term {
        CostTerm::Times(..) | CostTerm::Wire(_) => return None,
        CostTerm::Align { .. } => Symbol::Hole.to_string(),
        CostTerm::Block { start, bytes, .. } => match start {
            Symbol::Swap => format!("s({bytes})"),
            _ => format!("b({bytes})"),
        },
        CostTerm::Allocate(bytes) => format!("a({bytes})"),
        CostTerm::Grow { bytes, .. } => format!("a({bytes}, doubling)"),
        CostTerm::Frame(bytes) => format!("a({bytes})"),
        CostTerm::Loop {
            times: Some(times),
            body,
            ..
        } => format!("{times} × ({})", DisplayTerms(body)),
        CostTerm::Loop { of, body, .. } => {
            format!("{} × ({})", DisplayLength(of), DisplayTerms(body))
        }
        CostTerm::List { of, name, link, .. } => {
            format!("{} × ({} + {name})", DisplayLength(of), DisplayTerms(link))
        }
        CostTerm::Choice(choice) => choice.to_string(),
        CostTerm::Maybe { of, body } => format!("[{}] × ({})", of.short(), DisplayTerms(body)),
        CostTerm::Call { name, .. } => name.clone(),
        CostTerm::Unknown { name } => format!("{name} (unknown)"),
    })
}

impl Variable {
    fn short(&self) -> &str {
        match self.path.is_empty() {
            true => &self.owner,
            false => &self.path,
        }
    }
}

/// The length of something, as mathematicians write it.
struct DisplayLength<'a>(&'a Variable);

impl fmt::Display for DisplayLength<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "|{}|", self.0.short())
    }
}

impl fmt::Display for ByteAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}"),
            Self::PerItem(1, of) => write!(f, "{}", DisplayLength(of)),
            Self::PerItem(bytes, of) => write!(f, "{bytes} {}", DisplayLength(of)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arms = self.arms.iter().map(|(_, label, terms)| (&**label, terms));
        let all = arms.chain(self.default.iter().map(|terms| ("default", terms)));
        let texts: Vec<String> = all
            .map(|(label, terms)| format!("{label}: {}", DisplayTerms(terms)))
            .collect();
        write!(f, "{{{}}}", texts.join(" | "))
    }
}
