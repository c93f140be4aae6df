//! A resolved interface: the meaning of a `.x` file after name resolution. Every other part of
//! Tenon is built on it; it is independent of the spelling of the interface.
//!
//! Names are the interface's own spelling. Each back end turns them into identifiers of its
//! language in one place of its own. Names of types, constants and programs that stand in a namespace begin with its
//! path: `outer::inner::name`. [`namespace`] and [`local_name`] split them.

mod annotations;
pub mod written;

use std::fmt;
use std::sync::Arc;

pub use annotations::{
    DefaultValue, FieldAnnotations, MemberAnnotations, ProcedureAnnotations, Streams,
    TypeAnnotations, VersionAnnotations,
};

/// A type of [`Schema::types`], by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// A whole interface: RFC 4506 specifications and RFC 5531 section 12 programs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// Named types, in the order of their definition.
    pub types: Vec<TypeDef>,
    /// `const` definitions, in order.
    pub constants: Vec<Constant>,
    /// Programs, in order.
    pub programs: Vec<Program>,
    /// `%` lines, in order, for back ends that write C.
    pub passthrough: Vec<Passthrough>,
}

/// A definition that carries a name.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeDef {
    /// The name in the interface, with its namespace. Nested anonymous types get `outer_field`.
    pub name: String,
    /// The comment in front of it, without its markers; empty if there is none.
    pub doc: String,
    /// The file and line of its definition.
    pub origin: Origin,
    /// What the interface says of it for tools.
    pub annotations: TypeAnnotations,
    /// The kind of the type, with its components.
    pub kind: TypeKind,
}

/// The file and line of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file as the user named it, or as a `#line` names it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The definition stands in an included file rather than in the main one.
    pub included: bool,
}

/// The kinds of named type.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// RFC 4506 section 4.3.
    Enum(Vec<EnumMember>),
    /// RFC 4506 section 4.14. May be empty in dialects.
    Struct(Vec<Field>),
    /// RFC 4506 section 4.15.
    Union(Union),
    /// RFC 4506 section 4.18.
    Typedef(Type),
    /// A name that is used here and declared elsewhere, by a `%#include` for instance.
    External,
}

/// One name of an enum and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumMember {
    /// The name.
    pub name: String,
    /// The comment in front of or behind it.
    pub doc: String,
    /// What the interface says of it for tools.
    pub annotations: MemberAnnotations,
    /// The value; two members may share one.
    pub value: i32,
}

/// A component of a struct or an argument of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The comment in front of or behind it.
    pub doc: String,
    /// What the interface says of it for tools.
    pub annotations: FieldAnnotations,
    /// Its type.
    pub ty: Type,
}

/// A discriminated union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// The name of the discriminant.
    pub discriminant: String,
    /// Its type: [`Type::Int`], [`Type::Uint`], [`Type::Bool`], a small integer, or a named
    /// enum or typedef of these.
    pub discriminant_type: Type,
    /// The arms in order, one per group of `case` labels.
    pub arms: Vec<Arm>,
    /// The default arm: `None` if there is none, `Some(None)` if it is `void`.
    pub default: Option<Option<Field>>,
}

/// An arm of a union, selected by one or more `case` labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// The labels; at least one. No value occurs twice in a union.
    pub cases: Vec<Case>,
    /// The field that the arm holds; `None` is `void`.
    pub field: Option<Field>,
}

/// One `case` label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The label as written: an enum member, `TRUE`, the name of a constant, a number. Names stand without a namespace.
    pub label: String,
    /// Its value; an unsigned discriminant keeps its bits.
    pub value: i32,
}

