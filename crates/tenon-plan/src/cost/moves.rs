//! The ways of moving a single number that are priced.

/// The way in which stubs move a single number: the design choices for stubs in the study of Chung et al. that are no
/// matter of operations. The default is the fast way, and the only one that stubs have outside of the study.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Moves {
    /// The code that moves it.
    pub by: Mover,
    /// The unit that is moved at once.
    pub unit: Unit,
}

/// The code that moves a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mover {
    /// The stub itself.
    #[default]
    Inline,
    /// A procedure that is called through a pointer, so that a representation may be chosen when a
    /// program is bound.
    Procedure,
}

/// The unit that is moved at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The number.
    #[default]
    Item,
    /// Each of its bytes.
    Byte,
}
