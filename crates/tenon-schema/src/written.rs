//! How an interface is written, beside what it means: what a back end of C needs so that names
//! and numbers of its output are those that the user wrote.
//!
//! A [`Schema`](crate::Schema) says that a field is an array of at most 16 numbers of 32 bits; only here is
//! said that they are called `long` and that their bound is `MAXNUMBERS`.
//!
//! # Numbers that only C knows
//! rpcgen copies names of constants that the interface does not define, as the C compiler behind it may know them:
//! from a `%#include`, or from a Makefile. An interface that is read for rpcgen's C has placeholders in the
//! schema in their places: a fixed length is 0, a bound is none, and a label of a union or the number of a procedure,
//! version or program is one that no other has. A back end of C writes what is written here instead, and never
//! the placeholder; no other back end sees such a schema.

use crate::{Passthrough, TypeId};

/// How an interface is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Written {
    /// What it consists of, in the order of the text. Types that are defined where they are used stand
    /// in front of what uses them.
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
    /// A `const`. Macros of the preprocessor are no part of what is written: it has used them up.
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

/// How the parts of a type are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenType {
    /// The value of each member, where one is given.
    Enum(Vec<Option<String>>),
    /// Of each field.
    Struct(Vec<Spelling>),
    /// A union.
    Union(WrittenUnion),
    /// Of what the name stands for.
    Typedef(Spelling),
    /// It is defined elsewhere.
    External,
}

/// How the parts of a union are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenUnion {
    /// The discriminant.
    pub discriminant: Spelling,
    /// What each arm holds; `None` is `void`.
    pub arms: Vec<Option<Spelling>>,
    /// The labels of each arm.
    pub labels: Vec<Vec<String>>,
    /// What the default arm holds, if there is one.
    pub default: Option<Option<Spelling>>,
}

/// The words of a type as it is used. Whether it is an array or a pointer, its
/// [`Type`](crate::Type) says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spelling {
    /// `struct`, `union` or `enum` in front of the name.
    pub tag: Option<String>,
    /// The words of the innermost type, with one space between them: `unsigned long`, `string`.
    pub base: String,
    /// What stands between `[` and `]` or `<` and `>`.
    pub bound: Option<String>,
    /// C alone knows the value of `bound`.
    pub foreign: bool,
}

/// How a procedure is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProcedure {
    /// Its number.
    pub number: String,
    /// Its arguments.
    pub arguments: Vec<Spelling>,
    /// Its result; `None` is `void`.
    pub result: Option<Spelling>,
}

/// How the numbers of a program are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProgram {
    /// Its own.
    pub number: String,
    /// Those of its versions.
    pub versions: Vec<String>,
}
