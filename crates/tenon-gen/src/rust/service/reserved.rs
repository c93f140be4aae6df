//! Results that a procedure writes where they are sent from.

use tenon_plan::Scalar;

use super::ServiceMethod;
use crate::rust::RustFile;
use crate::rust::shape::TypeShape;
use crate::writer::SourceWriter;

/// Returns the result that a server's method is handed room for instead of returning it: one of known size that is
/// blittable, in some representation. If it has a box in memory, that is no part of it. A single number is not
/// worth it, and a method with streams returns its result.
pub fn of<'m>(rust: &RustFile<'_>, method: &'m ServiceMethod<'_>) -> Option<&'m TypeShape> {
    let is_asked_for = rust.options.reserved && method.streams.is_none();
    let shape = method.result.as_ref().filter(|_| is_asked_for)?;
    let unboxed = match shape.real() {
        TypeShape::Boxed(inner) => inner,
        _ => shape,
    };
    let is_number = matches!(unboxed.real(), TypeShape::Scalar(_));
    (!is_number && is_blittable(rust, unboxed)).then_some(unboxed)
}

/// Returns the type of the result that a server's method returns, if it is not handed room for that.
pub fn returned_text(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> String {
    match of(rust, method) {
        Some(_) => "()".to_owned(),
        None => method.result_text(rust),
    }
}

/// Returns the parameter for the room that a server's method is handed, if it is.
pub fn parameter(rust: &RustFile<'_>, method: &ServiceMethod<'_>) -> Option<String> {
    let shape = of(rust, method)?;
    Some(format!("reply: &mut {}", rust.type_text(shape)))
}

/// Writes what a server's method finds in the room that it is handed, if it is.
pub fn write_doc(w: &mut SourceWriter, rust: &RustFile<'_>, method: &ServiceMethod<'_>) {
    if of(rust, method).is_some() {
        w.line("///");
        w.line("/// `reply` is what the caller gets if this succeeds. All of it is zero before.");
    }
}

/// Returns whether such values are `Blittable` in Rust.
fn is_blittable(rust: &RustFile<'_>, shape: &TypeShape) -> bool {
    match shape {
        TypeShape::Scalar(scalar) => is_number(*scalar),
        TypeShape::Bytes(_) => true,
        TypeShape::Array(element, _) => is_blittable(rust, element),
        TypeShape::Alias(_, to) => is_blittable(rust, to),
        TypeShape::Named(id) => rust.is_block(*id),
        TypeShape::Opaque
        | TypeShape::Text
        | TypeShape::Vec(_)
        | TypeShape::Option(_)
        | TypeShape::Boxed(_) => false,
    }
}

fn is_number(scalar: Scalar) -> bool {
    match scalar {
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32 => true,
        Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64 | Scalar::F128 => true,
        Scalar::Bool | Scalar::Enum(_) => false,
    }
}
