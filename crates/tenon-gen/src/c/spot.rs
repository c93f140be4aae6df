//! Lvalues in C: the expressions for a value, its address, its length and its elements.

use tenon_plan::Place;
use tenon_schema::written::{Spelling, WrittenType, WrittenUnion};
use tenon_schema::{Field, Length, Type, TypeId, TypeKind, Union};

use crate::c::{Interface, names};

/// A value in memory of C: an lvalue and its type.
#[derive(Debug, Clone)]
pub struct CLvalue<'a> {
    access: LvalueAccess,
    what: LvalueKind<'a>,
}

/// The expression that designates a value.
#[derive(Debug, Clone)]
enum LvalueAccess {
    /// By an expression that is the value.
    Value(String),
    /// By an expression that points to it.
    Behind(String),
}

/// The kind of a value.
#[derive(Debug, Clone, Copy)]
enum LvalueKind<'a> {
    /// One of a type that the interface defines.
    Definition(TypeId),
    /// The record of the arguments of a procedure.
    Record(&'a [Field], &'a [Spelling]),
    /// The single argument of a procedure, as the only field of a record that is not there.
    Sole(&'a Field, &'a Spelling),
    /// A declaration with a type; the name is that of a counted array's length and elements.
    Declared(&'a Type, &'a Spelling, &'a str),
}

