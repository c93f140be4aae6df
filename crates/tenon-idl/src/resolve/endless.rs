//! Types of infinite size: a value is finite only if all that it holds by value is. A union is finite if one of its
//! arms is.

use tenon_schema::{Length, Type, TypeId, TypeKind};

use crate::diagnostics::Diagnostic;

use super::SchemaResolver;

/// Reports types that have no finite value, one report for each cycle of types that hold each other.
pub(super) fn check_ends(resolver: &mut SchemaResolver<'_>) {
    let kinds: Vec<ContainedTypes> = resolver
        .schema
        .types
        .iter()
        .map(|def| ContainedTypes::of(&def.kind))
        .collect();
    let ends = ending(&kinds);
    let mut reported = vec![false; kinds.len()];
    for start in (0..kinds.len()).filter(|start| !ends[*start]) {
        if let Some(cycle) = cycle(start, &kinds, &ends, &mut reported) {
            report(resolver, &cycle);
        }
    }
}

/// The named types that a value holds by value.
struct ContainedTypes {
    types: Vec<usize>,
    /// One finite type of them is enough: the type is a union.
    is_choice: bool,
    /// The type is a union with an arm that holds no named type by value.
    has_end: bool,
}

impl ContainedTypes {
    fn of(kind: &TypeKind) -> ContainedTypes {
        match kind {
            TypeKind::Union(union) => {
                let arms = union.alternatives();
                let arms = arms.map(|arm| arm.and_then(|field| in_place(&field.ty)));
                let arms: Vec<Option<usize>> = arms.collect();
                ContainedTypes {
                    has_end: arms.is_empty() || arms.contains(&None),
                    types: arms.into_iter().flatten().collect(),
                    is_choice: true,
                }
            }
            kind => ContainedTypes {
                types: kind.types().into_iter().filter_map(in_place).collect(),
                is_choice: false,
                has_end: false,
            },
        }
    }
}

/// Returns the named type that a use of this type holds by value.
fn in_place(ty: &Type) -> Option<usize> {
    match ty {
        Type::Named(TypeId(id)) => Some(*id as usize),
        Type::Array(element, Length::Fixed(_)) => in_place(element),
        _ => None,
    }
}

/// Returns for each type whether it has finite values: those without parts do, and then all that have enough of these.
fn ending(kinds: &[ContainedTypes]) -> Vec<bool> {
    let mut holders: Vec<Vec<usize>> = vec![Vec::new(); kinds.len()];
    let mut missing: Vec<usize> = kinds.iter().map(|parts| parts.types.len()).collect();
    let mut ends = vec![false; kinds.len()];
    let mut open = Vec::new();
    for (id, parts) in kinds.iter().enumerate() {
        parts.types.iter().for_each(|part| holders[*part].push(id));
        if missing[id] == 0 || parts.has_end {
            ends[id] = true;
            open.push(id);
        }
    }
    while let Some(id) = open.pop() {
        for holder in &holders[id] {
            missing[*holder] -= 1;
            let is_enough = kinds[*holder].is_choice || missing[*holder] == 0;
            if is_enough && !std::mem::replace(&mut ends[*holder], true) {
                open.push(*holder);
            }
        }
    }
    ends
}

/// Returns the cycle of types that is reached from `start`, if it was not reported: each is the first part of the one
/// before that has no finite value.
fn cycle(
    start: usize,
    kinds: &[ContainedTypes],
    ends: &[bool],
    seen: &mut [bool],
) -> Option<Vec<usize>> {
    let mut path = Vec::new();
    let mut at = start;
    while !std::mem::replace(&mut seen[at], true) {
        path.push(at);
        at = *kinds[at].types.iter().find(|part| !ends[**part])?;
    }
    let first = path.iter().position(|id| *id == at)?;
    Some(path.split_off(first))
}

fn report(resolver: &mut SchemaResolver<'_>, cycle: &[usize]) {
    let kind = |id: &usize| &resolver.schema.types[*id].kind;
    if cycle
        .iter()
        .all(|id| matches!(kind(id), TypeKind::Typedef(_)))
    {
        return; // reported by `checks::check_typedefs`, whatever is in between
    }
    let has_union = cycle
        .iter()
        .any(|id| matches!(kind(id), TypeKind::Union(_)));
    let name = |id: usize| &resolver.schema.types[id].name;
    let (message, hint) = match has_union {
        true => (
            format!(
                "`{}` contains itself in every arm, so no value of it would end",
                name(cycle[0])
            ),
            "give the union an arm that holds something else, or put a pointer (`*`) or a counted array (`<>`) in between",
        ),
        false => (
            format!(
                "`{}` contains itself, so it would have no end",
                name(cycle[0])
            ),
            "put a pointer (`*`) or a counted array (`<>`) in between",
        ),
    };
    let mut error = Diagnostic::error(resolver.spans[cycle[0]], message).hint(hint);
    if let [_, inner, ..] = cycle {
        error = error.related(
            resolver.spans[*inner],
            format!("by way of `{}`", name(*inner)),
        );
    }
    resolver.diagnostics.push(error);
}
