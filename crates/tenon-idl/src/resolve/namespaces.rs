//! Qualifies names with their whole paths. After this no name depends on the namespace that it is used in: `x` that is
//! used in `outer::inner` is `outer::inner::x`, `outer::x` or `x`, the first of these that is defined, as in C++.

use std::collections::{HashMap, HashSet};

use crate::ast::{
    Annotation, AnnotationKind, Declaration, Definition, DefinitionKind, Expression,
    ExpressionKind, LengthBound, ProgramDef, SpannedName, TypeBody, TypeUse, TypeUseKind,
    UnionBody,
};

/// Replaces all names, of definitions and of uses, by their whole paths. A name that is not defined stays as it is,
/// except for a `::` in front.
pub(super) fn qualify(definitions: &mut [Definition]) {
    let mut symbols = SymbolTable::default();
    for definition in &*definitions {
        symbols.add(definition);
    }
    for definition in definitions {
        let mut scope = NameQualifier {
            symbols: &symbols,
            namespace: &definition.namespace,
        };
        if !matches!(&definition.kind, DefinitionKind::Constant(constant) if constant.from_macro) {
            definition.name.text = path(scope.namespace, &definition.name.text);
        }
        match &mut definition.kind {
            DefinitionKind::Constant(constant) => scope.expression(&mut constant.value),
            DefinitionKind::Type(body) => scope.body(body),
            DefinitionKind::Typedef(ty) => scope.type_use(ty),
            DefinitionKind::Program(program) => scope.program(program),
        }
    }
}

/// Returns the path of `name` in a namespace.
pub(super) fn path(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        _ => format!("{namespace}::{name}"),
    }
}

/// The paths of all definitions.
#[derive(Default)]
struct SymbolTable {
    types: HashSet<String>,
    /// Names of numbers, with the count of those that have them.
    values: HashMap<String, usize>,
    /// Members of enums: their names qualified with the enum, and those without it.
    members: HashMap<String, String>,
}

impl SymbolTable {
    fn add(&mut self, definition: &Definition) {
        let namespace = &definition.namespace;
        let whole = path(namespace, &definition.name.text);
        match &definition.kind {
            DefinitionKind::Constant(_) => self.add_value(whole),
            DefinitionKind::Type(body) => {
                self.add_body(namespace, Some(&definition.name), body);
                self.types.insert(whole);
            }
            DefinitionKind::Typedef(ty) => {
                self.add_inline(namespace, ty);
                self.types.insert(whole);
            }
            DefinitionKind::Program(program) => {
                self.add_value(whole);
                let versions = program.versions.iter();
                versions.for_each(|version| self.add_value(path(namespace, &version.name.text)));
                let versions = program.versions.iter();
                for procedure in versions.flat_map(|version| &version.procedures) {
                    self.add_value(path(namespace, &procedure.name.text));
                    let arguments = procedure.arguments.iter().map(|argument| &argument.ty);
                    let types = arguments.chain(&procedure.result);
                    types.for_each(|ty| self.add_inline(namespace, ty));
                }
            }
        }
    }

    fn add_value(&mut self, whole: String) {
        *self.values.entry(whole).or_default() += 1;
    }

    /// Returns the name under which the number `whole` is known: a member is qualified with the name of its enum only
    /// if others have its name.
    fn value(&self, whole: &str) -> Option<String> {
        if self.values.contains_key(whole) {
            return Some(whole.to_owned());
        }
        let member = self.members.get(whole)?;
        Some(match self.values.get(member) {
            Some(1) => member.clone(),
            _ => whole.to_owned(),
        })
    }

    fn add_body(&mut self, namespace: &str, name: Option<&SpannedName>, body: &TypeBody) {
        match body {
            TypeBody::Enum(members) => {
                for member in members {
                    let whole = path(namespace, &member.name.text);
                    if let Some(name) = name {
                        let inside =
                            format!("{}::{}", path(namespace, &name.text), member.name.text);
                        self.members.insert(inside, whole.clone());
                    }
                    self.add_value(whole);
                }
            }
            TypeBody::Struct(fields) => fields
                .iter()
                .for_each(|field| self.add_inline(namespace, &field.ty)),
            TypeBody::Union(union) => {
                let declarations = declarations(union);
                declarations.for_each(|field| self.add_inline(namespace, &field.ty));
            }
        }
    }

    /// Adds inline types, which belong to the namespace, too.
    fn add_inline(&mut self, namespace: &str, ty: &TypeUse) {
        match &ty.kind {
            TypeUseKind::Array(inner, _) | TypeUseKind::Optional(inner) => {
                self.add_inline(namespace, inner);
            }
            TypeUseKind::Inline(tag, body) => {
                self.types
                    .extend(tag.iter().map(|tag| path(namespace, &tag.text)));
                self.add_body(namespace, tag.as_ref(), body);
            }
            _ => {}
        }
    }
}

