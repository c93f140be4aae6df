//! From a plan to its equation: one exhaustive match over the operations.

use tenon_schema::{Field, Schema, TypeId, TypeKind, Union};

use super::equation::{ByteAmount, Choice, CostTerm, Equation, Equations, Variable};
use super::moves::{Mover, Moves, Unit};
use super::places::QueryCache;
use super::room::MemorySizes;
use super::sites::CallSites;
use super::steps::{self, CostStep};
use super::symbol::{Direction, Engine, Symbol};
use crate::layout::Layout;
use crate::links::is_link;
use crate::representation::Order;
use crate::{
    Arm, BoxedArms, Cluster, FixedItem, FixedKind, Op, Place, Plan, Plans, ProcedurePlan,
    ReservedBlock, Run, Scalar, Sizes,
};

/// Blocks of a known size that are shorter are moved number by number; kernels begin here.
pub(super) const BLOCK_MIN: u64 = 64;

/// Bytes that are moved at once where their order does not matter.
const WORD: u64 = 8;

/// Members of an enum among which a value is looked for by comparisons; there are tables of more.
const FEW_MEMBERS: usize = 8;

/// Bytes of a value that a frame has room for itself.
const SMALL: u64 = 32;

/// The inputs from which equations are derived.
#[derive(Debug, Clone, Copy)]
pub struct Deriving<'a> {
    /// The interface.
    pub schema: &'a Schema,
    /// Its plans.
    pub plans: &'a Plans,
    /// The engine that runs them.
    pub engine: Engine,
    /// Direction of the messages.
    pub direction: Direction,
    /// The way in which the engine moves a single number.
    pub moves: Moves,
}

impl<'a> Deriving<'a> {
    /// The equations of all plans.
    ///
    /// # Panics
    /// If the plans were not made for this schema.
    pub fn equations(&self) -> Equations {
        let facts = self.facts();
        let types = self.plans.types.iter().zip((0..).map(TypeId));
        let types = types.map(|(plan, id)| self.named(&facts, plan, id));
        let types = types.collect();
        let procedures = self.plans.procedures.iter();
        Equations {
            engine: self.engine,
            direction: self.direction,
            types,
            procedures: procedures
                .map(|plan| self.procedure(&facts, plan))
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
        let facts = self.facts();
        let body = TermBuilder::new(self, &facts, &owner, layout).of(self.plans.of_type(id));
        let terms = match is_link(self.schema, id) {
            true => begun(body.list(&Place::it(), true, id)),
            false => body.message(&self.plans.of_type(id).body),
        };
        Equation { owner, terms }
    }

    fn named(&self, facts: &TypeFacts<'a>, plan: &Plan, id: TypeId) -> Equation {
        let owner = &self.schema.type_def(id).name;
        let layout = Layout::of_type(self.schema, id);
        let mut terms = TermBuilder::new(self, facts, owner, layout)
            .of(plan)
            .terms(&plan.body);
        if plan.recursive {
            terms.insert(0, CostTerm::Times(1, Symbol::Level));
        }
        let owner = owner.clone();
        Equation { owner, terms }
    }

    fn procedure(&self, facts: &TypeFacts<'a>, plan: &ProcedurePlan) -> [Equation; 2] {
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
            let terms = TermBuilder::new(self, facts, &owner, layout).message(&plan.body);
            Equation { owner, terms }
        })
    }

    fn facts(&self) -> TypeFacts<'a> {
        TypeFacts {
            rooms: MemorySizes::new(self.schema, self.engine),
            sites: CallSites::of(self.plans),
            remembered: QueryCache::default(),
            sizes: Sizes::new(self.schema, self.plans.representation),
            boxed: BoxedArms::of(self.schema),
        }
    }

    /// Returns whether the bytes of numbers on the wire are in another order than in memory.
    pub(super) fn is_foreign(&self) -> bool {
        match self.plans.representation.order {
            Order::Big => cfg!(target_endian = "little"),
            Order::Little => cfg!(target_endian = "big"),
            Order::Sender => false,
        }
    }

    /// Returns the terms of moving one number.
    pub(super) fn number(&self, scalar: Scalar) -> Vec<CostTerm> {
        let moves = self.moves;
        let mut symbols = vec![match moves.unit {
            Unit::Item => Symbol::Item,
            Unit::Byte => Symbol::Bytewise,
        }];
        if moves.by == Mover::Procedure {
            symbols.push(Symbol::Procedure);
        }
        let mut terms = once(symbols);
        terms.extend(self.looked_at(scalar));
        terms
    }

    /// Returns the cost of checking that a number is a value of its type.
    fn looked_at(&self, scalar: Scalar) -> Option<CostTerm> {
        let is_checked = self.plans.representation.is_checked(scalar);
        is_checked.then(|| match scalar {
            Scalar::Enum(id) => self.looked_for(id),
            _ => CostTerm::Times(1, Symbol::Small),
        })
    }

    /// Returns the cost of finding a value among the members of an enum: compiled stubs have tables for many,
    /// and compare with each cluster of few, as machine code always does; the interpreter searches by halves.
    fn looked_for(&self, id: TypeId) -> CostTerm {
        let members = match &self.schema.type_def(id).kind {
            TypeKind::Enum(members) => members.as_slice(),
            _ => &[],
        };
        match self.engine {
            Engine::Compiled | Engine::Interpreter if members.len() > FEW_MEMBERS => {
                CostTerm::Times(1, Symbol::Members)
            }
            Engine::Interpreter => CostTerm::Times(1, Symbol::Member),
            Engine::Compiled | Engine::Machine => {
                let clusters = Cluster::of(members.iter().map(|member| member.value));
                CostTerm::Times(clusters.len() as u64, Symbol::Member)
            }
        }
    }

    /// Numbers of `unit` bytes that are moved as a block.
    pub(super) fn starts(&self, unit: u32) -> Symbol {
        match self.is_foreign() && unit > 1 {
            true => Symbol::Swap,
            false => Symbol::Copy,
        }
    }

    /// So many numbers of a known number, moved as a block in a reserved one.
    pub(super) fn run(&self, run: Run) -> CostTerm {
        let bytes = u64::from(run.unit) * u64::from(run.units);
        let start = self.starts(run.unit);
        match (bytes < BLOCK_MIN, start) {
            (true, Symbol::Swap) => CostTerm::Times(run.units.into(), Symbol::Item),
            (true, _) => CostTerm::Times(bytes.div_ceil(WORD), Symbol::Item),
            (false, start) => CostTerm::Block {
                start,
                bytes: ByteAmount::Fixed(bytes),
                padding: None,
            },
        }
    }

    /// Returns the unit by which numbers of `scalar` are moved as a block; `None` if each is looked at.
    pub(super) fn block_unit(&self, scalar: Scalar) -> Option<u32> {
        let representation = self.plans.representation;
        let unit = match scalar {
            Scalar::F128 => 1,
            scalar => representation.bytes(scalar),
        };
        (!representation.is_checked(scalar)).then_some(unit)
    }
}

