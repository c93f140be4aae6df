//! A schema as an interface file: the text of one that has no file, such as what a descriptor brought.

use std::fmt::Write;

use tenon_schema::{
    Case, Constant, ConstantValue, EnumMember, Field, Length, Origin, Procedure, Program, Schema,
    Type, TypeAnnotations, TypeDef, TypeId, TypeKind, Union, Version, local_name, namespace,
};

/// Writes an interface file that means `schema`: what it defines, each definition behind those that it uses where there
/// is such an order, with annotations and comments, and numbers in place of the names of bounds. Lines for C and types
/// that are declared elsewhere are left out.
///
/// ```
/// use tenon_idl::{parse_text, write_interface};
///
/// let text = "program P { version V { string GET(key) = 1; } = 1; } = 9; typedef string key<64>;";
/// let schema = parse_text("it.x", text, &Default::default()).schema.ok_or("no interface")?;
/// assert_eq!(
///     write_interface(&schema),
///     "\
/// typedef string key<64>;
///
/// program P {
///     version V {
///         string GET(key) = 1;
///     } = 1;
/// } = 9;
/// "
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If a type that is used is not of the schema.
pub fn write_interface(schema: &Schema) -> String {
    let schema = with_named_parts(schema);
    let mut writer = InterfaceWriter {
        schema: &schema,
        out: String::new(),
        inside: "",
    };
    for constant in &schema.constants {
        writer.enter(&constant.name);
        writer.constant(constant);
    }
    for id in in_order_of_use(&schema) {
        let def = schema.type_def(id);
        if def.kind != TypeKind::External {
            writer.enter(&def.name);
            writer.type_def(def);
        }
    }
    for program in &schema.programs {
        writer.enter(&program.name);
        writer.program(program);
    }
    writer.leave();
    writer.out
}

/// Writes the definitions called `name`, as [`write_interface`] does: of constants, types, programs, versions and
/// procedures. A name may stand without its namespace, and the name of a procedure behind that of its program or
/// version: `NAME`, `VERSION.NAME`, `PROGRAM.NAME`. The text is empty if nothing has this name.
///
/// # Panics
/// If a type that is used is not of the schema.
pub fn write_definitions(schema: &Schema, name: &str) -> String {
    let schema = with_named_parts(schema);
    let mut writer = InterfaceWriter {
        schema: &schema,
        out: String::new(),
        inside: "",
    };
    let is_it = |full: &str| full == name || local_name(full) == name;
    for constant in schema.constants.iter().filter(|it| is_it(&it.name)) {
        writer.enter_unmarked(&constant.name);
        writer.constant(constant);
    }
    for def in schema.types.iter().filter(|it| is_it(&it.name)) {
        writer.enter_unmarked(&def.name);
        writer.type_def(def);
    }
    let (owner, of_owner) = match name.rsplit_once('.') {
        Some((owner, name)) => (Some(owner), name),
        None => (None, name),
    };
    for program in &schema.programs {
        if is_it(&program.name) {
            writer.enter_unmarked(&program.name);
            writer.program(program);
        }
        for version in &program.versions {
            if version.name == name {
                writer.enter_unmarked(&program.name);
                writer.version(version, "");
            }
            let is_owner = |owner: &str| {
                owner == version.name || owner == program.name || owner == local_name(&program.name)
            };
            let has_owner = owner.is_none_or(is_owner);
            let procedures = version.procedures.iter();
            for procedure in procedures.filter(|it| has_owner && it.name == of_owner) {
                writer.enter_unmarked(&program.name);
                writer.procedure(procedure, "");
            }
        }
    }
    writer.out
}

