//! Random interfaces: types of every kind, nested in each other at random.

use tenon_exec::random::Random;
use tenon_schema::{
    Arm, Case, EnumMember, Field, Length, Origin, Schema, Type, TypeDef, TypeId, TypeKind, Union,
};

const TYPES: u32 = 12;

const SCALARS: [Type; 12] = [
    Type::Int,
    Type::Uint,
    Type::Hyper,
    Type::Uhyper,
    Type::Short,
    Type::Ushort,
    Type::Char,
    Type::Uchar,
    Type::Float,
    Type::Double,
    Type::Quadruple,
    Type::Bool,
];

/// An interface without procedures, of which not every type need end.
pub fn schema(chance: &mut Random) -> Schema {
    let types = (0..TYPES).map(|id| TypeDef {
        name: format!("type{id}"),
        doc: String::new(),
        origin: Origin::default(),
        kind: kind(chance, id),
    });
    Schema {
        types: types.collect(),
        ..Schema::default()
    }
}

fn kind(chance: &mut Random, id: u32) -> TypeKind {
    match chance.below(8) {
        0 => TypeKind::Enum(members(chance)),
        1 => TypeKind::Typedef(by_value(chance, id)),
        2..=3 => TypeKind::Union(union(chance, id)),
        4 => link(chance, id),
        _ => TypeKind::Struct(fields(chance, id)),
    }
}

fn members(chance: &mut Random) -> Vec<EnumMember> {
    let values = (0..=chance.below(4)).map(|member| EnumMember {
        name: format!("MEMBER{member}"),
        doc: String::new(),
        value: member as i32 * 3 - 2,
    });
    values.collect()
}

fn field(name: &str, ty: Type) -> Field {
    Field {
        name: name.to_owned(),
        doc: String::new(),
        ty,
    }
}

fn fields(chance: &mut Random, id: u32) -> Vec<Field> {
    let count = chance.below(6);
    let fields = (0..count).map(|at| field(&format!("field{at}"), anywhere(chance, id)));
    fields.collect()
}

/// A struct that ends in a pointer to itself.
fn link(chance: &mut Random, id: u32) -> TypeKind {
    let mut fields = fields(chance, id);
    let next = Type::Optional(Box::new(Type::Named(TypeId(id))));
    fields.push(field("next", next));
    TypeKind::Struct(fields)
}

fn union(chance: &mut Random, id: u32) -> Union {
    let cases = [-7, 0, 1, 9];
    let arms = cases
        .iter()
        .take(1 + chance.below(4) as usize)
        .map(|value| Arm {
            cases: vec![Case {
                label: value.to_string(),
                value: *value,
            }],
            field: (chance.below(4) > 0).then(|| field("arm", anywhere(chance, id))),
        })
        .collect();
    Union {
        discriminant: "on".to_owned(),
        discriminant_type: [Type::Int, Type::Uint][chance.below(2) as usize].clone(),
        arms,
        default: (chance.below(2) == 0).then_some(None),
    }
}

/// A type for a place where the type `id` may occur again.
fn anywhere(chance: &mut Random, id: u32) -> Type {
    let any = Type::Named(TypeId(chance.below(TYPES.into()) as u32));
    match chance.below(8) {
        0 => Type::Optional(Box::new(any)),
        1 => Type::Array(Box::new(any), Length::Counted(5)),
        _ => by_value(chance, id),
    }
}

/// A type of which every value ends if those of the types before `id` do.
fn by_value(chance: &mut Random, id: u32) -> Type {
    let scalar = SCALARS[chance.below(12) as usize].clone();
    let item = match chance.below(4) {
        0 if id > 0 => Type::Named(TypeId(chance.below(id.into()) as u32)),
        1 => Type::Opaque(length(chance)),
        2 => Type::String([3, u32::MAX][chance.below(2) as usize]),
        _ => scalar,
    };
    match chance.below(6) {
        0 => Type::Array(Box::new(item), length(chance)),
        1 => Type::Optional(Box::new(item)),
        _ => item,
    }
}

fn length(chance: &mut Random) -> Length {
    match chance.below(3) {
        0 => Length::Fixed(chance.below(4) as u32),
        1 => Length::Counted(u32::MAX),
        _ => Length::Counted(chance.below(9) as u32),
    }
}