/// Facts about the types that every derivation needs.
pub(super) struct TypeFacts<'a> {
    pub rooms: MemorySizes<'a>,
    pub sites: CallSites,
    pub remembered: QueryCache,
    pub sizes: Sizes<'a>,
    pub boxed: BoxedArms,
}

fn begun(mut terms: Vec<CostTerm>) -> Vec<CostTerm> {
    terms.insert(0, CostTerm::Times(1, Symbol::Begin));
    terms
}

/// The terms of an array that is moved at once: of what comes once there is but the beginning.
fn whole(mut terms: Vec<CostTerm>) -> Vec<CostTerm> {
    terms.retain(|term| !matches!(term, CostTerm::Times(..)));
    terms.insert(0, CostTerm::Times(1, Symbol::Whole));
    terms
}

pub(super) fn once(symbols: impl IntoIterator<Item = Symbol>) -> Vec<CostTerm> {
    let terms = symbols.into_iter();
    terms.map(|symbol| CostTerm::Times(1, symbol)).collect()
}

/// Derives the terms of one body: knows its owner, and the name of its `it`.
pub(super) struct TermBuilder<'a, 'd> {
    pub with: &'d Deriving<'a>,
    pub facts: &'d TypeFacts<'a>,
    owner: &'d str,
    layout: Layout<'a>,
    /// The fields that lead to `it`.
    path: String,
    /// Most bytes of an array that has no memory of its own.
    pub array_max: u64,
}

impl<'a, 'd> TermBuilder<'a, 'd> {
    fn new(
        with: &'d Deriving<'a>,
        facts: &'d TypeFacts<'a>,
        owner: &'d str,
        layout: Layout<'a>,
    ) -> Self {
        Self {
            with,
            facts,
            owner,
            layout,
            path: String::new(),
            array_max: facts.rooms.array_max(false),
        }
    }

    /// That of a named type.
    fn of(mut self, plan: &Plan) -> Self {
        self.array_max = self.facts.rooms.array_max(plan.recursive);
        self
    }