/// Returns the schema with a typedef for each array, pointer or counted type inside of another: a declaration has a
/// single one.
fn with_named_parts(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    let mut parts = NamedParts {
        first: schema.types.len(),
        added: Vec::new(),
    };
    for def in &mut schema.types {
        let name = def.name.clone();
        let types = match &mut def.kind {
            TypeKind::Enum(_) | TypeKind::External => Vec::new(),
            TypeKind::Typedef(to) => vec![to],
            TypeKind::Struct(fields) => fields.iter_mut().map(|field| &mut field.ty).collect(),
            TypeKind::Union(union) => {
                let arms = union.arms.iter_mut().map(|arm| &mut arm.field);
                let fields = arms.chain(&mut union.default).flatten();
                fields.map(|field| &mut field.ty).collect()
            }
        };
        types.into_iter().for_each(|ty| parts.give_name(&name, ty));
    }
    for program in &mut schema.programs {
        let procedures = program.versions.iter_mut();
        for procedure in procedures.flat_map(|version| &mut version.procedures) {
            let arguments = procedure.arguments.iter_mut().map(|field| &mut field.ty);
            let types = arguments.chain(&mut procedure.result);
            types.for_each(|ty| parts.give_name(&program.name, ty));
        }
    }
    schema.types.extend(parts.added);
    schema
}

/// Typedefs that the language needs and the schema does not have.
struct NamedParts {
    first: usize,
    added: Vec<TypeDef>,
}

impl NamedParts {
    fn give_name(&mut self, owner: &str, ty: &mut Type) {
        let is_optional = matches!(ty, Type::Optional(_));
        let (Type::Array(inner, _) | Type::Optional(inner)) = ty else {
            return;
        };
        let has_no_room = match **inner {
            Type::Array(..) | Type::Optional(_) => true,
            Type::String(_) | Type::Opaque(_) => !is_optional,
            _ => false,
        };
        if has_no_room {
            self.give_name(owner, inner);
            let position = self.first + self.added.len();
            let part = std::mem::replace(&mut **inner, Type::Named(TypeId(position as u32)));
            self.added.push(TypeDef {
                name: format!("{owner}_part{position}"),
                doc: String::new(),
                origin: Origin::default(),
                annotations: TypeAnnotations::default(),
                kind: TypeKind::Typedef(part),
            });
        }
    }
}

/// Returns all types, each behind those that it uses, but for circles.
fn in_order_of_use(schema: &Schema) -> Vec<TypeId> {
    let mut order = Vec::new();
    let mut is_seen = vec![false; schema.types.len()];
    for position in 0..schema.types.len() {
        // Types that are entered, and of each those that it uses and that are still to be looked at.
        let mut path: Vec<(TypeId, Vec<TypeId>)> = Vec::new();
        let mut next = Some(TypeId(position as u32));
        loop {
            if let Some(id) = next.take()
                && !std::mem::replace(&mut is_seen[id.0 as usize], true)
            {
                path.push((id, used_by(schema.type_def(id))));
            }
            let Some((id, used)) = path.last_mut() else {
                break;
            };
            next = used.pop();
            if next.is_none() {
                order.push(*id);
                path.pop();
            }
        }
    }
    order
}

/// Returns the types that a definition uses, the first of them last.
fn used_by(def: &TypeDef) -> Vec<TypeId> {
    let discriminant = match &def.kind {
        TypeKind::Union(union) => Some(&union.discriminant_type),
        _ => None,
    };
    let types = discriminant.into_iter().chain(def.kind.types());
    let mut used: Vec<TypeId> = types.filter_map(Type::innermost_name).collect();
    used.reverse();
    used
}

struct InterfaceWriter<'s> {
    schema: &'s Schema,
    out: String,
    /// The namespace of what is written.
    inside: &'s str,
}

impl<'s> InterfaceWriter<'s> {
    /// Goes to the namespace of a definition, and leaves a line free in front of it.
    fn enter(&mut self, name: &'s str) {
        let path = namespace(name);
        if path != self.inside {
            self.leave();
        }
        if !self.out.is_empty() {
            self.line("");
        }
        if path != self.inside {
            self.line(&format!("namespace {path} {{"));
            self.line("");
            self.inside = path;
        }
    }

    /// Writes on as if it were in the namespace of a definition, which stands alone.
    fn enter_unmarked(&mut self, name: &'s str) {
        if !self.out.is_empty() {
            self.line("");
        }
        self.inside = namespace(name);
    }

