//! Types of which no value ends: what a value holds in place has to end, too. A union ends if one of its arms does.

use tenon_schema::{Length, Type, TypeId, TypeKind};

use crate::diagnostics::Diagnostic;

use super::Resolver;

/// Reports types of which no value ends, those that hold each other together.
pub(super) fn check_ends(resolver: &mut Resolver<'_>) {
    let kinds: Vec<Parts> = resolver
        .schema
        .types
        .iter()
        .map(|def| Parts::of(&def.kind))
        .collect();
    let ends = ending(&kinds);
    let mut reported = vec![false; kinds.len()];
    for start in (0..kinds.len()).filter(|start| !ends[*start]) {
        if let Some(cycle) = cycle(start, &kinds, &ends, &mut reported) {
            report(resolver, &cycle);
        }
    }
}

/// The named types that a value holds in place.
struct Parts {
    types: Vec<usize>,
    /// One of them is enough: it is a union all of whose arms hold one.
    is_choice: bool,
    /// A union with an arm that holds none.
    has_end: bool,
}

impl Parts {
    fn of(kind: &TypeKind) -> Parts {
        match kind {
            TypeKind::Union(union) => {
                let arms = union.alternatives();
                let arms = arms.map(|arm| arm.and_then(|field| in_place(&field.ty)));
                let arms: Vec<Option<usize>> = arms.collect();
                Parts {
                    has_end: arms.is_empty() || arms.contains(&None),
                    types: arms.into_iter().flatten().collect(),
                    is_choice: true,
                }
            }
            kind => Parts {
                types: kind.types().into_iter().filter_map(in_place).collect(),
                is_choice: false,
                has_end: false,
            },
        }
    }
}

/// The named type that lies in place where this one is used.
fn in_place(ty: &Type) -> Option<usize> {
    match ty {
        Type::Named(TypeId(id)) => Some(*id as usize),
        Type::Array(element, Length::Fixed(_)) => in_place(element),
        _ => None,
    }
}

/// Which types have values that end: those without parts, and then whatever has enough of these.
fn ending(kinds: &[Parts]) -> Vec<bool> {
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

/// The types on the way from `start` that hold each other, if they were not reported: each the first part of the one
/// before that does not end.
fn cycle(start: usize, kinds: &[Parts], ends: &[bool], seen: &mut [bool]) -> Option<Vec<usize>> {
    let mut path = Vec::new();
    let mut at = start;
    while !std::mem::replace(&mut seen[at], true) {
        path.push(at);
        at = *kinds[at].types.iter().find(|part| !ends[**part])?;
    }
    let first = path.iter().position(|id| *id == at)?;
    Some(path.split_off(first))
}

fn report(resolver: &mut Resolver<'_>, cycle: &[usize]) {
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
