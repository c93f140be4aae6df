//! The syntax tree to a [`Schema`]: resolves names, evaluates constants, checks types.

mod annotations;
mod checks;
mod constants;
mod endless;
mod flatten;
mod foreign;
mod known;
mod namespaces;
mod programs;
mod types;
mod unions;
mod written;

use std::collections::HashMap;

use tenon_schema::written::Written;
use tenon_schema::{
    Constant, ConstantValue, Passthrough, Schema, TypeAnnotations, TypeDef, TypeId, TypeKind,
};

use crate::ast::{Definition, DefinitionKind, SpannedName, TypeBody};
use crate::diagnostics::{Diagnostic, DiagnosticCollector};
use crate::options::Options;
use crate::preprocess::PassthroughLine;
use crate::source::{SourceMap, Span};

use constants::ConstantEvaluator;
use foreign::ForeignExpressions;
use unions::UnionLabels;

/// Resolves `definitions`. The schema is complete only if no error was reported.
pub(crate) fn resolve(
    mut definitions: Vec<Definition>,
    passthrough: &[PassthroughLine],
    sources: &SourceMap,
    options: &Options,
    diagnostics: &mut DiagnosticCollector,
) -> (Schema, Written) {
    namespaces::qualify(&mut definitions);
    let definitions = flatten::flatten(definitions);
    let constants = ConstantEvaluator::collect(&definitions, sources, diagnostics);
    let mut resolver = SchemaResolver {
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
        defaults: Vec::new(),
        raised: Vec::new(),
        foreign: ForeignExpressions::default(),
        has_lines_of_c: !passthrough.is_empty(),
    };
    resolver.name_types(&definitions);
    resolver.declared = resolver.schema.types.len();
    for definition in &definitions {
        resolver.definition(definition);
    }
    resolver.check_type_aliases(&definitions);
    resolver.check_defaults();
    resolver.check_raised();
    resolver.check_labels();
    resolver.check_programs_apart();
    endless::check_ends(&mut resolver);
    checks::check_sizes(&mut resolver);
    resolver.passthrough(passthrough);
    let schema = resolver.schema;
    let named = written::ResolvedNames {
        types: &resolver.names,
        foreign: &resolver.foreign,
    };
    let written = written::written(&definitions, passthrough, &schema, named, sources);
    (schema, written)
}

struct SchemaResolver<'a> {
    sources: &'a SourceMap,
    options: &'a Options,
    diagnostics: &'a mut DiagnosticCollector,
    constants: ConstantEvaluator<'a>,
    /// The types by name, those that are declared elsewhere included.
    names: HashMap<String, TypeId>,
    /// Number of types of the schema that are declared here: they stand in front of the others.
    declared: usize,
    /// The span of the name of each type of the schema.
    spans: Vec<Span>,
    schema: Schema,
    /// The ends of the definitions of the schema, in tokens, to place `%` lines between them.
    ends: Vec<usize>,
    labels: Vec<UnionLabels>,
    programs: Vec<programs::ProgramIdentity>,
    /// The default values of fields, which are checked when all types are known.
    defaults: Vec<annotations::GivenDefault>,
    /// The types that procedures raise, which are checked when all types are known.
    raised: Vec<annotations::RaisedName>,
    /// The expressions that are left to C.
    foreign: ForeignExpressions,
    /// There are `%` lines, which may declare anything.
    has_lines_of_c: bool,
}

impl SchemaResolver<'_> {
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
            self.schema.types[id.0 as usize].annotations =
                self.type_annotations(&definition.annotations);
            self.names.insert(name.text.clone(), id);
        }
    }

    /// Adds a type of which the kind is not known yet.
    fn add_type(&mut self, name: &SpannedName, doc: String) -> TypeId {
        let id = TypeId(self.schema.types.len() as u32);
        self.spans.push(name.span);
        self.schema.types.push(TypeDef {
            name: name.text.clone(),
            doc,
            origin: self.sources.origin(name.span),
            annotations: TypeAnnotations::default(),
            kind: TypeKind::External,
        });
        id
    }

    fn definition(&mut self, definition: &Definition) {
        match &definition.kind {
            DefinitionKind::Constant(_) => self.refuse_annotations(definition, "a constant"),
            DefinitionKind::Program(_) => self.refuse_annotations(definition, "a program"),
            DefinitionKind::Type(_) | DefinitionKind::Typedef(_) => {}
        }
        match &definition.kind {
            DefinitionKind::Constant(_) => self.constant(definition),
            DefinitionKind::Program(program) => {
                self.program(definition, program);
                self.ends.push(definition.end);
            }
            DefinitionKind::Type(body) => {
                let kind = match body {
                    TypeBody::Enum(members) => TypeKind::Enum(self.members(members)),
                    TypeBody::Struct(fields) => TypeKind::Struct(self.fields(fields)),
                    TypeBody::Union(union) => TypeKind::Union(self.union(union)),
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

    /// Reports a second definition of the type `id`: an error, unless it is the same.
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
        for PassthroughLine { trivia, expanded } in lines {
            let after = self.ends.partition_point(|end| *end <= trivia.position);
            let text = self.sources.text(trivia.span);
            let indented = self.sources.line_around(trivia.span).start != trivia.span.start;
            if self.options.strict_rpcgen && (indented || text.contains('\n')) {
                let message = "a `%` line is one line and starts in the first column";
                let error = Diagnostic::error(trivia.span, message);
                self.diagnostics.push(error.label("refused by rpcgen"));
            }
            self.schema.passthrough.push(Passthrough {
                text: passthrough_text(expanded.as_deref().unwrap_or(text)),
                origin: self.sources.origin(trivia.span),
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

/// Returns a `%` line without its `%`; its continuation lines lose theirs, too, if they have one.
fn passthrough_text(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.strip_prefix('%').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}
