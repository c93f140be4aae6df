//! How a client's methods are handed arguments: what is borrowed costs its caller no memory, whatever type holds it.

use crate::rust::Rust;
use crate::rust::shape::Shape;

/// How an argument is handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lent {
    /// By value: the type.
    Value(String),
    /// As whatever has bytes.
    Bytes,
    /// By reference: what that refers to.
    Reference(String),
    /// As a reference that may be missing: what that refers to.
    Option(String),
}

impl Lent {
    /// How a parameter of this shape is.
    pub fn of(rust: &Rust<'_>, shape: &Shape) -> Self {
        match shape.real() {
            Shape::Scalar(_) => Self::Value(rust.type_text(shape)),
            Shape::Opaque => Self::Bytes,
            Shape::Text if !rust.options.utf8_strings => Self::Bytes,
            Shape::Option(to) => match to.real() {
                Shape::Scalar(_) => Self::Value(rust.type_text(shape)),
                _ => Self::Option(referred(rust, to)),
            },
            _ => Self::Reference(referred(rust, shape)),
        }
    }

    /// The type of the parameter.
    pub fn parameter(&self) -> String {
        match self {
            Self::Value(text) => text.clone(),
            Self::Bytes => "impl AsRef<[u8]>".to_owned(),
            Self::Reference(to) => format!("&{to}"),
            Self::Option(to) => format!("Option<&{to}>"),
        }
    }

    /// The type of a field that holds it.
    pub fn field(&self) -> String {
        match self {
            Self::Value(text) => text.clone(),
            Self::Bytes => "&'a [u8]".to_owned(),
            Self::Reference(to) => format!("&'a {to}"),
            Self::Option(to) => format!("Option<&'a {to}>"),
        }
    }
}

/// What a reference to a value of this shape refers to.
fn referred(rust: &Rust<'_>, shape: &Shape) -> String {
    match shape.real() {
        Shape::Text if rust.options.utf8_strings => "str".to_owned(),
        Shape::Opaque | Shape::Text => "[u8]".to_owned(),
        Shape::Vec(element) => format!("[{}]", rust.type_text(element)),
        Shape::Boxed(to) => rust.type_text(to),
        _ => rust.type_text(shape),
    }
}

/// What a reference to a value of this shape leads to.
pub fn unboxed(shape: &Shape) -> &Shape {
    match shape.real() {
        Shape::Boxed(to) => to,
        _ => shape,
    }
}
