//! Discriminated unions (RFC 4506 section 4.15).

use std::collections::{HashMap, HashSet};

use tenon_schema::{Arm, Case, Type, TypeId, TypeKind, Union};

use crate::ast::{self, Expression, ExpressionKind};
use crate::diagnostics::Diagnostic;
use crate::options::Undeclared;
use crate::source::Span;

use super::{SchemaResolver, foreign};

/// The labels of a union, kept until all types are known.
pub(super) struct UnionLabels {
    discriminant: Type,
    discriminant_span: Span,
    list: Vec<CaseLabel>,
    /// The labels with values that C alone knows: an arm, a label of it.
    foreign: Vec<(usize, usize)>,
}

/// One label, before it is checked against the type of the discriminant.
struct CaseLabel {
    span: Span,
    text: String,
    value: i128,
}

/// The values of the enums that unions are switched by.
type EnumValues = HashMap<TypeId, HashSet<i32>>;

impl SchemaResolver<'_> {
    pub(super) fn union(&mut self, union: &ast::UnionBody) -> Union {
        let discriminant = self.field(&union.discriminant);
        let mut labels = UnionLabels {
            discriminant: discriminant.ty.clone(),
            discriminant_span: union.discriminant.ty.span,
            list: Vec::new(),
            foreign: Vec::new(),
        };
        let of = self.enum_name(&discriminant.ty);
        let arms = union.arms.iter().enumerate();
        let mut arms: Vec<Arm> = arms
            .map(|(index, arm)| self.arm((index, arm), of.as_deref(), &mut labels))
            .collect();
        foreign::fill_labels(&mut arms, &labels.foreign);
        let default = union.default.as_ref();
        let default = default.map(|field| field.as_ref().map(|field| self.field(field)));
        let fields = union.arms.iter().filter_map(|arm| arm.field.as_ref());
        let fields = fields.chain(union.default.iter().flatten());
        self.refuse_twice("field", fields.clone().map(|field| &field.name));
        self.check_aliases(
            "field",
            fields.map(|field| (&field.name, &*field.annotations)),
        );
        self.refuse_same_values(&labels);
        self.labels.push(labels);
        Union {
            discriminant: discriminant.name,
            discriminant_type: discriminant.ty,
            arms,
            default,
        }
    }

    /// Returns the name of the type that a union is switched by.
    fn enum_name(&self, ty: &Type) -> Option<String> {
        match self.schema.resolve(ty) {
            Type::Named(id) => Some(self.schema.type_def(*id).name.clone()),
            _ => None,
        }
    }

    fn arm(
        &mut self,
        (index, arm): (usize, &ast::UnionArm),
        of: Option<&str>,
        labels: &mut UnionLabels,
    ) -> Arm {
        let mut cases = Vec::new();
        for case in &arm.cases {
            if let Some(label) = self.label(case, of) {
                cases.push(Case {
                    label: tenon_schema::local_name(&label.text).to_owned(),
                    value: label.value as i32,
                });
                labels.list.push(label);
            } else if self.foreign.has(case) {
                labels.foreign.push((index, cases.len()));
                cases.push(Case {
                    label: self.sources.text(case.span).to_string(),
                    value: 0,
                });
            }
        }
        let field = arm.field.as_ref().map(|field| self.field(field));
        Arm { cases, field }
    }

    /// Resolves a label of a union that is switched by the type called `of`: a member of that type takes precedence
    /// over anything else of its name.
    fn label(&mut self, case: &Expression, of: Option<&str>) -> Option<CaseLabel> {
        let text = match &case.kind {
            ExpressionKind::Name(path) => {
                let member = of.and_then(|of| self.constants.member(of, path));
                member.unwrap_or_else(|| path.clone())
            }
            _ => self.sources.text(case.span).to_string(),
        };
        let value = match &case.kind {
            ExpressionKind::Name(_) => self.number(&case.named(&text), "label")?,
            _ => self.number(case, "label")?,
        };
        if value < i128::from(i32::MIN) || value > i128::from(u32::MAX) {
            if self.leave_to_c(case) {
                return None;
            }
            let message = format!("this label is {value}, which does not fit into 32 bits");
            self.diagnostics.push(Diagnostic::error(case.span, message));
            return None;
        }
        Some(CaseLabel {
            span: case.span,
            text,
            value,
        })
    }

    fn refuse_same_values(&mut self, labels: &UnionLabels) {
        let mut seen: HashMap<i32, Span> = HashMap::new();
        for label in &labels.list {
            if let Some(first) = seen.insert(label.value as i32, label.span) {
                let message = format!("`{}` selects an arm already", label.text);
                let error = Diagnostic::error(label.span, message);
                self.diagnostics
                    .push(error.related(first, "the first label of this value"));
            }
        }
    }

    /// Checks all labels against the discriminants, now that all types are known.
    pub(super) fn check_labels(&mut self) {
        let mut values = HashMap::new();
        for labels in std::mem::take(&mut self.labels) {
            self.check_union_labels(&labels, &mut values);
        }
    }

    fn check_union_labels(&mut self, labels: &UnionLabels, values: &mut EnumValues) {
        let (min, max, name) = match self.schema.resolve(&labels.discriminant) {
            Type::Uint | Type::Ushort | Type::Uchar => (0, i128::from(u32::MAX), "unsigned"),
            Type::Int | Type::Short | Type::Char => (
                i128::from(i32::MIN),
                i128::from(i32::MAX),
                "a signed integer",
            ),
            Type::Bool => (0, 1, "a bool"),
            Type::Named(id) => {
                let id = *id;
                return self.check_named_labels(labels, id, values);
            }
            // C switches by any integer; no other back end by one of 64 bits.
            Type::Hyper | Type::Uhyper if self.is_for_c() => return,
            _ => return self.refuse_discriminant(labels),
        };
        for label in &labels.list {
            if label.value < min || label.value > max {
                let message = format!(
                    "`{}` is {}, but the discriminant is {name}",
                    label.text, label.value
                );
                self.unfit_label(label.span, message, "");
            }
        }
    }

    /// Reports a label that the discriminant never has, or that its enum does not name. rpcgen passes it on.
    fn unfit_label(&mut self, span: Span, message: String, expected: impl Into<String>) {
        let diagnostic = if self.is_for_c() {
            Diagnostic::warning(span, message)
        } else {
            Diagnostic::error(span, message)
        };
        self.diagnostics.push(diagnostic.label(expected));
    }

    fn check_named_labels(&mut self, labels: &UnionLabels, id: TypeId, values: &mut EnumValues) {
        let def = self.schema.type_def(id);
        match &def.kind {
            TypeKind::Enum(members) => {
                let name = def.name.clone();
                let known = values
                    .entry(id)
                    .or_insert_with(|| members.iter().map(|member| member.value).collect());
                let labels = labels.list.iter();
                labels.for_each(|label| self.check_enum_label(label, &name, known));
            }
            TypeKind::External => {
                let name = def.name.clone();
                self.warn_of_foreign(labels, &name);
            }
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Typedef(_) => {
                self.refuse_discriminant(labels);
            }
        }
    }

    /// Checks a label of a union that is switched by an enum: it is one of its members (RFC 4506 section 4.15).
    fn check_enum_label(&mut self, label: &CaseLabel, name: &str, values: &HashSet<i32>) {
        let is_value = values.contains(&(label.value as i32));
        let foreign = self.constants.enum_of(&label.text).filter(|of| *of != name);
        let message = match (is_value, foreign) {
            (true, None) => return,
            (_, Some(of)) => format!("`{}` belongs to `{of}`, not to `{name}`", label.text),
            (false, None) => format!("`{}` is no value of `{name}`", label.text),
        };
        if is_value {
            let warning = Diagnostic::warning(label.span, message);
            self.diagnostics
                .push(warning.label("its value happens to fit"));
        } else {
            self.unfit_label(
                label.span,
                message,
                format!("expected a member of `{name}`"),
            );
        }
    }

    /// Warns of a discriminant of a type that is declared elsewhere: C alone knows its values.
    fn warn_of_foreign(&mut self, labels: &UnionLabels, name: &str) {
        if self.options.undeclared == Undeclared::OfLibtirpc || !self.allows_undefined() {
            return;
        }
        let message =
            format!("this union is switched by `{name}`, which this interface does not define");
        let warning = Diagnostic::warning(labels.discriminant_span, message);
        let warning = warning.label("its values are not known");
        self.diagnostics
            .push(warning.hint("only `tenon rpcgen` can make stubs of it"));
    }

    fn refuse_discriminant(&mut self, labels: &UnionLabels) {
        let message = "no union can be switched by this type";
        let error = Diagnostic::error(labels.discriminant_span, message);
        self.diagnostics
            .push(error.label("expected int, unsigned int, bool or an enum"));
    }
}
