//! Counts that are trusted, as libtirpc's own routines trust them: those that cannot announce much memory.

use tenon_schema::{Field, Length, Type, TypeId, TypeKind, Union};

use crate::c::Interface;

/// Most bytes of memory that a count alone may announce.
const BYTES_MAX: u64 = 65536;

/// Bytes of a pointer, and what a value is a multiple of at most.
const WORD: u64 = 8;

/// Most levels of nested types that are looked into.
const DEPTH_MAX: u32 = 32;

/// Returns whether a count of up to `bound` elements of the type `ty` is trusted.
pub fn is_believed(of: Interface<'_>, bound: u32, ty: &Type) -> bool {
    let bytes = bytes_of(of, ty, DEPTH_MAX).and_then(|bytes| bytes.checked_mul(bound.into()));
    bytes.is_some_and(|bytes| bytes <= BYTES_MAX)
}

/// Bytes of memory that a value of the type takes at most; `None` if only C knows, or if it is too many to count.
fn bytes_of(of: Interface<'_>, ty: &Type, depth: u32) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    match ty {
        Type::Opaque(Length::Fixed(bytes)) => Some(u64::from(*bytes).next_multiple_of(WORD)),
        Type::Array(element, Length::Fixed(count)) => {
            bytes_of(of, element, depth)?.checked_mul((*count).into())
        }
        Type::Opaque(Length::Counted(_)) | Type::Array(_, Length::Counted(_)) => Some(2 * WORD),
        Type::Quadruple => Some(2 * WORD),
        Type::Char | Type::Uchar => Some(1),
        Type::Named(id) => bytes_of_named(of, *id, depth),
        _ => Some(WORD),
    }
}

fn bytes_of_named(of: Interface<'_>, id: TypeId, depth: u32) -> Option<u64> {
    let fields = |fields: &[Field]| {
        let each = fields.iter().map(|field| bytes_of(of, &field.ty, depth));
        each.sum::<Option<u64>>()
    };
    match &of.schema.type_def(id).kind {
        TypeKind::Enum(_) => Some(WORD),
        TypeKind::Typedef(to) => bytes_of(of, to, depth),
        TypeKind::Struct(parts) => fields(parts),
        TypeKind::Union(union) => Some(WORD + widest(of, union, depth)?),
        TypeKind::External => None,
    }
}

fn widest(of: Interface<'_>, union: &Union, depth: u32) -> Option<u64> {
    let mut arms = union.fields().map(|field| bytes_of(of, &field.ty, depth));
    arms.try_fold(0, |widest, bytes| Some(widest.max(bytes?)))
}