    fn leave(&mut self) {
        if !self.inside.is_empty() {
            self.line("");
            self.line("}");
            self.inside = "";
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Writes a comment and annotations in front of something.
    fn about(&mut self, indent: &str, doc: &str, statements: &[String]) {
        let mut lines = doc.lines().map(printable);
        if let Some(first) = lines.next() {
            let rest: Vec<String> = lines.collect();
            match &rest[..] {
                [] => self.line(&format!("{indent}/* {first} */")),
                rest => {
                    self.line(&format!("{indent}/*"));
                    for line in [&first].into_iter().chain(rest) {
                        let line = format!("{indent} * {line}");
                        self.line(line.trim_end());
                    }
                    self.line(&format!("{indent} */"));
                }
            }
        }
        if !statements.is_empty() {
            let said = printable(&statements.join("; "));
            self.line(&format!("{indent}/*@ {said} */"));
        }
    }

    fn constant(&mut self, constant: &Constant) {
        self.about("", &constant.doc, &[]);
        let name = local_name(&constant.name);
        let value = match &constant.value {
            ConstantValue::Number(number) => number.to_string(),
            ConstantValue::Text(text) => format!("\"{}\"", printable(text)),
            ConstantValue::Unresolved(text) => printable(text),
        };
        self.line(&format!("const {name} = {value};"));
    }

    fn type_def(&mut self, def: &TypeDef) {
        self.about("", &def.doc, &def.annotations.statements());
        let name = local_name(&def.name);
        match &def.kind {
            TypeKind::Enum(members) => {
                self.line(&format!("enum {name} {{"));
                for (position, member) in members.iter().enumerate() {
                    self.member(member, position + 1 == members.len());
                }
                self.line("};");
            }
            TypeKind::Struct(fields) => {
                self.line(&format!("struct {name} {{"));
                for field in fields {
                    self.field(field, "    ");
                }
                self.line("};");
            }
            TypeKind::Union(union) => self.union(name, union),
            TypeKind::Typedef(to) => {
                let declared = self.declaration(to, name);
                self.line(&format!("typedef {declared};"));
            }
            TypeKind::External => {}
        }
    }

    fn member(&mut self, member: &EnumMember, is_last: bool) {
        self.about("    ", &member.doc, &member.annotations.statements());
        let end = if is_last { "" } else { "," };
        let name = local_name(&member.name);
        self.line(&format!("    {name} = {}{end}", member.value));
    }

    fn union(&mut self, name: &str, union: &Union) {
        let discriminant = self.declaration(&union.discriminant_type, &union.discriminant);
        self.line(&format!("union {name} switch ({discriminant}) {{"));
        for arm in &union.arms {
            for case in &arm.cases {
                let label = self.label(case, &union.discriminant_type);
                self.line(&format!("case {label}:"));
            }
            self.arm(arm.field.as_ref());
        }
        if let Some(default) = &union.default {
            self.line("default:");
            self.arm(default.as_ref());
        }
        self.line("};");
    }

    fn arm(&mut self, field: Option<&Field>) {
        match field {
            Some(field) => self.field(field, "    "),
            None => self.line("    void;"),
        }
    }

    /// Returns a label by its name if there is one of this name and value, and as a number otherwise.
    fn label(&self, case: &Case, discriminant: &Type) -> String {
        let label = case.label.as_str();
        let is_known = match self.schema.resolve(discriminant) {
            Type::Bool => ["FALSE", "TRUE"].get(case.value as usize) == Some(&label),
            Type::Named(id) => match &self.schema.type_def(*id).kind {
                TypeKind::Enum(members) => members
                    .iter()
                    .any(|member| local_name(&member.name) == label && member.value == case.value),
                _ => false,
            },
            _ => {
                let is_it = |constant: &Constant| {
                    constant.name == label
                        && constant.value == ConstantValue::Number(case.value.into())
                };
                self.schema.constants.iter().any(is_it) || hexadecimal(label) == Some(case.value)
            }
        };
        match self.schema.resolve(discriminant) {
            _ if is_known => label.to_owned(),
            Type::Uint | Type::Ushort | Type::Uchar => (case.value as u32).to_string(),
            _ => case.value.to_string(),
        }
    }

    fn field(&mut self, field: &Field, indent: &str) {
        self.about(indent, &field.doc, &field.annotations.statements());
        let declared = self.declaration(&field.ty, &field.name);
        self.line(&format!("{indent}{declared};"));
    }

    fn program(&mut self, program: &Program) {
        self.about("", &program.doc, &[]);
        self.line(&format!("program {} {{", local_name(&program.name)));
        for version in &program.versions {
            self.version(version, "    ");
        }
        self.line(&format!("}} = {};", number(program.number)));
    }

    fn version(&mut self, version: &Version, indent: &str) {
        self.about(indent, &version.doc, &version.annotations.statements());
        self.line(&format!("{indent}version {} {{", version.name));
        for procedure in &version.procedures {
            self.procedure(procedure, &format!("{indent}    "));
        }
        self.line(&format!("{indent}}} = {};", version.number));
    }

    fn procedure(&mut self, procedure: &Procedure, indent: &str) {
        let mut statements = procedure.annotations.statements(self.schema);
        for statement in &mut statements {
            if statement.starts_with("raises ") {
                let raised = procedure.annotations.raises.iter();
                let raised: Vec<String> = raised.map(|id| self.name_of(*id)).collect();
                *statement = format!("raises {}", raised.join(", "));
            }
        }
        self.about(indent, &procedure.doc, &statements);
        let arguments = procedure.arguments.iter().zip(1..);
        let arguments = arguments.map(|(argument, position)| match &*argument.name {
            // So are arguments called that have no name.
            name if name == format!("arg{position}") => self.nameless(&argument.ty),
            name => self.declaration(&argument.ty, name),
        });
        let mut arguments = arguments.collect::<Vec<_>>().join(", ");
        if arguments.is_empty() {
            arguments.push_str("void");
        }
        let result = match &procedure.result {
            None => "void".to_owned(),
            Some(ty) => self.nameless(ty),
        };
        let (name, number) = (&procedure.name, procedure.number);
        self.line(&format!("{indent}{result} {name}({arguments}) = {number};"));
    }

    /// Returns a type as results and arguments have it.
    fn nameless(&self, ty: &Type) -> String {
        match ty {
            Type::String(u32::MAX) => "string".to_owned(),
            ty => self.declaration(ty, "").trim_end().to_owned(),
        }
    }

    /// Returns the declaration of something of a type.
    fn declaration(&self, ty: &Type, name: &str) -> String {
        match ty {
            Type::Optional(inner) => match &**inner {
                Type::String(_) | Type::Opaque(_) => self.declaration(inner, &format!("*{name}")),
                inner => format!("{} *{name}", self.word(inner)),
            },
            Type::Array(element, length) => {
                format!("{} {name}{}", self.word(element), bound(*length))
            }
            Type::Opaque(length) => format!("opaque {name}{}", bound(*length)),
            Type::String(max) => format!("string {name}{}", bound(Length::Counted(*max))),
            ty => format!("{} {name}", self.word(ty)),
        }
    }

    /// Returns a type that needs no more than its name.
    fn word(&self, ty: &Type) -> String {
        let word = match ty {
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
            Type::Quadruple => "quadruple",
            Type::Bool => "bool",
            Type::Named(id) => return self.name_of(*id),
            // These have names by now.
            Type::Opaque(_) => "opaque",
            Type::String(_) => "string",
            Type::Array(inner, _) | Type::Optional(inner) => return self.word(inner),
        };
        word.to_owned()
    }

    /// Returns the name by which a type is found from the namespace of what is written.
    fn name_of(&self, id: TypeId) -> String {
        let name = self.schema.type_def(id).name.as_str();
        match namespace(name) {
            path if path == self.inside => local_name(name).to_owned(),
            _ if self.inside.is_empty() => name.to_owned(),
            _ => format!("::{name}"),
        }
    }
}

fn bound(length: Length) -> String {
    match length {
        Length::Fixed(count) => format!("[{count}]"),
        Length::Counted(u32::MAX) => "<>".to_owned(),
        Length::Counted(max) => format!("<{max}>"),
    }
}

/// Returns the value of a label that is a hexadecimal number.
fn hexadecimal(label: &str) -> Option<i32> {
    let digits = label.strip_prefix("0x")?;
    u32::from_str_radix(digits, 16)
        .ok()
        .map(|value| value as i32)
}

/// Returns the number of a program as it is usually written: those of sites are drawn by digit.
fn number(number: u32) -> String {
    let mut text = String::new();
    // Writing into text does not fail.
    let _ = match number {
        0..0x2000_0000 => write!(text, "{number}"),
        _ => write!(text, "{number:#x}"),
    };
    text
}

/// Returns text that ends no comment and moves no cursor: it may come from another machine.
fn printable(text: &str) -> String {
    let shown = text.replace("*/", "* /");
    let shown = shown.chars().map(|char| match char.is_control() {
        true => ' ',
        false => char,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, dump, parse_text};

    fn schema(text: &str) -> Schema {
        let parsed = parse_text("it.x", text, &Options::default());
        let problems = parsed.render(crate::Style::Plain);
        parsed
            .schema
            .unwrap_or_else(|| panic!("{problems}\n{text}"))
    }

    #[test]
    fn names_lead_out_of_namespaces_and_into_them() {
        let text = "struct pair { int a; };
            namespace one { struct pair { int b; }; struct holder { ::pair outer; pair inner; }; }
            namespace two { union choice switch (int i) { case 1: one::holder it; default: void; };
                program P { version V { /*@ raises one::pair */ ::pair GET(choice) = 1; } = 1; } = 5; }";
        let schema = schema(text);
        let again = self::schema(&write_interface(&schema));
        assert_eq!(dump(&again), dump(&schema));
    }

    #[test]
    fn arrays_of_arrays_and_strings_get_names() {
        let mut schema = schema("struct table { int cells<4>; };");
        let TypeKind::Struct(fields) = &mut schema.types[0].kind else {
            panic!("it is a struct");
        };
        let row = Type::Array(Box::new(Type::String(9)), Length::Fixed(2));
        fields[0].ty = Type::Optional(Box::new(Type::Array(Box::new(row), Length::Counted(4))));
        let text = write_interface(&schema);
        let expected = "\
typedef string table_part1<9>;

typedef table_part1 table_part2[2];

typedef table_part2 table_part3<4>;

struct table {
    table_part3 *cells;
};
";
        assert_eq!(text, expected);
        assert_eq!(self::schema(&text).types.len(), 4);
    }

    #[test]
    fn definitions_are_found_by_their_names() {
        let text = "namespace s { const N = 3; struct item { int at[N]; }; }
            /* Serves. */
            program P { version V1 { s::item GET(void) = 1; } = 1; version V2 { void GET(s::item it) = 1; } = 2; } = 0x20000005;";
        let schema = schema(text);
        let item = "struct item {\n    int at[3];\n};\n";
        assert_eq!(write_definitions(&schema, "item"), item);
        assert_eq!(write_definitions(&schema, "s::item"), item);
        assert_eq!(write_definitions(&schema, "N"), "const N = 3;\n");
        let gets = "s::item GET(void) = 1;\n\nvoid GET(s::item it) = 1;\n";
        assert_eq!(write_definitions(&schema, "GET"), gets);
        assert_eq!(write_definitions(&schema, "P.GET"), gets);
        let second = "void GET(s::item it) = 1;\n";
        assert_eq!(write_definitions(&schema, "V2.GET"), second);
        let version = "version V1 {\n    s::item GET(void) = 1;\n} = 1;\n";
        assert_eq!(write_definitions(&schema, "V1"), version);
        let program = write_definitions(&schema, "P");
        assert!(
            program.starts_with("/* Serves. */\nprogram P {\n"),
            "{program}"
        );
        assert_eq!(write_definitions(&schema, "nothing"), "");
    }

    #[test]
    fn text_from_elsewhere_ends_no_comment_and_moves_no_cursor() {
        let mut schema = schema("struct item { int a; };");
        schema.types[0].annotations.deprecated = Some("*/ \u{1b}[2J".to_owned());
        let text = write_interface(&schema);
        assert!(
            text.starts_with("/*@ deprecated \"* /  [2J\" */\n"),
            "{text:?}"
        );
    }
}
