//! The syntax tree to a [`Schema`]: names looked up, constants computed, types checked.

mod checks;
mod constants;
mod endless;
mod flatten;
mod foreign;
mod known;
mod namespaces;
mod programs;
mod similar;
mod types;
mod unions;
mod written;

use std::collections::HashMap;

use tenon_schema::written::Written;
use tenon_schema::{Constant, ConstantValue, Passthrough, Schema, TypeDef, TypeId, TypeKind};

use crate::ast::{Body, Definition, DefinitionKind, Name};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::options::Options;
use crate::preprocess::PassthroughLine;
use crate::source::{Sources, Span};

use constants::Constants;
use foreign::Foreign;
use unions::Labels;

/// Resolves `definitions`. The schema is whole only if no error was reported.
pub(crate) fn resolve(
    mut definitions: Vec<Definition>,
    passthrough: &[PassthroughLine],
    sources: &Sources,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> (Schema, Written) {
    namespaces::qualify(&mut definitions);
    let definitions = flatten::flatten(definitions);
    let constants = Constants::collect(&definitions, sources, diagnostics);
    let mut resolver = Resolver {
        sources,
        options,
        diagnostics,
        constants,
        names: HashMap::new(),
        declared: 0,
        spans: Vec::new(),
        schema: Schema::default(),
        ends: Vec::new(),
        labels: Vec::new(),
        programs: Vec::new(),
        foreign: Foreign::default(),
        has_lines_of_c: !passthrough.is_empty(),
    };
    resolver.name_types(&definitions);
    resolver.declared = resolver.schema.types.len();
    for definition in &definitions {
        resolver.definition(definition);
    }
    resolver.check_labels();
    resolver.check_programs_apart();
    endless::check_ends(&mut resolver);
    checks::check_sizes(&mut resolver);
    resolver.passthrough(passthrough);
    let schema = resolver.schema;
    let named = written::Named {
        types: &resolver.names,
        foreign: &resolver.foreign,
    };
    let written = written::written(&definitions, passthrough, &schema, named, sources);
    (schema, written)
}

struct Resolver<'a> {
    sources: &'a Sources,
    options: &'a Options,
    diagnostics: &'a mut Diagnostics,
    constants: Constants<'a>,
    /// The types by name, those that are declared elsewhere included.
    names: HashMap<String, TypeId>,
    /// How many types of the schema are declared here: they stand in front of the others.
    declared: usize,
    /// Where each type of the schema is named.
    spans: Vec<Span>,
    schema: Schema,
    /// Where the definitions of the schema end, in words, to place `%` lines between them.
    ends: Vec<usize>,
    labels: Vec<Labels>,
    programs: Vec<programs::Named>,
    /// What is left to C.
    foreign: Foreign,
    /// Whether there are `%` lines, which may declare anything.
    has_lines_of_c: bool,
}

