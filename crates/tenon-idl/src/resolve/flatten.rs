//! Types that are defined where they are used become definitions of their own, in front of what
//! holds them: RFC 4506 section 6.4 says that this is what they mean.

use std::collections::HashSet;

use crate::ast::{Body, Declaration, Definition, DefinitionKind, Name, TypeUse, TypeUseKind};

/// Replaces every [`TypeUseKind::Inline`]: none is left.
pub(super) fn flatten(definitions: Vec<Definition>) -> Vec<Definition> {
    let names = definitions
        .iter()
        .map(|definition| definition.name.text.clone());
    let mut flattener = Flattener {
        taken: names.collect(),
        flat: Vec::new(),
    };
    for definition in definitions {
        flattener.definition(definition);
    }
    flattener.flat
}

struct Flattener {
    taken: HashSet<String>,
    flat: Vec<Definition>,
}

/// The definition around the types at hand.
struct Outer {
    position: usize,
    end: usize,
}

impl Flattener {
    fn definition(&mut self, mut definition: Definition) {
        let outer = Outer {
            position: definition.position,
            end: definition.end,
        };
        let name = definition.name.text.clone();
        match &mut definition.kind {
            DefinitionKind::Type(body) => self.body(body, &name, &outer),
            DefinitionKind::Typedef(ty) => self.type_use(ty, &format!("{name}_type"), &outer),
            DefinitionKind::Program(program) => {
                let versions = program.versions.iter_mut();
                for procedure in versions.flat_map(|version| &mut version.procedures) {
                    let name = procedure.name.text.clone();
                    if let Some(result) = &mut procedure.result {
                        self.type_use(result, &format!("{name}_result"), &outer);
                    }
                    for (index, argument) in procedure.arguments.iter_mut().enumerate() {
                        let name = format!("{name}_arg{}", index + 1);
                        self.type_use(&mut argument.ty, &name, &outer);
                    }
                }
            }
            DefinitionKind::Constant(_) => {}
        }
        self.flat.push(definition);
    }

    fn body(&mut self, body: &mut Body, name: &str, outer: &Outer) {
        match body {
            Body::Enum(_) => {}
            Body::Struct(fields) => fields
                .iter_mut()
                .for_each(|field| self.field(field, name, outer)),
            Body::Union(union) => {
                self.field(&mut union.discriminant, name, outer);
                let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
                arms.for_each(|field| self.field(field, name, outer));
                if let Some(Some(field)) = &mut union.default {
                    self.field(field, name, outer);
                }
            }
        }
    }

    fn field(&mut self, field: &mut Declaration, around: &str, outer: &Outer) {
        let name = format!("{around}_{}", field.name.text);
        self.type_use(&mut field.ty, &name, outer);
    }

    fn type_use(&mut self, ty: &mut TypeUse, name: &str, outer: &Outer) {
        match &mut ty.kind {
            TypeUseKind::Array(inner, _) | TypeUseKind::Optional(inner) => {
                self.type_use(inner, name, outer);
            }
            TypeUseKind::Inline(..) => self.hoist(ty, name, outer),
            _ => {}
        }
    }

    /// Puts a name in the place of a type, and the type in front.
    fn hoist(&mut self, ty: &mut TypeUse, name: &str, outer: &Outer) {
        let placeholder = TypeUseKind::String(None);
        let TypeUseKind::Inline(tag, mut body) = std::mem::replace(&mut ty.kind, placeholder)
        else {
            return;
        };
        let name = tag.unwrap_or_else(|| Name {
            text: self.free_name(name),
            span: ty.span,
        });
        ty.kind = TypeUseKind::Named(name.clone());
        self.body(&mut body, &name.text, outer);
        self.flat.push(Definition {
            name,
            doc: String::new(),
            position: outer.position,
            end: outer.end,
            kind: DefinitionKind::Type(*body),
        });
    }

    /// `name`, or `name_2` and so on if there is such a definition already.
    fn free_name(&mut self, name: &str) -> String {
        let numbered = (2u64..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.to_string())
            .chain(numbered)
            .find(|candidate| !self.taken.contains(candidate))
            .unwrap_or_default();
        self.taken.insert(free.clone());
        free
    }
}
