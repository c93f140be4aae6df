//! Values of types that are known only at run time.

use bstr::BString;

/// A value of any XDR type (RFC 4506 section 4). Which variant a type has is fixed:
///
/// | type | variant |
/// | --- | --- |
/// | `int`, `unsigned hyper`, `short`, `float`, ... | the one of the same name |
/// | `opaque x[n]`, `opaque x<n>` | [`Opaque`](Value::Opaque) |
/// | `string` | [`String`](Value::String) |
/// | `T x[n]`, `T x<n>`, and a linked list | [`Array`](Value::Array) |
/// | a struct, and the arguments of a procedure | [`Struct`](Value::Struct), without the link |
/// | `T *` | [`Optional`](Value::Optional) |
///
/// Linked lists are sequences, so that only types that are truly recursive nest, and their
/// depth is limited wherever a value comes in.
///
/// Two values are equal if their bytes on the wire are: floating-point numbers are compared by
/// their bits.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Nothing: no result, or an arm that holds nothing.
    #[default]
    Void,
    /// 32-bit integer.
    Int(i32),
    /// 32-bit unsigned integer.
    Uint(u32),
    /// 64-bit integer.
    Hyper(i64),
    /// 64-bit unsigned integer.
    Uhyper(u64),
    /// 16-bit integer.
    Short(i16),
    /// 16-bit unsigned integer.
    Ushort(u16),
    /// 8-bit integer.
    Char(i8),
    /// 8-bit unsigned integer.
    Uchar(u8),
    /// 32-bit floating point.
    Float(f32),
    /// 64-bit floating point.
    Double(f64),
    /// 128-bit floating point, as on the wire.
    Quadruple([u8; 16]),
    /// A boolean.
    Bool(bool),
    /// A value of an enum.
    Enum(i32),
    /// Bytes.
    Opaque(Vec<u8>),
    /// Text, which need not be UTF-8.
    String(BString),
    /// Elements.
    Array(Vec<Value>),
    /// Fields in the order of the interface.
    Struct(Vec<Value>),
    /// An arm.
    Union(Box<Union>),
    /// A value or none.
    Optional(Option<Box<Value>>),
}

/// A value of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// The discriminant; an unsigned one keeps its bits, a boolean is 0 or 1.
    pub discriminant: i32,
    /// Value of the arm; [`Value::Void`] for nothing.
    pub value: Value,
}

// A decoder pays so much for each element: a word of four bytes must pay for a struct of one.
const _: () = assert!(size_of::<Value>() <= 32);

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Void, Self::Void) => true,
            (Self::Int(a), Self::Int(b)) | (Self::Enum(a), Self::Enum(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Hyper(a), Self::Hyper(b)) => a == b,
            (Self::Uhyper(a), Self::Uhyper(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Ushort(a), Self::Ushort(b)) => a == b,
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::Uchar(a), Self::Uchar(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Quadruple(a), Self::Quadruple(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) | (Self::Struct(a), Self::Struct(b)) => a == b,
            (Self::Union(a), Self::Union(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Value {
    /// Makes a value of a union.
    pub fn union(discriminant: i32, value: Self) -> Self {
        Self::Union(Box::new(Union {
            discriminant,
            value,
        }))
    }

    /// Makes optional data that is present.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Box::new(value)))
    }
}
