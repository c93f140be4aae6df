//! Counts how often each parameter stands in an equation with known variables.

use std::collections::{BTreeMap, HashMap};

use tenon_schema::TypeId;

use super::equation::{ByteAmount, Choice, CostTerm, Equation, Equations, Variable};
use super::pieces::{self, AllocationLog};
use super::shape::Shape;
use super::symbol::{Engine, Symbol};

/// So often each parameter, and what a message takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    times: SymbolCounts,
    /// Bytes of the message.
    wire: u64,
    /// Of what varies in size or lies in types of its own: so much of the whole, by full name.
    parts: BTreeMap<String, SymbolCounts>,
    /// Pieces of memory, in their order.
    pieces: AllocationLog,
    /// True if it contains something of unknown cost.
    unknown: bool,
}

/// One for each symbol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SymbolCounts([f64; Symbol::ALL.len()]);

impl Default for SymbolCounts {
    fn default() -> Self {
        Self([0.0; Symbol::ALL.len()])
    }
}

impl SymbolCounts {
    pub fn of(&self, symbol: Symbol) -> f64 {
        self.0[symbol.index()]
    }

    pub fn add(&mut self, symbol: Symbol, times: f64) {
        self.0[symbol.index()] += times;
    }

    fn add_all(&mut self, others: &Self, times: f64) {
        for (mine, other) in self.0.iter_mut().zip(others.0) {
            *mine += other * times;
        }
    }
}

impl Tally {
    /// Of an equation, for a value of this shape.
    pub fn of(equations: &Equations, equation: &Equation, shape: impl Shape) -> Self {
        let mut walk = EquationEvaluator {
            equations,
            open: Vec::new(),
            known: HashMap::new(),
            tally: Self::default(),
        };
        walk.terms(&equation.terms, shape);
        let mut tally = walk.tally;
        let further = tally.pieces.finish(equations.engine);
        tally.times.add_all(&further, 1.0);
        tally
    }

    /// Returns the count of one parameter.
    pub fn times(&self, symbol: Symbol) -> f64 {
        self.times.of(symbol)
    }

    /// Bytes of the message.
    pub fn wire_bytes(&self) -> u64 {
        self.wire
    }

    /// Pieces of memory taken.
    pub fn allocations(&self) -> u64 {
        let pieces = [Symbol::Allocate, Symbol::AllocateLarge];
        pieces
            .map(|symbol| self.times.of(symbol) as u64)
            .iter()
            .sum()
    }

    /// Bytes of memory taken.
    pub fn allocated_bytes(&self) -> u64 {
        self.times.of(Symbol::AllocateByte) as u64
    }

    /// Returns whether a type is in it that the interface only names: its cost and its bytes are missing.
    pub fn has_unknown(&self) -> bool {
        self.unknown
    }

    /// The parts that vary in size or are types of their own, by full name; one may lie in another.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Self)> {
        self.parts.iter().map(|(name, times)| {
            let part = Self {
                times: *times,
                wire: self.wire,
                ..Self::default()
            };
            (name.as_str(), part)
        })
    }

    fn add_all(&mut self, other: &Self, times: u64) {
        self.times.add_all(&other.times, times as f64);
        self.wire = self.wire.saturating_add(other.wire.saturating_mul(times));
        self.pieces.take_all(&other.pieces, times);
        self.unknown |= other.unknown;
        for (name, part) in &other.parts {
            self.part(name).add_all(part, times as f64);
        }
    }

    fn part(&mut self, name: &str) -> &mut SymbolCounts {
        if !self.parts.contains_key(name) {
            self.parts.insert(name.to_owned(), SymbolCounts::default());
        }
        self.parts.entry(name.to_owned()).or_default()
    }
}

/// Bytes of a varying number up to which they are copied without a call: in two pieces that may
/// overlap, of half of this or of less. Kernels begin behind.
const FEW: u64 = 128;

/// Returns how often the pieces that so few bytes are copied in are halved, until they are no longer than what
/// there is.
fn halvings(bytes: u64) -> f64 {
    let pieces = [64, 32, 16, 8, 4, 2, 1];
    let longer = |piece: &&u64| match **piece {
        64 | 32 => bytes <= **piece,
        _ => bytes < **piece,
    };
    pieces.iter().filter(longer).count() as f64
}

