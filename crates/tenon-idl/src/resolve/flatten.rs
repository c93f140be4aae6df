//! Flattens inline types into definitions of their own, in front of the definition that
//! holds them: RFC 4506 section 6.4 says that this is their meaning. So do the `out` and `inout` parameters
//! of a procedure: with its result they are a struct that it returns.

use std::collections::{HashMap, HashSet};

use crate::ast::{
    Declaration, Definition, DefinitionKind, ParameterDirection, ProcedureDef, ProcedureParameter,
    SpannedName, TypeBody, TypeUse, TypeUseKind,
};

use super::namespaces;

/// Replaces every [`TypeUseKind::Inline`]: none is left.
pub(super) fn flatten(definitions: Vec<Definition>) -> Vec<Definition> {
    let names = definitions
        .iter()
        .map(|definition| definition.name.text.clone());
    let mut flattener = TypeFlattener {
        taken: names.collect(),
        flat: Vec::new(),
        numbers: HashMap::new(),
    };
    for definition in definitions {
        flattener.definition(definition);
    }
    flattener.flat
}

struct TypeFlattener {
    taken: HashSet<String>,
    flat: Vec<Definition>,
    /// The last number that was appended to each name.
    numbers: HashMap<String, u64>,
}

/// The definition around the current types.
struct EnclosingDefinition {
    namespace: String,
    position: usize,
    end: usize,
}

impl TypeFlattener {
    fn definition(&mut self, mut definition: Definition) {
        let outer = EnclosingDefinition {
            namespace: definition.namespace.clone(),
            position: definition.position,
            end: definition.end,
        };
        let name = definition.name.text.clone();
        match &mut definition.kind {
            DefinitionKind::Type(body) => self.body(body, &name, &outer),
            DefinitionKind::Typedef(ty) => self.type_use(ty, (&name, "type"), &outer),
            DefinitionKind::Program(program) => {
                let versions = program.versions.iter_mut();
                for procedure in versions.flat_map(|version| &mut version.procedures) {
                    let name = namespaces::path(&outer.namespace, &procedure.name.text);
                    if let Some(result) = &mut procedure.result {
                        self.type_use(result, (&name, "result"), &outer);
                    }
                    for (index, argument) in procedure.arguments.iter_mut().enumerate() {
                        let part = format!("arg{}", index + 1);
                        self.type_use(&mut argument.ty, (&name, &part), &outer);
                    }
                    self.outputs(procedure, &outer);
                }
            }
            DefinitionKind::Constant(_) => {}
        }
        self.flat.push(definition);
    }

    /// Moves `out` parameters to the result, and copies `inout` ones, so that the arguments are what the caller sends.
    fn outputs(&mut self, procedure: &mut ProcedureDef, outer: &EnclosingDefinition) {
        let mut fields: Vec<Declaration> = procedure.arguments.iter().filter_map(output).collect();
        if fields.is_empty() {
            return;
        }
        let name = SpannedName {
            text: "result".to_owned(),
            span: procedure.name.span,
        };
        let result = procedure.result.take();
        fields.splice(..0, result.map(|ty| declaration(name, ty)));
        procedure.result = match fields.len() {
            1 => fields.pop().map(|only| only.ty),
            _ => Some(self.record(&procedure.name, fields, outer)),
        };
        let arguments = std::mem::take(&mut procedure.arguments).into_iter();
        let (out, arguments): (Vec<ProcedureParameter>, Vec<ProcedureParameter>) =
            arguments.partition(|argument| argument.direction == ParameterDirection::Out);
        procedure.outputs = out.into_iter().filter_map(|of| of.name).collect();
        procedure.arguments = arguments;
    }

