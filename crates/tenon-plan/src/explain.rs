//! Renders the plans of an interface for readers: `tenon explain`.

use std::fmt::Write;

use tenon_schema::{Field, Schema, TypeDef, TypeId, TypeKind, local_name};
use thiserror::Error;

use crate::blocks::BlockAnalysis;
use crate::layout::Layout;
use crate::links::is_link;
use crate::op::{Plan, Plans, ProcedurePlan};
use crate::passes::{Pass, PlanError, specialize};
use crate::representation::Representation;
use crate::text::text;

/// The interface has no type and no procedure of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the interface has no type and no procedure called `{0}`")]
pub struct UnknownName(pub String);

/// The making of plans cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExplainError {
    /// Nothing has the name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// There are no plans.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Renders what becomes of the plans called `name` (see [`explain`]) with each of `passes`, and in the
/// end which blocks of memory they move and why those are no larger.
///
/// # Errors
/// Nothing has this name, or no plan can be made of the interface.
///
/// # Panics
/// If the schema refers to a type that it does not have.
pub fn explain_passes(
    schema: &Schema,
    representation: Representation,
    passes: &[Pass],
    name: Option<&str>,
) -> Result<String, ExplainError> {
    let mut plans = Plans::new(schema, representation, &[])?;
    let items = &[Pass::FoldAligns, Pass::MergeArrays];
    let items = Plans::new(schema, representation, items)?;
    let mut shown = explain(schema, &plans, name)?;
    let mut out = format!("== as lowered\n{shown}");
    for pass in passes {
        specialize(schema, &mut plans, &[*pass]).map_err(PlanError::from)?;
        let now = explain(schema, &plans, name)?;
        out += &match now == shown {
            true => format!("\n== {} changes nothing\n", pass.name()),
            false => format!("\n== after {}\n{now}", pass.name()),
        };
        shown = now;
    }
    for part in blocks(schema, &items, name) {
        out += &format!("\n== {part}");
    }
    Ok(out)
}

fn blocks(schema: &Schema, plans: &Plans, name: Option<&str>) -> Vec<String> {
    let wanted = |candidate: &str| is_wanted(name, candidate);
    let blocks = BlockAnalysis::new(schema, plans);
    let types = plans.types.iter().zip((0..).map(TypeId));
    let types = types.filter_map(|(plan, id)| {
        let is_wanted = wanted(&schema.type_def(id).name);
        is_wanted.then(|| blocks.of_type(id, &plan.body))?
    });
    let procedures = plans.procedures.iter().filter_map(|plan| {
        let version = &schema.programs[plan.program].versions[plan.version];
        let procedure = &version.procedures[plan.procedure];
        wanted(&procedure.name).then(|| blocks.of_arguments(procedure, &plan.arguments.body))?
    });
    types.chain(procedures).collect()
}

/// The plans of the types and procedures called `name`, in every version and, unless it says which, in every namespace
/// that has one; of all of them if there is no name.
///
/// # Errors
/// Nothing has this name.
///
/// # Panics
/// If the plans were not made for this schema.
pub fn explain(schema: &Schema, plans: &Plans, name: Option<&str>) -> Result<String, UnknownName> {
    let wanted = |candidate: &str| is_wanted(name, candidate);
    let mut parts = Vec::new();
    for (plan, id) in plans.types.iter().zip((0..).map(TypeId)) {
        if wanted(&schema.type_def(id).name) {
            parts.push(named(schema, plan, id));
        }
    }
    for plan in &plans.procedures {
        let version = &schema.programs[plan.program].versions[plan.version];
        if wanted(&version.procedures[plan.procedure].name) {
            parts.push(procedure(schema, plan));
        }
    }
    match name {
        Some(name) if parts.is_empty() => Err(UnknownName(name.to_owned())),
        _ => Ok(parts.join("\n")),
    }
}

fn is_wanted(name: Option<&str>, candidate: &str) -> bool {
    name.is_none_or(|name| name == candidate || name == local_name(candidate))
}

fn named(schema: &Schema, plan: &Plan, id: TypeId) -> String {
    let def = schema.type_def(id);
    let kind = match def.kind {
        TypeKind::Enum(_) => "enum",
        TypeKind::Struct(_) if is_link(schema, id) => "list element",
        TypeKind::Struct(_) => "struct",
        TypeKind::Union(_) => "union",
        TypeKind::Typedef(_) => "typedef",
        TypeKind::External => "external",
    };
    let head = format!("{kind} {}", def.name);
    let text = part(schema, &head, plan, Layout::of_type(schema, id));
    text + &annotations(def)
}

/// Returns the annotations of a type and of its parts, a line for each.
fn annotations(def: &TypeDef) -> String {
    let parts: Vec<(&str, Vec<String>)> = match &def.kind {
        TypeKind::Enum(members) => members
            .iter()
            .map(|member| (&*member.name, member.annotations.statements()))
            .collect(),
        TypeKind::Struct(fields) => fields.iter().map(of_field).collect(),
        TypeKind::Union(union) => union.fields().map(of_field).collect(),
        TypeKind::Typedef(_) | TypeKind::External => Vec::new(),
    };
    let own = (local_name(&def.name), def.annotations.statements());
    let all = std::iter::once(own).chain(parts);
    let said = all.filter(|(_, statements)| !statements.is_empty());
    said.map(|(name, statements)| format!("  {name}: {}\n", statements.join("; ")))
        .collect()
}

fn of_field(field: &Field) -> (&str, Vec<String>) {
    (&field.name, field.annotations.statements())
}

fn procedure(schema: &Schema, plan: &ProcedurePlan) -> String {
    let program = &schema.programs[plan.program];
    let version = &program.versions[plan.version];
    let procedure = &version.procedures[plan.procedure];
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "procedure {} = {} of {} = {}, {} = {}",
        procedure.name,
        procedure.number,
        version.name,
        version.number,
        program.name,
        program.number
    );
    let statements = procedure.annotations.statements(schema);
    if !statements.is_empty() {
        let _ = writeln!(out, "  {}", statements.join("; "));
    }
    let arguments = Layout::Record(&procedure.arguments);
    out += &part(schema, "arguments", &plan.arguments, arguments);
    let result = procedure.result.as_ref();
    let result = result.map_or(Layout::Nothing, Layout::Use);
    out + &part(schema, "result", &plan.result, result)
}

fn part(schema: &Schema, head: &str, plan: &Plan, layout: Layout<'_>) -> String {
    let recursive = if plan.recursive { ", recursive" } else { "" };
    let body = text(schema, layout, &plan.body, 1);
    format!("{head}: {}{recursive}\n{body}", plan.size)
}
