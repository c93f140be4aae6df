//! The operations. A new one goes into this table; the compiler then lists the places that must follow, and
//! `CONTRIBUTING.md` those that it cannot see.

use tenon_schema::TypeId;

use crate::item::{Blittable, Place, Scalar};
use crate::representation::{Representation, WireExtent};
use crate::reserved::ReservedBlock;

/// The plans of a whole interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Plans {
    /// Wire representation of the items.
    pub representation: Representation,
    /// One per [`tenon_schema::Schema::types`], in the same order.
    pub types: Vec<Plan>,
    /// One per procedure, in the order of the interface.
    pub procedures: Vec<ProcedurePlan>,
}

/// The two messages of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcedurePlan {
    /// Position of the program in the schema.
    pub program: usize,
    /// Position of the version in the program.
    pub version: usize,
    /// Position of the procedure in the version.
    pub procedure: usize,
    /// The arguments; `it` is the record of the parameters.
    pub arguments: Plan,
    /// The result; `it` is the result itself. No operations for `void`.
    pub result: Plan,
    /// The plans of a procedure with streams, where these go by themselves.
    pub streams: Option<Box<StreamPlans>>,
}

/// The plans of a procedure with streams, of which the items are messages of their own. The plan of the procedure knows
/// nothing of streams, as ONC RPC does not.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamPlans {
    /// The call without what is a stream: of arguments the last is missing, and there is no result.
    pub call: ProcedurePlan,
    /// An item of the last argument; `it` is the item.
    pub argument: Option<Plan>,
    /// An item of the result; `it` is the item.
    pub result: Option<Plan>,
}

/// The operations that move one value, and its size on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The operations.
    pub body: Body,
    /// Bytes on the wire. Of a link (see [`crate::links`]): of one element without its link.
    pub size: WireSize,
    /// Alignment of the value's position: an engine pads up to it before it runs the plan.
    pub align: u32,
    /// True if the value can contain another of its own type: an engine that runs this plan enters a
    /// level first, leaves it afterwards, and refuses to go too deep. A linked list alone does
    /// not make its elements recursive.
    pub recursive: bool,
}

/// Operations in the order of the wire. Inside, `it` is the value the body is about.
pub type Body = Vec<Op>;

/// Bytes that a value takes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSize {
    /// The fewest.
    pub min: u64,
    /// The most; `None` if the interface sets no bound (or one above `u64::MAX`).
    pub max: Option<u64>,
}

/// One step of marshalling.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Items of fixed size, with one check for all of them.
    Reserve(ReservedBlock),
    /// Zeros up to the next position so that what lies `before` bytes further is at a multiple of
    /// `to`. Positions count from the beginning of the message. Makes its own check.
    Align {
        /// 2, 4 or 8.
        to: u32,
        /// Bytes, less than `to`: those of a count of aligned elements.
        before: u32,
    },
    /// A count, then so many items as [`FixedKind::Blit`](crate::FixedKind::Blit) moves them. Makes its own check.
    BlitCounted {
        /// Place in memory.
        place: Place,
        /// The numbers that one item consists of.
        item: Blittable,
        /// Most items; `u32::MAX` is no bound.
        bound: u32,
    },
    /// Moves elements that are one reserved block each, with one check for all of them. In the block,
    /// `it` is the element.
    PutElements {
        /// Place in memory.
        place: Place,
        /// Number of elements.
        count: Count,
        /// Alignment of an element's position.
        align: u32,
        /// One element.
        element: ReservedBlock,
    },
    /// A count, then so many bytes, then padding. Makes its own check.
    CopyCounted {
        /// Place in memory.
        place: Place,
        /// Most bytes; `u32::MAX` is no bound.
        bound: u32,
        /// True for text, a `string`; false for an `opaque`.
        text: bool,
    },
    /// A count, then so many items. Makes its own check.
    PutCounted {
        /// Place in memory.
        place: Place,
        /// Type of each item.
        scalar: Scalar,
        /// Most items; `u32::MAX` is no bound.
        bound: u32,
    },
    /// Runs `body` once for each element; inside, `it` is the element.
    Loop {
        /// Place in memory.
        place: Place,
        /// Number of elements.
        count: Count,
        /// Known size of one element.
        element: ElementSize,
        /// One element.
        body: Body,
    },
    /// Moves a discriminant and the arm it selects. Makes its own check for the discriminant.
    Switch {
        /// Place of the union in memory.
        place: Place,
        /// The discriminant.
        discriminant: Scalar,
        /// One per arm of the schema's union, in order.
        arms: Vec<Arm>,
        /// The default arm; inside, `it` is what it holds. `None`: other values are refused.
        default: Option<Body>,
    },
    /// A boolean, then the value if it is true; inside, `it` is the value.
    Optional {
        /// Place in memory.
        place: Place,
        /// The value.
        body: Body,
    },
    /// A linked list, as the representation writes [lists](crate::Lists). In memory a sequence;
    /// an element is moved without its link, each at a multiple of its plan's `align`.
    List {
        /// Place in memory.
        place: Place,
        /// True if at least one must be there: the type is used by value and not through a
        /// pointer. In a flagged list the first one then comes without a flag.
        first_bare: bool,
        /// The type of the elements. Its own plan moves an element without the link.
        element: TypeId,
    },
    /// Runs the plan of a named type.
    Call {
        /// Place in memory.
        place: Place,
        /// The type.
        plan: TypeId,
    },
    /// Moves a value of a type that the interface only names: all there is of such a type's own
    /// plan. Source back ends leave it to the user's routine; whatever else runs a plan refuses.
    External {
        /// Place in memory.
        place: Place,
        /// The type.
        ty: TypeId,
    },
}