/// The key of a type that has been seen: the type, its depth, and its position modulo 8.
type Seen = (TypeId, u32, u64);

struct EquationEvaluator<'e> {
    equations: &'e Equations,
    /// The types that the present one is in.
    open: Vec<TypeId>,
    known: HashMap<Seen, Tally>,
    tally: Tally,
}

impl EquationEvaluator<'_> {
    fn terms<S: Shape>(&mut self, terms: &[CostTerm], shape: S) {
        for term in terms {
            self.term(term, shape);
        }
    }

    fn term<S: Shape>(&mut self, term: &CostTerm, shape: S) {
        match term {
            CostTerm::Times(times, symbol) => self.tally.times.add(*symbol, *times as f64),
            CostTerm::Wire(bytes) => self.wire(*bytes),
            CostTerm::Align { to, before } => self.align(u64::from(*to), u64::from(*before)),
            CostTerm::Block {
                start,
                bytes,
                padding,
            } => self.block(*start, bytes, *padding, shape),
            CostTerm::Allocate(bytes) => self.allocate(bytes, shape),
            CostTerm::Grow { bytes, first } => self.grow(bytes, *first, shape),
            CostTerm::Frame(bytes) => pieces::take(&mut self.tally.times, *bytes, 1),
            CostTerm::Loop { of, times, body } => {
                self.part(of, |walk| walk.elements(of, *times, body, shape));
            }
            CostTerm::List {
                of, element, link, ..
            } => self.part(of, |walk| walk.list(of, *element, link, shape)),
            CostTerm::Choice(choice) => self.choice(choice, shape),
            CostTerm::Maybe { of, body } => {
                if let Some(held) = shape.at(&of.place).held(of) {
                    self.part(of, |walk| walk.terms(body, held));
                }
            }
            CostTerm::Call { place, ty, name } => {
                self.named(name, |walk| walk.call(*ty, shape.at(place)));
            }
            CostTerm::Unknown { .. } => self.tally.unknown = true,
        }
    }

    /// Tells what is done as a part of its own, too.
    fn part(&mut self, of: &Variable, run: impl FnOnce(&mut Self)) {
        self.named(&of.name(), run);
    }

    /// Adds what is done to a part. Where the same part lies in itself it is counted once.
    fn named(&mut self, name: &str, run: impl FnOnce(&mut Self)) {
        let before = self.tally.times;
        let mut part = *self.tally.part(name);
        run(self);
        part.add_all(&self.tally.times, 1.0);
        part.add_all(&before, -1.0);
        *self.tally.part(name) = part;
    }

    fn wire(&mut self, bytes: u64) {
        self.tally.wire = self.tally.wire.saturating_add(bytes);
    }

    fn align(&mut self, to: u64, before: u64) {
        let at = (self.tally.wire % to + before) % to;
        self.wire((to - at) % to);
        self.tally.times.add(Symbol::Hole, 1.0);
    }

    fn amount<S: Shape>(amount: &ByteAmount, shape: S) -> u64 {
        match amount {
            ByteAmount::Fixed(bytes) => *bytes,
            ByteAmount::PerItem(bytes, of) => bytes.saturating_mul(shape.at(&of.place).length(of)),
        }
    }

    fn block<S: Shape>(
        &mut self,
        start: Symbol,
        amount: &ByteAmount,
        padding: Option<u32>,
        shape: S,
    ) {
        let bytes = Self::amount(amount, shape);
        let is_counted = matches!(amount, ByteAmount::PerItem(..));
        let run = |walk: &mut Self| {
            let times = &mut walk.tally.times;
            match start {
                Symbol::Swap => {
                    times.add(Symbol::Swap, 1.0);
                    times.add(Symbol::SwapByte, bytes as f64);
                }
                _ if is_counted && bytes <= FEW => {
                    times.add(Symbol::Few, 1.0);
                    times.add(Symbol::Halving, halvings(bytes));
                }
                _ => {
                    times.add(Symbol::Copy, 1.0);
                    times.add(Symbol::CopyByte, bytes as f64);
                }
            }
        };
        match amount {
            ByteAmount::Fixed(_) => run(self),
            ByteAmount::PerItem(_, of) => self.part(of, run),
        }
        if let Some(padding) = padding {
            let padded = bytes.checked_next_multiple_of(padding.into());
            self.wire(padded.unwrap_or(u64::MAX));
        }
    }

    fn allocate<S: Shape>(&mut self, amount: &ByteAmount, shape: S) {
        let bytes = Self::amount(amount, shape);
        if bytes == 0 {
            return;
        }
        let run = |walk: &mut Self| walk.piece(bytes);
        match amount {
            ByteAmount::Fixed(_) => run(self),
            ByteAmount::PerItem(_, of) => self.part(of, run),
        }
    }

    fn piece(&mut self, bytes: u64) {
        match self.equations.engine {
            Engine::Compiled => pieces::take(&mut self.tally.times, bytes, 1),
            Engine::Machine | Engine::Interpreter => self.tally.times.add(Symbol::Take, 1.0),
        }
        self.tally.pieces.take(bytes, 1);
    }

    /// Ever larger rooms, to each of which what is in the one before is moved.
    fn grow<S: Shape>(&mut self, amount: &ByteAmount, first: u64, shape: S) {
        let ByteAmount::PerItem(each, of) = amount else {
            return;
        };
        let length = shape.at(&of.place).length(of);
        self.part(of, |walk| {
            let (mut room, mut next) = (0, first);
            while room < length && *each > 0 {
                if room > 0 {
                    let moved = each.saturating_mul(room) as f64;
                    walk.tally.times.add(Symbol::Copy, 1.0);
                    walk.tally.times.add(Symbol::CopyByte, moved);
                }
                walk.piece(each.saturating_mul(next));
                (room, next) = (next, next.saturating_mul(2));
            }
        });
    }

    fn elements<S: Shape>(
        &mut self,
        of: &Variable,
        times: Option<u32>,
        body: &[CostTerm],
        shape: S,
    ) {
        for (like, element) in shape.at(&of.place).elements(of, times) {
            self.repeated(like, |walk| walk.terms(body, element));
        }
    }

    fn list<S: Shape>(&mut self, of: &Variable, element: TypeId, link: &[CostTerm], shape: S) {
        for (like, held) in shape.at(&of.place).elements(of, None) {
            self.repeated(like, |walk| {
                walk.terms(link, held);
                walk.call(element, held);
            });
        }
    }

    /// Runs what stands for so many that are like it, all but the first of which begin where it
    /// ends, modulo what positions can be multiples of.
    fn repeated(&mut self, times: u64, run: impl FnOnce(&mut Self)) {
        if times == 1 {
            return run(self);
        }
        let start = self.tally.wire;
        let phase = start % 8;
        let wire = Tally {
            wire: phase,
            ..Tally::default()
        };
        let outside = std::mem::replace(&mut self.tally, wire);
        run(self);
        let mut one = std::mem::replace(&mut self.tally, outside);
        one.wire -= phase;
        self.tally.add_all(&one, times);
    }

    fn choice<S: Shape>(&mut self, choice: &Choice, shape: S) {
        let (arm, held) = shape.at(&choice.of.place).arm(choice);
        let arm = match arm {
            Some(arm) => choice.arms.get(arm).map(|(_, _, terms)| terms),
            None => choice.default.as_ref(),
        };
        if let Some(terms) = arm {
            self.terms(terms, held);
        }
    }

    fn call<S: Shape>(&mut self, ty: TypeId, shape: S) {
        let depth = self.open.iter().filter(|open| **open == ty).count() as u32;
        let shape = shape.entered(depth);
        let phase = self.tally.wire % 8;
        let seen = (ty, depth, phase);
        if !S::IS_ALIKE {
            return self.enter(ty, shape);
        }
        if !self.known.contains_key(&seen) {
            let wire = Tally {
                wire: phase,
                ..Tally::default()
            };
            let outside = std::mem::replace(&mut self.tally, wire);
            self.enter(ty, shape);
            let mut inside = std::mem::replace(&mut self.tally, outside);
            inside.wire -= phase;
            self.known.insert(seen, inside);
        }
        if let Some(inside) = self.known.get(&seen) {
            self.tally.add_all(inside, 1);
        }
    }

    fn enter<S: Shape>(&mut self, ty: TypeId, shape: S) {
        let equations = self.equations;
        self.open.push(ty);
        self.terms(&equations.types[ty.0 as usize].terms, shape);
        self.open.pop();
    }
}
