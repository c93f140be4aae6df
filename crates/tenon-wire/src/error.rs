//! Errors of encoding and decoding, by blame: a [`DecodeError`] is the sender's fault, an
//! [`EncodeError`] the caller's own.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// The sender's bytes are not a value of the expected type. What it points to says why: so it is
/// no larger than a pointer, and results that hold one travel in registers.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<DecodeFault>);

/// Why bytes are not a value of the expected type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeFault {
    /// The kind of the error.
    pub kind: DecodeErrorKind,
    /// Position of the error: bytes from the start of what was being decoded.
    pub offset: usize,
    /// In which field, as `type.field`; empty when no field was known.
    pub field: Cow<'static, str>,
}

/// The kinds of errors in bytes received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The item needs more bytes than are there.
    Truncated {
        /// Bytes the item needs.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// A counted item is longer than the interface allows.
    TooLong {
        /// Length received.
        length: u32,
        /// Bound in the interface.
        bound: u32,
    },
    /// No member of the enum or case of the union has this value.
    UnknownValue(i32),
    /// A boolean that is neither 0 nor 1 (strict mode; RFC 4506 section 4.4).
    NotABoolean(u32),
    /// Padding that is not zero (strict mode; RFC 4506 section 3).
    Padding,
    /// A word that is out of the range of its small integer (`short`, `char`; strict mode).
    OutOfRange(u32),
    /// Bytes are left behind the value (strict mode).
    Trailing(usize),
    /// The value nests deeper than [`Limits::depth`](crate::Limits).
    TooDeep,
    /// The value would take more memory than its bytes pay for; see
    /// [`Limits::memory_per_byte`](crate::Limits).
    TooMuchMemory,
    /// A list that must hold at least one element is empty, or a list has no end.
    BadList,
    /// A string is not UTF-8 (stubs with strings of type `String` only).
    NotUtf8,
    /// The type is declared outside the interface, so that nothing is known of its bytes
    /// (dynamic values only).
    External,
    /// Values of the type have no place in memory: they are too large, or without an end (dynamic
    /// values only).
    Unholdable,
    /// A string holds a NUL, behind which C would not see it (values in C's layout only).
    HoldsNul,
    /// The system gave no memory (values in C's layout only).
    NoMemory,
}

/// The value cannot be put on the wire. What it points to says why.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodeError(Box<EncodeFault>);

/// Why a value cannot be put on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeFault {
    /// The kind of the error.
    pub kind: EncodeErrorKind,
    /// In which field, as `type.field`; empty when no field was known.
    pub field: Cow<'static, str>,
}

/// The kinds of errors in a value to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// A counted item is longer than the interface allows.
    TooLong {
        /// Length of the value.
        length: usize,
        /// Bound in the interface.
        bound: u32,
    },
    /// The default arm of a union holds a discriminant that has an arm of its own, or one
    /// that the interface does not allow.
    BadDiscriminant(i32),
    /// A list that must hold at least one element is empty.
    EmptyList,
    /// The value nests deeper than the encoder's limit.
    TooDeep,
    /// No member of the enum has this value (dynamic values only).
    UnknownValue(i32),
    /// The value does not have the shape that the interface asks for (dynamic values only).
    Shape,
    /// The type is declared outside the interface, so that nothing is known of its bytes
    /// (dynamic values only).
    External,
    /// Values of the type have no place in memory: they are too large, or without an end (dynamic
    /// values only).
    Unholdable,
    /// A pointer that must lead to a value is null (values in C's layout only).
    Null,
    /// The message has more bytes than it may have (values in C's layout only).
    TooLarge {
        /// Bytes that it may have.
        limit: usize,
    },
    /// The system gave no memory (values in C's layout only).
    NoMemory,
}

/// Says in which field an error arose, if nothing further inside has said so already.
pub trait Field {
    /// Names the field, as `type.field`.
    #[must_use]
    fn field(self, name: &'static str) -> Self;
}

impl<T> Field for Result<T, DecodeError> {
    #[inline(always)]
    fn field(self, name: &'static str) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.in_field(name)),
        }
    }
}