fn declarations(union: &UnionBody) -> impl Iterator<Item = &Declaration> {
    let arms = union.arms.iter().filter_map(|arm| arm.field.as_ref());
    let default = union.default.iter().flatten();
    std::iter::once(&union.discriminant)
        .chain(arms)
        .chain(default)
}

/// Qualifies the names that are used in a namespace.
struct NameQualifier<'a> {
    symbols: &'a SymbolTable,
    namespace: &'a str,
}

impl NameQualifier<'_> {
    /// Returns the result for the first of the paths that `name` may mean here for which there is one.
    fn find<T>(&self, name: &str, is_there: impl Fn(&str) -> Option<T>) -> Option<T> {
        if let Some(whole) = name.strip_prefix("::") {
            return is_there(whole);
        }
        let mut around = self.namespace;
        loop {
            if let Some(found) = is_there(&path(around, name)) {
                return Some(found);
            }
            if around.is_empty() {
                return None;
            }
            around = around.rsplit_once("::").map_or("", |(around, _)| around);
        }
    }

    fn type_name(&self, name: &mut SpannedName) {
        let types = &self.symbols.types;
        let found = self.find(&name.text, |whole| types.get(whole).cloned());
        name.text = found.unwrap_or_else(|| unrooted(&name.text));
    }

    fn program(&mut self, program: &mut ProgramDef) {
        self.expression(&mut program.number);
        for version in &mut program.versions {
            self.expression(&mut version.number);
            for procedure in &mut version.procedures {
                self.expression(&mut procedure.number);
                self.annotations(&mut procedure.annotations);
                let arguments = procedure
                    .arguments
                    .iter_mut()
                    .map(|argument| &mut argument.ty);
                let types = arguments.chain(&mut procedure.result);
                types.for_each(|ty| self.type_use(ty));
            }
        }
    }

    fn body(&mut self, body: &mut TypeBody) {
        match body {
            TypeBody::Enum(members) => {
                let values = members
                    .iter_mut()
                    .filter_map(|member| member.value.as_mut());
                values.for_each(|value| self.expression(value));
            }
            TypeBody::Struct(fields) => fields.iter_mut().for_each(|field| self.field(field)),
            TypeBody::Union(union) => {
                self.field(&mut union.discriminant);
                for arm in &mut union.arms {
                    arm.cases.iter_mut().for_each(|case| self.expression(case));
                }
                let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
                let fields = arms.chain(union.default.iter_mut().flatten());
                fields.for_each(|field| self.field(field));
            }
        }
    }

    fn field(&mut self, field: &mut Declaration) {
        self.type_use(&mut field.ty);
        self.annotations(&mut field.annotations);
    }

    fn annotations(&mut self, annotations: &mut [Annotation]) {
        for annotation in annotations {
            match &mut annotation.kind {
                AnnotationKind::Raises(names) => {
                    names.iter_mut().for_each(|name| self.type_name(name));
                }
                AnnotationKind::Default(Some(value)) => self.expression(value),
                _ => {}
            }
        }
    }

    fn type_use(&mut self, ty: &mut TypeUse) {
        match &mut ty.kind {
            TypeUseKind::Builtin(_) => {}
            TypeUseKind::Named(name) => self.type_name(name),
            TypeUseKind::Inline(tag, body) => {
                if let Some(tag) = tag {
                    tag.text = path(self.namespace, &tag.text);
                }
                self.body(body);
            }
            TypeUseKind::Opaque(bound) => self.bound(bound),
            TypeUseKind::String(max) => max.iter_mut().for_each(|max| self.expression(max)),
            TypeUseKind::Array(element, bound) => {
                self.type_use(element);
                self.bound(bound);
            }
            TypeUseKind::Optional(inner) => self.type_use(inner),
        }
    }

    fn bound(&mut self, bound: &mut LengthBound) {
        match bound {
            LengthBound::Fixed(length) => self.expression(length),
            LengthBound::Counted(max) => max.iter_mut().for_each(|max| self.expression(max)),
        }
    }

    fn expression(&mut self, expression: &mut Expression) {
        match &mut expression.kind {
            ExpressionKind::Number(_) | ExpressionKind::Huge | ExpressionKind::Text(_) => {}
            ExpressionKind::Name(name) => {
                let found = self.find(name, |whole| self.symbols.value(whole));
                *name = found.unwrap_or_else(|| unrooted(name));
            }
            ExpressionKind::Unary(_, operand) => self.expression(operand),
            ExpressionKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
        }
    }
}

fn unrooted(name: &str) -> String {
    name.strip_prefix("::").unwrap_or(name).to_owned()
}