    /// A message of its own.
    fn message(&self, ops: &[Op]) -> Vec<CostTerm> {
        let terms = self.terms(ops);
        let mut terms = match self.is_whole(ops) {
            true => whole(terms),
            false => begun(terms),
        };
        if self.is_decoding() {
            terms.extend(self.whole_value());
        }
        terms
    }

    /// The memory that the value of a message has as a whole, where an engine makes it at run time.
    fn whole_value(&self) -> Option<CostTerm> {
        if self.with.engine == Engine::Compiled {
            return None;
        }
        let bytes = match self.layout {
            Layout::Nothing => 0,
            Layout::Record(fields) => self.facts.rooms.fields(fields, self.array_max),
            Layout::Definition(id) => self.facts.rooms.of_element(id),
            Layout::Use(ty) => self.facts.rooms.of(ty),
        };
        (bytes > SMALL).then_some(CostTerm::Frame(bytes))
    }

    /// Returns whether the engines of what is known only at run time move a message without a look at its operations:
    /// an array of what one kernel moves, at the beginning of the value, and nothing else.
    fn is_whole(&self, ops: &[Op]) -> bool {
        let (place, is_block) = match ops {
            [Op::BlitCounted { place, item, .. }] => {
                let is_moved = item.unit().is_some() || !self.with.is_foreign();
                (place, item.bytes() > 0 && is_moved)
            }
            [Op::PutCounted { place, scalar, .. }] => {
                (place, self.with.block_unit(*scalar).is_some())
            }
            _ => return false,
        };
        let is_first = place.0.iter().all(|position| *position == 0);
        self.with.engine != Engine::Compiled && is_block && is_first
    }

    pub(super) fn terms(&self, ops: &[Op]) -> Vec<CostTerm> {
        self.steps(&steps::of(ops))
    }

