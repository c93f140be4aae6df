//! The labels by which arms are named: each of an arm's, though equations know an arm by its first one.

use tenon_plan::cost::Assumptions;
use tenon_schema::{Arm, Schema, TypeKind};

use super::CostError;

/// Name of the arm of all values that no label has.
const DEFAULT: &str = "default";

/// Returns the same assumptions, with the first label of each arm that is named by another.
///
/// # Errors
/// No union of the interface has a label, and no enum a member, of that name.
pub(super) fn by_first_labels(
    schema: &Schema,
    assumptions: &Assumptions,
) -> Result<Assumptions, CostError> {
    let first = |(union, label): &(String, String)| {
        let first = first_label(schema, union, label);
        let first = first.ok_or_else(|| CostError::UnknownLabel(label.clone()))?;
        Ok((union.clone(), first.to_owned()))
    };
    let arms = assumptions.arms.iter().map(first);
    Ok(Assumptions {
        arms: arms.collect::<Result<_, CostError>>()?,
        ..assumptions.clone()
    })
}

/// Returns the first label of the arm that `label` selects in the union that is called `name` or, if it is a field that
/// is called so, in whatever union has the label. A label that selects the default arm stays what it is.
fn first_label<'l>(schema: &'l Schema, name: &str, label: &'l str) -> Option<&'l str> {
    let unions = || {
        schema.types.iter().filter_map(|def| match &def.kind {
            TypeKind::Union(union) => Some((&*def.name, union)),
            _ => None,
        })
    };
    let named = unions().filter(|(of, _)| *of == name);
    let has = |arm: &&Arm| arm.cases.iter().any(|case| case.label == label);
    let selected = named
        .chain(unions())
        .find_map(|(_, union)| union.arms.iter().find(has));
    match selected {
        Some(arm) => arm.cases.first().map(|case| &*case.label),
        None => is_default(schema, label).then_some(label),
    }
}

fn is_default(schema: &Schema, label: &str) -> bool {
    let is_member = schema.types.iter().any(|def| match &def.kind {
        TypeKind::Enum(members) => members.iter().any(|member| member.name == label),
        _ => false,
    });
    label == DEFAULT || is_member
}
