//! The order of the parts of a descriptor: by name, and of versions and procedures by number.

use tenon_schema::{Schema, Type, TypeDef, TypeId, TypeKind};

/// Returns the same interface in the order of descriptors. All identifiers of types are known in it.
pub fn canonical(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    let mut order: Vec<usize> = (0..schema.types.len()).collect();
    order.sort_by(|one, other| schema.types[*one].name.cmp(&schema.types[*other].name));
    let mut positions = vec![TypeId(0); order.len()];
    for (position, old) in order.iter().enumerate() {
        positions[*old] = TypeId(position as u32);
    }
    let mut types: Vec<Option<TypeDef>> = schema.types.drain(..).map(Some).collect();
    schema.types = order
        .into_iter()
        .filter_map(|old| types[old].take())
        .collect();
    schema
        .constants
        .sort_by(|one, other| one.name.cmp(&other.name));
    schema
        .programs
        .sort_by(|one, other| one.name.cmp(&other.name));
    for program in &mut schema.programs {
        program.versions.sort_by_key(|version| version.number);
        for version in &mut program.versions {
            version.procedures.sort_by_key(|procedure| procedure.number);
        }
    }
    rename(&mut schema, &positions);
    schema
}

/// Has all uses of types lead to their new positions.
fn rename(schema: &mut Schema, positions: &[TypeId]) {
    for def in &mut schema.types {
        in_kind(&mut def.kind, positions);
    }
    let versions = schema.programs.iter_mut().flat_map(|it| &mut it.versions);
    for procedure in versions.flat_map(|version| &mut version.procedures) {
        let arguments = procedure.arguments.iter_mut().map(|field| &mut field.ty);
        let used = arguments.chain(&mut procedure.result);
        used.for_each(|ty| in_type(ty, positions));
        let raised = procedure.annotations.raises.iter_mut();
        raised.for_each(|id| *id = positions[id.0 as usize]);
    }
}

fn in_kind(kind: &mut TypeKind, positions: &[TypeId]) {
    match kind {
        TypeKind::Enum(_) | TypeKind::External => {}
        TypeKind::Typedef(to) => in_type(to, positions),
        TypeKind::Struct(fields) => {
            let types = fields.iter_mut().map(|field| &mut field.ty);
            types.for_each(|ty| in_type(ty, positions));
        }
        TypeKind::Union(union) => {
            in_type(&mut union.discriminant_type, positions);
            let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
            let fields = arms.chain(union.default.iter_mut().flatten());
            fields.for_each(|field| in_type(&mut field.ty, positions));
        }
    }
}

fn in_type(ty: &mut Type, positions: &[TypeId]) {
    let mut at = ty;
    while let Type::Array(inner, _) | Type::Optional(inner) = at {
        at = inner;
    }
    if let Type::Named(id) = at {
        *id = positions[id.0 as usize];
    }
}
