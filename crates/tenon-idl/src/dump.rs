//! A schema as short text, for people and tests: near the language it came from, with every
//! number computed.

use std::fmt::Write;

use tenon_schema::{ConstantValue, Field, Length, Program, Schema, Type, TypeDef, TypeKind, Union};

/// Writes `schema` as text, one line per part.
pub fn dump(schema: &Schema) -> String {
    let mut out = String::new();
    let _ = write_schema(&mut out, schema);
    out
}

fn write_schema(out: &mut String, schema: &Schema) -> std::fmt::Result {
    for constant in &schema.constants {
        match &constant.value {
            ConstantValue::Number(number) => writeln!(out, "const {} = {number}", constant.name)?,
            ConstantValue::Text(text) => writeln!(out, "const {} = \"{text}\"", constant.name)?,
            ConstantValue::Unresolved(text) => writeln!(out, "const {} = {text}?", constant.name)?,
        }
    }
    for def in &schema.types {
        write_type(out, schema, def)?;
    }
    for program in &schema.programs {
        write_program(out, schema, program)?;
    }
    for line in &schema.passthrough {
        writeln!(out, "% after {}: {}", line.after_definitions, line.text)?;
    }
    Ok(())
}

fn write_type(out: &mut String, schema: &Schema, def: &TypeDef) -> std::fmt::Result {
    let name = &def.name;
    let said = comment(&def.annotations.statements());
    match &def.kind {
        TypeKind::Enum(members) => {
            writeln!(out, "enum {name}{said}")?;
            for member in members {
                let said = comment(&member.annotations.statements());
                writeln!(out, "    {} = {}{said}", member.name, member.value)?;
            }
            Ok(())
        }
        TypeKind::Struct(fields) => {
            writeln!(out, "struct {name}{said}")?;
            for field in fields {
                writeln!(out, "    {}", field_text(schema, field))?;
            }
            Ok(())
        }
        TypeKind::Union(union) => write_union(out, schema, (name, &said), union),
        TypeKind::Typedef(ty) => writeln!(out, "typedef {name}: {}{said}", type_text(schema, ty)),
        TypeKind::External => writeln!(out, "external {name}"),
    }
}

fn write_union(
    out: &mut String,
    schema: &Schema,
    (name, said): (&str, &str),
    union: &Union,
) -> std::fmt::Result {
    let discriminant = type_text(schema, &union.discriminant_type);
    writeln!(
        out,
        "union {name} switch {}: {discriminant}{said}",
        union.discriminant
    )?;
    for arm in &union.arms {
        let cases = arm.cases.iter();
        let cases = cases.map(|case| format!("{} = {}", case.label, case.value));
        let cases: Vec<String> = cases.collect();
        let held = held_text(schema, arm.field.as_ref());
        writeln!(out, "    case {}: {held}", cases.join(", "))?;
    }
    if let Some(default) = &union.default {
        writeln!(out, "    default: {}", held_text(schema, default.as_ref()))?;
    }
    Ok(())
}

fn write_program(out: &mut String, schema: &Schema, program: &Program) -> std::fmt::Result {
    writeln!(out, "program {} = {}", program.name, program.number)?;
    for version in &program.versions {
        let said = comment(&version.annotations.statements());
        writeln!(
            out,
            "    version {} = {}{said}",
            version.name, version.number
        )?;
        for procedure in &version.procedures {
            let arguments = procedure.arguments.iter();
            let arguments = arguments.map(|argument| field_text(schema, argument));
            let arguments: Vec<String> = arguments.collect();
            let result = procedure.result.as_ref();
            let result = result.map_or("void".to_string(), |ty| type_text(schema, ty));
            let (number, name) = (procedure.number, &procedure.name);
            let said = comment(&procedure.annotations.statements(schema));
            writeln!(
                out,
                "        {number} {name}({}) -> {result}{said}",
                arguments.join(", ")
            )?;
        }
    }
    Ok(())
}

fn held_text(schema: &Schema, field: Option<&Field>) -> String {
    field.map_or("void".to_string(), |field| field_text(schema, field))
}

fn field_text(schema: &Schema, field: &Field) -> String {
    let said = comment(&field.annotations.statements());
    format!("{}: {}{said}", field.name, type_text(schema, &field.ty))
}

/// Returns annotations as a comment behind what they are about; nothing if there are none.
fn comment(statements: &[String]) -> String {
    match statements {
        [] => String::new(),
        _ => format!(" /*@ {} */", statements.join("; ")),
    }
}

fn type_text(schema: &Schema, ty: &Type) -> String {
    match ty {
        Type::Named(id) => schema.type_def(*id).name.clone(),
        Type::Optional(inner) => format!("*{}", type_text(schema, inner)),
        Type::Array(element, length) => {
            format!("{}{}", type_text(schema, element), length_text(*length))
        }
        Type::Opaque(length) => format!("opaque{}", length_text(*length)),
        Type::String(max) => format!("string{}", length_text(Length::Counted(*max))),
        Type::Int
        | Type::Uint
        | Type::Hyper
        | Type::Uhyper
        | Type::Short
        | Type::Ushort
        | Type::Char
        | Type::Uchar
        | Type::Float
        | Type::Double
        | Type::Quadruple
        | Type::Bool => format!("{ty:?}").to_lowercase(),
    }
}

fn length_text(length: Length) -> String {
    match length {
        Length::Fixed(count) => format!("[{count}]"),
        Length::Counted(u32::MAX) => "<>".to_string(),
        Length::Counted(max) => format!("<{max}>"),
    }
}
