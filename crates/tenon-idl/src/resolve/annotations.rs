//! Annotations: which may stand where, and what they mean.

use std::collections::HashMap;

use tenon_schema::{
    DefaultValue, Field, FieldAnnotations, MemberAnnotations, ProcedureAnnotations, Streams, Type,
    TypeAnnotations, TypeId, TypeKind, VersionAnnotations,
};

use crate::ast::{
    Annotation, AnnotationKind, Declaration, Definition, DefinitionKind, EnumeratorDef, Expression,
    ExpressionKind, ProcedureDef, SpannedName,
};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

use super::SchemaResolver;

/// A default value, and the type that it is of.
pub(super) struct GivenDefault {
    span: Span,
    ty: Type,
    value: DefaultValue,
}

/// A type that a procedure raises, and the place that says so.
pub(super) struct RaisedName {
    id: TypeId,
    span: Span,
}

impl SchemaResolver<'_> {
    pub(super) fn type_annotations(&mut self, annotations: &[Annotation]) -> TypeAnnotations {
        let mut of = TypeAnnotations::default();
        for annotation in annotations {
            match &annotation.kind {
                AnnotationKind::Deprecated(reason) => of.deprecated = Some(reason.clone()),
                AnnotationKind::Alias(names) => of.aliases = texts(names),
                _ => self.report_misplaced(annotation, "a type"),
            }
        }
        of
    }

    pub(super) fn field_annotations(&mut self, field: &Declaration, ty: &Type) -> FieldAnnotations {
        let mut of = FieldAnnotations::default();
        for annotation in &field.annotations {
            match &annotation.kind {
                AnnotationKind::Deprecated(reason) => of.deprecated = Some(reason.clone()),
                AnnotationKind::Alias(names) => of.aliases = texts(names),
                AnnotationKind::Sensitive => of.sensitive = true,
                AnnotationKind::Default(Some(value)) => of.default = self.default_value(value, ty),
                AnnotationKind::Default(None) => {
                    let error =
                        Diagnostic::error(annotation.span, "the default of a field has a value");
                    self.diagnostics.push(error.hint("write `default 7`"));
                }
                _ => self.report_misplaced(annotation, "a field"),
            }
        }
        of
    }

    pub(super) fn member_annotations(&mut self, annotations: &[Annotation]) -> MemberAnnotations {
        let mut of = MemberAnnotations::default();
        for annotation in annotations {
            match &annotation.kind {
                AnnotationKind::Deprecated(reason) => of.deprecated = Some(reason.clone()),
                AnnotationKind::Alias(names) => of.aliases = texts(names),
                AnnotationKind::Default(None) => of.is_default = true,
                AnnotationKind::Default(Some(_)) => {
                    let message = "a member of an enum is the default, and has no other one";
                    let error = Diagnostic::error(annotation.span, message);
                    self.diagnostics.push(error.hint("write `default` alone"));
                }
                _ => self.report_misplaced(annotation, "a member of an enum"),
            }
        }
        of
    }

    pub(super) fn version_annotations(&mut self, annotations: &[Annotation]) -> VersionAnnotations {
        let mut of = VersionAnnotations::default();
        for annotation in annotations {
            match &annotation.kind {
                AnnotationKind::Deprecated(reason) => of.deprecated = Some(reason.clone()),
                _ => self.report_misplaced(annotation, "a version"),
            }
        }
        of
    }

    pub(super) fn procedure_annotations(
        &mut self,
        procedure: &ProcedureDef,
    ) -> ProcedureAnnotations {
        let mut of = ProcedureAnnotations::default();
        for annotation in &procedure.annotations {
            match &annotation.kind {
                AnnotationKind::Deprecated(reason) => of.deprecated = Some(reason.clone()),
                AnnotationKind::Idempotent => of.idempotent = true,
                AnnotationKind::Raises(names) => of.raises = self.raised(names),
                AnnotationKind::Stream(arguments, result) => {
                    let streams = Streams {
                        arguments: *arguments,
                        result: *result,
                    };
                    self.check_streams(annotation, procedure, streams);
                    of.streams = streams;
                }
                _ => self.report_misplaced(annotation, "a procedure"),
            }
        }
        of
    }

    pub(super) fn refuse_annotations(&mut self, definition: &Definition, what: &str) {
        for annotation in &definition.annotations {
            self.report_misplaced(annotation, what);
        }
    }

    fn report_misplaced(&mut self, annotation: &Annotation, what: &str) {
        let (word, place) = match annotation.kind {
            AnnotationKind::Idempotent => ("idempotent", "a procedure"),
            AnnotationKind::Raises(_) => ("raises", "a procedure"),
            AnnotationKind::Stream(..) => ("stream", "a procedure"),
            AnnotationKind::Deprecated(_) => (
                "deprecated",
                "a type, a field, a member of an enum, a procedure or a version",
            ),
            AnnotationKind::Sensitive => ("sensitive", "a field"),
            AnnotationKind::Alias(_) => ("alias", "a type, a field or a member of an enum"),
            AnnotationKind::Default(_) => ("default", "a field or a member of an enum"),
        };
        let message = format!("`{word}` says nothing of {what}");
        let error = Diagnostic::error(annotation.span, message);
        self.diagnostics
            .push(error.hint(format!("it belongs to {place}")));
    }

    /// Resolves the types of errors.
    fn raised(&mut self, names: &[SpannedName]) -> Vec<TypeId> {
        self.refuse_twice("error", names.iter());
        let mut raised = Vec::new();
        for name in names {
            match self.names.get(&name.text) {
                Some(id) if (id.0 as usize) < self.declared => {
                    raised.push(*id);
                    self.raised.push(RaisedName {
                        id: *id,
                        span: name.span,
                    });
                }
                _ => {
                    let message = format!("the error `{}` is no type of this interface", name.text);
                    let error = Diagnostic::error(name.span, message);
                    let hint = "define a struct of this name, which is what the error carries";
                    self.diagnostics.push(error.hint(hint));
                }
            }
        }
        raised
    }

    /// Reports errors that are no values of their own: stubs tell errors apart by their types, and of a linked list they
    /// would take the first element.
    pub(super) fn check_raised(&mut self) {
        for RaisedName { id, span } in std::mem::take(&mut self.raised) {
            let def = self.schema.type_def(id);
            let what = match &def.kind {
                TypeKind::Typedef(_) => "no struct, union or enum",
                TypeKind::Struct(fields) if leads_to(fields, id) => "an element of a linked list",
                _ => continue,
            };
            let error = Diagnostic::error(span, format!("the error `{}` is {what}", def.name));
            let hint = "define a struct that holds it, and raise that";
            self.diagnostics.push(error.hint(hint));
        }
    }

    fn check_streams(&mut self, annotation: &Annotation, procedure: &ProcedureDef, of: Streams) {
        if of.arguments && procedure.arguments.is_empty() {
            let message = "a procedure without arguments has no stream of them";
            let error = Diagnostic::error(annotation.span, message);
            let hint = "the last argument is the item of the stream";
            self.diagnostics.push(error.hint(hint));
        }
        if of.result && procedure.result.is_none() {
            let message = "a procedure without a result has no stream of results";
            let error = Diagnostic::error(annotation.span, message);
            self.diagnostics
                .push(error.hint("the result is the item of the stream"));
        }
    }

    /// Reports former names that are in use, or stand twice, among siblings.
    pub(super) fn check_aliases<'n>(
        &mut self,
        what: &str,
        siblings: impl Iterator<Item = (&'n SpannedName, &'n [Annotation])> + Clone,
    ) {
        let names = siblings.clone().map(|(name, _)| (&*name.text, name.span));
        let mut seen: HashMap<&str, Span> = names.collect();
        let annotations = siblings.flat_map(|(_, annotations)| annotations);
        let aliases = annotations.filter_map(|annotation| match &annotation.kind {
            AnnotationKind::Alias(names) => Some(names),
            _ => None,
        });
        for alias in aliases.flatten() {
            if let Some(first) = seen.insert(&alias.text, alias.span) {
                let message = format!("a {what} has the name `{}` already", alias.text);
                let error = Diagnostic::error(alias.span, message);
                self.diagnostics.push(error.related(first, "this one"));
            }
        }
    }

    pub(super) fn check_type_aliases(&mut self, definitions: &[Definition]) {
        let types = definitions.iter().filter(|definition| {
            matches!(
                definition.kind,
                DefinitionKind::Type(_) | DefinitionKind::Typedef(_)
            )
        });
        self.check_aliases("type", types.map(|it| (&it.name, &*it.annotations)));
    }

    pub(super) fn check_one_default(&mut self, members: &[EnumeratorDef]) {
        let all = members.iter().flat_map(|member| &member.annotations);
        let mut defaults = all.filter(|it| matches!(it.kind, AnnotationKind::Default(None)));
        let Some(first) = defaults.next() else { return };
        for second in defaults {
            let error = Diagnostic::error(second.span, "an enum has one default");
            self.diagnostics
                .push(error.related(first.span, "the first one"));
        }
    }

    /// Evaluates the default value of a field of a type, and notes it for the check.
    fn default_value(&mut self, expression: &Expression, ty: &Type) -> Option<DefaultValue> {
        let value = match &expression.kind {
            ExpressionKind::Text(text) => DefaultValue::Text(text.clone()),
            ExpressionKind::Name(name) if matches!(&**name, "TRUE" | "FALSE") => {
                DefaultValue::Number(i128::from(name == "TRUE"))
            }
            _ => DefaultValue::Number(self.number(expression, "default")?),
        };
        self.defaults.push(GivenDefault {
            span: expression.span,
            ty: ty.clone(),
            value: value.clone(),
        });
        Some(value)
    }

    /// Reports default values that their types do not have.
    pub(super) fn check_defaults(&mut self) {
        for given in std::mem::take(&mut self.defaults) {
            if let Some(message) = given.value.unfit(&self.schema, &given.ty) {
                self.diagnostics
                    .push(Diagnostic::error(given.span, message));
            }
        }
    }
}

fn texts(names: &[SpannedName]) -> Vec<String> {
    names.iter().map(|name| name.text.clone()).collect()
}

/// Returns whether the last of `fields` is a pointer to the struct `id`, which has them.
fn leads_to(fields: &[Field], id: TypeId) -> bool {
    let last = fields.last().map(|field| &field.ty);
    matches!(last, Some(Type::Optional(to)) if **to == Type::Named(id))
}
