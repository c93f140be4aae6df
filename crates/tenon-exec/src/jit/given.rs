//! Input of the compilation: all that the functions of an interface are made from.

use std::sync::Arc;

use tenon_plan::{Blittable, COUNT_BYTES, Cluster, Count, Scalar};
use tenon_schema::TypeId;

use super::alike::alike;
use super::linker::RoutineId;
use crate::frame::MessageId;
use crate::layout::CountedArray;
use crate::resolved::{ResolvedItem, ResolvedKind, ResolvedOp, ResolvedPlan, ResolvedPlans};

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
    pub plans: Arc<ResolvedPlans>,
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
    /// Analyses resolved plans.
    pub fn new(plans: Arc<ResolvedPlans>) -> Self {
        let mut given = Self {
            inlined: vec![None; plans.types.len()],
            alike: alike(&plans),
            called: vec![false; plans.types.len()],
            room: vec![None; plans.types.len()],
            plans,
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

    fn small(&self, plan: &ResolvedPlan) -> Option<usize> {
        let weight = self.weight(&plan.body);
        (!plan.recursive && weight <= MAX_INLINED).then_some(weight)
    }

    /// Returns whether the code of a named type is inlined.
    pub fn is_inlined(&self, id: TypeId) -> bool {
        self.inlined[id.0 as usize].is_some()
    }

    /// Number of operations and arms of a body.
    fn weight(&self, body: &[ResolvedOp]) -> usize {
        let weights = body.iter().map(|op| match op {
            ResolvedOp::Reserve(_) | ResolvedOp::Align { .. } => op.steps(),
            ResolvedOp::Item(item) => self.weight_of(&item.kind),
        });
        weights.sum()
    }

    fn weight_of(&self, kind: &ResolvedKind) -> usize {
        match kind {
            ResolvedKind::PutElements { element, .. } => 1 + element.parts.len(),
            ResolvedKind::Loop { body, .. } | ResolvedKind::Optional { body, .. } => {
                1 + self.weight(body)
            }
            ResolvedKind::Switch(switch) => {
                let arms = switch.all_arms();
                arms.map(|arm| 1 + self.weight(&arm.body)).sum()
            }
            ResolvedKind::Call { plan } => self.inlined[plan.0 as usize].unwrap_or(1),
            ResolvedKind::CopyCounted { .. } | ResolvedKind::PutCounted { .. } => 1,
            ResolvedKind::BlitCounted { .. } | ResolvedKind::List { .. } => 1,
            ResolvedKind::External => 1,
        }
    }

    fn few(&self, plan: &ResolvedPlan) -> Option<u64> {
        match plan.recursive {
            true => None,
            false => self.most_of(&plan.body),
        }
    }

    /// The most bytes that an operation appends, if they are few or always so many.
    pub fn most(&self, op: &ResolvedOp) -> Option<u64> {
        let bytes = match op {
            ResolvedOp::Reserve(block) => return Some(block.bytes.into()),
            ResolvedOp::Align { .. } => HOLE_BYTES,
            ResolvedOp::Item(item) => self.most_of_item(&item.kind)?,
        };
        (bytes <= MAX_COVERED).then_some(bytes)
    }

    fn most_of_item(&self, kind: &ResolvedKind) -> Option<u64> {
        let representation = &self.plans.representation;
        let counted = |bound: u32, bytes: u64| {
            let bytes = bytes.checked_mul(bound.into())?;
            bytes.checked_add(COUNT_BYTES.into())
        };
        let repeated = |count: Count, bytes: u64| match count {
            Count::Fixed(count) => bytes.checked_mul(count.into()),
            Count::Counted(bound) => counted(bound, bytes),
        };
        match kind {
            ResolvedKind::CopyCounted { bound, .. } => {
                Some(u64::from(COUNT_BYTES) + representation.padded((*bound).into()))
            }
            ResolvedKind::PutCounted { scalar, bound } => {
                counted(*bound, representation.bytes(*scalar).into())
            }
            ResolvedKind::BlitCounted { item, bound } => counted(*bound, item.bytes()),
            ResolvedKind::PutElements { count, element, .. } => {
                repeated(*count, element.bytes.into())
            }
            ResolvedKind::Loop { count, body, .. } => repeated(*count, self.most_of(body)?),
            ResolvedKind::Optional { body, .. } => {
                Some(u64::from(representation.bytes(Scalar::Bool)) + self.most_of(body)?)
            }
            ResolvedKind::Switch(switch) => {
                let mut held = switch.all_arms().map(|arm| self.most_of(&arm.body));
                let held = held.try_fold(0, |most, bytes| Some(bytes?.max(most)));
                Some(u64::from(representation.bytes(switch.discriminant)) + held?)
            }
            ResolvedKind::Call { plan } => self.room[plan.0 as usize],
            ResolvedKind::List { .. } | ResolvedKind::External => None,
        }
    }

    fn most_of(&self, body: &[ResolvedOp]) -> Option<u64> {
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
            RoutineId::Arguments(_) | RoutineId::Result(_) => self.few(self.routine(routine)),
        }
    }

    /// The plan of a routine.
    pub fn routine(&self, routine: RoutineId) -> &ResolvedPlan {
        match routine {
            RoutineId::Type(id) | RoutineId::List(id) => self.plans.of_type(id),
            RoutineId::Arguments(at) => &self.plans.procedures[at][0],
            RoutineId::Result(at) => &self.plans.procedures[at][1],
        }
    }

    /// The routine that moves a message: of a linked list the whole list. And the bytes that the value
    /// itself takes, at least one, as nothing is free.
    pub fn message(&self, key: MessageId) -> (RoutineId, u32) {
        let routine = match key {
            MessageId::Type(id) if self.plans.of_type(id).link.is_some() => {
                let list = RoutineId::List(self.alike[id.0 as usize]);
                let bytes = match self.is_c() {
                    true => self.plans.of_type(id).bytes,
                    false => size_of::<CountedArray>() as u32,
                };
                return (list, bytes);
            }
            MessageId::Type(id) => RoutineId::Type(id),
            MessageId::Arguments(at) => RoutineId::Arguments(at),
            MessageId::Result(at) => RoutineId::Result(at),
        };
        (self.target(routine), self.routine(routine).bytes.max(1))
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
        for plan in self.plans.procedures.iter().flatten() {
            calls(&plan.body, &mut all);
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
            let plan = self.routine(routine);
            let [ResolvedOp::Item(ResolvedItem { at: 0, kind, .. })] = plan.body.as_slice() else {
                return routine;
            };
            let ResolvedKind::Call { plan: called } = kind else {
                return routine;
            };
            if plan.recursive {
                return routine;
            }
            routine = RoutineId::Type(*called);
        }
    }

    /// Returns whether a program in C holds the values.
    pub fn is_c(&self) -> bool {
        self.plans.model.is_c()
    }

    /// Bytes of memory that a value of a named type takes; of a link, an element.
    pub fn element_bytes(&self, id: TypeId) -> u64 {
        self.plans.of_type(id).bytes.into()
    }

    /// Offset in an element of a list of the pointer to the next one, in C.
    pub fn link_offset(&self, id: TypeId) -> u64 {
        self.plans.of_type(id).link.unwrap_or(0).into()
    }

    /// Bytes of a scalar in memory.
    pub fn scalar_bytes(&self, scalar: Scalar) -> u64 {
        self.plans.model.scalar(scalar).size
    }

    /// The block that an item is moved as, if it lies in memory as on the wire and every pattern is a value.
    pub fn plain(&self, scalar: Scalar) -> Option<Blittable> {
        let representation = self.plans.representation;
        let bytes = representation.bytes(scalar);
        let is_same = self.scalar_bytes(scalar) == u64::from(bytes);
        match scalar {
            Scalar::F128 => Some(Blittable::uniform(1, bytes)),
            _ if !is_same || representation.is_checked(scalar) => None,
            _ => Some(Blittable::uniform(bytes, 1)),
        }
    }

    fn members(&self, id: TypeId) -> &[i32] {
        &self.plans.members[id.0 as usize]
    }

    pub fn is_member(&self, id: TypeId, value: i32) -> bool {
        self.members(id).contains(&value)
    }

    /// The values of an enum.
    pub fn clusters(&self, id: TypeId) -> Vec<Cluster> {
        Cluster::of(self.members(id).iter().copied())
    }
}

/// Adds the types that a body calls.
fn calls(body: &[ResolvedOp], all: &mut Vec<TypeId>) {
    for op in body {
        let ResolvedOp::Item(item) = op else { continue };
        match &item.kind {
            ResolvedKind::Loop { body, .. } | ResolvedKind::Optional { body, .. } => {
                calls(body, all);
            }
            ResolvedKind::Switch(switch) => {
                switch.all_arms().for_each(|arm| calls(&arm.body, all));
            }
            ResolvedKind::List { element, .. } => all.push(*element),
            ResolvedKind::Call { plan } => all.push(*plan),
            ResolvedKind::PutElements { .. } | ResolvedKind::External => {}
            ResolvedKind::CopyCounted { .. } | ResolvedKind::PutCounted { .. } => {}
            ResolvedKind::BlitCounted { .. } => {}
        }
    }
}