    pub(super) fn steps(&self, steps: &[CostStep<'_>]) -> Vec<CostTerm> {
        let mut terms: Vec<CostTerm> = steps.iter().flat_map(|step| self.step(*step)).collect();
        terms.extend(self.put_in_place(steps));
        if self.with.engine == Engine::Interpreter && !steps.is_empty() {
            terms.insert(0, CostTerm::Times(steps.len() as u64, Symbol::Operation));
        }
        terms
    }

    fn step(&self, step: CostStep<'_>) -> Vec<CostTerm> {
        match step {
            CostStep::Check(block) => self.reserve(block),
            CostStep::Hole => once([Symbol::Hole]),
            CostStep::Item(item) => self.fixed(item),
            CostStep::Op(op) => self.op(op),
        }
    }

    fn reserve(&self, block: &ReservedBlock) -> Vec<CostTerm> {
        let check = CostTerm::Times(1, Symbol::Check);
        vec![check, CostTerm::Wire(block.bytes.into())]
    }

    fn fixed(&self, item: &FixedItem) -> Vec<CostTerm> {
        let place = &item.place;
        match &item.kind {
            FixedKind::Put { scalar } => self.with.number(*scalar),
            FixedKind::PutArray { scalar, count } => self.array(place, *scalar, *count),
            FixedKind::Copy { bytes } => vec![self.with.run(Run {
                unit: 1,
                units: *bytes,
            })],
            FixedKind::Blit { item, count } => self.blit(place, item, *count),
        }
    }

    fn op(&self, op: &Op) -> Vec<CostTerm> {
        match op {
            Op::Reserve(block) => self.reserve(block),
            Op::Align { to, before } => vec![CostTerm::Align {
                to: *to,
                before: *before,
            }],
            Op::BlitCounted { place, item, bound } => self.blit_counted(place, item, *bound),
            Op::PutElements {
                place,
                count,
                element,
                ..
            } => self.put_elements(place, *count, element),
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
            Op::External { ty, .. } => vec![CostTerm::Unknown {
                name: self.type_name(*ty),
            }],
        }
    }

    fn switch(
        &self,
        place: &Place,
        discriminant: Scalar,
        arms: &[Arm],
        default: Option<&[Op]>,
    ) -> Vec<CostTerm> {
        let bytes = self.with.plans.representation.bytes(discriminant);
        let mut terms = once([Symbol::Arm]);
        terms.extend(self.with.looked_at(discriminant));
        terms.push(CostTerm::Wire(bytes.into()));
        let union = self.at(place).and_then(|at| at.union(self.with.schema));
        let bodies = arms.iter().map(|arm| &arm.body[..]).chain(default);
        let arms_count = arms.len();
        let has_memory = bodies.into_iter().any(|body| self.has_memory(body));
        let arms = arms.iter().enumerate().map(|(position, arm)| {
            let declared = union.and_then(|union| union.arms.get(position));
            let field = declared.and_then(|arm| arm.field.as_ref());
            let case = declared.and_then(|arm| arm.cases.first());
            let label = case.map_or(String::new(), |case| case.label.clone());
            let held = self.inside(Some(Layout::of_arm(field)), place);
            let mut terms = held.arm(&arm.body, has_memory);
            terms.extend(self.boxed_arm(place, position, field));
            (arm.values.clone(), label, terms)
        });
        let default = default.map(|body| {
            let field = union.and_then(|union| union.default.as_ref()?.as_ref());
            let held = self.inside(Some(Layout::of_arm(field)), place);
            let mut terms = held.arm(body, has_memory);
            terms.extend(self.boxed_arm(place, arms_count, field));
            terms
        });
        terms.push(CostTerm::Choice(Choice {
            of: self.variable(place, u32::MAX),
            arms: arms.collect(),
            default,
            shortest: union.and_then(|union| self.shortest(union)),
        }));
        terms
    }

    /// The memory of what an arm holds behind a pointer, as it contains the union.
    fn boxed_arm(&self, place: &Place, position: usize, field: Option<&Field>) -> Option<CostTerm> {
        let id = self.at(place)?.named(self.with.schema)?;
        let is_boxed = self.is_decoding() && self.facts.boxed.contains(id, position);
        let room =
            |field: &Field| CostTerm::Allocate(ByteAmount::Fixed(self.facts.rooms.of(&field.ty)));
        field.filter(|_| is_boxed).map(room)
    }

    /// Returns the arm of the fewest bytes. It holds fewer than its union, so a value that takes it again and again
    /// comes to an end.
    fn shortest(&self, union: &Union) -> Option<usize> {
        let sizes = &self.facts.sizes;
        let bytes = |arm: Option<&Field>| arm.map_or(0, |field| sizes.of(&field.ty).min);
        let arms = union.alternatives().map(bytes).enumerate();
        let shortest = arms.min_by_key(|(_, bytes)| *bytes);
        let position = shortest.map(|(position, _)| position);
        position.filter(|position| *position < union.arms.len())
    }

    fn arm(&self, ops: &[Op], has_memory: bool) -> Vec<CostTerm> {
        let mut terms = self.terms(ops);
        terms.extend(self.put_in_union(ops, has_memory));
        terms
    }

    fn optional(&self, place: &Place, ops: &[Op]) -> Vec<CostTerm> {
        let bytes = self.with.plans.representation.bytes(Scalar::Bool);
        let mut terms = once([Symbol::Optional]);
        terms.push(CostTerm::Wire(bytes.into()));
        let mut body = self.inside(self.element(place), place).terms(ops);
        if self.is_decoding() && self.facts.rooms.is_boxed(self.is_recursive(ops)) {
            let room = self.element_room(place);
            body.insert(0, CostTerm::Allocate(ByteAmount::Fixed(room)));
        }
        let of = self.variable(place, 1);
        terms.push(CostTerm::Maybe { of, body });
        terms
    }

    fn is_recursive(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| match op {
            Op::Call { plan, .. } => self.with.plans.of_type(*plan).recursive,
            _ => false,
        })
    }

    fn call(&self, place: &Place, ty: TypeId) -> Vec<CostTerm> {
        let call = CostTerm::Call {
            place: place.clone(),
            ty,
            name: self.type_name(ty),
        };
        let mut terms = match self.is_called(ty) {
            true => once([Symbol::Call]),
            false => Vec::new(),
        };
        terms.push(call);
        terms
    }

    pub(super) fn is_decoding(&self) -> bool {
        self.with.direction == Direction::Decode
    }

    pub(super) fn type_name(&self, id: TypeId) -> String {
        self.with.schema.type_def(id).name.clone()
    }

    fn at(&self, place: &Place) -> Option<Layout<'a>> {
        self.layout.at(self.with.schema, place)
    }

    pub(super) fn element(&self, place: &Place) -> Option<Layout<'a>> {
        self.at(place)?.element(self.with.schema)
    }

    pub(super) fn element_room(&self, place: &Place) -> u64 {
        match self.element(place) {
            Some(Layout::Use(ty)) => self.facts.rooms.of(ty),
            _ => 0,
        }
    }

    /// The body of what lies at `place`.
    pub(super) fn inside(&self, layout: Option<Layout<'a>>, place: &Place) -> Self {
        Self {
            with: self.with,
            facts: self.facts,
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

    pub(super) fn variable(&self, place: &Place, bound: u32) -> Variable {
        Variable {
            place: place.clone(),
            owner: self.owner.to_owned(),
            path: self.path_to(place),
            bound,
        }
    }
}
