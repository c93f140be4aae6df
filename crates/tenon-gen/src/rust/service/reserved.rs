//! Results that a procedure writes where they are sent from.

use tenon_plan::Scalar;

use super::Method;
use crate::rust::Rust;
use crate::rust::shape::Shape;

/// What a server's method is handed room for instead of returning it: a result of known size that lies in
/// memory as it lies on the wire, in some representation. If it has a box in memory, that is no part of it.
/// A single number is not worth it.
pub fn of<'m>(rust: &Rust<'_>, method: &'m Method<'_>) -> Option<&'m Shape> {
    let shape = method.result.as_ref().filter(|_| rust.options.reserved)?;
    let unboxed = match shape.real() {
        Shape::Boxed(inner) => inner,
        _ => shape,
    };
    let is_number = matches!(unboxed.real(), Shape::Scalar(_));
    (!is_number && is_blittable(rust, unboxed)).then_some(unboxed)
}

/// Whether such values are `Blittable` in Rust.
fn is_blittable(rust: &Rust<'_>, shape: &Shape) -> bool {
    match shape {
        Shape::Scalar(scalar) => is_number(*scalar),
        Shape::Bytes(_) => true,
        Shape::Array(element, _) => is_blittable(rust, element),
        Shape::Alias(_, to) => is_blittable(rust, to),
        Shape::Named(id) => rust.is_block(*id),
        Shape::Opaque | Shape::Text | Shape::Vec(_) | Shape::Option(_) | Shape::Boxed(_) => false,
    }
}

fn is_number(scalar: Scalar) -> bool {
    match scalar {
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32 => true,
        Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64 | Scalar::F128 => true,
        Scalar::Bool | Scalar::Enum(_) => false,
    }
}
