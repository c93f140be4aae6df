//! What cannot be written in C, and why.

use std::collections::BTreeSet;
use std::fmt;

use tenon_plan::PlanError;
use tenon_plan::links::is_link;
use tenon_schema::{ConstantValue, Schema, Type, TypeId, TypeKind};

use super::super::SameName;
use super::Stubs;
use super::library;
use super::macros::{self, File};
use super::messages::OWN_PARAMETERS;

/// Why there are no stubs for an interface.
#[derive(Debug)]
pub enum Refused {
    /// It has types that no message can hold.
    Plan(PlanError),
    /// A name of the interface is a word of C, or begins as those of Tenon do.
    Word(String),
    /// A type or a member of an enum has the name of something of C's library.
    Library(String),
    /// A type or a member of an enum has the name of a variable where stubs need it.
    Variable(String),
    /// A name that becomes a macro means something else as well.
    Defined(String),
    /// Two things would have one name.
    Twice(String),
    /// A union contains an array of itself in place, in this arm.
    InPlace(String, String),
    /// Two things would have one name, as C has no namespaces.
    SameName(SameName),
    /// C has no quadruple precision.
    Quadruple(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => write!(f, "{error}"),
            Self::Word(name) => write!(f, "`{name}` is a word of C or of Tenon's header"),
            Self::Library(name) => write!(f, "`{name}` is a name of C's library"),
            Self::Variable(name) => write!(
                f,
                "`{name}` is a variable of C's stubs where they need what the interface calls so"
            ),
            Self::Defined(name) => write!(
                f,
                "`{name}` would be a number wherever C's stubs have that name for something else"
            ),
            Self::Twice(name) => write!(f, "two things would be called `{name}` in C"),
            Self::InPlace(union, arm) => write!(
                f,
                "{union}.{arm}: C has no arrays of `{union}` within itself; use a counted array (`<>`) or a struct with \
                 a field for each"
            ),
            Self::SameName(error) => write!(f, "{error}"),
            Self::Quadruple(name) => write!(f, "{name}: C has no type for `quadruple`"),
        }
    }
}

impl std::error::Error for Refused {}

/// The words of C, and of the headers that stubs include.
const WORDS: [&str; 61] = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Bool",
    "_Complex",
    "_Generic",
    "_Imaginary",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "bool",
    "true",
    "false",
    "size_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "NULL",
    "SIZE_MAX",
    "asm",
    "errno",
    "defined",
];

/// Variables of codecs, where types are named too.
const BESIDE_TYPES: [&str; 9] = ["in", "out", "it", "from", "value", "swapped", "i", "j", "k"];

/// The one of them that numbers become enums from.
const BESIDE_ENUMS: &str = "number";

/// Variables of functions that go along linked lists, where the type of the links is named too.
const BESIDE_LINKS: [&str; 2] = ["at", "count"];

/// Variables of codecs, where members of enums are named too.
const BESIDE_MEMBERS: [&str; 8] = [
    "in", "out", "it", "from", "to", "value", "swapped", "number",
];

/// Refuses names and types that C does not have.
pub fn check(schema: &Schema) -> Result<(), Refused> {
    let is_quadruple = |(_, ty): &(&str, &Type)| *ty.innermost() == Type::Quadruple;
    if let Some((name, _)) = schema.uses().find(is_quadruple) {
        return Err(Refused::Quadruple(name.to_owned()));
    }
    let is_ours =
        |name: &str| name == "tenon" || name.starts_with("tenon_") || name.starts_with("TENON_");
    let is_word = |name: &&str| WORDS.contains(name) || is_ours(name);
    if let Some(name) = names(schema).find(is_word) {
        return Err(Refused::Word(name.to_owned()));
    }
    let mut declared = declared(schema).filter(|name| library::has(name));
    let mut placed = names(schema).filter(|name| library::defines(name));
    if let Some(name) = declared.next().or_else(|| placed.next()) {
        return Err(Refused::Library(name.to_owned()));
    }
    match hidden(schema) {
        Some(name) => Err(Refused::Variable(name.to_owned())),
        None => Ok(()),
    }
}

/// A type or a member that stubs could not name, because a variable has its name there.
fn hidden(schema: &Schema) -> Option<&str> {
    let has_procedures = !schema.programs.is_empty();
    let is_hidden = |name: &&str| {
        BESIDE_TYPES.contains(name) || (has_procedures && OWN_PARAMETERS.contains(name))
    };
    let hidden = types(schema).find(is_hidden);
    let hidden = hidden.or_else(|| hidden_by_kind(schema));
    hidden.or_else(|| members(schema).find(|name| BESIDE_MEMBERS.contains(name)))
}

