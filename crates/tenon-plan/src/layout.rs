//! Resolves a [`Place`]: the names and types of the fields it leads through.

use tenon_schema::{Field, Schema, Type, TypeId, TypeKind, Union};

use crate::Place;
use crate::links::memory_fields;

/// The `it` of a body, as the interface describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout<'a> {
    /// Nothing: a void result or arm.
    Nothing,
    /// A struct seen from inside, without its link, or the arguments of a procedure.
    Record(&'a [Field]),
    /// An enum, a union or an external type seen from inside.
    Definition(TypeId),
    /// A type where it is used.
    Use(&'a Type),
}

impl<'a> Layout<'a> {
    /// Of the plan of a named type.
    pub fn of_type(schema: &'a Schema, id: TypeId) -> Self {
        match &schema.type_def(id).kind {
            TypeKind::Struct(_) => Self::Record(memory_fields(schema, id).unwrap_or_default()),
            TypeKind::Typedef(to) => Self::Use(to),
            TypeKind::Enum(_) | TypeKind::Union(_) | TypeKind::External => Self::Definition(id),
        }
    }

    /// The fields, if there are any to lead through.
    pub fn fields(self, schema: &'a Schema) -> Option<&'a [Field]> {
        match self {
            Self::Nothing => Some(&[]),
            Self::Record(fields) => Some(fields),
            Self::Definition(_) => None,
            Self::Use(ty) => match schema.resolve(ty) {
                Type::Named(id) => memory_fields(schema, *id),
                _ => None,
            },
        }
    }

    /// Returns what an array or a pointer holds: the `it` of the body of a loop or an optional.
    pub fn element(self, schema: &'a Schema) -> Option<Self> {
        match self {
            Self::Use(ty) => match schema.resolve(ty) {
                Type::Array(element, _) => Some(Self::Use(element)),
                Type::Optional(to) => Some(Self::Use(to)),
                _ => None,
            },
            Self::Nothing | Self::Record(_) | Self::Definition(_) => None,
        }
    }

    /// The named type, if it is one that is seen as a whole.
    pub fn named(self, schema: &'a Schema) -> Option<TypeId> {
        match self {
            Self::Nothing | Self::Record(_) => None,
            Self::Definition(id) => Some(id),
            Self::Use(ty) => match schema.resolve(ty) {
                Type::Named(id) => Some(*id),
                _ => None,
            },
        }
    }

    /// The union, if it is one.
    pub fn union(self, schema: &'a Schema) -> Option<&'a Union> {
        let id = self.named(schema)?;
        match &schema.type_def(id).kind {
            TypeKind::Union(union) => Some(union),
            _ => None,
        }
    }

    /// Returns what an arm of a union holds.
    pub fn of_arm(field: Option<&'a Field>) -> Self {
        field.map_or(Self::Nothing, |field| Self::Use(&field.ty))
    }

    /// Returns what is found at `place`; `None` if a position on the way does not exist.
    pub fn at(self, schema: &'a Schema, place: &Place) -> Option<Self> {
        self.along(schema, &place.0)
    }

    /// Returns what is found behind these fields, each inside the one before it; `None` if a position
    /// does not exist.
    pub fn along(self, schema: &'a Schema, path: &[u32]) -> Option<Self> {
        path.iter().try_fold(self, |at, position| {
            let field = at.fields(schema)?.get(*position as usize)?;
            Some(Self::Use(&field.ty))
        })
    }

    /// The names of the fields on the way to `place`, with dots between them; empty for the
    /// value itself. A position that does not exist is shown as its number.
    pub fn path(self, schema: &'a Schema, place: &Place) -> String {
        let mut at = Some(self);
        let names = place.0.iter().map(|position| {
            let fields = at.and_then(|at| at.fields(schema)).unwrap_or_default();
            let field = fields.get(*position as usize);
            at = field.map(|field| Self::Use(&field.ty));
            field.map_or_else(|| position.to_string(), |field| field.name.clone())
        });
        names.collect::<Vec<_>>().join(".")
    }
}
