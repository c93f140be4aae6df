//! Input of the compilation: all that the functions of an interface are made from.

use std::collections::HashMap;

use tenon_plan::{
    Blittable, COUNT_BYTES, Cluster, Count, Layout, Op, Place, Plan, Plans, Scalar, links,
};
use tenon_schema::{EnumMember, Schema, TypeId, TypeKind};

use super::alike::alike;
use super::linker::RoutineId;
use crate::frame::MessageId;
use crate::layout::{CountedArray, TypeLayouts};

/// Most operations of a type that is inlined and not called.
const MAX_INLINED: usize = 6;

/// Most bytes of several operations that one check makes room for, though they may turn out to
/// need less.
pub(crate) const MAX_COVERED: u64 = 1024;

/// Bytes that an alignment writes at once, of which those behind the hole are overwritten.
pub(super) const HOLE_BYTES: u64 = 8;

/// Encoding or decoding, in the processor's order of bytes or the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MarshalDirection {
    /// From memory to bytes.
    Encode {
        /// Set if the order is the other one.
        swapped: bool,
    },
    /// From bytes to memory.
    Decode {
        /// Set if the order is the other one.
        swapped: bool,
    },
}

impl MarshalDirection {
    /// Returns whether the byte order of numbers is not that of the processor.
    pub fn swapped(self) -> bool {
        match self {
            Self::Encode { swapped } | Self::Decode { swapped } => swapped,
        }
    }
}

/// An interface, as far as machine code depends on it.
#[derive(Debug)]
pub(super) struct CompilationInput {
    pub schema: Schema,
    pub plans: Plans,
    pub layouts: TypeLayouts,
    /// Of the named types: the number of operations that one comes down to, or none if it is always called.
    inlined: Vec<Option<usize>>,
    /// Of the named types, the first one that is moved alike.
    alike: Vec<TypeId>,
    /// Of the named types, whether others call it.
    called: Vec<bool>,
    /// Of the named types, the most bytes that one appends, if they are few. The caller of its encoder makes room for
    /// so many.
    room: Vec<Option<u64>>,
}

