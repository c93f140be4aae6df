//! Programs: plans resolved onto memory, for the interpreter.
//!
//! A place has become an offset, an element a stride, a call an index; what lies inside of an
//! operation stands right behind its step. One program serves both directions, and is made once
//! for an interface. Names are kept aside: only errors ask for them.

mod join;
mod make;
mod number;

use tenon_plan::{Count, Moves, Run, Scalar};
use tenon_schema::TypeId;

pub(crate) use number::{Members, Number};

use crate::frame::Key;
use crate::frame::array::Array;
#[cfg(feature = "jit")]
use crate::jit::Doors;

/// All plans of an interface.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    /// What an error at each step is in, as a position in `texts`.
    names: Vec<u32>,
    texts: Vec<String>,
    /// What moves a value of each named type or, of a link, one element.
    types: Vec<Entry>,
    /// What moves a whole message of each named type: of a link, a list.
    roots: Vec<Movers>,
    /// The arguments and the result of each procedure.
    procedures: Vec<[Movers; 2]>,
    switches: Vec<Switch>,
    lists: Vec<List>,
    /// What blocks of several units consist of.
    runs: Vec<Box<[Run]>>,
    /// The values of each enum.
    members: Vec<Members>,
    /// What says whether something follows.
    pub flag: Number,
    /// Opaque data is padded to a multiple of this.
    pub padding: u32,
    /// How a single number is moved.
    pub moves: Moves,
    /// Whether what is sent has another order of bytes than memory.
    pub swaps_sent: bool,
    /// Whether what is received has, if its sender is a machine like this one.
    pub swaps_received: Order,
}

/// What is known of the order of the bytes that are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of memory, or the other one.
    Swapped(bool),
    /// The sender's, which whoever decodes knows.
    Senders,
}

/// Steps that stand behind each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body {
    start: u32,
    length: u32,
}

/// What moves a message.
#[derive(Debug)]
pub(crate) struct Movers {
    pub entry: Entry,
    /// Its machine code.
    #[cfg(feature = "jit")]
    pub doors: Doors,
}

/// What moves a whole value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// What it is a message of.
    pub key: Key,
    body: Body,
    /// A level is entered for each value.
    pub is_recursive: bool,
    /// What moves all of it, if it is an array and no more.
    pub array: Array,
    /// Bytes of the value in memory, without what it points to; at least one, as nothing is free.
    pub bytes: u32,
    /// The type or procedure, as a position in `texts`.
    name: u32,
}

/// One operation. `at` is where the item lies behind `it`; `offset` where in the block on the wire
/// that the latest `Reserve` was for; `length` how many of the next steps lie inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
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
        number: Number,
        at: u32,
        offset: u32,
    },
    /// [`Put`](Self::Put), but not in the fast way.
    PutSlowly {
        number: Number,
        at: u32,
        offset: u32,
    },
    /// Numbers that are looked at one by one; others are a block.
    PutArray {
        number: Number,
        at: u32,
        count: u32,
        offset: u32,
    },
    /// As above.
    PutCounted {
        number: Number,
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
    Blit {
        item: Item,
        at: u32,
        bytes: u32,
        offset: u32,
    },
    BlitCounted {
        item: Item,
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
    /// What lies behind a pointer, of which there is nothing on the wire.
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
    Call {
        at: u32,
        of: TypeId,
    },
    External,
}

/// What a block consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// Numbers of so many bytes.
    Units(u32),
    /// By their position among the runs, over and over.
    Runs(u32),
}

/// A union.
#[derive(Debug)]
pub(crate) struct Switch {
    /// Where the discriminant lies.
    pub at: u32,
    /// Where the arms do.
    pub arms_at: u32,
    pub discriminant: Number,
    /// What the discriminant is in memory.
    pub scalar: Scalar,
    /// The arm that each value selects, sorted by the values.
    cases: Vec<(i32, Body)>,
    default: Option<Body>,
}

/// A linked list.
#[derive(Debug)]
pub(crate) struct List {
    pub at: u32,
    pub stride: u32,
    pub first_bare: bool,
    /// Whether a flag stands in front of each element, and not a count in front of all.
    pub is_flagged: bool,
    pub element: TypeId,
    /// Fewest bytes of an element on the wire.
    pub fewest: u32,
    /// What its position is a multiple of.
    pub align: u32,
}

impl Program {
    /// The steps of a body.
    #[inline]
    pub fn steps(&self, body: Body) -> &[Step] {
        &self.steps[body.start as usize..][..body.length as usize]
    }

    /// The steps of an entry.
    #[inline]
    pub fn steps_of(&self, entry: &Entry) -> &[Step] {
        self.steps(entry.body)
    }

    /// What moves a value of a type or, of a link, one element.
    #[inline]
    pub fn of_type(&self, id: TypeId) -> &Entry {
        &self.types[id.0 as usize]
    }

    /// What moves a message.
    pub fn movers(&self, key: Key) -> &Movers {
        match key {
            Key::Type(id) => &self.roots[id.0 as usize],
            Key::Arguments(at) => &self.procedures[at][0],
            Key::Result(at) => &self.procedures[at][1],
        }
    }

    #[inline]
    pub fn switch(&self, position: u32) -> &Switch {
        &self.switches[position as usize]
    }

    #[inline]
    pub fn list(&self, position: u32) -> &List {
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

    /// `type.field` of what a step moves. `step` must be one of this program's.
    #[cold]
    pub fn name_of(&self, step: &Step) -> &str {
        let distance = (&raw const *step).addr() - self.steps.as_ptr().addr();
        let position = distance / size_of::<Step>();
        let name = self.names.get(position);
        name.map_or("", |name| &self.texts[*name as usize])
    }

    /// The type or procedure.
    #[cold]
    pub fn name_of_entry(&self, entry: &Entry) -> &str {
        &self.texts[entry.name as usize]
    }
}

impl From<Entry> for Movers {
    fn from(entry: Entry) -> Self {
        Self {
            entry,
            #[cfg(feature = "jit")]
            doors: Doors::default(),
        }
    }
}

impl Switch {
    /// What the arm that `value` selects does; `None` if there is none.
    pub fn select(&self, value: i32) -> Option<Body> {
        let found = self.cases.binary_search_by_key(&value, |case| case.0);
        match found {
            Ok(position) => Some(self.cases[position].1),
            Err(_) => self.default,
        }
    }
}
