//! Arms of unions in which a value contains another of its type: C can hold that only behind a pointer, of which there
//! is nothing on the wire.

use tenon_plan::BoxedArms;
use tenon_schema::{Field, Schema, Type, TypeId, TypeKind, Union};

use super::StubErrorKind;

/// The interface with pointers for these arms, as C declares them. Plans are those of the interface itself.
///
/// # Errors
/// An arm holds an array of the union: C has no arrays of what it does not know yet.
pub fn behind_pointers(schema: &Schema, boxed: &BoxedArms) -> Result<Schema, StubErrorKind> {
    let mut declared = schema.clone();
    for (def, id) in declared.types.iter_mut().zip((0..).map(TypeId)) {
        if let TypeKind::Union(union) = &mut def.kind {
            let arms = arms(union).enumerate();
            for (_, field) in arms.filter(|(position, _)| boxed.contains(id, *position)) {
                let Some(field) = field else { continue };
                if let Type::Array(..) = schema.resolve(&field.ty) {
                    return Err(StubErrorKind::InPlace(def.name.clone(), field.name.clone()));
                }
                field.ty = Type::Optional(Box::new(field.ty.clone()));
            }
        }
    }
    Ok(declared)
}

/// Returns the field that each arm holds, the default arm last.
fn arms(union: &mut Union) -> impl Iterator<Item = Option<&mut Field>> {
    let default = union.default.iter_mut().map(Option::as_mut);
    let arms = union.arms.iter_mut().map(|arm| arm.field.as_mut());
    arms.chain(default)
}