/// A type that has the name of a variable of what is made for its kind alone.
fn hidden_by_kind(schema: &Schema) -> Option<&str> {
    let is_enum = |id| match schema.resolve(&Type::Named(id)) {
        Type::Named(id) => matches!(schema.type_def(*id).kind, TypeKind::Enum(_)),
        _ => false,
    };
    let names = types(schema).zip((0..).map(TypeId));
    let mut hidden = names.filter(|(name, id)| {
        (*name == BESIDE_ENUMS && is_enum(*id))
            || (BESIDE_LINKS.contains(name) && is_link(schema, *id))
    });
    hidden.next().map(|(name, _)| name)
}

/// Refuses names that stubs need and the interface or other stubs have.
pub fn check_made(schema: &Schema, made: &[String]) -> Result<(), Refused> {
    let mut taken = BTreeSet::new();
    if let Some(name) = declared(schema).find(|name| !taken.insert(*name)) {
        return Err(Refused::Twice(name.to_owned()));
    }
    taken.extend(defined(schema));
    match made.iter().find(|name| !taken.insert(name)) {
        Some(name) => Err(Refused::Twice(name.clone())),
        None => Ok(()),
    }
}

/// Refuses names that become macros and that the files have for something else as well: for a parameter, a field,
/// a variable, a function of C's library. The lines in `passed` are the interface's own C.
pub fn check_defined(
    schema: &Schema,
    stubs: &Stubs,
    passed: &BTreeSet<&str>,
) -> Result<(), Refused> {
    let constants: BTreeSet<&str> = constants(schema).collect();
    if let Some(name) = numbered(schema).find(|name| constants.contains(name)) {
        return Err(Refused::Twice(name.to_owned()));
    }
    let defined: BTreeSet<&str> = defined(schema).collect();
    let misread = |text, file| macros::misread(&defined, text, passed, file);
    match misread(&stubs.header, File::Header).or_else(|| misread(&stubs.source, File::Source)) {
        Some(name) => Err(Refused::Defined(name.to_owned())),
        None => Ok(()),
    }
}

/// Every name of the interface that C gets to see.
fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    let fields = schema.types.iter().flat_map(|def| fields(&def.kind));
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let procedures = versions.flat_map(|version| &version.procedures);
    let arguments = procedures.flat_map(|procedure| &procedure.arguments);
    let names = fields.chain(arguments.map(|field| field.name.as_str()));
    globals(schema).chain(names)
}

/// The names of types, constants, programs and so on.
fn globals(schema: &Schema) -> impl Iterator<Item = &str> {
    declared(schema).chain(defined(schema))
}

/// The names of types and of members of enums.
fn declared(schema: &Schema) -> impl Iterator<Item = &str> {
    types(schema).chain(members(schema))
}

fn types(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.types.iter().map(|def| def.name.as_str())
}

fn members(schema: &Schema) -> impl Iterator<Item = &str> {
    let members = schema.types.iter().flat_map(|def| match &def.kind {
        TypeKind::Enum(members) => members.as_slice(),
        _ => &[],
    });
    members.map(|member| member.name.as_str())
}

/// The names that become macros.
fn defined(schema: &Schema) -> impl Iterator<Item = &str> {
    constants(schema).chain(numbered(schema))
}

fn constants(schema: &Schema) -> impl Iterator<Item = &str> {
    let constants = schema.constants.iter();
    let known = constants.filter(|it| !matches!(it.value, ConstantValue::Unresolved(_)));
    known.map(|constant| constant.name.as_str())
}

/// The names of programs, versions and procedures.
fn numbered(schema: &Schema) -> impl Iterator<Item = &str> {
    let programs = schema.programs.iter().map(|program| program.name.as_str());
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let procedures = versions.clone().flat_map(|version| &version.procedures);
    programs
        .chain(versions.map(|version| version.name.as_str()))
        .chain(procedures.map(|procedure| procedure.name.as_str()))
}

fn fields(kind: &TypeKind) -> Vec<&str> {
    match kind {
        TypeKind::Enum(_) | TypeKind::External | TypeKind::Typedef(_) => Vec::new(),
        TypeKind::Struct(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
        TypeKind::Union(union) => {
            let names = union.fields().map(|field| field.name.as_str());
            names.chain([union.discriminant.as_str()]).collect()
        }
    }
}
