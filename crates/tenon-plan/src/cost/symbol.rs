//! The parameters of a machine that equations consist of.

use std::fmt;

/// An engine, which runs plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// Stubs made at build time.
    Compiled,
    /// Machine code made at bind time.
    Machine,
    /// The interpreter.
    Interpreter,
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From memory to bytes.
    Encode,
    /// From bytes to memory.
    Decode,
}

/// A parameter of a machine: what happens once for each time that it stands in an equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// A message is begun and ended.
    Begin,
    /// A message that is an array and no more is moved, without a look at operations.
    Whole,
    /// An operation is found out about.
    Operation,
    /// There is a check for room, or for bytes received.
    Check,
    /// A loop over records looks again how much is left.
    Left,
    /// A number is moved whole.
    Item,
    /// A number is moved in a loop that compilers make one over vectors.
    Vector,
    /// A number is moved byte by byte.
    Bytewise,
    /// A procedure is called to move a number.
    Procedure,
    /// A boolean or a small integer is looked at.
    Small,
    /// A value of an enum is compared with members that lie near to each other.
    Member,
    /// A value of an enum is looked for among many members.
    Members,
    /// Zeros are put or skipped up to the next position, or fill a hole.
    Hole,
    /// An array of a known number is begun.
    Array,
    /// Something counted is begun.
    Counted,
    /// A linked list is begun.
    List,
    /// A loop over numbers goes round.
    Loop,
    /// A loop over records goes round.
    Element,
    /// A block is copied: its beginning.
    Copy,
    /// A block is copied: each byte.
    CopyByte,
    /// A few bytes are copied, of a number that varies.
    Few,
    /// A few bytes are copied: once for each time that they are less than half of most.
    Halving,
    /// A block of numbers is swapped: its beginning.
    Swap,
    /// A block of numbers is swapped: each byte.
    SwapByte,
    /// The plan of another type is called.
    Call,
    /// Values that are too large for registers, and were just made piece by piece, are put where they
    /// belong.
    Hand,
    /// A level of a recursive type is entered and left.
    Level,
    /// An arm of a union is selected.
    Arm,
    /// An optional value is there or not.
    Optional,
    /// A linked list goes on.
    Link,
    /// A piece of memory is taken and given back.
    Allocate,
    /// A piece is taken of which the allocator has no list, and given back.
    AllocateLarge,
    /// A piece is taken and given back of a size of which more are in use than the allocator's list
    /// holds: what that takes beside.
    AllocateMore,
    /// A piece of memory is taken: each byte.
    AllocateByte,
    /// A piece is taken out of memory that is already there.
    Take,
}

impl Symbol {
    /// All of them, in the order in which equations name them.
    pub const ALL: [Self; 35] = [
        Self::Begin,
        Self::Whole,
        Self::Operation,
        Self::Check,
        Self::Left,
        Self::Item,
        Self::Vector,
        Self::Bytewise,
        Self::Procedure,
        Self::Small,
        Self::Member,
        Self::Members,
        Self::Hole,
        Self::Array,
        Self::Counted,
        Self::List,
        Self::Loop,
        Self::Element,
        Self::Copy,
        Self::CopyByte,
        Self::Few,
        Self::Halving,
        Self::Swap,
        Self::SwapByte,
        Self::Call,
        Self::Hand,
        Self::Level,
        Self::Arm,
        Self::Optional,
        Self::Link,
        Self::Allocate,
        Self::AllocateLarge,
        Self::AllocateMore,
        Self::AllocateByte,
        Self::Take,
    ];

    /// Returns its letter, the one of the paper where it has one.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Begin => "B",
            Self::Whole => "w",
            Self::Operation => "e",
            Self::Check => "c",
            Self::Left => "s",
            Self::Item => "L_i",
            Self::Vector => "i",
            Self::Bytewise => "L_b",
            Self::Procedure => "p",
            Self::Small => "v",
            Self::Member => "m",
            Self::Members => "M",
            Self::Hole => "h",
            Self::Array => "A",
            Self::Counted => "n",
            Self::List => "j",
            Self::Loop => "f",
            Self::Element => "r",
            Self::Copy => "α",
            Self::CopyByte => "β",
            Self::Few => "φ",
            Self::Halving => "ψ",
            Self::Swap => "σ",
            Self::SwapByte => "τ",
            Self::Call => "k",
            Self::Hand => "q",
            Self::Level => "d",
            Self::Arm => "u",
            Self::Optional => "o",
            Self::Link => "l",
            Self::Allocate => "a",
            Self::AllocateLarge => "x",
            Self::AllocateMore => "y",
            Self::AllocateByte => "z",
            Self::Take => "t",
        }
    }

    /// Returns its meaning in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Begin => "begin and end a message",
            Self::Whole => "begin and end a message that is an array and no more",
            Self::Operation => "find out about an operation",
            Self::Check => "check for room, or for bytes received",
            Self::Left => "look again how much is left, in a loop over records",
            Self::Item => "move a number whole",
            Self::Vector => "move a number in a loop that compilers make one over vectors",
            Self::Bytewise => "move a number byte by byte",
            Self::Procedure => "call a procedure that moves a number",
            Self::Small => "look at a boolean or a small integer",
            Self::Member => "compare with members of an enum that lie near to each other",
            Self::Members => "look for a value among more than 8 members",
            Self::Hole => "fill or skip a hole",
            Self::Array => "begin an array of a known number",
            Self::Counted => "begin what is counted",
            Self::List => "begin a linked list",
            Self::Loop => "go round in a loop over numbers",
            Self::Element => "go round in a loop over records",
            Self::Copy => "begin to copy a block; b(n) = α + β n",
            Self::CopyByte => "copy a byte of a block",
            Self::Few => "copy up to 128 bytes whose number varies; b(n) = φ + ψ h(n)",
            Self::Halving => "copy less than half as many",
            Self::Swap => "begin to swap a block of numbers; s(n) = σ + τ n",
            Self::SwapByte => "swap a byte of a block of numbers",
            Self::Call => "call the plan of another type",
            Self::Hand => "put values in place that were just made piece by piece",
            Self::Level => "enter and leave a level of a recursive type",
            Self::Arm => "select the arm of a union",
            Self::Optional => "see whether a value is there",
            Self::Link => "go on to the next element of a linked list",
            Self::Allocate => "take and give back a piece of memory; a(n) = a + z n",
            Self::AllocateLarge => "the same, of a piece that the allocator has no list of",
            Self::AllocateMore => "one more of a size than its list holds, beside a",
            Self::AllocateByte => "take a byte of memory",
            Self::Take => "take memory that is already there",
        }
    }

    /// Returns whether it depends on the level of cache that the bytes lie in.
    pub fn is_by_level(self) -> bool {
        let bytes = [Self::CopyByte, Self::SwapByte, Self::AllocateByte];
        bytes.contains(&self)
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.letter())
    }
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Compiled, Self::Machine, Self::Interpreter];

    /// Returns its short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Machine => "machine",
            Self::Interpreter => "interp",
        }
    }
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Encode, Self::Decode];

    /// Returns its short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
