//! Decides which routines are specialised, and which are not worth their size.
//!
//! Of a message with few items a call takes a hundred times as long as the fastest routine could save, so its
//! routine is procedural, as small as rpcgen's. What messages begin with that may have more items is specialised
//! together with all that it consists of, but for what only errors carry: the default arms of unions. The routines of
//! its parts are then called only by programs that want a part alone, and are procedural, too.

use std::collections::BTreeSet;

use tenon_plan::{Body, Count, FixedKind, Op, ReservedBlock};
use tenon_schema::{Schema, Type, TypeId, TypeKind};

use super::PlanVariants;
use crate::c::{Interface, Size};

/// Most items of a message that is left procedural: the budget that the plan's passes inline by.
const FEW_ITEMS: u32 = 16;

/// The form in which the routine of a type is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutineForm {
    /// Functions that its routine and those of other types call.
    Shared,
    /// Functions that become part of the only one that calls them. Its routine is procedural.
    Inner,
    /// A procedural routine alone, which others call.
    Procedural,
}

/// The form of the routine of each type.
#[derive(Debug)]
pub struct RoutineForms {
    types: Vec<RoutineForm>,
    /// For each procedure, if the routine of its arguments is specialised, where they have one.
    arguments: Vec<bool>,
    /// Types of which a message may have any number.
    repeated: BTreeSet<TypeId>,
    /// Elements of lists that are used by value: a list with at least one.
    bare: BTreeSet<TypeId>,
}

impl RoutineForms {
    /// Chooses the forms.
    pub fn new(of: Interface<'_>, plans: &PlanVariants, size: Size) -> Self {
        let schema = of.schema;
        let begin = beginnings(schema);
        let mut weights = ItemEstimator::new(of, plans);
        let is_worth_it = |weight: u32| match size {
            Size::Small => false,
            Size::Balanced => weight > FEW_ITEMS,
            Size::Large => true,
        };
        let ids = (0..schema.types.len() as u32).map(TypeId);
        // Libtirpc's routines would go through what takes no bytes, however much of it a count says there is.
        let first = ids.clone().filter(|id| {
            counts_nothing(&plans.of_type(of, *id).body)
                || (begin.contains(id) && is_worth_it(weights.of_type(*id)))
        });
        let mut uses = TypeUses {
            of,
            plans,
            count: vec![0; schema.types.len()],
            specialised: BTreeSet::new(),
            repeated: BTreeSet::new(),
            bare: BTreeSet::new(),
            leaves_errors: size != Size::Large,
        };
        for id in first {
            if size == Size::Small {
                uses.specialised.insert(id);
            } else {
                uses.follow(id);
            }
        }
        let arguments = plans.items.procedures.iter().map(|plan| {
            let body = &plan.arguments.body;
            counts_nothing(body) || is_worth_it(weights.body(body))
        });
        let arguments = arguments.collect();
        let forms = ids.map(|id| match uses.count[id.0 as usize] {
            _ if !uses.specialised.contains(&id) => RoutineForm::Procedural,
            1 if !begin.contains(&id) => RoutineForm::Inner,
            _ => RoutineForm::Shared,
        });
        Self {
            types: forms.collect(),
            arguments,
            repeated: uses.repeated,
            bare: uses.bare,
        }
    }

    /// Returns the form of the routine of the type `id` of the interface.
    pub fn of(&self, id: TypeId) -> RoutineForm {
        self.types[id.0 as usize]
    }

    /// Returns whether a message may have any number of values of the type `id`.
    pub fn is_repeated(&self, id: TypeId) -> bool {
        self.repeated.contains(&id)
    }

    /// Returns whether functions move a list that begins with an element of the type `id` in any case.
    pub fn begins_bare(&self, id: TypeId) -> bool {
        self.bare.contains(&id) || self.of(id) == RoutineForm::Shared
    }

    /// Returns whether the routine of the arguments of a procedure, by its position, is specialised.
    pub fn specialises_arguments(&self, procedure: usize) -> bool {
        self.arguments[procedure]
    }
}

/// The types that messages, or what programs keep, begin with.
fn beginnings(schema: &Schema) -> BTreeSet<TypeId> {
    let mut parts = BTreeSet::new();
    for def in &schema.types {
        let used = def.kind.types().into_iter();
        parts.extend(used.filter_map(Type::innermost_name));
    }
    let ids = (0..schema.types.len() as u32).map(TypeId);
    let mut begin: BTreeSet<TypeId> = ids.filter(|id| !parts.contains(id)).collect();
    let versions = schema.programs.iter().flat_map(|it| &it.versions);
    for procedure in versions.flat_map(|version| &version.procedures) {
        let arguments = procedure.arguments.iter().map(|field| &field.ty);
        let passed = arguments.chain(&procedure.result);
        begin.extend(passed.filter_map(Type::innermost_name));
    }
    let aliased = begin.iter().map(|id| resolve_alias(schema, *id)).collect();
    begin.union(&aliased).copied().collect()
}

/// The type that a name for another type stands for: the routine of the name calls the routine of that type.
fn resolve_alias(schema: &Schema, mut id: TypeId) -> TypeId {
    while let TypeKind::Typedef(Type::Named(to)) = &schema.type_def(id).kind {
        id = *to;
    }
    id
}

/// Returns whether there is an array of elements that take no bytes.
pub fn counts_nothing(body: &Body) -> bool {
    body.iter().any(|op| match op {
        Op::Loop { body, .. } => body.is_empty() || counts_nothing(body),
        Op::Optional { body, .. } => counts_nothing(body),
        Op::Switch { arms, default, .. } => {
            let mut bodies = arms.iter().map(|arm| &arm.body).chain(default);
            bodies.any(counts_nothing)
        }
        _ => false,
    })
}

