//! The syntax tree: an interface as it is written, names not looked up yet.

use tenon_schema::Type;

use crate::source::Span;

/// A name and where it is written. One that is looked up may be a path: `outer::name`, `::name`.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

/// A definition of the outermost level.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The path of the namespace that it stands in, such as `outer::inner`; empty outside of all.
    pub namespace: String,
    /// Its name in the namespace; behind `resolve::namespaces` its whole path.
    pub name: Name,
    pub doc: String,
    /// The position of the token it starts at, which orders it among macros and `%` lines.
    pub position: usize,
    /// The position of the token behind it.
    pub end: usize,
    pub kind: DefinitionKind,
}

#[derive(Debug)]
pub(crate) enum DefinitionKind {
    Constant(ConstantExpression),
    Type(Body),
    Typedef(TypeUse),
    Program(Program),
}

/// What a constant is made of.
#[derive(Debug)]
pub(crate) struct ConstantExpression {
    pub value: Expression,
    /// It stands in a `#define`; it is no constant unless it has a value.
    pub from_macro: bool,
}

/// The inside of a type that is defined where it stands.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Enum(Vec<Member>),
    Struct(Vec<Declaration>),
    Union(Box<Union>),
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub name: Name,
    pub doc: String,
    pub value: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) struct Union {
    pub discriminant: Declaration,
    pub arms: Vec<Arm>,
    /// `Some(None)` is `default: void`.
    pub default: Option<Option<Declaration>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub cases: Vec<Expression>,
    /// `None` is `void`.
    pub field: Option<Declaration>,
}

/// A type and the name of what has it.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub name: Name,
    pub doc: String,
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
    Named(Name),
    /// Defined on the spot; the name is the tag behind `struct`, `union` or `enum`.
    Inline(Option<Name>, Box<Body>),
    Opaque(Bound),
    String(Option<Expression>),
    Array(Box<TypeUse>, Bound),
    Optional(Box<TypeUse>),
}

/// `[n]`, `<n>` or `<>`.
#[derive(Debug, Clone)]
pub(crate) enum Bound {
    Fixed(Expression),
    Counted(Option<Expression>),
}

impl Bound {
    /// The number between the brackets, if there is one.
    pub(crate) fn number(&self) -> Option<&Expression> {
        match self {
            Bound::Fixed(length) => Some(length),
            Bound::Counted(max) => max.as_ref(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Program {
    pub number: Expression,
    pub versions: Vec<Version>,
}

#[derive(Debug)]
pub(crate) struct Version {
    pub name: Name,
    pub doc: String,
    pub number: Expression,
    pub procedures: Vec<Procedure>,
}

#[derive(Debug)]
pub(crate) struct Procedure {
    pub name: Name,
    pub doc: String,
    pub number: Expression,
    pub arguments: Vec<Argument>,
    /// `None` is `void`.
    pub result: Option<TypeUse>,
    /// Names of parameters that only come back. They are among the arguments until the types are
    /// flattened, and then parts of the result.
    pub outputs: Vec<Name>,
}

#[derive(Debug)]
pub(crate) struct Argument {
    pub direction: Direction,
    pub name: Option<Name>,
    pub ty: TypeUse,
}

/// Which way a parameter travels. RFC 5531 knows arguments only; the rest is dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// With the call.
    In,
    /// With the reply.
    Out,
    /// With both.
    InOut,
}

/// A constant expression. RFC 4506 knows numbers and names only; the rest is dialect.
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
    /// The expression that is but a name, in its place.
    pub(crate) fn named(&self, name: &str) -> Expression {
        Expression {
            span: self.span,
            kind: ExpressionKind::Name(name.to_owned()),
        }
    }
}
