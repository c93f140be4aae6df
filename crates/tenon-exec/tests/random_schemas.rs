//! Random interfaces: whatever types they nest in each other, their plans pass the verifier,
//! the passes keep the bytes, and values survive the wire and JSON.

mod support;

use support::{encoded, ids};
use tenon_exec::{Interface, json, random::Random};
use tenon_plan::lower;
use tenon_schema::{
    Arm, Case, EnumMember, Field, Length, Origin, Schema, Type, TypeDef, TypeId, TypeKind, Union,
};
use tenon_wire::{DecodeMode, Decoder, Limits};

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

fn schema(chance: &mut Random) -> Schema {
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

/// Sends values of every type, with all passes and with none.
fn check(schema: Schema, seed: u64) {
    let plans = lower(&schema).expect("types that end");
    let naive = Interface::with_plans(schema.clone(), plans).expect("plans that fit");
    let interface = Interface::new(schema).expect("plans that fit");
    for id in ids(&interface) {
        let ty = Type::Named(id);
        let value = Random::new(seed).value(interface.schema(), &ty, 30);
        let bytes = encoded(&interface, id, &value);
        assert_eq!(bytes, encoded(&naive, id, &value), "seed {seed}");
        let mut input = Decoder::with(&bytes, DecodeMode::Strict, Limits::default());
        assert_eq!(
            interface.decode(id, &mut input),
            Ok(value.clone()),
            "seed {seed}"
        );
        assert_eq!(input.finish(), Ok(()), "seed {seed}");
        agree_on_damage([&naive, &interface], id, &bytes, seed);
        let written = json::write(interface.schema(), &ty, &value).expect("a value of the type");
        assert_eq!(
            json::read(interface.schema(), &ty, &written),
            Ok(value),
            "seed {seed}"
        );
    }
}

/// Bytes that are cut off or changed mean the same to both, or nothing.
fn agree_on_damage(interfaces: [&Interface; 2], id: TypeId, bytes: &[u8], seed: u64) {
    let mut chance = Random::new(seed);
    for _ in 0..4 {
        let mut damaged = bytes.to_vec();
        let bit = chance.below(8 * bytes.len() as u64) as usize;
        if let Some(byte) = damaged.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        damaged.truncate(chance.below(2 * bytes.len() as u64 + 1) as usize);
        let decoded = interfaces.map(|interface| {
            let mut input = Decoder::with(&damaged, DecodeMode::Lenient, Limits::default());
            let value = interface.decode(id, &mut input).ok()?;
            Some((value, input.position()))
        });
        assert_eq!(
            format!("{:?}", decoded[0]),
            format!("{:?}", decoded[1]),
            "seed {seed}"
        );
    }
}

#[test]
fn random_interfaces_hold_together() {
    let mut lowered = 0;
    for seed in 0..1500 {
        let schema = schema(&mut Random::new(seed));
        if lower(&schema).is_ok() {
            lowered += 1;
            check(schema, seed);
        }
    }
    assert!(lowered > 700, "{lowered}");
}
