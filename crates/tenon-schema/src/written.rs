//! The spelling of an interface, beside its meaning: a back end for C needs it so that names
//! and numbers of its output are those that the user wrote.
//!
//! A [`Schema`](crate::Schema) says that a field is an array of at most 16 numbers of 32 bits; only this
//! module says that they are called `long` and that their bound is `MAXNUMBERS`.
//!
//! # Numbers that only C knows
//! rpcgen copies names of constants that the interface does not define, as the C compiler behind it may know them:
//! from a `%#include`, or from a Makefile. An interface that is read for rpcgen's C has placeholders in the
//! schema instead: a fixed length is 0, a bound is none, and a label of a union or the number of a procedure,
//! version or program is one that no other has. A back end for C writes the spelling of this module instead, and never
//! the placeholder; no other back end gets such a schema.

use crate::{Passthrough, TypeId};

/// The spelling of an interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Written {
    /// The parts of the interface, in the order of the text. A type that is defined inline stands
    /// in front of the definition that uses it.
    pub items: Vec<Item>,
    /// One per [`Schema::types`](crate::Schema::types), in the same order.
    pub types: Vec<WrittenType>,
    /// One per procedure, in the order of the interface.
    pub procedures: Vec<WrittenProcedure>,
    /// One per program, in the order of the interface.
    pub programs: Vec<WrittenProgram>,
}

/// A part of the outermost level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A `%` line, in front of the definition that it stands in.
    Passthrough(Passthrough),
    /// A `const`. Macros are not among them: the preprocessor has expanded them.
    Constant {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A type.
    Type(TypeId),
    /// A program, by its position.
    Program(usize),
}

/// The spelling of the parts of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenType {
    /// The value of each member, where one is given.
    Enum(Vec<Option<String>>),
    /// The spelling of each field.
    Struct(Vec<Spelling>),
    /// A union.
    Union(WrittenUnion),
    /// The spelling of the type that the name stands for.
    Typedef(Spelling),
    /// It is defined elsewhere.
    External,
}

/// The spelling of the parts of a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenUnion {
    /// The discriminant.
    pub discriminant: Spelling,
    /// The field of each arm; `None` is `void`.
    pub arms: Vec<Option<Spelling>>,
    /// The labels of each arm.
    pub labels: Vec<Vec<String>>,
    /// The field of the default arm, if there is one.
    pub default: Option<Option<Spelling>>,
}

/// The words of a type as it is used. Its [`Type`](crate::Type) says whether it is an array
/// or a pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spelling {
    /// `struct`, `union` or `enum` in front of the name.
    pub tag: Option<String>,
    /// The words of the innermost type, with one space between them: `unsigned long`, `string`.
    pub base: String,
    /// The text between `[` and `]` or `<` and `>`.
    pub bound: Option<String>,
    /// C alone knows the value of `bound`.
    pub foreign: bool,
}

/// The spelling of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProcedure {
    /// Its number.
    pub number: String,
    /// Its arguments.
    pub arguments: Vec<Spelling>,
    /// Its result; `None` is `void`.
    pub result: Option<Spelling>,
}

/// The spelling of the numbers of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProgram {
    /// The program number.
    pub number: String,
    /// The version numbers.
    pub versions: Vec<String>,
}
