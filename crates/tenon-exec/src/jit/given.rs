//! What all functions of an interface are made from.

use std::collections::HashMap;

use tenon_plan::{
    Blittable, COUNT_BYTES, Cluster, Count, Layout, Op, Place, Plan, Plans, Scalar, links,
};
use tenon_schema::{EnumMember, Schema, TypeId, TypeKind};

use super::alike::alike;
use super::linker::Routine;
use crate::frame::Key;
use crate::layout::{Counted, Layouts, of_scalar};

/// Most operations of a type that is not called but moved where it stands.
const MAX_INLINED: usize = 6;

/// Most bytes of several operations that one check makes room for, though they may turn out to
/// need less.
pub(super) const MAX_COVERED: u64 = 1024;

/// Bytes that an alignment writes at once, of which those behind the hole are overwritten.
pub(super) const HOLE_BYTES: u64 = 8;

/// Encoding or decoding, in the processor's order of bytes or the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// From memory to bytes.
    Encode {
        /// Whether the order is the other one.
        swapped: bool,
    },
    /// From bytes to memory.
    Decode {
        /// Whether the order is the other one.
        swapped: bool,
    },
}

impl Way {
    /// Whether the order of the bytes of a number is not the processor's.
    pub fn swapped(self) -> bool {
        match self {
            Self::Encode { swapped } | Self::Decode { swapped } => swapped,
        }
    }
}

/// An interface, as far as machine code depends on it.
#[derive(Debug)]
pub(super) struct Given {
    pub schema: Schema,
    pub plans: Plans,
    pub layouts: Layouts,
    /// Of the named types: how many operations one comes down to, or none if it is always called.
    inlined: Vec<Option<usize>>,
    /// Of the named types, the first one that is moved alike.
    alike: Vec<TypeId>,
    /// Of the named types, whether others call it.
    called: Vec<bool>,
    /// Of the named types, the most bytes that one appends, if they are few. Whoever calls its
    /// encoder makes room for so many.
    room: Vec<Option<u64>>,
}

impl Given {
    /// Of plans that were [stripped](Plans::stripped).
    pub fn new(schema: Schema, plans: Plans, layouts: Layouts) -> Self {
        let mut given = Self {
            inlined: vec![None; plans.types.len()],
            alike: alike(&schema, &plans, &layouts),
            called: vec![false; plans.types.len()],
            room: vec![None; plans.types.len()],
            schema,
            plans,
            layouts,
        };
        // A type that is called is an operation for those that call it, so one round decides about
        // types that come after what they use, and more rounds find no more worth having.
        for id in 0..given.plans.types.len() {
            given.inlined[id] = given.small(&given.plans.types[id]);
            given.room[id] = given.few(&given.plans.types[id]);
        }
        given.find_called();
        given
    }

    fn small(&self, plan: &Plan) -> Option<usize> {
        let weight = self.weight(&plan.body);
        (!plan.recursive && weight <= MAX_INLINED).then_some(weight)
    }

    /// Whether a value of a named type is moved where it stands.
    pub fn is_inlined(&self, id: TypeId) -> bool {
        self.inlined[id.0 as usize].is_some()
    }

