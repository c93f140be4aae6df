//! What a reader of a descriptor relies on: the parts fit together as those of an interface file do.

use std::collections::BTreeSet;

use tenon_plan::{Representation, lower};
use tenon_schema::{
    EnumMember, Field, Procedure, Program, Schema, Type, TypeDef, TypeId, TypeKind, Union, Version,
    local_name,
};

use crate::error::DescriptorError;

/// A rule that a part breaks.
type Broken = Result<(), String>;

/// Checks an interface after its parts were decoded one by one.
pub fn check(schema: &Schema) -> Result<(), DescriptorError> {
    check_ids(schema)?;
    ascend(&schema.types, |def| &*def.name)?;
    ascend(&schema.constants, |constant| &*constant.name)?;
    ascend(&schema.programs, |program| &*program.name)?;
    for def in &schema.types {
        check_path(&def.name)
            .and_then(|()| check_type(schema, def))
            .map_err(|reason| invalid(&def.name, reason))?;
    }
    for constant in &schema.constants {
        check_path(&constant.name).map_err(|reason| invalid(&constant.name, reason))?;
    }
    for program in &schema.programs {
        check_path(&program.name).map_err(|reason| invalid(&program.name, reason))?;
        check_program(schema, program)?;
    }
    lower(schema, Representation::XDR).map_err(DescriptorError::Lower)?;
    lower(schema, Representation::LEAN).map_err(DescriptorError::Lower)?;
    Ok(())
}

/// Checks that all types that are used are there.
pub fn check_ids(schema: &Schema) -> Result<(), DescriptorError> {
    let count = schema.types.len();
    let is_known = |id: TypeId| (id.0 as usize) < count;
    let is_lost = |ty: &Type| ty.innermost_name().is_some_and(|id| !is_known(id));
    let lost = |name: &str| Err(invalid(name, "it uses a type that is not there".to_owned()));
    if let Some((name, _)) = schema.uses().find(|(_, ty)| is_lost(ty)) {
        return lost(name);
    }
    for def in &schema.types {
        if let TypeKind::Union(union) = &def.kind
            && is_lost(&union.discriminant_type)
        {
            return lost(&def.name);
        }
    }
    let versions = schema.programs.iter().flat_map(|program| &program.versions);
    for procedure in versions.flat_map(|version| &version.procedures) {
        if !procedure.annotations.raises.iter().all(|id| is_known(*id)) {
            return lost(&procedure.name);
        }
    }
    Ok(())
}

fn invalid(name: &str, reason: impl Into<String>) -> DescriptorError {
    DescriptorError::Invalid {
        name: name.to_owned(),
        reason: reason.into(),
    }
}

/// Checks that parts are in ascending order of their names, so that there is one order and no name twice.
fn ascend<T>(parts: &[T], name: impl Fn(&T) -> &str) -> Result<(), DescriptorError> {
    match parts.windows(2).find(|two| name(&two[0]) >= name(&two[1])) {
        None => Ok(()),
        Some(two) => {
            let reason = format!("it stands behind `{}`", name(&two[0]));
            Err(invalid(name(&two[1]), reason))
        }
    }
}

/// Checks a name with its namespace.
fn check_path(name: &str) -> Broken {
    name.split("::").try_for_each(check_name)
}

/// Checks that a name is one of the language.
fn check_name(name: &str) -> Broken {
    let is_first = |char: char| char.is_ascii_alphabetic() || char == '_';
    let is_other = |char: char| char.is_ascii_alphanumeric() || char == '_';
    match name.starts_with(is_first) && name.chars().all(is_other) {
        true => Ok(()),
        false => Err(format!("{name:?} is no name")),
    }
}

/// Checks names that stand beside each other.
fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Broken {
    let mut taken = BTreeSet::new();
    for name in names {
        check_name(name)?;
        if !taken.insert(name) {
            return Err(format!("`{name}` is there twice"));
        }
    }
    Ok(())
}

fn check_type(schema: &Schema, def: &TypeDef) -> Broken {
    check_aliases(&def.annotations.aliases)?;
    match &def.kind {
        TypeKind::Enum(members) => check_members(members),
        TypeKind::Struct(fields) => check_fields(schema, fields.iter()),
        TypeKind::Union(union) => check_union(schema, union),
        TypeKind::Typedef(_) | TypeKind::External => Ok(()),
    }
}