    /// Defines the struct that a procedure returns.
    fn record(
        &mut self,
        procedure: &SpannedName,
        fields: Vec<Declaration>,
        outer: &EnclosingDefinition,
    ) -> TypeUse {
        let span = procedure.span;
        let around = namespaces::path(&outer.namespace, &procedure.text);
        let text = self.free_name((&around, "result"));
        let name = SpannedName { text, span };
        self.flat.push(Definition {
            namespace: outer.namespace.clone(),
            name: name.clone(),
            doc: format!("What `{}` returns.", procedure.text),
            annotations: Vec::new(),
            position: outer.position,
            end: outer.end,
            kind: DefinitionKind::Type(TypeBody::Struct(fields)),
        });
        let kind = TypeUseKind::Named(name);
        TypeUse { span, kind }
    }

    fn body(&mut self, body: &mut TypeBody, name: &str, outer: &EnclosingDefinition) {
        match body {
            TypeBody::Enum(_) => {}
            TypeBody::Struct(fields) => fields
                .iter_mut()
                .for_each(|field| self.field(field, name, outer)),
            TypeBody::Union(union) => {
                self.field(&mut union.discriminant, name, outer);
                let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
                arms.for_each(|field| self.field(field, name, outer));
                if let Some(Some(field)) = &mut union.default {
                    self.field(field, name, outer);
                }
            }
        }
    }

    fn field(&mut self, field: &mut Declaration, around: &str, outer: &EnclosingDefinition) {
        self.type_use(&mut field.ty, (around, &field.name.text), outer);
    }

    /// Flattens the types in `ty`. `names` are those of the definition around it and of the part that has this type.
    fn type_use(&mut self, ty: &mut TypeUse, names: (&str, &str), outer: &EnclosingDefinition) {
        match &mut ty.kind {
            TypeUseKind::Array(inner, _) | TypeUseKind::Optional(inner) => {
                self.type_use(inner, names, outer);
            }
            TypeUseKind::Inline(..) => self.hoist(ty, names, outer),
            _ => {}
        }
    }

    /// Replaces an inline type by a name, and defines it in front.
    fn hoist(&mut self, ty: &mut TypeUse, names: (&str, &str), outer: &EnclosingDefinition) {
        let placeholder = TypeUseKind::String(None);
        let TypeUseKind::Inline(tag, mut body) = std::mem::replace(&mut ty.kind, placeholder)
        else {
            return;
        };
        let name = tag.unwrap_or_else(|| SpannedName {
            text: self.free_name(names),
            span: ty.span,
        });
        ty.kind = TypeUseKind::Named(name.clone());
        self.body(&mut body, &name.text, outer);
        self.flat.push(Definition {
            namespace: outer.namespace.clone(),
            name,
            doc: String::new(),
            annotations: Vec::new(),
            position: outer.position,
            end: outer.end,
            kind: DefinitionKind::Type(*body),
        });
    }

    /// Returns `outer_field`, or `outer_field_2` and so on if there is such a definition already.
    fn free_name(&mut self, (around, field): (&str, &str)) -> String {
        let name = format!("{}_{}", clip(around), clip(field));
        let mut free = name.clone();
        while !self.taken.insert(free.clone()) {
            let number = self.numbers.entry(name.clone()).or_insert(1);
            *number += 1;
            free = format!("{name}_{number}");
        }
        free
    }
}

/// Returns an `out` or `inout` parameter as a field.
fn output(argument: &ProcedureParameter) -> Option<Declaration> {
    match argument.direction {
        ParameterDirection::In => None,
        ParameterDirection::Out | ParameterDirection::InOut => {
            Some(declaration(argument.name.clone()?, argument.ty.clone()))
        }
    }
}

fn declaration(name: SpannedName, ty: TypeUse) -> Declaration {
    Declaration {
        name,
        doc: String::new(),
        annotations: Vec::new(),
        ty,
    }
}

/// Truncates a name: nested types would otherwise get names as long as the file.
fn clip(name: &str) -> &str {
    const CHARACTERS_MAX: usize = 200;
    let end = name.char_indices().nth(CHARACTERS_MAX);
    end.map_or(name, |(end, _)| &name[..end])
}