    /// How many operations and arms there are.
    fn weight(&self, body: &[Op]) -> usize {
        let weights = body.iter().map(|op| match op {
            Op::PutElements { body, .. } => 1 + self.weight(body),
            Op::Loop { body, .. } | Op::Optional { body, .. } => 1 + self.weight(body),
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.map(|body| 1 + self.weight(body)).sum()
            }
            Op::Call { plan, .. } => self.inlined[plan.0 as usize].unwrap_or(1),
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } => 1,
            Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => 1,
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::BlitCounted { .. } => 1,
            Op::List { .. } | Op::External { .. } => 1,
        });
        weights.sum()
    }

    fn few(&self, plan: &Plan) -> Option<u64> {
        match plan.recursive {
            true => None,
            false => self.most_of(&plan.body),
        }
    }

    /// The most bytes that an operation appends, if they are few or always so many.
    pub fn most(&self, op: &Op) -> Option<u64> {
        let representation = &self.plans.representation;
        let counted = |bound: u32, bytes: u64| {
            let bytes = bytes.checked_mul(bound.into())?;
            bytes.checked_add(COUNT_BYTES.into())
        };
        let repeated = |count: Count, bytes: u64| match count {
            Count::Fixed(count) => bytes.checked_mul(count.into()),
            Count::Counted(bound) => counted(bound, bytes),
        };
        let bytes = match op {
            Op::Reserve { bytes } => return Some((*bytes).into()),
            Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } => 0,
            Op::Blit { .. } | Op::Zero { .. } => 0,
            Op::Align { .. } => HOLE_BYTES,
            Op::CopyCounted { bound, .. } => {
                u64::from(COUNT_BYTES) + representation.padded((*bound).into())
            }
            Op::PutCounted { scalar, bound, .. } => {
                counted(*bound, representation.bytes(*scalar).into())?
            }
            Op::BlitCounted { item, bound, .. } => counted(*bound, item.bytes())?,
            Op::PutElements { count, element, .. } => repeated(*count, element.bytes)?,
            Op::Loop { count, body, .. } => repeated(*count, self.most_of(body)?)?,
            Op::Optional { body, .. } => {
                u64::from(representation.bytes(Scalar::Bool)) + self.most_of(body)?
            }
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                let mut held = bodies.map(|body| self.most_of(body));
                let held = held.try_fold(0, |most, bytes| Some(bytes?.max(most)));
                u64::from(representation.bytes(*discriminant)) + held?
            }
            Op::Call { plan, .. } => self.room[plan.0 as usize]?,
            Op::List { .. } | Op::External { .. } => return None,
        };
        (bytes <= MAX_COVERED).then_some(bytes)
    }

    fn most_of(&self, body: &[Op]) -> Option<u64> {
        let mut all = body.iter().map(|op| self.most(op));
        let all = all.try_fold(0_u64, |all, bytes| all.checked_add(bytes?));
        all.filter(|bytes| *bytes <= MAX_COVERED)
    }

    /// The bytes that whoever enters the encoder of a routine makes room for; it makes room for
    /// all that it appends itself if there are none.
    pub fn room_for(&self, routine: Routine) -> Option<u64> {
        match routine {
            Routine::List(_) => None,
            Routine::Type(id) => self.room[id.0 as usize],
            Routine::Arguments(_) | Routine::Result(_) => self.few(self.routine(routine).0),
        }
    }

    /// Where a routine's plan and value are.
    pub fn routine(&self, routine: Routine) -> (&Plan, Layout<'_>) {
        match routine {
            Routine::Type(id) | Routine::List(id) => {
                (self.plans.of_type(id), Layout::of_type(&self.schema, id))
            }
            Routine::Arguments(at) => {
                let layout = Layout::Record(&self.procedure(at).arguments);
                (&self.plans.procedures[at].arguments, layout)
            }
            Routine::Result(at) => {
                let result = self.procedure(at).result.as_ref();
                let layout = result.map_or(Layout::Nothing, Layout::Use);
                (&self.plans.procedures[at].result, layout)
            }
        }
    }

    fn procedure(&self, at: usize) -> &tenon_schema::Procedure {
        let plan = &self.plans.procedures[at];
        let version = &self.schema.programs[plan.program].versions[plan.version];
        &version.procedures[plan.procedure]
    }

    /// The routine that moves a message: of a linked list the whole list. And the bytes that the value
    /// itself takes, at least one, as nothing is free.
    pub fn message(&self, key: Key) -> (Routine, u32) {
        let routine = match key {
            Key::Type(id) if links::is_link(&self.schema, id) => {
                let list = Routine::List(self.alike[id.0 as usize]);
                return (list, size_of::<Counted>() as u32);
            }
            Key::Type(id) => Routine::Type(id),
            Key::Arguments(at) => Routine::Arguments(at),
            Key::Result(at) => Routine::Result(at),
        };
        let bytes = self.bytes(self.routine(routine).1).max(1);
        // Layouts refuse what is so large.
        (
            self.target(routine),
            u32::try_from(bytes).unwrap_or(u32::MAX),
        )
    }

    /// Whether something else than a message is moved by a routine, too.
    pub fn is_called(&self, routine: Routine) -> bool {
        match routine {
            Routine::Type(id) => self.called[id.0 as usize],
            Routine::List(_) | Routine::Arguments(_) | Routine::Result(_) => false,
        }
    }

    /// Finds out which types are called by others.
    fn find_called(&mut self) {
        let mut all = Vec::new();
        for plan in &self.plans.types {
            calls(&plan.body, &mut all);
        }
        for plan in &self.plans.procedures {
            calls(&plan.arguments.body, &mut all);
            calls(&plan.result.body, &mut all);
        }
        all.retain(|id| !self.is_inlined(*id));
        for id in all {
            if let Routine::Type(id) = self.target(Routine::Type(id)) {
                self.called[id.0 as usize] = true;
            }
        }
    }

    /// The routine that does all that `routine` does, and is made for others too.
    pub fn target(&self, mut routine: Routine) -> Routine {
        loop {
            if let Routine::Type(id) = routine {
                routine = Routine::Type(self.alike[id.0 as usize]);
            }
            let (plan, layout) = self.routine(routine);
            let [
                Op::Call {
                    place,
                    plan: called,
                },
            ] = plan.body.as_slice()
            else {
                return routine;
            };
            let found = self.layouts.locate(&self.schema, layout, place);
            if plan.recursive || found.is_none_or(|(_, offset)| offset != 0) {
                return routine;
            }
            routine = Routine::Type(*called);
        }
    }

    /// Bytes of memory that a value takes.
    pub fn bytes(&self, layout: Layout<'_>) -> u64 {
        self.layouts.extent(&self.schema, layout).size
    }

    /// How far behind the beginning of the union `id` its arms lie.
    pub fn arms_offset(&self, id: TypeId) -> u64 {
        self.layouts.arms_offset(id)
    }

    /// Bytes of what lies behind the pointer that an arm of the union `id` is, if it is one.
    pub fn boxed_arm(&self, id: TypeId, position: usize, arm: Layout<'_>) -> Option<u64> {
        self.layouts.boxed_arm(&self.schema, id, position, arm)
    }

    /// What an item is moved as, if it lies in memory as on the wire and every pattern is a value.
    pub fn plain(&self, scalar: Scalar) -> Option<Blittable> {
        let representation = self.plans.representation;
        let bytes = representation.bytes(scalar);
        let is_same = of_scalar(scalar).size == u64::from(bytes);
        match scalar {
            Scalar::F128 => Some(Blittable::uniform(1, bytes)),
            _ if !is_same || representation.is_checked(scalar) => None,
            _ => Some(Blittable::uniform(bytes, 1)),
        }
    }

    fn members(&self, id: TypeId) -> &[EnumMember] {
        match &self.schema.type_def(id).kind {
            TypeKind::Enum(members) => members,
            _ => &[],
        }
    }

    pub fn is_member(&self, id: TypeId, value: i32) -> bool {
        self.members(id).iter().any(|member| member.value == value)
    }

    /// The values of an enum.
    pub fn clusters(&self, id: TypeId) -> Vec<Cluster> {
        Cluster::of(self.members(id))
    }
}