/// Known size of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementSize {
    /// The fewest: bounds a count before memory is taken.
    pub min: u32,
    /// If all elements have the same size: then they lie one behind the other, without a hole.
    pub extent: Option<WireExtent>,
}

/// The number of times a loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Always so often.
    Fixed(u32),
    /// A count on the wire of at most so many; `u32::MAX` is no bound.
    Counted(u32),
}

/// An arm of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// The values of the discriminant that select it.
    pub values: Vec<i32>,
    /// Operations for what the arm holds; inside, `it` is that value. Empty for `void`.
    pub body: Body,
}

impl Plans {
    /// The plan of a named type.
    ///
    /// # Panics
    /// If `id` is not of the schema that the plans were made for.
    pub fn of_type(&self, id: TypeId) -> &Plan {
        &self.types[id.0 as usize]
    }

    /// The plan of a named type, to be rewritten.
    pub(crate) fn of_type_mut(&mut self, id: TypeId) -> &mut Plan {
        &mut self.types[id.0 as usize]
    }

    /// Every plan there is.
    pub(crate) fn plans_mut(&mut self) -> impl Iterator<Item = &mut Plan> {
        let procedures = self.procedures.iter_mut();
        let messages = procedures.flat_map(ProcedurePlan::plans_mut);
        self.types.iter_mut().chain(messages)
    }
}

impl ProcedurePlan {
    /// Every plan there is.
    fn plans_mut(&mut self) -> Vec<&mut Plan> {
        let mut plans = vec![&mut self.arguments, &mut self.result];
        if let Some(streams) = self.streams.as_deref_mut() {
            plans.extend([&mut streams.call.arguments, &mut streams.call.result]);
            plans.extend(
                streams
                    .argument
                    .as_mut()
                    .into_iter()
                    .chain(&mut streams.result),
            );
        }
        plans
    }
}

impl Op {
    /// Returns the place of the item in memory; a block and an alignment have none.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Reserve(_) | Self::Align { .. } => None,
            Self::BlitCounted { place, .. }
            | Self::PutElements { place, .. }
            | Self::CopyCounted { place, .. }
            | Self::PutCounted { place, .. }
            | Self::Loop { place, .. }
            | Self::Switch { place, .. }
            | Self::Optional { place, .. }
            | Self::List { place, .. }
            | Self::Call { place, .. }
            | Self::External { place, .. } => Some(place),
        }
    }

    pub(crate) fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::Reserve(_) | Self::Align { .. } => None,
            Self::BlitCounted { place, .. }
            | Self::PutElements { place, .. }
            | Self::CopyCounted { place, .. }
            | Self::PutCounted { place, .. }
            | Self::Loop { place, .. }
            | Self::Switch { place, .. }
            | Self::Optional { place, .. }
            | Self::List { place, .. }
            | Self::Call { place, .. }
            | Self::External { place, .. } => Some(place),
        }
    }

    /// Returns the number of items and checks: of a block, its check and each of its parts.
    pub fn steps(&self) -> usize {
        match self {
            Self::Reserve(block) => 1 + block.parts.len(),
            _ => 1,
        }
    }

    /// Returns the type of which it runs the plan: once, or for each element of a list.
    pub fn called(&self) -> Option<TypeId> {
        match self {
            Self::Call { plan: id, .. } | Self::List { element: id, .. } => Some(*id),
            Self::Reserve(_)
            | Self::Align { .. }
            | Self::BlitCounted { .. }
            | Self::PutElements { .. }
            | Self::CopyCounted { .. }
            | Self::PutCounted { .. }
            | Self::Loop { .. }
            | Self::Switch { .. }
            | Self::Optional { .. }
            | Self::External { .. } => None,
        }
    }

    /// Returns the bodies inside.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        let (only, arms, default) = match self {
            Self::Loop { body, .. } | Self::Optional { body, .. } => (Some(body), &[][..], None),
            Self::Switch { arms, default, .. } => (None, &arms[..], default.as_ref()),
            Self::Reserve(_)
            | Self::Align { .. }
            | Self::BlitCounted { .. }
            | Self::PutElements { .. }
            | Self::CopyCounted { .. }
            | Self::PutCounted { .. }
            | Self::List { .. }
            | Self::Call { .. }
            | Self::External { .. } => (None, &[][..], None),
        };
        let arms = arms.iter().map(|arm| &arm.body);
        only.into_iter().chain(arms).chain(default)
    }

    /// The bodies inside.
    pub(crate) fn bodies_mut(&mut self) -> Vec<&mut Body> {
        match self {
            Self::Loop { body, .. } | Self::Optional { body, .. } => vec![body],
            Self::Switch { arms, default, .. } => {
                let arms = arms.iter_mut().map(|arm| &mut arm.body);
                arms.chain(default).collect()
            }
            Self::Reserve(_)
            | Self::Align { .. }
            | Self::BlitCounted { .. }
            | Self::PutElements { .. }
            | Self::CopyCounted { .. }
            | Self::PutCounted { .. }
            | Self::List { .. }
            | Self::Call { .. }
            | Self::External { .. } => Vec::new(),
        }
    }
}
