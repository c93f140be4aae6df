//! Errors of interfaces that have no stubs in C.

use std::collections::BTreeSet;
use std::fmt;

use tenon_plan::PlanError;
use tenon_schema::{ConstantValue, Origin, Procedure, Schema, Type, TypeKind};

use super::super::NameCollision;
use super::Stubs;
use super::macros::{self, StubFileKind};

/// The reason why there are no stubs for an interface.
#[derive(Debug)]
pub enum StubErrorKind {
    /// It has types that no message can hold.
    Plan(PlanError),
    /// A name begins as those of Tenon's header do, so that no end makes it another.
    Ours(String),
    /// A name that becomes a macro means something else as well.
    Defined(String),
    /// Two things would have one name.
    Twice(String),
    /// A union contains an array of itself in place, in this arm.
    InPlace(String, String),
    /// Two things would have one name, as C has no namespaces.
    SameName(NameCollision),
    /// C has no quadruple precision.
    Quadruple(String),
}

/// The error that there are no stubs for an interface, and the definition that causes it.
#[derive(Debug)]
pub struct Refusal {
    /// The reason.
    pub why: StubErrorKind,
    /// The definition that causes it.
    pub origin: Option<Origin>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for StubErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => write!(f, "{error}"),
            Self::Ours(name) => write!(f, "`{name}` begins as the names of `tenon.h` do"),
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

impl std::error::Error for StubErrorKind {}

impl StubErrorKind {
    /// Returns advice on a remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Plan(_) => "no value of it fits into a message",
            Self::Ours(_) => "rename it",
            Self::Defined(_) => "rename it, or what else is called so: macros of C know no scope",
            Self::Twice(_) | Self::SameName(_) => "rename one of them: in C they are in one scope",
            Self::InPlace(..) => "use a counted array (`<>`), or a struct with a field for each",
            Self::Quadruple(_) => "write `opaque x[16]` for its bytes",
        }
    }

    /// The definition in `schema` that causes it.
    pub(super) fn origin(&self, schema: &Schema) -> Option<Origin> {
        let name = match self {
            Self::Plan(PlanError::Lower(error)) => error.name(),
            Self::Plan(PlanError::Verify(_)) => return None,
            Self::SameName(NameCollision(_, other, _)) => other,
            Self::InPlace(name, _) => name,
            Self::Defined(name) | Self::Twice(name) => name,
            Self::Ours(name) | Self::Quadruple(name) => name,
        };
        // Names that stubs derive from a name begin with it.
        let is_it = |known: &str| known == name;
        let is_part = |known: &str| {
            name.strip_prefix(known)
                .is_some_and(|rest| rest.starts_with('_'))
        };
        origin_of(schema, &is_it).or_else(|| origin_of(schema, &is_part))
    }
}

/// The last definition that has a name, or that something in it has.
fn origin_of(schema: &Schema, is_it: &dyn Fn(&str) -> bool) -> Option<Origin> {
    let is_in_type = |kind: &TypeKind| match kind {
        TypeKind::Enum(members) => members.iter().any(|member| is_it(&member.name)),
        kind => fields(kind).into_iter().any(is_it),
    };
    let types = schema.types.iter();
    let types = types.filter(|def| is_it(&def.name) || is_in_type(&def.kind));
    let constants = schema
        .constants
        .iter()
        .filter(|constant| is_it(&constant.name));
    let programs = schema.programs.iter().filter(|program| {
        let versions = &program.versions;
        let mut procedures = versions.iter().flat_map(|version| &version.procedures);
        let has_version = versions.iter().any(|version| is_it(&version.name));
        let is_there = |procedure: &Procedure| {
            let routine = procedure.name.to_lowercase();
            let mut arguments = procedure.arguments.iter();
            is_it(&procedure.name) || is_it(&routine) || arguments.any(|field| is_it(&field.name))
        };
        is_it(&program.name) || has_version || procedures.any(is_there)
    });
    let origins = types.map(|def| &def.origin);
    let origins = origins.chain(constants.map(|constant| &constant.origin));
    let origins = origins.chain(programs.map(|program| &program.origin));
    origins.max_by_key(|origin| origin.line).cloned()
}

/// Refuses names and types that C cannot have.
pub fn check(schema: &Schema) -> Result<(), StubErrorKind> {
    let is_ours =
        |name: &&str| *name == "tenon" || name.starts_with("tenon_") || name.starts_with("TENON_");
    let globals = declared(schema).chain(defined(schema));
    if let Some(name) = globals.chain(parts(schema)).find(is_ours) {
        return Err(StubErrorKind::Ours(name.to_owned()));
    }
    let is_quadruple = |(_, ty): &(&str, &Type)| *ty.innermost() == Type::Quadruple;
    match schema.uses().find(is_quadruple) {
        Some((name, _)) => Err(StubErrorKind::Quadruple(name.to_owned())),
        None => Ok(()),
    }
}

/// Refuses names that stubs need and the interface or other stubs have.
pub fn check_made(schema: &Schema, made: &[String]) -> Result<(), StubErrorKind> {
    let mut taken = BTreeSet::new();
    if let Some(name) = declared(schema).find(|name| !taken.insert(*name)) {
        return Err(StubErrorKind::Twice(name.to_owned()));
    }
    taken.extend(defined(schema));
    match made.iter().find(|name| !taken.insert(name)) {
        Some(name) => Err(StubErrorKind::Twice(name.clone())),
        None => Ok(()),
    }
}

/// Refuses names that become macros and that the files have for something else as well: for a parameter, a field,
/// a variable, a function of C's library. The lines in `passed` are the interface's own C.
pub fn check_defined(
    schema: &Schema,
    stubs: &Stubs,
    passed: &BTreeSet<&str>,
) -> Result<(), StubErrorKind> {
    let constants: BTreeSet<&str> = constants(schema).collect();
    if let Some(name) = numbered(schema).find(|name| constants.contains(name)) {
        return Err(StubErrorKind::Twice(name.to_owned()));
    }
    let defined: BTreeSet<&str> = defined(schema).collect();
    let misread = |text, file| macros::misread(&defined, text, passed, file);
    match misread(&stubs.header, StubFileKind::Header)
        .or_else(|| misread(&stubs.source, StubFileKind::Source))
    {
        Some(name) => Err(StubErrorKind::Defined(name.to_owned())),
        None => Ok(()),
    }
}

/// The names of types and of members of enums.
fn declared(schema: &Schema) -> impl Iterator<Item = &str> {
    types(schema).chain(members(schema))
}

/// The names of fields, of discriminants and of parameters.
fn parts(schema: &Schema) -> impl Iterator<Item = &str> {
    let fields = schema.types.iter().flat_map(|def| fields(&def.kind));
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    let procedures = versions.flat_map(|version| &version.procedures);
    let arguments = procedures.flat_map(|procedure| &procedure.arguments);
    fields.chain(arguments.map(|field| field.name.as_str()))
}

fn fields(kind: &TypeKind) -> Vec<&str> {
    match kind {
        TypeKind::Struct(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
        TypeKind::Union(union) => {
            let fields = union.fields().map(|field| field.name.as_str());
            fields.chain([union.discriminant.as_str()]).collect()
        }
        TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => Vec::new(),
    }
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