impl CompilationInput {
    /// Analyses plans that were [stripped](Plans::stripped).
    pub fn new(schema: Schema, plans: Plans, layouts: TypeLayouts) -> Self {
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

    /// Returns whether the code of a named type is inlined.
    pub fn is_inlined(&self, id: TypeId) -> bool {
        self.inlined[id.0 as usize].is_some()
    }

    /// Number of operations and arms of a body.
    fn weight(&self, body: &[Op]) -> usize {
        let weights = body.iter().map(|op| match op {
            Op::PutElements { element, .. } => 1 + element.parts.len(),
            Op::Loop { body, .. } | Op::Optional { body, .. } => 1 + self.weight(body),
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.map(|body| 1 + self.weight(body)).sum()
            }
            Op::Call { plan, .. } => self.inlined[plan.0 as usize].unwrap_or(1),
            Op::Reserve(_) | Op::Align { .. } => op.steps(),
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
            Op::Reserve(block) => return Some(block.bytes.into()),
            Op::Align { .. } => HOLE_BYTES,
            Op::CopyCounted { bound, .. } => {
                u64::from(COUNT_BYTES) + representation.padded((*bound).into())
            }
            Op::PutCounted { scalar, bound, .. } => {
                counted(*bound, representation.bytes(*scalar).into())?
            }
            Op::BlitCounted { item, bound, .. } => counted(*bound, item.bytes())?,
            Op::PutElements { count, element, .. } => repeated(*count, element.bytes.into())?,
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

    /// The bytes that the caller of the encoder of a routine makes room for; if there are none, the encoder makes room
    /// for all that it appends itself.
    pub fn room_for(&self, routine: RoutineId) -> Option<u64> {
        match routine {
            RoutineId::List(_) => None,
            RoutineId::Type(id) => self.room[id.0 as usize],
            RoutineId::Arguments(_) | RoutineId::Result(_) => self.few(self.routine(routine).0),
        }
    }

    /// The plan of a routine and the layout of its value.
    pub fn routine(&self, routine: RoutineId) -> (&Plan, Layout<'_>) {
        match routine {
            RoutineId::Type(id) | RoutineId::List(id) => {
                (self.plans.of_type(id), Layout::of_type(&self.schema, id))
            }
            RoutineId::Arguments(at) => {
                let layout = Layout::Record(&self.procedure(at).arguments);
                (&self.plans.procedures[at].arguments, layout)
            }
            RoutineId::Result(at) => {
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
    pub fn message(&self, key: MessageId) -> (RoutineId, u32) {
        let routine = match key {
            MessageId::Type(id) if links::is_link(&self.schema, id) => {
                let list = RoutineId::List(self.alike[id.0 as usize]);
                let bytes = match self.is_c() {
                    true => self.element_bytes(id),
                    false => size_of::<CountedArray>() as u64,
                };
                return (list, u32::try_from(bytes).unwrap_or(u32::MAX));
            }
            MessageId::Type(id) => RoutineId::Type(id),
            MessageId::Arguments(at) => RoutineId::Arguments(at),
            MessageId::Result(at) => RoutineId::Result(at),
        };
        let bytes = match key {
            MessageId::Type(id) => self.element_bytes(id),
            MessageId::Arguments(_) | MessageId::Result(_) => self.bytes(self.routine(routine).1),
        };
        let bytes = bytes.max(1);
        // Layouts refuse larger ones.
        (
            self.target(routine),
            u32::try_from(bytes).unwrap_or(u32::MAX),
        )
    }

    /// Returns whether a routine is called by other functions, and not only by entries.
    pub fn is_called(&self, routine: RoutineId) -> bool {
        match routine {
            RoutineId::Type(id) => self.called[id.0 as usize],
            RoutineId::List(_) | RoutineId::Arguments(_) | RoutineId::Result(_) => false,
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
            if let RoutineId::Type(id) = self.target(RoutineId::Type(id)) {
                self.called[id.0 as usize] = true;
            }
        }
    }

    /// The routine that does all that `routine` does, and is made for others too.
    pub fn target(&self, mut routine: RoutineId) -> RoutineId {
        loop {
            if let RoutineId::Type(id) = routine {
                routine = RoutineId::Type(self.alike[id.0 as usize]);
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
            routine = RoutineId::Type(*called);
        }
    }

    /// Returns whether a program in C holds the values.
    pub fn is_c(&self) -> bool {
        self.layouts.model().is_c()
    }

    /// Bytes of memory that a value of a named type takes; of a link, an element.
    pub fn element_bytes(&self, id: TypeId) -> u64 {
        self.layouts.named(id).size
    }

    /// Offset in an element of a list of the pointer to the next one, in C.
    pub fn link_offset(&self, id: TypeId) -> u64 {
        self.layouts.link_offset(id)
    }

    /// Bytes of memory that a value takes.
    pub fn bytes(&self, layout: Layout<'_>) -> u64 {
        self.layouts.extent(&self.schema, layout).size
    }

    /// Offset of the arms of the union `id`.
    pub fn arms_offset(&self, id: TypeId) -> u64 {
        self.layouts.arms_offset(id)
    }

    /// Bytes of the value behind the pointer of an arm of the union `id`, if it is boxed.
    pub fn boxed_arm(&self, id: TypeId, position: usize, arm: Layout<'_>) -> Option<u64> {
        self.layouts.boxed_arm(&self.schema, id, position, arm)
    }

    /// The block that an item is moved as, if it lies in memory as on the wire and every pattern is a value.
    pub fn plain(&self, scalar: Scalar) -> Option<Blittable> {
        let representation = self.plans.representation;
        let bytes = representation.bytes(scalar);
        let is_same = self.layouts.scalar_bytes(scalar) == u64::from(bytes);
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
            Op::Loop { body, .. } | Op::Optional { body, .. } => calls(body, all),
            Op::Switch { arms, default, .. } => {
                let bodies = arms.iter().map(|arm| &arm.body).chain(default);
                bodies.for_each(|body| calls(body, all));
            }
            Op::List { element, .. } => all.push(*element),
            Op::Call { plan, .. } => all.push(*plan),
            Op::Reserve(_) | Op::Align { .. } | Op::PutElements { .. } | Op::External { .. } => {}
            Op::CopyCounted { .. } | Op::PutCounted { .. } | Op::BlitCounted { .. } => {}
        }
    }
}

/// Cache of the offsets of the fields of records. The key of a record is the address of its fields in the schema.
#[derive(Debug, Default)]
pub(super) struct FieldOffsets(HashMap<(usize, usize), Vec<u64>>);

impl FieldOffsets {
    /// The layout of the item at `place` of `layout`, and its offset.
    pub fn locate<'a>(
        &mut self,
        given: &'a CompilationInput,
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
