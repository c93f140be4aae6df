//! Programs: [resolved](crate::resolved) plans laid out flat, for the interpreter.
//!
//! The body of an operation follows its step.
//! One program serves both directions, and is made once for an interface. Names are kept aside: only errors need them.

mod join;
mod make;
mod number;
mod owned;

use tenon_plan::{Count, Run, Scalar};
use tenon_schema::TypeId;

pub(crate) use number::{EnumValueSet, NumberFormat};
pub(crate) use owned::{FreeStep, OwnedMemory};

use crate::frame::MessageId;
use crate::frame::array::ArrayCodec;
#[cfg(feature = "jit")]
use crate::jit::EntryPoints;

/// All plans of an interface.
#[derive(Debug)]
pub(crate) struct InterpreterProgram {
    steps: Vec<ProgramStep>,
    /// Name of the item of each step for errors, as a position in `texts`.
    names: Vec<u32>,
    texts: Vec<String>,
    /// Entry for a value of each named type or, of a link, one element.
    types: Vec<ProgramEntry>,
    /// Codec of a whole message of each named type: of a link, a list.
    roots: Vec<MessageCodec>,
    /// Codecs of the arguments and the result of each procedure.
    procedures: Vec<[MessageCodec; 2]>,
    switches: Vec<UnionSwitch>,
    lists: Vec<ListStep>,
    /// Runs of numbers in blocks that have more than one unit.
    runs: Vec<Box<[Run]>>,
    /// The values of each enum.
    members: Vec<EnumValueSet>,
    /// Format of the boolean that says whether something follows, of four bytes in memory.
    pub flag: NumberFormat,
    /// Opaque data is padded to a multiple of this.
    pub padding: u32,
    /// Set if messages are sent in another byte order than that of memory.
    pub swaps_sent: bool,
    /// Byte order of received messages, as far as it is known.
    pub swaps_received: ReceivedByteOrder,
}

/// Byte order of received messages, as far as it is known before they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceivedByteOrder {
    /// That of memory, or the other one.
    Swapped(bool),
    /// The sender's, which the decoder is told.
    Senders,
}

/// Consecutive steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StepRange {
    start: u32,
    length: u32,
}

/// The program and the machine code of a message.
#[derive(Debug)]
pub(crate) struct MessageCodec {
    pub entry: ProgramEntry,
    /// Its machine code, as far as it is made.
    #[cfg(feature = "jit")]
    pub entry_points: EntryPoints,
}

/// Entry point of the interpreter for a whole value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramEntry {
    /// The message that it belongs to.
    pub key: MessageId,
    body: StepRange,
    /// A level is entered for each value.
    pub is_recursive: bool,
    /// Functions that move all of it, if it is an array and nothing else.
    pub array: ArrayCodec,
    /// Bytes of the value in memory, without what it points to; at least one, as nothing is free.
    pub bytes: u32,
    /// The type or procedure, as a position in `texts`.
    name: u32,
}

/// One operation. `at` is where the item lies behind `it`; `offset` where in the block on the wire
/// that the latest `Reserve` was for; `length` how many of the next steps lie inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramStep {
    Reserve {
        bytes: u32,
    },
    Align {
        to: u32,
        before: u32,
    },
    Zero {
        bytes: u32,
        offset: u32,
    },
    Put {
        number: NumberFormat,
        at: u32,
        offset: u32,
    },
    /// Numbers that are converted one by one; others are a block.
    PutArray {
        number: NumberFormat,
        at: u32,
        count: u32,
        offset: u32,
    },
    /// As above.
    PutCounted {
        number: NumberFormat,
        at: u32,
        bound: u32,
    },
    /// Opaque bytes and their padding.
    Copy {
        at: u32,
        bytes: u32,
        padding: u32,
        offset: u32,
    },
    CopyCounted {
        at: u32,
        bound: u32,
    },
    /// A string that ends in a NUL in memory.
    Text {
        at: u32,
        bound: u32,
    },
    Blit {
        item: BlockItem,
        at: u32,
        bytes: u32,
        offset: u32,
    },
    BlitCounted {
        item: BlockItem,
        /// Bytes of one item.
        stride: u32,
        at: u32,
        bound: u32,
    },
    PutElements {
        at: u32,
        count: Count,
        stride: u32,
        /// Bytes of an element on the wire.
        bytes: u32,
        length: u32,
    },
    Loop {
        at: u32,
        count: Count,
        stride: u32,
        /// Fewest bytes of an element on the wire.
        fewest: u32,
        length: u32,
    },
    /// By its position among the switches.
    Switch {
        switch: u32,
        length: u32,
    },
    Optional {
        at: u32,
        /// Bytes of the value in memory.
        bytes: u32,
        length: u32,
    },
    /// A value behind a pointer that has no trace on the wire.
    Boxed {
        at: u32,
        /// Bytes of the value in memory.
        bytes: u32,
        length: u32,
    },
    /// By its position among the lists.
    List {
        list: u32,
    },
    /// A list that is linked by pointers, by its position among the lists.
    Chain {
        list: u32,
    },
    Call {
        at: u32,
        of: TypeId,
    },
    External,
}

