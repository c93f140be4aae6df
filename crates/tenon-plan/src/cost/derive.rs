//! From a plan to its equation: one exhaustive match over the operations.

use tenon_schema::{Schema, TypeId};

use super::equation::{Amount, Choice, Equation, Equations, Term, Variable};
use super::room::Rooms;
use super::symbol::{Direction, Engine, Symbol};
use crate::layout::Layout;
use crate::links::is_link;
use crate::memory;
use crate::representation::{COUNT_BYTES, Lists, Order};
use crate::{
    Arm, Blittable, Count, Mover, Op, Place, Plan, Plans, ProcedurePlan, Run, Scalar, Unit,
};

/// Blocks of a known size that are shorter are moved number by number; kernels begin here.
const BLOCK_MIN: u64 = 64;

/// Bytes that are moved at once where their order does not matter.
const WORD: u64 = 8;

/// What equations are derived from.
#[derive(Debug, Clone, Copy)]
pub struct Deriving<'a> {
    /// The interface.
    pub schema: &'a Schema,
    /// Its plans.
    pub plans: &'a Plans,
    /// What runs them.
    pub engine: Engine,
    /// Which way.
    pub direction: Direction,
}

impl<'a> Deriving<'a> {
    /// The equations of all plans.
    ///
    /// # Panics
    /// If the plans were not made for this schema.
    pub fn equations(&self) -> Equations {
        let rooms = self.rooms();
        let types = self.plans.types.iter().zip((0..).map(TypeId));
        let types = types.map(|(plan, id)| self.named(&rooms, plan, id));
        let types = types.collect();
        let procedures = self.plans.procedures.iter();
        Equations {
            engine: self.engine,
            direction: self.direction,
            types,
            procedures: procedures
                .map(|plan| self.procedure(&rooms, plan))
                .collect(),
        }
    }

    /// The equation of a named type as a message of its own; of a link, of a whole list.
    ///
    /// # Panics
    /// If the type is not of this schema.
    pub fn message(&self, id: TypeId) -> Equation {
        let owner = self.schema.type_def(id).name.clone();
        let layout = Layout::of_type(self.schema, id);
        let rooms = self.rooms();
        let body = Body::new(self, &rooms, &owner, layout).of(self.plans.of_type(id));
        let terms = match is_link(self.schema, id) {
            true => begun(body.list(&Place::it(), true, id)),
            false => body.message(&self.plans.of_type(id).body),
        };
        Equation { owner, terms }
    }

    fn named(&self, rooms: &Rooms<'a>, plan: &Plan, id: TypeId) -> Equation {
        let owner = &self.schema.type_def(id).name;
        let layout = Layout::of_type(self.schema, id);
        let mut terms = Body::new(self, rooms, owner, layout)
            .of(plan)
            .terms(&plan.body);
        if plan.recursive {
            terms.insert(0, Term::Times(1, Symbol::Level));
        }
        let owner = owner.clone();
        Equation { owner, terms }
    }

    fn procedure(&self, rooms: &Rooms<'a>, plan: &ProcedurePlan) -> [Equation; 2] {
        let version = &self.schema.programs[plan.program].versions[plan.version];
        let procedure = &version.procedures[plan.procedure];
        let result = procedure.result.as_ref();
        let result = result.map_or(Layout::Nothing, Layout::Use);
        let messages = [
            (Layout::Record(&procedure.arguments), &plan.arguments),
            (result, &plan.result),
        ];
        messages.map(|(layout, plan)| {
            let owner = procedure.name.clone();
            let terms = Body::new(self, rooms, &owner, layout).message(&plan.body);
            Equation { owner, terms }
        })
    }