impl<'a> CLvalue<'a> {
    /// Returns the value that the routine of the type `id` is handed as `objp`.
    pub fn of_type(of: Interface<'a>, id: TypeId) -> Self {
        let def = of.schema.type_def(id);
        let (access, what) = match (&def.kind, of.written_type(id)) {
            (TypeKind::Typedef(ty), WrittenType::Typedef(spelling)) => {
                let access = match ty {
                    Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)) => {
                        LvalueAccess::Value("objp".to_owned())
                    }
                    _ => LvalueAccess::Behind("objp".to_owned()),
                };
                (access, LvalueKind::Declared(ty, spelling, &def.name))
            }
            _ => (
                LvalueAccess::Behind("objp".to_owned()),
                LvalueKind::Definition(id),
            ),
        };
        Self { access, what }
    }

    /// Returns the value that the routine of the arguments of a procedure is handed as `objp`.
    pub fn of_record(fields: &'a [Field], spellings: &'a [Spelling]) -> Self {
        Self::record_behind("objp", fields, spellings)
    }

    /// The record of the arguments of a procedure that `pointer` leads to.
    pub fn record_behind(pointer: &str, fields: &'a [Field], spellings: &'a [Spelling]) -> Self {
        Self {
            access: LvalueAccess::Behind(pointer.to_owned()),
            what: LvalueKind::Record(fields, spellings),
        }
    }

    /// The same of a single argument, which has no record around it: `pointer` leads to itself.
    pub fn sole_behind(pointer: &str, field: &'a Field, spelling: &'a Spelling) -> Self {
        Self {
            access: LvalueAccess::Behind(pointer.to_owned()),
            what: LvalueKind::Sole(field, spelling),
        }
    }

    /// A value of the type `id` that `pointer` leads to.
    pub fn type_behind(of: Interface<'a>, pointer: &str, id: TypeId) -> Self {
        let def = of.schema.type_def(id);
        let what = match (&def.kind, of.written_type(id)) {
            (TypeKind::Typedef(ty), WrittenType::Typedef(spelling)) => {
                LvalueKind::Declared(ty, spelling, &def.name)
            }
            _ => LvalueKind::Definition(id),
        };
        let access = LvalueAccess::Behind(pointer.to_owned());
        Self { access, what }
    }

    /// A value that `pointer` leads to, declared as `name`.
    pub fn declared_behind(
        pointer: &str,
        ty: &'a Type,
        spelling: &'a Spelling,
        name: &'a str,
    ) -> Self {
        Self {
            access: LvalueAccess::Behind(pointer.to_owned()),
            what: LvalueKind::Declared(ty, spelling, name),
        }
    }

    /// The value itself.
    pub fn value(&self) -> String {
        match &self.access {
            LvalueAccess::Value(value) => value.clone(),
            LvalueAccess::Behind(pointer) => format!("(*{pointer})"),
        }
    }

    /// A pointer to the value; to its first element, if it is an array of fixed length.
    pub fn address(&self, of: Interface<'a>) -> String {
        match &self.access {
            LvalueAccess::Value(value) if self.is_vector(of) => value.clone(),
            LvalueAccess::Value(value) => format!("&{value}"),
            LvalueAccess::Behind(_) if self.is_vector(of) => self.value(),
            LvalueAccess::Behind(pointer) => pointer.clone(),
        }
    }

    /// A pointer to the value, with the type that its declaration gives it.
    pub fn pointer(&self) -> String {
        match &self.access {
            LvalueAccess::Value(value) => format!("&{value}"),
            LvalueAccess::Behind(pointer) => pointer.clone(),
        }
    }

    fn is_vector(&self, of: Interface<'a>) -> bool {
        let (ty, ..) = self.declared(of);
        matches!(
            ty,
            Some(Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_)))
        )
    }

    fn member(&self, name: &str) -> String {
        match &self.access {
            LvalueAccess::Value(value) => format!("{value}.{name}"),
            LvalueAccess::Behind(pointer) => format!("{pointer}->{name}"),
        }
    }

    /// Typedefs followed: the type, how it is written, and the name that it is declared with.
    fn declared(&self, of: Interface<'a>) -> (Option<&'a Type>, Option<&'a Spelling>, &'a str) {
        let LvalueKind::Declared(mut ty, mut spelling, mut name) = self.what else {
            return (None, None, "");
        };
        for _ in 0..=of.schema.types.len() {
            let Type::Named(id) = ty else { break };
            let Some((to, written)) = of.alias(*id) else {
                break;
            };
            (ty, spelling, name) = (to, written, &of.schema.type_def(*id).name);
        }
        (Some(ty), Some(spelling), name)
    }

    /// The type that it is declared to have, by whatever name, and how that is written.
    pub fn declaration(&self) -> Option<(&'a Type, &'a Spelling)> {
        match self.what {
            LvalueKind::Declared(ty, spelling, _) => Some((ty, spelling)),
            LvalueKind::Definition(_) | LvalueKind::Record(..) | LvalueKind::Sole(..) => None,
        }
    }

    /// Typedefs followed: the type and how it is written, if it is declared to have one.
    pub fn resolved(&self, of: Interface<'a>) -> Option<(&'a Type, &'a Spelling)> {
        let (ty, spelling, _) = self.declared(of);
        ty.zip(spelling)
    }

    /// Returns the bound on its elements or bytes, as C has it; `None` if there is no bound.
    pub fn bound(&self, of: Interface<'a>, bound: u32) -> Option<String> {
        let written = self.resolved(of).filter(|(_, spelling)| spelling.foreign);
        match written.and_then(|(_, spelling)| spelling.bound.as_ref()) {
            Some(number) => Some(format!("(u_int) ({number})")),
            None if bound == u32::MAX => None,
            None => Some(format!("{bound}u")),
        }
    }

    /// The struct or union that it is.
    fn definition(&self, of: Interface<'a>) -> Option<TypeId> {
        match (self.what, self.declared(of).0) {
            (LvalueKind::Definition(id), _) => Some(id),
            (_, Some(Type::Named(id))) => Some(*id),
            _ => None,
        }
    }

    /// Returns the value at `place`.
    pub fn at(&self, of: Interface<'a>, place: &Place) -> Self {
        let fields = place.0.iter();
        fields.fold(self.clone(), |spot, position| {
            spot.field(of, *position as usize)
        })
    }

    /// The field at a position of the struct that it is.
    pub fn field(&self, of: Interface<'a>, position: usize) -> Self {
        if let LvalueKind::Sole(field, spelling) = self.what {
            return Self {
                access: self.access.clone(),
                what: LvalueKind::Declared(&field.ty, spelling, &field.name),
            };
        }
        let (fields, spellings): (&[Field], &[Spelling]) = match self.what {
            LvalueKind::Record(fields, spellings) => (fields, spellings),
            _ => match self.definition(of).map(|id| record(of, id)) {
                Some(Some(parts)) => parts,
                _ => no_such("struct"),
            },
        };
        let field = &fields[position];
        Self {
            access: LvalueAccess::Value(self.member(&field.name)),
            what: LvalueKind::Declared(&field.ty, &spellings[position], &field.name),
        }
    }

    /// Returns the value that an arm of the union holds.
    pub fn arm(&self, of: Interface<'a>, field: &'a Field, spelling: &'a Spelling) -> Self {
        let id = self.definition(of);
        let name = id.map_or("", |id| &of.schema.type_def(id).name);
        let part = format!("{name}_u.{}", field.name);
        Self {
            access: LvalueAccess::Value(self.member(&part)),
            what: LvalueKind::Declared(&field.ty, spelling, &field.name),
        }
    }

    /// A part that is no field of a struct: a discriminant.
    pub fn discriminant(&self, name: &'a str, ty: &'a Type, spelling: &'a Spelling) -> Self {
        Self {
            access: LvalueAccess::Value(self.member(name)),
            what: LvalueKind::Declared(ty, spelling, name),
        }
    }

    /// Returns whether it is a struct or a union, and not declared by another type's name.
    pub fn is_record(&self, of: Interface<'a>) -> bool {
        let LvalueKind::Definition(id) = self.what else {
            return false;
        };
        let kind = &of.schema.type_def(id).kind;
        matches!(kind, TypeKind::Struct(_) | TypeKind::Union(_))
    }

    /// The union that it is.
    pub fn union(&self, of: Interface<'a>) -> UnionDefinition<'a> {
        let union = self.definition(of).and_then(|id| {
            match (&of.schema.type_def(id).kind, of.written_type(id)) {
                (TypeKind::Union(union), WrittenType::Union(written)) => {
                    Some(UnionDefinition { id, union, written })
                }
                _ => None,
            }
        });
        union.unwrap_or_else(|| no_such("union"))
    }

    /// Returns the count of elements or bytes of a counted array: its `_len`.
    pub fn length(&self, of: Interface<'a>) -> String {
        self.member(&format!("{}_len", self.declared(of).2))
    }

    /// Returns the pointer to the elements or bytes of a counted array: its `_val`.
    pub fn elements(&self, of: Interface<'a>) -> String {
        self.member(&format!("{}_val", self.declared(of).2))
    }

    /// The element `index` of an array.
    pub fn element(&self, of: Interface<'a>, index: &str) -> Self {
        let (ty, spelling, name) = self.declared(of);
        let (Some(Type::Array(element, length)), Some(spelling)) = (ty, spelling) else {
            no_such("array")
        };
        let array = match length {
            Length::Fixed(_) => self.value(),
            Length::Counted(_) => self.elements(of),
        };
        Self {
            access: LvalueAccess::Value(format!("{array}[{index}]")),
            what: LvalueKind::Declared(element, spelling, name),
        }
    }

    /// Returns the value that the pointer points to.
    pub fn target(&self, of: Interface<'a>) -> Self {
        let (ty, spelling, name) = self.declared(of);
        let (Some(Type::Optional(to)), Some(spelling)) = (ty, spelling) else {
            no_such("pointer")
        };
        Self {
            access: LvalueAccess::Behind(self.value()),
            what: LvalueKind::Declared(to, spelling, name),
        }
    }

    /// C's type of the elements of an array, or of what a pointer points to.
    pub fn inner_type(&self, of: Interface<'a>) -> String {
        let (ty, spelling, _) = self.declared(of);
        let declared = ty.zip(spelling);
        declared.map_or_else(String::new, |(ty, spelling)| of.c_type(ty, spelling))
    }

    /// C's type of a value that is no array, as it is declared.
    pub fn own_type(&self, of: Interface<'a>) -> String {
        match self.what {
            LvalueKind::Declared(ty, spelling, _) => of.c_type(ty, spelling),
            LvalueKind::Definition(id) => of.schema.type_def(id).name.clone(),
            LvalueKind::Record(..) | LvalueKind::Sole(..) => String::new(),
        }
    }

    /// Returns whether it is, or consists of, C's `long`, which has in memory another size than on the wire.
    pub fn has_long(&self, of: Interface<'a>) -> bool {
        if let Some(spelling) = self.declared(of).1
            && names::is_long(spelling)
        {
            return true;
        }
        match (self.declared(of).0, self.what) {
            (Some(Type::Array(..)), _) => self.element(of, "0").has_long(of),
            (Some(Type::Named(_)), _) | (_, LvalueKind::Definition(_)) => self.has_long_fields(of),
            _ => false,
        }
    }

    fn has_long_fields(&self, of: Interface<'a>) -> bool {
        let parts = self.definition(of).and_then(|id| record(of, id));
        let count = parts.map_or(0, |(fields, _)| fields.len());
        (0..count).any(|position| {
            let field = self.field(of, position);
            match field.declared(of).0 {
                Some(Type::Optional(_)) => false,
                _ => field.has_long(of),
            }
        })
    }

    /// The names of the fields on the way to `place`, with dots between them.
    pub fn path(&self, of: Interface<'a>, place: &Place) -> String {
        let mut at = self.clone();
        let names = place.0.iter().filter_map(|position| {
            let is_sole = matches!(at.what, LvalueKind::Sole(..));
            at = at.field(of, *position as usize);
            match at.what {
                LvalueKind::Declared(_, _, name) if !is_sole => Some(name),
                _ => None,
            }
        });
        names.collect::<Vec<_>>().join(".")
    }

    /// The type that the plan calls for it.
    pub fn name(&self, of: Interface<'a>) -> &'a str {
        self.definition(of)
            .map_or("", |id| &of.schema.type_def(id).name)
    }
}

/// A union of the interface, and how it is written.
#[derive(Debug, Clone, Copy)]
pub struct UnionDefinition<'a> {
    /// Its type.
    pub id: TypeId,
    /// Its arms.
    pub union: &'a Union,
    /// How they are written.
    pub written: &'a WrittenUnion,
}

/// Takes the place of a value that a plan leads to and the interface does not have.
pub fn no_such(what: &str) -> ! {
    unreachable!(
        "there is no {what} here, though the verifier has held the plan against the interface"
    )
}

/// The fields of a struct, the link of a list among them.
fn record<'a>(of: Interface<'a>, id: TypeId) -> Option<(&'a [Field], &'a [Spelling])> {
    match (&of.schema.type_def(id).kind, of.written_type(id)) {
        (TypeKind::Struct(fields), WrittenType::Struct(spellings)) => Some((fields, spellings)),
        _ => None,
    }
}

/// The field of a link that leads to the next element.
pub fn link<'a>(of: Interface<'a>, id: TypeId) -> &'a str {
    match record(of, id).and_then(|(fields, _)| fields.last()) {
        Some(field) => &field.name,
        None => no_such("link"),
    }
}