/// The repeated item of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockItem {
    /// Numbers of so many bytes.
    Units(u32),
    /// By their position among the runs, over and over.
    Runs(u32),
}

/// A union.
#[derive(Debug)]
pub(crate) struct UnionSwitch {
    /// Offset of the discriminant.
    pub at: u32,
    /// Offset of the arms.
    pub arms_at: u32,
    pub discriminant: NumberFormat,
    /// Type of the discriminant in memory.
    pub scalar: Scalar,
    /// The arm that each value selects, sorted by the values.
    cases: Vec<(i32, StepRange)>,
    default: Option<StepRange>,
}

/// A linked list.
#[derive(Debug)]
pub(crate) struct ListStep {
    pub at: u32,
    /// Bytes of an element in memory.
    pub stride: u32,
    /// Offset in an element of the pointer to the next one, if there is one.
    pub link: u32,
    pub first_bare: bool,
    /// Set if a flag precedes each element; otherwise a count precedes all.
    pub is_flagged: bool,
    pub element: TypeId,
    /// Fewest bytes of an element on the wire.
    pub fewest: u32,
    /// Alignment of an element on the wire.
    pub align: u32,
}

impl InterpreterProgram {
    /// The steps of a body.
    #[inline]
    pub fn steps(&self, body: StepRange) -> &[ProgramStep] {
        &self.steps[body.start as usize..][..body.length as usize]
    }

    /// The steps of an entry.
    #[inline]
    pub fn steps_of(&self, entry: &ProgramEntry) -> &[ProgramStep] {
        self.steps(entry.body)
    }

    /// The entry for a value of a type or, of a link, one element.
    #[inline]
    pub fn of_type(&self, id: TypeId) -> &ProgramEntry {
        &self.types[id.0 as usize]
    }

    /// The codec of a message.
    pub fn codec(&self, key: MessageId) -> &MessageCodec {
        match key {
            MessageId::Type(id) => &self.roots[id.0 as usize],
            MessageId::Arguments(at) => &self.procedures[at][0],
            MessageId::Result(at) => &self.procedures[at][1],
        }
    }

    #[inline]
    pub fn switch(&self, position: u32) -> &UnionSwitch {
        &self.switches[position as usize]
    }

    #[inline]
    pub fn list(&self, position: u32) -> &ListStep {
        &self.lists[position as usize]
    }

    #[inline]
    pub fn runs(&self, position: u32) -> &[Run] {
        &self.runs[position as usize]
    }

    #[inline]
    pub fn is_member(&self, of: u32, value: i32) -> bool {
        self.members[of as usize].has(value)
    }

    /// `type.field` of the item that a step moves. `step` must be one of this program's.
    #[cold]
    pub fn name_of(&self, step: &ProgramStep) -> &str {
        let distance = (&raw const *step).addr() - self.steps.as_ptr().addr();
        let position = distance / size_of::<ProgramStep>();
        let name = self.names.get(position);
        name.map_or("", |name| &self.texts[*name as usize])
    }

    /// The type or procedure.
    #[cold]
    pub fn name_of_entry(&self, entry: &ProgramEntry) -> &str {
        &self.texts[entry.name as usize]
    }
}

impl ProgramStep {
    /// Number of the steps that follow and lie inside of this one.
    fn inside(&self) -> usize {
        match self {
            Self::PutElements { length, .. }
            | Self::Loop { length, .. }
            | Self::Switch { length, .. }
            | Self::Optional { length, .. }
            | Self::Boxed { length, .. } => *length as usize,
            Self::Reserve { .. } | Self::Align { .. } | Self::Zero { .. } => 0,
            Self::Put { .. } | Self::PutArray { .. } | Self::PutCounted { .. } => 0,
            Self::Copy { .. } | Self::CopyCounted { .. } | Self::Text { .. } => 0,
            Self::Blit { .. } | Self::BlitCounted { .. } => 0,
            Self::List { .. } | Self::Chain { .. } => 0,
            Self::Call { .. } | Self::External => 0,
        }
    }
}

impl From<ProgramEntry> for MessageCodec {
    fn from(entry: ProgramEntry) -> Self {
        Self {
            entry,
            #[cfg(feature = "jit")]
            entry_points: EntryPoints::default(),
        }
    }
}

impl UnionSwitch {
    /// Returns the steps of the arm that `value` selects; `None` if there is none.
    pub fn select(&self, value: i32) -> Option<StepRange> {
        let found = self.cases.binary_search_by_key(&value, |case| case.0);
        match found {
            Ok(position) => Some(self.cases[position].1),
            Err(_) => self.default,
        }
    }
}