fn check_members(members: &[EnumMember]) -> Broken {
    check_names(members.iter().map(|member| local_name(&member.name)))?;
    let defaults = members.iter().filter(|it| it.annotations.is_default);
    if defaults.count() > 1 {
        return Err("more than one member is the default".to_owned());
    }
    let mut aliases = members.iter().map(|member| &member.annotations.aliases);
    aliases.try_for_each(|names| check_aliases(names))
}

fn check_fields<'a>(schema: &Schema, fields: impl Iterator<Item = &'a Field>) -> Broken {
    let fields: Vec<&Field> = fields.collect();
    check_names(fields.iter().map(|field| &*field.name))?;
    for field in fields {
        check_aliases(&field.annotations.aliases)?;
        let default = field.annotations.default.as_ref();
        if let Some(reason) = default.and_then(|default| default.unfit(schema, &field.ty)) {
            return Err(format!("`{}`: {reason}", field.name));
        }
    }
    Ok(())
}

fn check_aliases(names: &[String]) -> Broken {
    check_names(names.iter().map(|name| local_name(name)))
}

fn check_union(schema: &Schema, union: &Union) -> Broken {
    check_fields(schema, union.fields())?;
    check_name(&union.discriminant)?;
    let mut values = BTreeSet::new();
    for arm in &union.arms {
        if arm.cases.is_empty() {
            return Err("an arm has no label".to_owned());
        }
        for case in &arm.cases {
            if !values.insert(case.value) {
                return Err(format!("`{}` selects an arm already", case.label));
            }
            if !is_value_of(schema, &union.discriminant_type, case.value) {
                return Err(format!("`{}` is no value of the discriminant", case.label));
            }
        }
    }
    Ok(())
}

/// Returns whether a discriminant can have a value. Types that are none are found by lowering.
fn is_value_of(schema: &Schema, ty: &Type, value: i32) -> bool {
    match schema.resolve(ty) {
        Type::Bool => (0..=1).contains(&value),
        Type::Named(id) => match &schema.type_def(*id).kind {
            TypeKind::Enum(members) => members.iter().any(|member| member.value == value),
            _ => true,
        },
        _ => true,
    }
}

fn check_program(schema: &Schema, program: &Program) -> Result<(), DescriptorError> {
    let numbers = program.versions.iter().map(|version| version.number);
    ascending(&program.name, numbers)?;
    for version in &program.versions {
        check_version(schema, version)?;
    }
    Ok(())
}

fn check_version(schema: &Schema, version: &Version) -> Result<(), DescriptorError> {
    let procedures = version.procedures.iter();
    ascending(&version.name, procedures.clone().map(|it| it.number))?;
    check_name(&version.name)
        .and_then(|()| check_names(procedures.clone().map(|it| &*it.name)))
        .map_err(|reason| invalid(&version.name, reason))?;
    for procedure in procedures {
        check_procedure(schema, procedure).map_err(|reason| invalid(&procedure.name, reason))?;
    }
    Ok(())
}

/// Checks that numbers ascend, so that there is one order and no number twice.
fn ascending(name: &str, mut numbers: impl Iterator<Item = u32>) -> Result<(), DescriptorError> {
    let mut last = None;
    match numbers.find(|number| last.replace(*number) >= Some(*number)) {
        None => Ok(()),
        Some(number) => Err(invalid(
            name,
            format!("{number} stands behind a number that is not less"),
        )),
    }
}

fn check_procedure(schema: &Schema, procedure: &Procedure) -> Broken {
    check_fields(schema, procedure.arguments.iter())?;
    let streams = procedure.annotations.streams;
    if streams.arguments && procedure.arguments.is_empty() {
        return Err("it has no argument that could be a stream".to_owned());
    }
    if streams.result && procedure.result.is_none() {
        return Err("it has no result that could be a stream".to_owned());
    }
    let mut raised = BTreeSet::new();
    for id in &procedure.annotations.raises {
        let def = schema.type_def(*id);
        if !raised.insert(*id) {
            return Err(format!("it raises `{}` twice", def.name));
        }
        if matches!(def.kind, TypeKind::Typedef(_) | TypeKind::External) {
            return Err(format!(
                "it raises `{}`, which is no struct, union or enum",
                def.name
            ));
        }
    }
    Ok(())
}
