//! Interfaces as `.x` text, in the words that rpcgen has.

use std::fmt::Write as _;

use tenon_schema::{Field, Length, Schema, Type, TypeDef, TypeId, TypeKind, Union};

/// Writes the types of `schema` as an interface file. The element of an array or of optional data may need a name
/// of its own there, so read again it has more types, and the types of `schema` under their names.
///
/// Returns `None` if rpcgen has no syntax for a type. It does not know quadruple precision, structs without fields
/// and types that are declared elsewhere, and it has to have seen the element type of an array, and a typedef
/// wherever it comes across one.
pub fn text(schema: &Schema) -> Option<String> {
    let mut writer = InterfaceFileWriter {
        schema,
        declared: vec![false; schema.types.len()],
        out: String::new(),
    };
    // rpcgen takes the target of a pointer for declared.
    let is_tagged = |def: &&TypeDef| matches!(def.kind, TypeKind::Struct(_) | TypeKind::Union(_));
    for def in schema.types.iter().filter(is_tagged) {
        writeln!(writer.out, "%typedef struct {0} {0};", def.name).ok()?;
    }
    // Nothing stands in the way of enums, and everything may refer to them.
    let is_enum = |def: &TypeDef| matches!(def.kind, TypeKind::Enum(_));
    for enums in [true, false] {
        for (id, def) in schema.types.iter().enumerate() {
            if is_enum(def) == enums {
                writer.definition(def)?;
                writer.declared[id] = true;
            }
        }
    }
    Some(writer.out)
}

struct InterfaceFileWriter<'a> {
    schema: &'a Schema,
    declared: Vec<bool>,
    out: String,
}

impl InterfaceFileWriter<'_> {
    fn definition(&mut self, def: &TypeDef) -> Option<()> {
        let name = &def.name;
        let text = match &def.kind {
            TypeKind::Enum(members) => {
                let members = members.iter();
                let members = members.map(|member| format!("{} = {}", member.name, member.value));
                format!(
                    "enum {name} {{ {} }}",
                    members.collect::<Vec<_>>().join(", ")
                )
            }
            TypeKind::Typedef(ty) => format!("typedef {}", self.declaration(name, name, ty)?),
            TypeKind::Struct(fields) if fields.is_empty() => return None,
            TypeKind::Struct(fields) => {
                let fields = fields.iter().map(|field| self.field(name, field));
                let fields: String = fields.collect::<Option<_>>()?;
                format!("struct {name} {{ {fields}}}")
            }
            TypeKind::Union(union) => self.union(name, union)?,
            TypeKind::External => return None,
        };
        writeln!(self.out, "{text};").ok()
    }

    fn field(&mut self, of: &str, field: &Field) -> Option<String> {
        let path = format!("{of}_{}", field.name);
        Some(self.declaration(&path, &field.name, &field.ty)? + "; ")
    }

    fn arm(&mut self, of: &str, field: Option<&Field>) -> Option<String> {
        field.map_or(Some("void; ".to_owned()), |field| self.field(of, field))
    }

    fn union(&mut self, name: &str, union: &Union) -> Option<String> {
        let mut arms = String::new();
        for arm in &union.arms {
            for case in &arm.cases {
                let _ = write!(arms, "case {}: ", case.label);
            }
            arms += &self.arm(name, arm.field.as_ref())?;
        }
        if let Some(field) = &union.default {
            arms += "default: ";
            arms += &self.arm(name, field.as_ref())?;
        }
        let on = self.declaration(name, &union.discriminant, &union.discriminant_type)?;
        Some(format!("union {name} switch ({on}) {{ {arms}}}"))
    }

    /// Returns the declaration of something called `name`; `path` is a unique name.
    fn declaration(&mut self, path: &str, name: &str, ty: &Type) -> Option<String> {
        Some(match ty {
            Type::Opaque(length) => format!("opaque {name}{}", suffix(*length)),
            Type::String(bound) => format!("string {name}{}", suffix(Length::Counted(*bound))),
            Type::Array(item, _) if matches!(**item, Type::Named(id) if !self.is_declared(id)) => {
                return None;
            }
            Type::Array(item, length) => {
                format!("{} {name}{}", self.item(path, item)?, suffix(*length))
            }
            Type::Optional(item) => format!("{} *{name}", self.item(path, item)?),
            Type::Named(id) => format!("{} {name}", self.named(*id)?),
            scalar => format!("{} {name}", word(scalar)?),
        })
    }

    /// Returns the element type of an array or of optional data in one word; if it has none, a typedef gives it one.
    fn item(&mut self, path: &str, ty: &Type) -> Option<String> {
        match ty {
            Type::Opaque(_) | Type::String(_) | Type::Array(..) | Type::Optional(_) => {
                let name = format!("{path}_item");
                let declared = self.declaration(&name, &name, ty)?;
                writeln!(self.out, "typedef {declared};").ok()?;
                Some(name)
            }
            Type::Named(id) => self.named(*id),
            scalar => Some(word(scalar)?.to_owned()),
        }
    }

    fn named(&self, id: TypeId) -> Option<String> {
        let def = self.schema.type_def(id);
        let is_tagged = matches!(def.kind, TypeKind::Struct(_) | TypeKind::Union(_));
        let is_known = is_tagged || self.is_declared(id);
        is_known.then(|| def.name.clone())
    }

    fn is_declared(&self, id: TypeId) -> bool {
        self.declared[id.0 as usize]
    }
}

fn suffix(length: Length) -> String {
    match length {
        Length::Fixed(count) => format!("[{count}]"),
        Length::Counted(u32::MAX) => "<>".to_owned(),
        Length::Counted(bound) => format!("<{bound}>"),
    }
}

fn word(scalar: &Type) -> Option<&'static str> {
    Some(match scalar {
        Type::Int => "int",
        Type::Uint => "unsigned int",
        Type::Hyper => "hyper",
        Type::Uhyper => "unsigned hyper",
        Type::Short => "short",
        Type::Ushort => "unsigned short",
        Type::Char => "char",
        Type::Uchar => "unsigned char",
        Type::Float => "float",
        Type::Double => "double",
        Type::Bool => "bool",
        _ => return None,
    })
}