/// A type as it is used.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// 32-bit integer.
    Int,
    /// 32-bit unsigned integer.
    Uint,
    /// 64-bit integer.
    Hyper,
    /// 64-bit unsigned integer.
    Uhyper,
    /// 16-bit integer in a 32-bit word (dialect).
    Short,
    /// 16-bit unsigned integer in a 32-bit word (dialect).
    Ushort,
    /// 8-bit integer in a 32-bit word (dialect).
    Char,
    /// 8-bit unsigned integer in a 32-bit word (dialect).
    Uchar,
    /// 32-bit floating point.
    Float,
    /// 64-bit floating point.
    Double,
    /// 128-bit floating point, kept as its 16 bytes.
    Quadruple,
    /// A boolean.
    Bool,
    /// Opaque bytes: fixed (RFC 4506 section 4.9) or counted (4.10).
    Opaque(Length),
    /// A string of at most so many bytes (RFC 4506 section 4.11); `u32::MAX` is no bound.
    String(u32),
    /// An array: fixed (RFC 4506 section 4.12) or counted (4.13).
    Array(Box<Type>, Length),
    /// Optional data, `*` (RFC 4506 section 4.19).
    Optional(Box<Type>),
    /// A named type.
    Named(TypeId),
}

/// The number of elements of an array, or of bytes of an opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// Always exactly so many, and no count on the wire.
    Fixed(u32),
    /// A count on the wire of at most so many; `u32::MAX` is no bound.
    Counted(u32),
}

/// A `const`, or an object macro that is a number or string.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// The name.
    pub name: String,
    /// The comment in front of it.
    pub doc: String,
    /// The file and line of its definition.
    pub origin: Origin,
    /// Its value.
    pub value: ConstantValue,
}

/// The value of a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstantValue {
    /// A number; wide enough for every signed and unsigned 64-bit value.
    Number(i128),
    /// A string (dialect).
    Text(String),
    /// An expression of names that are not defined in the interface, as written.
    Unresolved(String),
}

/// A remote program (RFC 5531 section 12).
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The name.
    pub name: String,
    /// The comment in front of it.
    pub doc: String,
    /// The file and line of its definition.
    pub origin: Origin,
    /// The program number.
    pub number: u32,
    /// Its versions, in order.
    pub versions: Vec<Version>,
}

/// A version of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The name.
    pub name: String,
    /// The comment in front of it.
    pub doc: String,
    /// What the interface says of it for tools.
    pub annotations: VersionAnnotations,
    /// The version number.
    pub number: u32,
    /// Its procedures, in order. Procedure 0 may be missing; servers answer it all the same.
    pub procedures: Vec<Procedure>,
}

/// A procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    /// The name.
    pub name: String,
    /// The comment in front of or behind it.
    pub doc: String,
    /// What the interface says of it for tools.
    pub annotations: ProcedureAnnotations,
    /// The procedure number.
    pub number: u32,
    /// Its arguments; `void` is none. An argument without a name is called `arg1`, `arg2`, ...
    pub arguments: Vec<Field>,
    /// Its result; `None` is `void`.
    pub result: Option<Type>,
}

impl Procedure {
    /// Returns the arguments that a call has where streams go by themselves: all but the last, if that is a stream.
    pub fn call_arguments(&self) -> &[Field] {
        match self.arguments.split_last() {
            Some((_, others)) if self.annotations.streams.arguments => others,
            _ => &self.arguments,
        }
    }

    /// Returns the result that a call has where streams go by themselves: none if it is a stream.
    pub fn call_result(&self) -> Option<&Type> {
        let result = self.result.as_ref();
        result.filter(|_| !self.annotations.streams.result)
    }

    /// Returns the last argument, if it is a stream of items of its type.
    pub fn argument_item(&self) -> Option<&Field> {
        let last = self.arguments.last();
        last.filter(|_| self.annotations.streams.arguments)
    }

    /// Returns the type of the result, if it is a stream of items of that.
    pub fn result_item(&self) -> Option<&Type> {
        let result = self.result.as_ref();
        result.filter(|_| self.annotations.streams.result)
    }
}

/// A `%` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passthrough {
    /// The text behind the `%`.
    pub text: String,
    /// Its file and line.
    pub origin: Origin,
    /// The number of definitions (types, constants and programs together) in front of it.
    pub after_definitions: u32,
}

impl Union {
    /// Returns the field of the arm that `discriminant` selects; `None` if it selects no arm.
    pub fn selected(&self, discriminant: i32) -> Option<Option<&Field>> {
        self.selection(discriminant).map(|(_, field)| field)
    }

