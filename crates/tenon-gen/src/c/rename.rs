//! Interfaces with names that C can have: those of namespaces, of which C has none, begin with the names of these, and
//! those that C has for something else end with a `_`.

use std::collections::{HashMap, HashSet};

use tenon_schema::written::{
    Item, Spelling, Written, WrittenProcedure, WrittenProgram, WrittenType, WrittenUnion,
};
use tenon_schema::{Field, Program, Schema, TypeId, TypeKind, namespace};

/// A kind of named definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A type.
    Type(TypeId),
    /// A member of an enum.
    Member,
    /// A constant, a program, a version or a procedure: in C a macro.
    Number,
    /// A field, a discriminant or a parameter.
    Part,
}

/// Two things that would have one name in C: what they are called in the interface, and that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameCollision(pub String, pub String, pub String);

impl std::fmt::Display for NameCollision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(one, other, name) = self;
        write!(
            f,
            "`{one}` and `{other}` would both be called `{name}` in C; rename one of them"
        )
    }
}

impl std::error::Error for NameCollision {}

/// The same interface, and how it is written, with names for C, in which namespaces are prefixes.
///
/// # Errors
/// Two names become one.
pub fn for_c(schema: &Schema, written: &Written) -> Result<(Schema, Written), NameCollision> {
    for_c_without(schema, written, &|_, _| false)
}

/// The same, and without names that are reserved.
///
/// # Errors
/// Two names become one.
pub fn for_c_without(
    schema: &Schema,
    written: &Written,
    is_reserved: &dyn Fn(NameKind, &str) -> bool,
) -> Result<(Schema, Written), NameCollision> {
    let names = RenameMap::of(schema, is_reserved)?;
    let (mut schema, mut written) = (schema.clone(), written.clone());
    names.rename_schema(&mut schema);
    rename_parts(&mut schema, is_reserved);
    names.rename_written(&mut written);
    Ok((schema, written))
}

/// Renames what is reserved among the fields of each type, and the parameters of each procedure.
fn rename_parts(schema: &mut Schema, is_reserved: &dyn Fn(NameKind, &str) -> bool) {
    for def in &mut schema.types {
        match &mut def.kind {
            TypeKind::Struct(fields) => rename_in_scope(fields.iter_mut().collect(), is_reserved),
            TypeKind::Union(union) => {
                while is_reserved(NameKind::Part, &union.discriminant) {
                    union.discriminant.push('_');
                }
                let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
                let fields = arms.chain(union.default.iter_mut().flatten());
                rename_in_scope(fields.collect(), is_reserved);
            }
            TypeKind::Enum(_) | TypeKind::Typedef(_) | TypeKind::External => {}
        }
    }
    let programs = schema.programs.iter_mut();
    let versions = programs.flat_map(|program| &mut program.versions);
    for procedure in versions.flat_map(|version| &mut version.procedures) {
        rename_in_scope(procedure.arguments.iter_mut().collect(), is_reserved);
    }
}

/// Renames what is reserved among names that have to differ.
fn rename_in_scope(fields: Vec<&mut Field>, is_reserved: &dyn Fn(NameKind, &str) -> bool) {
    let names = fields.iter().map(|field| field.name.clone());
    let mut taken: HashSet<String> = names.collect();
    for field in fields {
        if is_reserved(NameKind::Part, &field.name) {
            while is_reserved(NameKind::Part, &field.name) || taken.contains(&field.name) {
                field.name.push('_');
            }
            taken.insert(field.name.clone());
        }
    }
}

/// The new names of definitions that are renamed.
struct RenameMap(HashMap<String, String>);

impl RenameMap {
    fn of(
        schema: &Schema,
        is_reserved: &dyn Fn(NameKind, &str) -> bool,
    ) -> Result<Self, NameCollision> {
        let mut names = Self(HashMap::new());
        // The path that each name of C stands for.
        let mut taken: HashMap<String, String> = HashMap::new();
        let mut reserved = Vec::new();
        for (what, path) in paths(schema) {
            let name = path.replace("::", "_");
            if is_reserved(what, &name) {
                reserved.push((what, path));
                continue;
            }
            match taken.get(&name) {
                Some(other) if *other != path => {
                    return Err(NameCollision(other.clone(), path, name));
                }
                Some(_) => {}
                None => names.add(&mut taken, path, name),
            }
        }
        for (what, path) in reserved {
            let mut name = path.replace("::", "_");
            let is_taken = |name: &String| taken.get(name).is_some_and(|other| *other != path);
            while is_reserved(what, &name) || is_taken(&name) {
                name.push('_');
            }
            names.add(&mut taken, path, name);
        }
        Ok(names)
    }

    fn add(&mut self, taken: &mut HashMap<String, String>, path: String, name: String) {
        if name != path {
            self.0.insert(path.clone(), name.clone());
        }
        taken.insert(name, path);
    }

    /// Renames `name`, which is defined in a namespace.
    fn within(&self, namespace: &str, name: &mut String) {
        match namespace {
            "" => self.path(name),
            _ => self.whole(name, &format!("{namespace}::{name}")),
        }
    }

    fn path(&self, name: &mut String) {
        let path = name.clone();
        self.whole(name, &path);
    }

