//! Links: how a linked list of the interface becomes a sequence.
//!
//! A struct with a pointer to itself as its last field, typedefs followed, is a *link*.
//! In memory the link field does not exist: `T *` is a sequence of `T`, and `T` used by value
//! is a sequence that holds at least one. So a list of any length nests no deeper than one of
//! its elements.

use tenon_schema::{Field, Schema, Type, TypeId, TypeKind};

/// A linked list where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedList {
    /// The struct that is the link.
    pub element: TypeId,
    /// True if the first element comes without a word before it: the type is used by value, and
    /// the sequence is never empty.
    pub first_bare: bool,
}

/// Returns whether `id` is a struct that ends in a pointer to itself.
pub fn is_link(schema: &Schema, id: TypeId) -> bool {
    let TypeKind::Struct(fields) = &schema.type_def(id).kind else {
        return false;
    };
    let last = fields.last().map(|field| schema.resolve(&field.ty));
    matches!(last, Some(Type::Optional(to)) if *schema.resolve(to) == Type::Named(id))
}

/// The linked list that `ty` is where it is used, typedefs followed, if it is one.
pub fn linked_list(schema: &Schema, ty: &Type) -> Option<LinkedList> {
    let (target, first_bare) = match schema.resolve(ty) {
        Type::Optional(to) => (schema.resolve(to), false),
        by_value => (by_value, true),
    };
    match target {
        Type::Named(element) if is_link(schema, *element) => Some(LinkedList {
            element: *element,
            first_bare,
        }),
        _ => None,
    }
}

/// The fields that a struct has in memory: all but the link. `None` if `id` is no struct.
pub fn memory_fields(schema: &Schema, id: TypeId) -> Option<&[Field]> {
    let TypeKind::Struct(fields) = &schema.type_def(id).kind else {
        return None;
    };
    let links = usize::from(is_link(schema, id));
    Some(&fields[..fields.len() - links])
}

/// The types that a definition is made of in memory: without the link.
pub fn memory_types(schema: &Schema, id: TypeId) -> Vec<&Type> {
    match memory_fields(schema, id) {
        Some(fields) => fields.iter().map(|field| &field.ty).collect(),
        None => schema.type_def(id).kind.types(),
    }
}
