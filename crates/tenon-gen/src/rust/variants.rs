//! Unions as enums of Rust: one variant for each case label, and one for the default arm, which
//! keeps the discriminant.

use tenon_plan::Scalar;
use tenon_schema::{Field, Schema, Type, TypeId, TypeKind, Union};

use super::RustFile;
use super::shape::TypeShape;

/// The variants of a union.
pub struct UnionVariants {
    /// In the order of the labels, the default last.
    pub variants: Vec<UnionVariant>,
    /// The type of the discriminant.
    pub discriminant: String,
    /// The discriminant's name for errors.
    pub label: String,
    /// Set if each value of the discriminant's type has a variant.
    pub is_total: bool,
}

/// A variant.
pub struct UnionVariant {
    /// Its name.
    pub name: String,
    /// The position of its arm; the default arm is the last.
    pub arm: usize,
    /// The discriminant as a number and as a pattern; `None` for the default variant.
    pub value: Option<(i32, String)>,
    /// The shape of the value that it holds.
    pub held: Option<TypeShape>,
    /// The label of that value in errors.
    pub label: String,
    /// The comment of its arm.
    pub doc: String,
    /// The reason, perhaps empty, for which its arm is not to be used.
    pub deprecated: Option<String>,
}

impl UnionVariant {
    /// The pattern, with patterns for the discriminant that a default variant keeps and for what
    /// the variant holds.
    pub fn pattern(&self, discriminant: &str, held: &str) -> String {
        let name = &self.name;
        match (self.value.is_none(), self.held.is_some()) {
            (true, true) => format!("Self::{name}({discriminant}, {held})"),
            (true, false) => format!("Self::{name}({discriminant})"),
            (false, true) => format!("Self::{name}({held})"),
            (false, false) => format!("Self::{name}"),
        }
    }
}

impl UnionVariants {
    /// The expression `value`, of the type of the discriminant, as a number.
    pub fn number(discriminant: Scalar, value: &str) -> String {
        match discriminant {
            Scalar::I32 => value.to_owned(),
            Scalar::U32 | Scalar::Enum(_) => format!("{value} as i32"),
            _ => format!("i32::from({value})"),
        }
    }
}

/// The variants of the union `id`. Labels that are no value of the discriminant's type, and a
/// default arm that nothing can select, have none. A default arm that one of the two booleans selects has its.
pub fn of(rust: &RustFile<'_>, id: TypeId, union: &Union) -> UnionVariants {
    let name = &rust.schema.type_def(id).name;
    let held = rust.shapes.arms(id, union);
    let scalar = Scalar::of(rust.schema, &union.discriminant_type);
    let mut names = rust.names.of_type(id).parts.iter();
    let mut variants = Vec::new();
    for (arm, (of_arm, held)) in union.arms.iter().zip(&held).enumerate() {
        for (case, variant) in of_arm.cases.iter().zip(&mut names) {
            let Some(pattern) = pattern(rust, scalar, case.value) else {
                continue;
            };
            variants.push(UnionVariant {
                name: variant.clone(),
                arm,
                value: Some((case.value, pattern)),
                held: held.clone(),
                label: label(name, of_arm.field.as_ref().map(|field| &field.name)),
                doc: doc(scalar, of_arm.field.as_ref(), &case.label),
                deprecated: deprecated(of_arm.field.as_ref()),
            });
        }
    }
    let covered = variants.len() as u64 == values_of(rust.schema, scalar);
    if let (Some(default), false) = (&union.default, covered) {
        let value = other_boolean(scalar, &variants);
        let selects = match (&value, variants.is_empty()) {
            (Some((0, _)), _) => "FALSE",
            (Some(_), _) => "TRUE",
            (None, false) => "any other number",
            (None, true) => "any number",
        };
        variants.push(UnionVariant {
            name: names.next_back().cloned().unwrap_or_default(),
            arm: union.arms.len(),
            value,
            held: held.last().cloned().flatten(),
            label: label(name, default.as_ref().map(|field| &field.name)),
            doc: doc(scalar, default.as_ref(), selects),
            deprecated: deprecated(default.as_ref()),
        });
    }
    UnionVariants {
        variants,
        discriminant: discriminant_type(rust, &union.discriminant_type),
        label: label(name, Some(&union.discriminant)),
        is_total: covered || union.default.is_some(),
    }
}

/// The documentation of a variant. The name of a variant of an enum's member tells what selects it.
fn doc(scalar: Option<Scalar>, field: Option<&Field>, label: &str) -> String {
    let doc = field.map_or("", |field| &field.doc);
    match scalar {
        Some(Scalar::Enum(_)) => doc.to_owned(),
        _ if doc.trim().is_empty() => format!("Selected by {label}."),
        _ => format!("{doc}\n\nSelected by {label}."),
    }
}

/// The boolean that is left, with its pattern, if there is one variant for the other.
fn other_boolean(scalar: Option<Scalar>, variants: &[UnionVariant]) -> Option<(i32, String)> {
    match variants {
        [
            UnionVariant {
                value: Some((value, _)),
                ..
            },
        ] if scalar == Some(Scalar::Bool) => Some((1 - value, (*value == 0).to_string())),
        _ => None,
    }
}

fn label(union: &str, field: Option<&String>) -> String {
    match field {
        Some(field) => format!("{union}.{field}"),
        None => union.to_owned(),
    }
}

fn discriminant_type(rust: &RustFile<'_>, ty: &Type) -> String {
    rust.type_text(&rust.shapes.of(ty))
}

/// Returns the number of values of the discriminant's type.
fn values_of(schema: &Schema, scalar: Option<Scalar>) -> u64 {
    match scalar {
        Some(Scalar::Bool) => 2,
        Some(Scalar::I8 | Scalar::U8) => 1 << 8,
        Some(Scalar::I16 | Scalar::U16) => 1 << 16,
        Some(Scalar::Enum(id)) => match &schema.type_def(id).kind {
            TypeKind::Enum(members) => {
                let values: std::collections::HashSet<_> =
                    members.iter().map(|member| member.value).collect();
                values.len() as u64
            }
            _ => 0,
        },
        _ => 1 << 32,
    }
}

/// `value` as a pattern of the discriminant's type, if it is one of its values.
fn pattern(rust: &RustFile<'_>, scalar: Option<Scalar>, value: i32) -> Option<String> {
    match scalar? {
        Scalar::I32 => Some(value.to_string()),
        Scalar::U32 => Some((value as u32).to_string()),
        Scalar::I16 => i16::try_from(value).ok().map(|value| value.to_string()),
        Scalar::U16 => u16::try_from(value).ok().map(|value| value.to_string()),
        Scalar::I8 => i8::try_from(value).ok().map(|value| value.to_string()),
        Scalar::U8 => u8::try_from(value).ok().map(|value| value.to_string()),
        Scalar::Bool => matches!(value, 0 | 1).then(|| (value == 1).to_string()),
        Scalar::Enum(id) => {
            let TypeKind::Enum(members) = &rust.schema.type_def(id).kind else {
                return None;
            };
            let member = members.iter().position(|member| member.value == value)?;
            let names = rust.names.of_type(id);
            let path = rust.path_to(id);
            Some(format!("{path}{}::{}", names.name, names.parts[member]))
        }
        Scalar::I64 | Scalar::U64 | Scalar::F32 | Scalar::F64 | Scalar::F128 => None,
    }
}

fn deprecated(field: Option<&Field>) -> Option<String> {
    field.and_then(|field| field.annotations.deprecated.clone())
}