    fn whole(&self, name: &mut String, path: &str) {
        if let Some(renamed) = self.0.get(path) {
            name.clone_from(renamed);
        }
    }

    fn rename_schema(&self, schema: &mut Schema) {
        for def in &mut schema.types {
            if let TypeKind::Enum(members) = &mut def.kind {
                let namespace = namespace(&def.name);
                let names = members.iter_mut().map(|member| &mut member.name);
                names.for_each(|name| self.within(namespace, name));
            }
            self.path(&mut def.name);
        }
        schema
            .constants
            .iter_mut()
            .for_each(|constant| self.path(&mut constant.name));
        schema
            .programs
            .iter_mut()
            .for_each(|program| self.rename_program(program));
    }

    fn rename_program(&self, program: &mut Program) {
        let namespace = namespace(&program.name);
        for version in &mut program.versions {
            self.within(namespace, &mut version.name);
            let names = version
                .procedures
                .iter_mut()
                .map(|procedure| &mut procedure.name);
            names.for_each(|name| self.within(namespace, name));
        }
        self.path(&mut program.name);
    }

    fn rename_written(&self, written: &mut Written) {
        for item in &mut written.items {
            if let Item::Constant { name, value } = item {
                self.path(name);
                self.expression(value);
            }
        }
        written.types.iter_mut().for_each(|ty| self.rename_type(ty));
        for WrittenProcedure {
            number,
            arguments,
            result,
        } in &mut written.procedures
        {
            self.expression(number);
            let spellings = arguments.iter_mut().chain(result);
            spellings.for_each(|spelling| self.spelling(spelling));
        }
        for WrittenProgram { number, versions } in &mut written.programs {
            self.expression(number);
            versions
                .iter_mut()
                .for_each(|number| self.expression(number));
        }
    }

    fn rename_type(&self, ty: &mut WrittenType) {
        match ty {
            WrittenType::Enum(values) => {
                let values = values.iter_mut().flatten();
                values.for_each(|value| self.expression(value));
            }
            WrittenType::Struct(fields) => fields.iter_mut().for_each(|field| self.spelling(field)),
            WrittenType::Union(union) => {
                let WrittenUnion {
                    discriminant,
                    arms,
                    labels,
                    default,
                } = union;
                self.spelling(discriminant);
                let held = arms
                    .iter_mut()
                    .flatten()
                    .chain(default.iter_mut().flatten());
                held.for_each(|spelling| self.spelling(spelling));
                let labels = labels.iter_mut().flatten();
                labels.for_each(|label| self.expression(label));
            }
            WrittenType::Typedef(to) => self.spelling(to),
            WrittenType::External => {}
        }
    }

    fn spelling(&self, spelling: &mut Spelling) {
        self.path(&mut spelling.base);
        spelling
            .bound
            .iter_mut()
            .for_each(|bound| self.expression(bound));
    }

    /// Renames what an expression names. What is quoted in it is no name.
    fn expression(&self, expression: &mut String) {
        if expression.starts_with('"') {
            return;
        }
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == ':';
        let mut renamed = String::new();
        let mut rest = expression.as_str();
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let end = from.find(|char| !is_part(char)).unwrap_or(from.len());
            let (name, behind) = from.split_at(end);
            renamed.push_str(before);
            renamed.push_str(self.0.get(name).map_or(name, |renamed| renamed));
            rest = behind;
        }
        renamed.push_str(rest);
        *expression = renamed;
    }
}

/// All names that C has in one scope, with their namespaces.
fn paths(schema: &Schema) -> impl Iterator<Item = (NameKind, String)> {
    let types = schema.types.iter().zip((0..).map(TypeId));
    let types = types.flat_map(|(def, id)| {
        let members = match &def.kind {
            TypeKind::Enum(members) => members.as_slice(),
            _ => &[],
        };
        let members = members.iter().map(|member| within(&def.name, &member.name));
        let members = members.map(|path| (NameKind::Member, path));
        std::iter::once((NameKind::Type(id), def.name.clone())).chain(members)
    });
    let constants = schema.constants.iter();
    let constants = constants.map(|constant| constant.name.clone());
    let programs = schema.programs.iter().flat_map(|program| {
        let versions = program.versions.iter().flat_map(|version| {
            let procedures = version.procedures.iter().map(|procedure| &procedure.name);
            std::iter::once(&version.name).chain(procedures)
        });
        let versions = versions.map(|name| within(&program.name, name));
        std::iter::once(program.name.clone()).chain(versions)
    });
    let numbers = constants.chain(programs);
    types.chain(numbers.map(|path| (NameKind::Number, path)))
}

/// The path of the name `name` beside `other`.
fn within(other: &str, name: &str) -> String {
    match namespace(other) {
        "" => name.to_owned(),
        path => format!("{path}::{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_names_changed_and_nothing_else() {
        let names = [("a::B".to_owned(), "a_B".to_owned())];
        let names = RenameMap(names.into());
        for (given, expected) in [
            ("a::B", "a_B"),
            ("(a::B + 1)", "(a_B + 1)"),
            ("-a::B", "-a_B"),
            ("a::BC", "a::BC"),
            ("\"a::B\"", "\"a::B\""),
            ("0x10", "0x10"),
        ] {
            let mut text = given.to_owned();
            names.expression(&mut text);
            assert_eq!(text, expected);
        }
    }
}
