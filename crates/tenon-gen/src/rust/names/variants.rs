//! The variants of enums and unions.

use std::collections::HashSet;

use tenon_plan::Scalar;
use tenon_schema::{EnumMember, Schema, TypeKind, Union};

use super::identifier::{IdentifierCase, NameScope, common_words, without_words};

/// The first member of a value is a variant, the others are constants.
pub(super) fn member_names(members: &[EnumMember]) -> Vec<String> {
    let mut scope = NameScope::new(&[]);
    let mut values = HashSet::new();
    let common = common_words_of_members(members);
    let names = members.iter().map(|member| {
        let name = without_words(&member.name, common);
        match values.insert(member.value) {
            true => scope.name(&name, IdentifierCase::Camel),
            false => scope.name(&name, IdentifierCase::Screaming),
        }
    });
    names.collect()
}

fn common_words_of_members(members: &[EnumMember]) -> usize {
    common_words(members.iter().map(|member| member.name.as_str()))
}

/// The variants of a union: as the members of the enum that selects the arm, or else as what the arms hold.
pub(super) fn variant_names(schema: &Schema, union: &Union) -> Vec<String> {
    let scalar = Scalar::of(schema, &union.discriminant_type);
    let members = match scalar {
        Some(Scalar::Enum(id)) => match &schema.type_def(id).kind {
            TypeKind::Enum(members) => Some(members.as_slice()),
            _ => None,
        },
        _ => None,
    };
    let names = match members {
        Some(members) => names_of_members(members, union),
        None => names_of_fields(union, scalar == Some(Scalar::Bool)),
    };
    let mut scope = NameScope::new(&[]);
    let names = names
        .iter()
        .map(|name| scope.name(name, IdentifierCase::Camel));
    names.collect()
}

fn names_of_members(members: &[EnumMember], union: &Union) -> Vec<String> {
    let common = common_words_of_members(members);
    let is_member = |label: &str| members.iter().any(|member| member.name == label);
    let cases = union.arms.iter().flat_map(|arm| &arm.cases);
    let names = cases.map(|case| match is_member(&case.label) {
        true => without_words(&case.label, common),
        false => label(&case.label),
    });
    names.chain(["default".to_owned()]).collect()
}

/// A number tells less than the field that it selects; a constant has been given a name to tell what it is.
fn names_of_fields(union: &Union, is_bool: bool) -> Vec<String> {
    let mut names = Vec::new();
    let voids = union.arms.iter().filter(|arm| arm.field.is_none());
    let voids: usize = voids.map(|arm| arm.cases.len()).sum();
    for arm in &union.arms {
        let held = arm.field.as_ref().map_or("void", |field| &field.name);
        let is_alone = match arm.field {
            Some(_) => arm.cases.len() == 1,
            None => voids == 1,
        };
        names.extend(arm.cases.iter().map(|case| match &*case.label {
            name if is_constant(name) => name.to_owned(),
            _ if is_alone => held.to_owned(),
            label => format!("{held}_{}", numeral(label)),
        }));
    }
    let is_other_bool = is_bool && names.len() == 1 && voids == 0;
    names.push(match &union.default {
        Some(Some(field)) => field.name.clone(),
        Some(None) if is_other_bool => "void".to_owned(),
        Some(None) | None => "default".to_owned(),
    });
    names
}

fn is_constant(label: &str) -> bool {
    let is_name = label.starts_with(|first: char| first.is_alphabetic() || first == '_');
    is_name && !["true", "false"].contains(&&*label.to_lowercase())
}

/// A case label as a name.
fn label(label: &str) -> String {
    match is_constant(label) {
        true => numeral(label),
        false => format!("case_{}", numeral(label)),
    }
}

/// A case label as the end of a name.
fn numeral(label: &str) -> String {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let (sign, digits) = match label.strip_prefix('-') {
        Some(digits) => ("minus_", digits.trim()),
        None => ("", label),
    };
    let digits = digits.replace(|char| !is_part(char), "_");
    format!("{sign}{digits}")
}
