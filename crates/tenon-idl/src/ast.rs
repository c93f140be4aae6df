//! The syntax tree: an interface as it is written, before names are resolved.

use tenon_schema::Type;

use crate::source::Span;

/// A name with its span. One that refers to a definition may be a path: `outer::name`, `::name`.
#[derive(Debug, Clone)]
pub(crate) struct SpannedName {
    pub text: String,
    pub span: Span,
}

/// A definition of the outermost level.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The path of its namespace, such as `outer::inner`; empty outside of all.
    pub namespace: String,
    /// Its name in the namespace; after `resolve::namespaces` its whole path.
    pub name: SpannedName,
    pub doc: String,
    pub annotations: Vec<Annotation>,
    /// The position of the token it starts at, which orders it among macros and `%` lines.
    pub position: usize,
    /// The position of the token behind it.
    pub end: usize,
    pub kind: DefinitionKind,
}

#[derive(Debug)]
pub(crate) enum DefinitionKind {
    Constant(ConstantDef),
    Type(TypeBody),
    Typedef(TypeUse),
    Program(ProgramDef),
}

/// The definition of a constant.
#[derive(Debug)]
pub(crate) struct ConstantDef {
    pub value: Expression,
    /// It comes from a `#define`; it is a constant only if it has a value.
    pub from_macro: bool,
}

/// The body of an enum, struct or union.
#[derive(Debug, Clone)]
pub(crate) enum TypeBody {
    Enum(Vec<EnumeratorDef>),
    Struct(Vec<Declaration>),
    Union(Box<UnionBody>),
}

#[derive(Debug, Clone)]
pub(crate) struct EnumeratorDef {
    pub name: SpannedName,
    pub doc: String,
    pub annotations: Vec<Annotation>,
    pub value: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) struct UnionBody {
    pub discriminant: Declaration,
    pub arms: Vec<UnionArm>,
    /// `Some(None)` is `default: void`.
    pub default: Option<Option<Declaration>>,
}

#[derive(Debug, Clone)]
pub(crate) struct UnionArm {
    pub cases: Vec<Expression>,
    /// `None` is `void`.
    pub field: Option<Declaration>,
}

/// A name with its type.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub name: SpannedName,
    pub doc: String,
    pub annotations: Vec<Annotation>,
    pub ty: TypeUse,
}

/// A type as it is used.
#[derive(Debug, Clone)]
pub(crate) struct TypeUse {
    pub span: Span,
    pub kind: TypeUseKind,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeUseKind {
    /// A keyword of the language.
    Builtin(Type),
    /// A name, with or without `struct`, `union` or `enum` in front.
    Named(SpannedName),
    /// Defined inline; the name is the tag behind `struct`, `union` or `enum`.
    Inline(Option<SpannedName>, Box<TypeBody>),
    Opaque(LengthBound),
    String(Option<Expression>),
    Array(Box<TypeUse>, LengthBound),
    Optional(Box<TypeUse>),
}

/// `[n]`, `<n>` or `<>`.
#[derive(Debug, Clone)]
pub(crate) enum LengthBound {
    Fixed(Expression),
    Counted(Option<Expression>),
}

impl LengthBound {
    /// Returns the number between the brackets, if there is one.
    pub(crate) fn number(&self) -> Option<&Expression> {
        match self {
            LengthBound::Fixed(length) => Some(length),
            LengthBound::Counted(max) => max.as_ref(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ProgramDef {
    pub number: Expression,
    pub versions: Vec<VersionDef>,
}

#[derive(Debug)]
pub(crate) struct VersionDef {
    pub name: SpannedName,
    pub doc: String,
    pub annotations: Vec<Annotation>,
    pub number: Expression,
    pub procedures: Vec<ProcedureDef>,
}

#[derive(Debug)]
pub(crate) struct ProcedureDef {
    pub name: SpannedName,
    pub doc: String,
    pub annotations: Vec<Annotation>,
    pub number: Expression,
    pub arguments: Vec<ProcedureParameter>,
    /// `None` is `void`.
    pub result: Option<TypeUse>,
    /// Names of `out` parameters. They are among the arguments until the types are
    /// flattened, and then parts of the result.
    pub outputs: Vec<SpannedName>,
}

#[derive(Debug)]
pub(crate) struct ProcedureParameter {
    pub direction: ParameterDirection,
    pub name: Option<SpannedName>,
    pub ty: TypeUse,
}

/// The direction in which a parameter is passed. RFC 5531 has arguments only; the rest is dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterDirection {
    /// With the call.
    In,
    /// With the reply.
    Out,
    /// With both.
    InOut,
}

/// A statement in a comment of the form `/*@ ... */`.
#[derive(Debug, Clone)]
pub(crate) struct Annotation {
    /// The span of its word.
    pub span: Span,
    pub kind: AnnotationKind,
}

#[derive(Debug, Clone)]
pub(crate) enum AnnotationKind {
    Idempotent,
    Raises(Vec<SpannedName>),
    /// Of the arguments, of the result.
    Stream(bool, bool),
    /// The reason, which may be empty.
    Deprecated(String),
    Sensitive,
    Alias(Vec<SpannedName>),
    /// A member of an enum is one; a field has one.
    Default(Option<Expression>),
}

/// A constant expression. RFC 4506 has numbers and names only; the rest is dialect.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub span: Span,
    pub kind: ExpressionKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ExpressionKind {
    Number(i128),
    /// A number of more than 127 bits.
    Huge,
    Text(String),
    Name(String),
    Unary(&'static str, Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Returns the expression that consists of `name`, with the span of this one.
    pub(crate) fn named(&self, name: &str) -> Expression {
        Expression {
            span: self.span,
            kind: ExpressionKind::Name(name.to_owned()),
        }
    }
}