impl<T> Field for Result<T, EncodeError> {
    #[inline(always)]
    fn field(self, name: &'static str) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.in_field(name)),
        }
    }
}

impl EncodeError {
    /// An error in a field that is named on the way out.
    #[cold]
    #[inline(never)]
    pub fn new(kind: EncodeErrorKind) -> Self {
        let field = Cow::Borrowed("");
        Self(Box::new(EncodeFault { kind, field }))
    }

    /// The default arm of a union holds a discriminant that has an arm of its own.
    #[cold]
    #[inline(never)]
    pub fn bad_discriminant(value: i32) -> Self {
        Self::new(EncodeErrorKind::BadDiscriminant(value))
    }

    #[cold]
    #[inline(never)]
    fn in_field(mut self, name: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = Cow::Borrowed(name);
        }
        self
    }
}

impl DecodeError {
    /// An error at `offset` in a field that is named on the way out.
    #[cold]
    #[inline(never)]
    pub fn new(kind: DecodeErrorKind, offset: usize) -> Self {
        let field = Cow::Borrowed("");
        Self(Box::new(DecodeFault {
            kind,
            offset,
            field,
        }))
    }

    #[cold]
    #[inline(never)]
    fn in_field(mut self, name: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = Cow::Borrowed(name);
        }
        self
    }
}

impl Deref for DecodeError {
    type Target = DecodeFault;

    fn deref(&self) -> &DecodeFault {
        &self.0
    }
}

impl DerefMut for DecodeError {
    fn deref_mut(&mut self) -> &mut DecodeFault {
        &mut self.0
    }
}

impl Deref for EncodeError {
    type Target = EncodeFault;

    fn deref(&self) -> &EncodeFault {
        &self.0
    }
}

impl DerefMut for EncodeError {
    fn deref_mut(&mut self) -> &mut EncodeFault {
        &mut self.0
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { needed, left } => {
                write!(f, "{needed} bytes needed, {left} left")
            }
            Self::TooLong { length, bound } => {
                write!(f, "length {length} is over the bound {bound}")
            }
            Self::UnknownValue(value) => write!(f, "{value} is not a value of this type"),
            Self::NotABoolean(value) => write!(f, "{value} is not a boolean"),
            Self::Padding => f.write_str("padding is not zero"),
            Self::OutOfRange(word) => write!(f, "word {word:#x} is out of the type's range"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes follow the value"),
            Self::TooDeep => f.write_str("value nests too deep"),
            Self::TooMuchMemory => f.write_str("value needs more memory than its bytes pay for"),
            Self::BadList => f.write_str("list is empty or has no end"),
            Self::NotUtf8 => f.write_str("string is not UTF-8"),
            Self::External => f.write_str("the type is declared outside the interface"),
            Self::Unholdable => f.write_str("values of this type have no place in memory"),
            Self::HoldsNul => f.write_str("string holds a NUL"),
            Self::NoMemory => f.write_str("there is no memory"),
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.kind)
    }
}

impl fmt::Display for EncodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLong { length, bound } => {
                write!(f, "length {length} is over the bound {bound}")
            }
            Self::BadDiscriminant(value) => {
                write!(f, "the default arm cannot hold the discriminant {value}")
            }
            Self::EmptyList => f.write_str("the list must hold at least one element"),
            Self::TooDeep => f.write_str("value nests too deep"),
            Self::UnknownValue(value) => write!(f, "{value} is not a value of this type"),
            Self::External => f.write_str("the type is declared outside the interface"),
            Self::Unholdable => f.write_str("values of this type have no place in memory"),
            Self::Null => f.write_str("a pointer is null"),
            Self::TooLarge { limit } => write!(f, "message has more than {limit} bytes"),
            Self::NoMemory => f.write_str("there is no memory"),
            Self::Shape => f.write_str("value does not have the interface's shape"),
        }
    }
}

impl core::error::Error for DecodeError {}
impl core::error::Error for EncodeError {}