impl Resolver<'_> {
    /// Gives every type its id, so that it may be used in front of its definition.
    fn name_types(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if matches!(
                definition.kind,
                DefinitionKind::Type(_) | DefinitionKind::Typedef(_)
            ) {
                self.name_type(definition);
            }
        }
    }

    fn name_type(&mut self, definition: &Definition) {
        let name = &definition.name;
        if !self.names.contains_key(&name.text) {
            let id = self.add_type(name, definition.doc.clone());
            self.names.insert(name.text.clone(), id);
        }
    }

    /// A type whose kind is not known yet.
    fn add_type(&mut self, name: &Name, doc: String) -> TypeId {
        let id = TypeId(self.schema.types.len() as u32);
        self.spans.push(name.span);
        self.schema.types.push(TypeDef {
            name: name.text.clone(),
            doc,
            origin: self.sources.origin(name.span),
            kind: TypeKind::External,
        });
        id
    }

    fn definition(&mut self, definition: &Definition) {
        match &definition.kind {
            DefinitionKind::Constant(_) => self.constant(definition),
            DefinitionKind::Program(program) => {
                self.program(definition, program);
                self.ends.push(definition.end);
            }
            DefinitionKind::Type(body) => {
                let kind = match body {
                    Body::Enum(members) => TypeKind::Enum(self.members(members)),
                    Body::Struct(fields) => TypeKind::Struct(self.fields(fields)),
                    Body::Union(union) => TypeKind::Union(self.union(union)),
                };
                self.define(definition, kind);
            }
            DefinitionKind::Typedef(ty) => {
                let kind = TypeKind::Typedef(self.type_use(ty));
                self.define(definition, kind);
            }
        }
    }

    fn define(&mut self, definition: &Definition, kind: TypeKind) {
        let id = self.names[&definition.name.text].0 as usize;
        if self.spans[id] != definition.name.span {
            return self.report_twice(definition, id, &kind);
        }
        self.schema.types[id].kind = kind;
        self.ends.push(definition.end);
    }

    /// A second definition of the type `id` is an error, unless it says the same.
    fn report_twice(&mut self, definition: &Definition, id: usize, kind: &TypeKind) {
        let name = &definition.name;
        let message = format!("the type `{}` is defined twice", name.text);
        let is_same = without_docs(&self.schema.types[id].kind) == without_docs(kind);
        let diagnostic = if is_same {
            Diagnostic::warning(name.span, message).label("in the same way")
        } else {
            Diagnostic::error(name.span, message)
        };
        let first = self.spans[id];
        self.diagnostics
            .push(diagnostic.related(first, "the first definition"));
    }

    fn constant(&mut self, definition: &Definition) {
        let DefinitionKind::Constant(constant) = &definition.kind else {
            return;
        };
        let value = match constant.from_macro {
            true => self
                .constants
                .of_macro(&constant.value)
                .map(ConstantValue::Number),
            false => Some(self.constants.of_constant(
                definition,
                &constant.value,
                self.diagnostics,
            )),
        };
        let value = value.or_else(|| constants::text(&constant.value));
        let Some(value) = value else { return };
        self.ends.push(definition.end);
        self.schema.constants.push(Constant {
            name: definition.name.text.clone(),
            doc: definition.doc.clone(),
            origin: self.sources.origin(definition.name.span),
            value,
        });
    }

    fn passthrough(&mut self, lines: &[PassthroughLine]) {
        self.ends.sort_unstable();
        for PassthroughLine { aside, expanded } in lines {
            let after = self.ends.partition_point(|end| *end <= aside.position);
            let text = self.sources.text(aside.span);
            let indented = self.sources.line_around(aside.span).start != aside.span.start;
            if self.options.strict_rpcgen && (indented || text.contains('\n')) {
                let message = "a `%` line is one line and starts in the first column";
                let error = Diagnostic::error(aside.span, message);
                self.diagnostics.push(error.label("refused by rpcgen"));
            }
            self.schema.passthrough.push(Passthrough {
                text: passthrough_text(expanded.as_deref().unwrap_or(text)),
                origin: self.sources.origin(aside.span),
                after_definitions: after as u32,
            });
        }
    }
}

fn without_docs(kind: &TypeKind) -> TypeKind {
    let mut kind = kind.clone();
    match &mut kind {
        TypeKind::Enum(members) => members.iter_mut().for_each(|member| member.doc.clear()),
        TypeKind::Struct(fields) => fields.iter_mut().for_each(|field| field.doc.clear()),
        TypeKind::Union(union) => {
            let arms = union.arms.iter_mut().filter_map(|arm| arm.field.as_mut());
            let fields = arms.chain(union.default.iter_mut().flatten());
            fields.for_each(|field| field.doc.clear());
        }
        TypeKind::Typedef(_) | TypeKind::External => {}
    }
    kind
}

/// A `%` line without its `%`; so too the lines it is continued on, where they have one.
fn passthrough_text(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.strip_prefix('%').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}