    fn rooms(&self) -> Rooms<'a> {
        Rooms::new(self.schema, self.engine)
    }

    /// Whether the bytes of numbers on the wire are in another order than in memory.
    fn is_foreign(&self) -> bool {
        match self.plans.representation.order {
            Order::Big => cfg!(target_endian = "little"),
            Order::Little => cfg!(target_endian = "big"),
            Order::Sender => false,
        }
    }

    /// What moves one number.
    fn number(&self, scalar: Scalar) -> Vec<Term> {
        let moves = self.plans.moves;
        let mut symbols = vec![match moves.unit {
            Unit::Item => Symbol::Item,
            Unit::Byte => Symbol::Bytewise,
        }];
        if moves.by == Mover::Procedure {
            symbols.push(Symbol::Procedure);
        }
        symbols.extend(self.looked_at(scalar));
        once(symbols)
    }

    /// What it takes to see whether it is a value.
    fn looked_at(&self, scalar: Scalar) -> Option<Symbol> {
        let is_checked = self.plans.representation.is_checked(scalar);
        is_checked.then_some(match scalar {
            Scalar::Enum(_) => Symbol::Member,
            _ => Symbol::Small,
        })
    }

    /// Numbers of `unit` bytes that are moved as a block.
    fn starts(&self, unit: u32) -> Symbol {
        match self.is_foreign() && unit > 1 {
            true => Symbol::Swap,
            false => Symbol::Copy,
        }
    }

    /// So many numbers of a known number, moved as a block in a reserved one.
    fn run(&self, run: Run) -> Term {
        let bytes = u64::from(run.unit) * u64::from(run.units);
        let start = self.starts(run.unit);
        match (bytes < BLOCK_MIN, start) {
            (true, Symbol::Swap) => Term::Times(run.units.into(), Symbol::Item),
            (true, _) => Term::Times(bytes.div_ceil(WORD), Symbol::Item),
            (false, start) => Term::Block {
                start,
                bytes: Amount::Fixed(bytes),
                padding: None,
            },
        }
    }

    /// How numbers of `scalar` are moved as a block; `None` if each is looked at.
    fn block_unit(&self, scalar: Scalar) -> Option<u32> {
        let representation = self.plans.representation;
        let unit = match scalar {
            Scalar::F128 => 1,
            scalar => representation.bytes(scalar),
        };
        (!representation.is_checked(scalar)).then_some(unit)
    }
}

fn begun(mut terms: Vec<Term>) -> Vec<Term> {
    terms.insert(0, Term::Times(1, Symbol::Begin));
    terms
}

/// The terms of an array that is moved at once: of what comes once there is but the beginning.
fn whole(mut terms: Vec<Term>) -> Vec<Term> {
    terms.retain(|term| !matches!(term, Term::Times(..)));
    terms.insert(0, Term::Times(1, Symbol::Whole));
    terms
}

fn once(symbols: impl IntoIterator<Item = Symbol>) -> Vec<Term> {
    let terms = symbols.into_iter();
    terms.map(|symbol| Term::Times(1, symbol)).collect()
}

/// One body: whose it is, and what its `it` is called.
struct Body<'a, 'd> {
    with: &'d Deriving<'a>,
    rooms: &'d Rooms<'a>,
    owner: &'d str,
    layout: Layout<'a>,
    /// The fields that lead to `it`.
    path: String,
    /// Most bytes of an array that has no memory of its own.
    array_max: u64,
}

impl<'a, 'd> Body<'a, 'd> {
    fn new(
        with: &'d Deriving<'a>,
        rooms: &'d Rooms<'a>,
        owner: &'d str,
        layout: Layout<'a>,
    ) -> Self {
        Self {
            with,
            rooms,
            owner,
            layout,
            path: String::new(),
            array_max: rooms.array_max(false),
        }
    }

    /// That of a named type.
    fn of(mut self, plan: &Plan) -> Self {
        self.array_max = self.rooms.array_max(plan.recursive);
        self
    }

    /// A message of its own.
    fn message(&self, ops: &[Op]) -> Vec<Term> {
        let terms = self.terms(ops);
        match self.is_whole(ops) {
            true => whole(terms),
            false => begun(terms),
        }
    }

    /// Whether the interpreter moves a message without a look at its operations: an array of what is
    /// moved as a block, at the beginning of the value, and nothing else.
    fn is_whole(&self, ops: &[Op]) -> bool {
        let (place, is_block) = match ops {
            [Op::BlitCounted { place, item, .. }] => (place, item.bytes() > 0),
            [Op::PutCounted { place, scalar, .. }] => {
                (place, self.with.block_unit(*scalar).is_some())
            }
            _ => return false,
        };
        let is_first = place.0.iter().all(|position| *position == 0);
        self.with.engine == Engine::Interpreter && is_block && is_first
    }