/// Estimates the number of items of values. A value that may have any number has more than there are numbers for.
struct ItemEstimator<'a> {
    of: Interface<'a>,
    plans: &'a PlanVariants,
    known: Vec<Option<u32>>,
}

const MANY: u32 = u32::MAX;

impl<'a> ItemEstimator<'a> {
    fn new(of: Interface<'a>, plans: &'a PlanVariants) -> Self {
        Self {
            of,
            plans,
            known: vec![None; of.schema.types.len()],
        }
    }

    fn of_type(&mut self, id: TypeId) -> u32 {
        let Some(known) = self.known.get_mut(id.0 as usize) else {
            return 1;
        };
        if let Some(known) = *known {
            return known;
        }
        // Of a type that is met inside of itself there may be any number.
        *known = Some(MANY);
        let plans = self.plans;
        let weight = match self.of.schema.type_def(id).kind {
            TypeKind::External => 1,
            _ => self.body(&plans.of_type(self.of, id).body),
        };
        self.known[id.0 as usize] = Some(weight);
        weight
    }

    fn body(&mut self, body: &Body) -> u32 {
        let weights = body.iter().map(|op| self.op(op));
        weights.fold(0, u32::saturating_add)
    }

    fn op(&mut self, op: &Op) -> u32 {
        match op {
            Op::Reserve(block) => items_in(block),
            Op::Align { .. } => 0,
            Op::External { .. } => 1,
            // Bytes and numbers are moved all at once by procedural routines, too.
            Op::CopyCounted { .. } | Op::BlitCounted { .. } | Op::PutCounted { .. } => 2,
            Op::PutElements { count, element, .. } => match count {
                Count::Fixed(count) => count.saturating_mul(items_in(element)),
                Count::Counted(_) => MANY,
            },
            Op::Loop { count, body, .. } => match count {
                Count::Fixed(count) => count.saturating_mul(self.body(body)),
                Count::Counted(_) => MANY,
            },
            Op::Optional { body, .. } => self.body(body).saturating_add(1),
            Op::Switch { arms, .. } => {
                let arms = arms.iter().map(|arm| self.body(&arm.body));
                arms.max().unwrap_or(0).saturating_add(1)
            }
            Op::List { .. } => MANY,
            Op::Call { plan, .. } => self.of_type(*plan),
        }
    }
}

/// The numbers and opaque values in a block.
fn items_in(block: &ReservedBlock) -> u32 {
    let items = block.items().map(|item| match &item.kind {
        FixedKind::Put { .. } | FixedKind::Copy { .. } => 1,
        FixedKind::PutArray { count, .. } => *count,
        FixedKind::Blit { item, count } => {
            let bytes = item.bytes().saturating_mul((*count).into());
            let numbers = bytes / u64::from(item.unit().unwrap_or(1).max(1));
            u32::try_from(numbers).unwrap_or(MANY)
        }
    });
    items.fold(0, u32::saturating_add)
}

/// The uses of types by functions that are specialised.
struct TypeUses<'a> {
    of: Interface<'a>,
    plans: &'a PlanVariants,
    count: Vec<u32>,
    /// Types that are specialised.
    specialised: BTreeSet<TypeId>,
    /// Those of which a message may have any number.
    repeated: BTreeSet<TypeId>,
    bare: BTreeSet<TypeId>,
    leaves_errors: bool,
}

impl TypeUses<'_> {
    /// Follows a type to its parts. What is `repeated` is gone through again, if it was found alone before.
    fn follow(&mut self, first: TypeId) {
        let mut open = vec![(first, false)];
        while let Some((id, repeated)) = open.pop() {
            let is_elsewhere = self.of.is_elsewhere(id);
            let is_new = !is_elsewhere && self.specialised.insert(id);
            let is_newly_repeated = !is_elsewhere && repeated && self.repeated.insert(id);
            if is_new || is_newly_repeated {
                let plans = self.plans;
                let mut parts = Vec::new();
                self.body(&plans.of_type(self.of, id).body, repeated, &mut parts);
                if is_new {
                    for (part, _) in &parts {
                        if let Some(count) = self.count.get_mut(part.0 as usize) {
                            *count += 1;
                        }
                    }
                }
                open.extend(parts);
            }
        }
    }

    /// The types that a body calls, and whether there may be any number of them.
    fn body(&mut self, body: &Body, repeated: bool, parts: &mut Vec<(TypeId, bool)>) {
        for op in body {
            match op {
                Op::Call { plan, .. } => parts.push((*plan, repeated)),
                Op::List {
                    element,
                    first_bare,
                    ..
                } => {
                    parts.push((*element, true));
                    self.bare.extend(first_bare.then_some(*element));
                }
                Op::Loop { count, body, .. } => {
                    let is_counted = matches!(count, Count::Counted(_));
                    self.body(body, repeated || is_counted, parts);
                }
                Op::Optional { body, .. } => self.body(body, repeated, parts),
                Op::Switch { arms, default, .. } => {
                    let each = arms.iter().map(|arm| &arm.body);
                    let has_arms = each.clone().any(|body| !body.is_empty());
                    let is_error = self.leaves_errors && has_arms;
                    let default = default.as_ref().filter(|_| !is_error);
                    each.chain(default)
                        .for_each(|body| self.body(body, repeated, parts));
                }
                Op::Reserve(_) | Op::Align { .. } | Op::PutElements { .. } => {}
                Op::BlitCounted { .. } | Op::CopyCounted { .. } | Op::PutCounted { .. } => {}
                Op::External { .. } => {}
            }
        }
    }
}
