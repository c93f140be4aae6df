//! Equations: sums of terms, and how they are written.

use std::collections::BTreeSet;
use std::fmt;

use tenon_schema::TypeId;

use super::symbol::{Direction, Engine, Symbol};
use crate::Place;

/// The equations of a whole interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Equations {
    /// What runs the plans.
    pub engine: Engine,
    /// Which way.
    pub direction: Direction,
    /// One per named type, in the order of the schema. Of a link: of one element.
    pub types: Vec<Equation>,
    /// The arguments and the result of each procedure, in the order of the plans.
    pub procedures: Vec<[Equation; 2]>,
}

/// What it costs to run one plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Equation {
    /// What the plan belongs to: a type or a procedure.
    pub owner: String,
    /// The sum.
    pub terms: Vec<Term>,
}

/// One part of a sum.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
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
        /// How many bytes.
        bytes: Amount,
        /// If the bytes are not those of a reserved block: what they are padded to.
        padding: Option<u32>,
    },
    /// `a(n)`: nothing is taken for no bytes.
    Allocate(Amount),
    /// `a(n)` for a list whose end nobody knows: its room doubles when it is full.
    Grow {
        /// Bytes of all elements.
        bytes: Amount,
        /// Elements that there is room for at first.
        first: u64,
    },
    /// `a(n)` for the value of a message as a whole.
    Frame(u64),
    /// Once for each element.
    Loop {
        /// The array.
        of: Variable,
        /// How often, if that is always the same.
        times: Option<u32>,
        /// One element.
        body: Vec<Term>,
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
        link: Vec<Term>,
    },
    /// One of several sums.
    Choice(Choice),
    /// Only if the value is there.
    Maybe {
        /// The value.
        of: Variable,
        /// What it costs then.
        body: Vec<Term>,
    },
    /// The equation of a named type.
    Call {
        /// Where in memory.
        place: Place,
        /// The type.
        ty: TypeId,
        /// Its name.
        name: String,
    },
    /// Nobody knows what the user's own routine costs.
    Unknown {
        /// The type that the interface only names.
        name: String,
    },
}

/// What the interface leaves open: a length, an arm, whether something is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Where it is, from the `it` of its body.
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
pub enum Amount {
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
    /// The arms: the values that select them, what people call the first, and what they cost.
    pub arms: Vec<(Vec<i32>, String, Vec<Term>)>,
    /// The default arm.
    pub default: Option<Vec<Term>>,
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
    /// The named types whose equations an equation stands on, each once, in the order in which
    /// somebody who reads it comes upon them.
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

    /// The full names of everything that the interface leaves open, in order.
    pub fn variables(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
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
    /// The named types whose equations stand in it, each once, in their order.
    pub fn calls(&self) -> Vec<TypeId> {
        let mut found = Vec::new();
        calls(&self.terms, &mut found);
        found
    }
}

fn calls(terms: &[Term], found: &mut Vec<TypeId>) {
    for term in terms {
        match term {
            Term::Call { ty: id, .. } | Term::List { element: id, .. } => {
                if !found.contains(id) {
                    found.push(*id);
                }
            }
            Term::Loop { body, .. } | Term::Maybe { body, .. } => calls(body, found),
            Term::Choice(choice) => {
                let arms = choice.arms.iter().map(|(_, _, terms)| terms);
                arms.chain(&choice.default)
                    .for_each(|terms| calls(terms, found));
            }
            Term::Times(..) | Term::Wire(_) | Term::Align { .. } => {}
            Term::Block { .. } | Term::Allocate(_) | Term::Grow { .. } => {}
            Term::Frame(_) | Term::Unknown { .. } => {}
        }
    }
}

fn variables(terms: &[Term], found: &mut BTreeSet<String>) {
    for term in terms {
        match term {
            Term::Block { bytes, .. } | Term::Allocate(bytes) | Term::Grow { bytes, .. } => {
                if let Amount::PerItem(_, of) = bytes {
                    found.insert(of.name());
                }
            }
            Term::Loop { of, body, .. } | Term::Maybe { of, body } => {
                found.insert(of.name());
                variables(body, found);
            }
            Term::List { of, link, .. } => {
                found.insert(of.name());
                variables(link, found);
            }
            Term::Choice(choice) => {
                found.insert(choice.of.name());
                let arms = choice.arms.iter().map(|(_, _, terms)| terms);
                arms.chain(&choice.default)
                    .for_each(|terms| variables(terms, found));
            }
            Term::Times(..) | Term::Wire(_) | Term::Align { .. } => {}
            Term::Frame(_) | Term::Call { .. } | Term::Unknown { .. } => {}
        }
    }
}

impl fmt::Display for Equation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Sum(&self.terms))
    }
}

/// Terms as people write them: like ones are put together, what costs nothing is left out.
struct Sum<'a>(&'a [Term]);

impl fmt::Display for Sum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = parts(self.0);
        match parts.is_empty() {
            true => f.write_str("0"),
            false => f.write_str(&parts.join(" + ")),
        }
    }
}

fn parts(terms: &[Term]) -> Vec<String> {
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

fn times(terms: &[Term], symbol: Symbol) -> u64 {
    let of = |term: &Term| match term {
        Term::Times(times, of) if *of == symbol => *times,
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

fn part(term: &Term) -> Option<String> {
    Some(match term {
        Term::Times(..) | Term::Wire(_) => return None,
        Term::Align { .. } => Symbol::Hole.to_string(),
        Term::Block { start, bytes, .. } => match start {
            Symbol::Swap => format!("s({bytes})"),
            _ => format!("b({bytes})"),
        },
        Term::Allocate(bytes) => format!("a({bytes})"),
        Term::Grow { bytes, .. } => format!("a({bytes}, doubling)"),
        Term::Frame(bytes) => format!("a({bytes})"),
        Term::Loop {
            times: Some(times),
            body,
            ..
        } => format!("{times} × ({})", Sum(body)),
        Term::Loop { of, body, .. } => format!("{} × ({})", Length(of), Sum(body)),
        Term::List { of, name, link, .. } => {
            format!("{} × ({} + {name})", Length(of), Sum(link))
        }
        Term::Choice(choice) => choice.to_string(),
        Term::Maybe { of, body } => format!("[{}] × ({})", of.short(), Sum(body)),
        Term::Call { name, .. } => name.clone(),
        Term::Unknown { name } => format!("{name} (unknown)"),
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
struct Length<'a>(&'a Variable);

impl fmt::Display for Length<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "|{}|", self.0.short())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}"),
            Self::PerItem(1, of) => write!(f, "{}", Length(of)),
            Self::PerItem(bytes, of) => write!(f, "{bytes} {}", Length(of)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arms = self.arms.iter().map(|(_, label, terms)| (&**label, terms));
        let all = arms.chain(self.default.iter().map(|terms| ("default", terms)));
        let texts: Vec<String> = all
            .map(|(label, terms)| format!("{label}: {}", Sum(terms)))
            .collect();
        write!(f, "{{{}}}", texts.join(" | "))
    }
}