    fn terms(&self, ops: &[Op]) -> Vec<Term> {
        let mut terms: Vec<Term> = ops.iter().flat_map(|op| self.op(op)).collect();
        if self.with.engine == Engine::Interpreter && !ops.is_empty() {
            terms.insert(0, Term::Times(ops.len() as u64, Symbol::Operation));
        }
        terms
    }

    fn op(&self, op: &Op) -> Vec<Term> {
        match op {
            Op::Reserve { bytes } => {
                vec![Term::Times(1, Symbol::Check), Term::Wire(u64::from(*bytes))]
            }
            Op::Align { to, before } => vec![Term::Align {
                to: *to,
                before: *before,
            }],
            Op::Zero { .. } => once([Symbol::Hole]),
            Op::Put { scalar, .. } => self.with.number(*scalar),
            Op::PutArray {
                place,
                scalar,
                count,
                ..
            } => self.array(place, *scalar, *count),
            Op::Copy { bytes, .. } => vec![self.with.run(Run {
                unit: 1,
                units: *bytes,
            })],
            Op::Blit {
                place, item, count, ..
            } => self.blit(place, item, *count),
            Op::BlitCounted { place, item, bound } => self.blit_counted(place, item, *bound),
            Op::PutElements {
                place,
                count,
                element,
                body,
            } => self.put_elements(place, *count, element.bytes, body),
            Op::CopyCounted { place, bound, .. } => {
                let padding = self.with.plans.representation.padding;
                self.counted_block(place, *bound, Symbol::Copy, 1, padding)
            }
            Op::PutCounted {
                place,
                scalar,
                bound,
            } => self.put_counted(place, *scalar, *bound),
            Op::Loop {
                place, count, body, ..
            } => self.each(place, *count, body),
            Op::Switch {
                place,
                discriminant,
                arms,
                default,
            } => self.switch(place, *discriminant, arms, default.as_deref()),
            Op::Optional { place, body } => self.optional(place, body),
            Op::List {
                place,
                first_bare,
                element,
            } => self.list(place, *first_bare, *element),
            Op::Call { place, plan } => self.call(place, *plan),
            Op::External { ty, .. } => vec![Term::Unknown {
                name: self.type_name(*ty),
            }],
        }
    }

