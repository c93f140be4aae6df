//! Refuses interfaces of which no plan can be made.

use tenon_schema::{Schema, Type, TypeDef, TypeId, TypeKind};
use thiserror::Error;

use crate::graph::{self, StronglyConnectedComponents};
use crate::item::Scalar;
use crate::nothing::{self, MAX_IN_PLACE as MAX_NOTHINGS};
use crate::size::Sizes;

/// Most types that may be nested in each other, each in the next, without counting recursion:
/// an engine uses stack for each of them.
const MAX_NESTING: usize = 64;

/// Most arrays and pointers that may be nested in each other where a type is used. They are
/// followed on the stack at every level of a recursive type.
const MAX_IN_PLACE: usize = 8;

/// An interface that means something on the wire, but nothing that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LowerError {
    /// Every value of the type would contain another one, without an end.
    #[error("{0}: a value of this type has no end")]
    Endless(String),
    /// Types are nested deeper than a plan may go.
    #[error("{0}: types are nested more than {MAX_NESTING} deep")]
    TooDeep(String),
    /// Arrays and pointers are nested deeper than a plan may go.
    #[error("{0}: arrays and pointers are nested more than {MAX_IN_PLACE} deep")]
    TooDeepInPlace(String),
    /// A fixed-size array or opaque is larger than any message.
    #[error("{0}: a fixed length of {1} bytes fits into no message")]
    TooLarge(String, u64),
    /// A value holds too many items in place that take no bytes, so that no message pays for them.
    #[error("{0}: a value holds {1} items that take no bytes, and {MAX_NOTHINGS} are the most")]
    TooManyNothings(String, u64),
    /// The discriminant of the union is no type that can select an arm.
    #[error("{0}: the discriminant is not an integer, a boolean or an enum")]
    Discriminant(String),
    /// The discriminant of the union is of a type that is declared elsewhere.
    #[error(
        "{0}: the discriminant is of type `{1}`, which is not defined in the interface, so its values are not known"
    )]
    UnknownDiscriminant(String, String),
}

impl LowerError {
    /// The type or procedure that is at fault.
    pub fn name(&self) -> &str {
        match self {
            Self::Endless(name)
            | Self::TooDeep(name)
            | Self::TooDeepInPlace(name)
            | Self::TooLarge(name, _)
            | Self::TooManyNothings(name, _)
            | Self::Discriminant(name)
            | Self::UnknownDiscriminant(name, _) => name,
        }
    }
}

/// Refuses what has no sizes, or would take too much stack to find them out.
pub(super) fn before_sizes(
    schema: &Schema,
    components: &StronglyConnectedComponents,
) -> Result<(), LowerError> {
    nesting(schema, components)?;
    typedefs(schema, components)?;
    in_place(schema)?;
    schema
        .types
        .iter()
        .try_for_each(|def| discriminant(schema, def))
}

/// Refuses a union with a discriminant that can select no arm.
fn discriminant(schema: &Schema, def: &TypeDef) -> Result<(), LowerError> {
    let TypeKind::Union(union) = &def.kind else {
        return Ok(());
    };
    let scalar = Scalar::of(schema, &union.discriminant_type);
    if scalar.is_some_and(Scalar::is_discriminant) {
        return Ok(());
    }
    let name = def.name.clone();
    Err(match schema.resolve(&union.discriminant_type) {
        Type::Named(id) if schema.type_def(*id).kind == TypeKind::External => {
            LowerError::UnknownDiscriminant(name, schema.type_def(*id).name.clone())
        }
        _ => LowerError::Discriminant(name),
    })
}

fn nesting(schema: &Schema, components: &StronglyConnectedComponents) -> Result<(), LowerError> {
    let mut depth = vec![0; schema.types.len()];
    for members in &components.order {
        let below = members.iter().flat_map(|id| graph::contained(schema, *id));
        let deepest = below.map(|id| depth[id.0 as usize]).max().unwrap_or(0) + 1;
        for id in members {
            depth[id.0 as usize] = deepest;
        }
        if deepest > MAX_NESTING {
            return Err(LowerError::TooDeep(name(schema, members[0])));
        }
    }
    Ok(())
}

/// Refuses typedefs that lead to nothing but each other.
fn typedefs(schema: &Schema, components: &StronglyConnectedComponents) -> Result<(), LowerError> {
    let cyclic = |members: &&Vec<TypeId>| components.is_cyclic(members[0]);
    let mut cycles = components.order.iter().filter(cyclic);
    match cycles.find(|members| members.iter().all(|id| is_typedef(schema, *id))) {
        Some(members) => Err(LowerError::Endless(name(schema, members[0]))),
        None => Ok(()),
    }
}

fn in_place(schema: &Schema) -> Result<(), LowerError> {
    match schema.uses().find(|(_, ty)| nests_too_deep(schema, ty)) {
        Some((name, _)) => Err(LowerError::TooDeepInPlace(name.to_owned())),
        None => Ok(()),
    }
}

fn nests_too_deep(schema: &Schema, ty: &Type) -> bool {
    let mut at = schema.resolve(ty);
    for _ in 0..=MAX_IN_PLACE {
        match at {
            Type::Array(element, _) => at = schema.resolve(element),
            Type::Optional(to) => at = schema.resolve(to),
            _ => return false,
        }
    }
    true
}

/// Refuses values for which a decoder would look at more items than their bytes tell.
pub(super) fn nothings(
    schema: &Schema,
    components: &StronglyConnectedComponents,
) -> Result<(), LowerError> {
    let known = nothing::in_place(schema, components);
    let types = schema.types.iter().zip(&known);
    let types = types.map(|(def, items)| (def.name.as_str(), *items));
    let used = schema
        .uses()
        .map(|(name, ty)| (name, nothing::behind_use(schema, &known, ty)));
    let mut all = types.chain(used);
    match all.find(|(_, items)| *items > MAX_NOTHINGS) {
        Some((name, items)) => Err(LowerError::TooManyNothings(name.to_owned(), items)),
        None => Ok(()),
    }
}

pub(super) fn ends(schema: &Schema, sizes: &Sizes<'_>) -> Result<(), LowerError> {
    let mut ids = (0..schema.types.len() as u32).map(TypeId);
    match ids.find(|id| sizes.of_named(*id).min == u64::MAX) {
        Some(id) => Err(LowerError::Endless(name(schema, id))),
        None => Ok(()),
    }
}

fn is_typedef(schema: &Schema, id: TypeId) -> bool {
    matches!(schema.type_def(id).kind, TypeKind::Typedef(_))
}

fn name(schema: &Schema, id: TypeId) -> String {
    schema.type_def(id).name.clone()
}
