//! The schema that plans are lowered from. It is the interface's own, but where only C knows a number, or where C does
//! what plans know nothing of: there it has external types, which the printer of routines moves as rpcgen does.

use tenon_plan::Scalar;
use tenon_schema::written::{Spelling, WrittenType};
use tenon_schema::{
    Field, Length, Origin, Schema, Type, TypeAnnotations, TypeDef, TypeId, TypeKind, Union,
};

use super::Interface;

/// The schema that plans are lowered from.
#[derive(Debug)]
pub struct LoweringSchema {
    /// The schema; types behind those of the interface stand for arrays of a length that only C knows.
    pub schema: Schema,
    /// The number of types of the interface.
    own: usize,
    /// Those arrays.
    arrays: Vec<Type>,
}

/// The schema for the plans of `of`.
pub fn schema(of: Interface<'_>) -> LoweringSchema {
    let mut planned = LoweringSchema::new(of.schema);
    for index in 0..of.schema.types.len() {
        let mut kind = of.schema.types[index].kind.clone();
        match (&mut kind, &of.written.types[index]) {
            (TypeKind::Struct(fields), WrittenType::Struct(spellings)) => {
                planned.fields(fields, spellings);
            }
            (TypeKind::Typedef(ty), WrittenType::Typedef(spelling)) => planned.ty(ty, spelling),
            (TypeKind::Union(union), WrittenType::Union(written)) => {
                let arms = union.arms.iter_mut().map(|arm| &mut arm.field);
                let held = arms.zip(&written.arms);
                let default = union.default.iter_mut().zip(&written.default);
                for (field, spelling) in held.chain(default) {
                    if let Some((field, spelling)) = field.as_mut().zip(spelling.as_ref()) {
                        planned.ty(&mut field.ty, spelling);
                    }
                }
                if is_left_to_c(of.schema, union) {
                    union.discriminant_type = Type::Int;
                }
            }
            _ => {}
        }
        planned.schema.types[index].kind = kind;
    }
    planned.procedures(of);
    planned
}

/// Returns whether the discriminant is moved by a routine of its own: plans switch by 32 bits that they know.
pub fn is_left_to_c(schema: &Schema, union: &Union) -> bool {
    let scalar = Scalar::of(schema, &union.discriminant_type);
    !scalar.is_some_and(Scalar::is_discriminant)
}

/// Returns whether a type is an array of a length that only C knows.
pub fn is_foreign_array(ty: &Type, spelling: &Spelling) -> bool {
    let is_fixed = matches!(
        ty,
        Type::Array(_, Length::Fixed(_)) | Type::Opaque(Length::Fixed(_))
    );
    is_fixed && spelling.foreign
}

impl LoweringSchema {
    /// Returns the schema itself, for plans that know as much as C does.
    pub fn new(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            own: schema.types.len(),
            arrays: Vec::new(),
        }
    }

    /// The array that a type stands for.
    pub fn array(&self, id: TypeId) -> Option<&Type> {
        let index = (id.0 as usize).checked_sub(self.own)?;
        self.arrays.get(index)
    }

    fn fields(&mut self, fields: &mut [Field], spellings: &[Spelling]) {
        for (field, spelling) in fields.iter_mut().zip(spellings) {
            self.ty(&mut field.ty, spelling);
        }
    }

    fn ty(&mut self, ty: &mut Type, spelling: &Spelling) {
        if !is_foreign_array(ty, spelling) {
            return;
        }
        let id = TypeId(self.schema.types.len() as u32);
        self.arrays.push(std::mem::replace(ty, Type::Named(id)));
        self.schema.types.push(TypeDef {
            name: spelling.bound.clone().unwrap_or_default(),
            doc: String::new(),
            origin: Origin::default(),
            annotations: TypeAnnotations::default(),
            kind: TypeKind::External,
        });
    }

    fn procedures(&mut self, of: Interface<'_>) {
        let mut programs = std::mem::take(&mut self.schema.programs);
        let versions = programs.iter_mut().flat_map(|it| &mut it.versions);
        let procedures = versions.flat_map(|version| &mut version.procedures);
        for (procedure, written) in procedures.zip(&of.written.procedures) {
            self.fields(&mut procedure.arguments, &written.arguments);
            if let Some((ty, spelling)) = procedure.result.as_mut().zip(written.result.as_ref()) {
                self.ty(ty, spelling);
            }
        }
        self.schema.programs = programs;
    }
}