/// Adds the types that a body calls.
fn calls(body: &[Op], all: &mut Vec<TypeId>) {
    for op in body {
        match op {
            Op::PutElements { body, .. } => calls(body, all),
            Op::Loop { body, .. } | Op::Optional { body, .. } => calls(body, all),
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.for_each(|body| calls(body, all));
            }
            Op::List { element, .. } => all.push(*element),
            Op::Call { plan, .. } => all.push(*plan),
            Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } | Op::External { .. } => {}
            Op::Put { .. } | Op::PutArray { .. } | Op::Copy { .. } | Op::Blit { .. } => {}
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::BlitCounted { .. } => {}
        }
    }
}

/// Where the fields of records lie, found out once. Records are told from each other by where their
/// fields are in the schema.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<(usize, usize), Vec<u64>>);

impl Places {
    /// What is at `place` of `layout`, and how far from its beginning.
    pub fn locate<'a>(
        &mut self,
        given: &'a Given,
        layout: Layout<'a>,
        place: &Place,
    ) -> Option<(Layout<'a>, u64)> {
        let (mut at, mut base) = (layout, 0);
        for position in &place.0 {
            let fields = at.fields(&given.schema)?;
            let record = (fields.as_ptr() as usize, fields.len());
            let offsets = self.0.entry(record);
            let offsets = offsets.or_insert_with(|| given.layouts.offsets(&given.schema, fields));
            base += offsets.get(*position as usize)?;
            at = Layout::Use(&fields.get(*position as usize)?.ty);
        }
        Some((at, base))
    }
}