    /// Returns the position among [`alternatives`](Self::alternatives) of the arm that `discriminant` selects, and its
    /// field; `None` if it selects no arm.
    pub fn selection(&self, discriminant: i32) -> Option<(usize, Option<&Field>)> {
        let selects = |case: &Case| case.value == discriminant;
        let mut arms = self.arms.iter().enumerate();
        match arms.find(|(_, arm)| arm.cases.iter().any(selects)) {
            Some((position, arm)) => Some((position, arm.field.as_ref())),
            None => self
                .default
                .as_ref()
                .map(|field| (self.arms.len(), field.as_ref())),
        }
    }

    /// Returns the field of each arm, in order, and that of the default arm at the end; `None` is `void`.
    pub fn alternatives(&self) -> impl Iterator<Item = Option<&Field>> {
        let arms = self.arms.iter().map(|arm| &arm.field);
        arms.chain(&self.default).map(Option::as_ref)
    }

    /// Returns the [`alternatives`](Self::alternatives) without those that are `void`.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.alternatives().flatten()
    }
}

impl TypeKind {
    /// Returns the types that a definition is made of, except the discriminant of a union.
    pub fn types(&self) -> Vec<&Type> {
        match self {
            Self::Enum(_) | Self::External => Vec::new(),
            Self::Typedef(to) => vec![to],
            Self::Struct(fields) => fields.iter().map(|field| &field.ty).collect(),
            Self::Union(union) => union.fields().map(|field| &field.ty).collect(),
        }
    }
}

impl Type {
    /// Returns the type inside arrays and optional data, or the type itself. Names are not followed.
    pub fn innermost(&self) -> &Type {
        let mut at = self;
        while let Type::Array(inner, _) | Type::Optional(inner) = at {
            at = inner;
        }
        at
    }

    /// Returns the [`innermost`](Self::innermost) type if it has a name.
    pub fn innermost_name(&self) -> Option<TypeId> {
        match self.innermost() {
            Type::Named(id) => Some(*id),
            _ => None,
        }
    }
}

impl Schema {
    /// Returns the definition of `id`.
    ///
    /// # Panics
    /// If `id` is not of this schema.
    pub fn type_def(&self, id: TypeId) -> &TypeDef {
        &self.types[id.0 as usize]
    }

    /// Returns the type called `name`.
    pub fn find_type(&self, name: &str) -> Option<TypeId> {
        let position = self.types.iter().position(|def| def.name == name)?;
        Some(TypeId(position as u32))
    }

    /// Iterates over all uses of types, each with the name of the type or the procedure that it is in.
    pub fn uses(&self) -> impl Iterator<Item = (&str, &Type)> {
        let types = self.types.iter().flat_map(|def| {
            let used = def.kind.types().into_iter();
            used.map(|ty| (def.name.as_str(), ty))
        });
        let versions = self.programs.iter().flat_map(|program| &program.versions);
        let procedures = versions.flat_map(|version| &version.procedures);
        types.chain(procedures.flat_map(|procedure| {
            let arguments = procedure.arguments.iter().map(|field| &field.ty);
            let used = arguments.chain(&procedure.result);
            used.map(|ty| (procedure.name.as_str(), ty))
        }))
    }

    /// Follows typedefs to the type behind them. A typedef that leads to itself, which
    /// the front end rejects, resolves to its own name.
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> &'a Type {
        let mut at = ty;
        for _ in 0..=self.types.len() {
            let Type::Named(id) = at else { return at };
            let TypeKind::Typedef(to) = &self.type_def(*id).kind else {
                return at;
            };
            at = to;
        }
        at
    }
}

/// Returns the path of the namespace of `name`; empty outside of all namespaces.
pub fn namespace(name: &str) -> &str {
    name.rsplit_once("::").map_or("", |(path, _)| path)
}

/// Returns `name` without the path of its namespace.
pub fn local_name(name: &str) -> &str {
    name.rsplit_once("::").map_or(name, |(_, local)| local)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