    fn array(&self, place: &Place, scalar: Scalar, count: u32) -> Vec<Term> {
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
    fn numbers(&self, place: &Place, scalar: Scalar, count: Count) -> Term {
        let mut body = once([Symbol::Loop]);
        body.extend(self.with.number(scalar));
        self.repeat(place, count, body)
    }

    fn repeat(&self, place: &Place, count: Count, body: Vec<Term>) -> Term {
        let (times, bound) = match count {
            Count::Fixed(times) => (Some(times), times),
            Count::Counted(bound) => (None, bound),
        };
        let of = self.variable(place, bound);
        Term::Loop { of, times, body }
    }

    fn put_counted(&self, place: &Place, scalar: Scalar, bound: u32) -> Vec<Term> {
        let bytes = self.with.plans.representation.bytes(scalar);
        match self.with.block_unit(scalar) {
            Some(unit) => {
                let start = self.with.starts(unit);
                self.counted_block(place, bound, start, bytes.into(), 1)
            }
            None => {
                let mut terms = self.counted(place, bound, memory::of_scalar(scalar).bytes);
                let count = Count::Counted(bound);
                let Term::Loop {
                    of,
                    times,
                    mut body,
                } = self.numbers(place, scalar, count)
                else {
                    unreachable!("numbers are moved by a loop")
                };
                body.push(Term::Wire(bytes.into()));
                terms.push(Term::Loop { of, times, body });
                terms
            }
        }
    }

    fn blit(&self, place: &Place, item: &Blittable, count: u32) -> Vec<Term> {
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
                let mut body = once([Symbol::Loop]);
                body.extend(self.runs(item));
                terms.push(self.repeat(place, Count::Fixed(count), body));
            }
        }
        terms
    }

    fn runs(&self, item: &Blittable) -> impl Iterator<Item = Term> {
        let with = self.with;
        item.runs.iter().map(|run| with.run(*run))
    }

    fn blit_counted(&self, place: &Place, item: &Blittable, bound: u32) -> Vec<Term> {
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
                let mut body = once([Symbol::Loop]);
                body.extend(self.runs(item));
                body.push(Term::Wire(item.bytes()));
                terms.push(self.repeat(place, Count::Counted(bound), body));
                terms
            }
        }
    }

    fn put_elements(&self, place: &Place, count: Count, bytes: u64, ops: &[Op]) -> Vec<Term> {
        let mut terms = match count {
            Count::Fixed(_) => once([Symbol::Check, Symbol::Array]),
            Count::Counted(bound) => self.counted(place, bound, self.element_room(place)),
        };
        let mut body = once([Symbol::Loop]);
        body.extend(self.inside(self.element(place), place).terms(ops));
        body.push(Term::Wire(bytes));
        terms.push(self.repeat(place, count, body));
        terms.extend(self.array_elsewhere(place, count));
        terms
    }

    fn each(&self, place: &Place, count: Count, ops: &[Op]) -> Vec<Term> {
        let mut terms = match count {
            Count::Fixed(_) => once([Symbol::Array]),
            Count::Counted(bound) => self.counted(place, bound, self.element_room(place)),
        };
        let mut body = once([Symbol::Loop]);
        body.extend(self.inside(self.element(place), place).terms(ops));
        terms.push(self.repeat(place, count, body));
        terms.extend(self.array_elsewhere(place, count));
        terms
    }

    /// A large fixed array has memory of its own.
    fn array_elsewhere(&self, place: &Place, count: Count) -> Option<Term> {
        let Count::Fixed(count) = count else {
            return None;
        };
        let bytes = self.element_room(place).saturating_mul(count.into());
        let is_taken = self.is_decoding() && bytes > self.array_max;
        is_taken.then_some(Term::Allocate(Amount::Fixed(bytes)))
    }

    /// The beginning of what is counted, whose items take so many bytes of memory each.
    fn counted(&self, place: &Place, bound: u32, room: u64) -> Vec<Term> {
        let mut terms = once([Symbol::Check, Symbol::Item, Symbol::Array]);
        terms.push(Term::Wire(COUNT_BYTES.into()));
        if self.is_decoding() {
            let of = self.variable(place, bound);
            terms.push(Term::Allocate(Amount::PerItem(room, of)));
        }
        terms
    }

    /// Counted items that are moved as one block.
    fn counted_block(
        &self,
        place: &Place,
        bound: u32,
        start: Symbol,
        bytes: u64,
        padding: u32,
    ) -> Vec<Term> {
        let mut terms = self.counted(place, bound, bytes);
        terms.push(Term::Block {
            start,
            bytes: Amount::PerItem(bytes, self.variable(place, bound)),
            padding: Some(padding),
        });
        terms
    }

    fn switch(
        &self,
        place: &Place,
        discriminant: Scalar,
        arms: &[Arm],
        default: Option<&[Op]>,
    ) -> Vec<Term> {
        let bytes = self.with.plans.representation.bytes(discriminant);
        let mut terms = once([Symbol::Arm]);
        terms.extend(once(self.with.looked_at(discriminant)));
        terms.push(Term::Wire(bytes.into()));
        let union = self.at(place).and_then(|at| at.union(self.with.schema));
        let arms = arms.iter().enumerate().map(|(position, arm)| {
            let declared = union.and_then(|union| union.arms.get(position));
            let field = declared.and_then(|arm| arm.field.as_ref());
            let case = declared.and_then(|arm| arm.cases.first());
            let label = case.map_or(String::new(), |case| case.label.clone());
            let held = self.inside(Some(Layout::of_arm(field)), place);
            (arm.values.clone(), label, held.terms(&arm.body))
        });
        let default = default.map(|body| {
            let field = union.and_then(|union| union.default.as_ref()?.as_ref());
            self.inside(Some(Layout::of_arm(field)), place).terms(body)
        });
        terms.push(Term::Choice(Choice {
            of: self.variable(place, u32::MAX),
            arms: arms.collect(),
            default,
        }));
        terms
    }

    fn optional(&self, place: &Place, ops: &[Op]) -> Vec<Term> {
        let bytes = self.with.plans.representation.bytes(Scalar::Bool);
        let mut terms = once([Symbol::Optional]);
        terms.push(Term::Wire(bytes.into()));
        let mut body = self.inside(self.element(place), place).terms(ops);
        if self.is_decoding() && self.rooms.is_boxed(self.is_recursive(ops)) {
            let room = self.element_room(place);
            body.insert(0, Term::Allocate(Amount::Fixed(room)));
        }
        let of = self.variable(place, 1);
        terms.push(Term::Maybe { of, body });
        terms
    }

    fn is_recursive(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| match op {
            Op::Call { plan, .. } => self.with.plans.of_type(*plan).recursive,
            _ => false,
        })
    }

    fn list(&self, place: &Place, first_bare: bool, element: TypeId) -> Vec<Term> {
        let representation = self.with.plans.representation;
        let flag = u64::from(representation.bytes(Scalar::Bool));
        let of = self.variable(place, u32::MAX);
        let (mut terms, link) = match representation.lists {
            Lists::Flagged => {
                let last = if first_bare { 0 } else { flag };
                let terms = vec![Term::Times(1, Symbol::Array), Term::Wire(last)];
                (terms, vec![Term::Times(1, Symbol::Link), Term::Wire(flag)])
            }
            Lists::Counted => {
                let mut terms = once([Symbol::Check, Symbol::Item, Symbol::Array]);
                terms.push(Term::Wire(COUNT_BYTES.into()));
                let to = self.with.plans.of_type(element).align;
                let align = (to > 1).then_some(Term::Align { to, before: 0 });
                let link = align.into_iter().chain(once([Symbol::Link]));
                (terms, link.collect())
            }
        };
        if self.is_decoding() {
            let room = self.rooms.of_element(element);
            terms.push(Term::Allocate(Amount::PerItem(room, of.clone())));
        }
        terms.push(Term::List {
            of,
            element,
            name: self.type_name(element),
            link,
        });
        terms
    }

    fn call(&self, place: &Place, ty: TypeId) -> Vec<Term> {
        let call = Term::Call {
            place: place.clone(),
            ty,
            name: self.type_name(ty),
        };
        vec![Term::Times(1, Symbol::Call), call]
    }

    fn is_decoding(&self) -> bool {
        self.with.direction == Direction::Decode
    }

    fn type_name(&self, id: TypeId) -> String {
        self.with.schema.type_def(id).name.clone()
    }

    fn at(&self, place: &Place) -> Option<Layout<'a>> {
        self.layout.at(self.with.schema, place)
    }

    fn element(&self, place: &Place) -> Option<Layout<'a>> {
        self.at(place)?.element(self.with.schema)
    }

    fn element_room(&self, place: &Place) -> u64 {
        match self.element(place) {
            Some(Layout::Use(ty)) => self.rooms.of(ty),
            _ => 0,
        }
    }

    /// The body of what lies at `place`.
    fn inside(&self, layout: Option<Layout<'a>>, place: &Place) -> Self {
        Self {
            with: self.with,
            rooms: self.rooms,
            owner: self.owner,
            layout: layout.unwrap_or(Layout::Nothing),
            path: self.path_to(place),
            array_max: self.array_max,
        }
    }

    fn path_to(&self, place: &Place) -> String {
        let path = self.layout.path(self.with.schema, place);
        match (self.path.is_empty(), path.is_empty()) {
            (true, _) => path,
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{path}", self.path),
        }
    }

    fn variable(&self, place: &Place, bound: u32) -> Variable {
        Variable {
            place: place.clone(),
            owner: self.owner.to_owned(),
            path: self.path_to(place),
            bound,
        }
    }
}
