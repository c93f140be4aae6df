//! Parameters of a client's methods: an argument that is borrowed costs its caller no memory, whatever type holds it.

use crate::rust::RustFile;
use crate::rust::shape::TypeShape;

/// The mode in which an argument is handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentMode {
    /// By value: the type.
    Value(String),
    /// As a value of any type that has bytes.
    Bytes,
    /// By reference: the type that it refers to.
    Reference(String),
    /// As a reference that may be missing: the type that it refers to.
    Option(String),
}

impl ArgumentMode {
    /// Returns the mode of a parameter of this shape.
    pub fn of(rust: &RustFile<'_>, shape: &TypeShape) -> Self {
        match shape.real() {
            TypeShape::Scalar(_) => Self::Value(rust.type_text(shape)),
            TypeShape::Opaque => Self::Bytes,
            TypeShape::Text if !rust.options.utf8_strings => Self::Bytes,
            TypeShape::Option(to) => match to.real() {
                TypeShape::Scalar(_) => Self::Value(rust.type_text(shape)),
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

/// Returns the type that a reference to a value of this shape refers to.
fn referred(rust: &RustFile<'_>, shape: &TypeShape) -> String {
    match shape.real() {
        TypeShape::Text if rust.options.utf8_strings => "str".to_owned(),
        TypeShape::Opaque | TypeShape::Text => "[u8]".to_owned(),
        TypeShape::Vec(element) => format!("[{}]", rust.type_text(element)),
        TypeShape::Boxed(to) => rust.type_text(to),
        _ => rust.type_text(shape),
    }
}

/// Returns the shape that a reference to a value of this shape leads to.
pub fn unboxed(shape: &TypeShape) -> &TypeShape {
    match shape.real() {
        TypeShape::Boxed(to) => to,
        _ => shape,
    }
}
