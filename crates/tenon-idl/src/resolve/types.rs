//! Uses of types, fields and enum members.

use std::collections::HashMap;

use tenon_schema::{EnumMember, Field, Length, Type};

use crate::ast::{
    Declaration, EnumeratorDef, Expression, LengthBound, SpannedName, TypeUse, TypeUseKind,
};
use crate::diagnostics::Diagnostic;
use crate::expression::EvaluationError;
use crate::options::Undeclared;
use crate::similar;
use crate::source::Span;

use super::{SchemaResolver, constants, known};

impl SchemaResolver<'_> {
    pub(super) fn type_use(&mut self, ty: &TypeUse) -> Type {
        match &ty.kind {
            TypeUseKind::Builtin(ty) => ty.clone(),
            TypeUseKind::Named(name) => self.named_type(name),
            TypeUseKind::Opaque(bound) => Type::Opaque(self.length(bound)),
            TypeUseKind::String(max) => Type::String(self.maximum(max.as_ref())),
            TypeUseKind::Array(element, bound) => {
                let element = self.type_use(element);
                Type::Array(Box::new(element), self.length(bound))
            }
            TypeUseKind::Optional(inner) => Type::Optional(Box::new(self.type_use(inner))),
            TypeUseKind::Inline(..) => unreachable!("flattening leaves none"),
        }
    }

    /// Resolves the name of a type: of this interface, of C's headers, or declared elsewhere.
    fn named_type(&mut self, name: &SpannedName) -> Type {
        if let Some(id) = self.names.get(&name.text) {
            return Type::Named(*id);
        }
        if let Some(ty) = known::undeclared(&name.text, self.options.undeclared) {
            return ty;
        }
        if self.options.undeclared == Undeclared::OfLibtirpc {
            return self.external(name);
        }
        self.report_undefined(name);
        self.external(name)
    }

    fn report_undefined(&mut self, name: &SpannedName) {
        let message = format!("the type `{}` is not defined in this interface", name.text);
        let (diagnostic, hint) = if self.allows_undefined() {
            let warning = Diagnostic::warning(name.span, message);
            (
                warning.label("taken to be declared elsewhere"),
                "only generated code that supplies its marshalling can use it",
            )
        } else {
            let error = Diagnostic::error(name.span, message);
            (
                error.label("stubs would not compile"),
                "allow undefined types (`--allow-undefined`), or name what declares it in a `%#include` line",
            )
        };
        let diagnostic = match self.meant(&name.text) {
            Some(meant) => diagnostic.hint(format!("did you mean `{meant}`? If not, {hint}")),
            None => diagnostic.hint(hint),
        };
        self.diagnostics.push(diagnostic);
    }

    /// Returns whether types that are not defined may be declared elsewhere: by one of the `%` lines, if there are any.
    pub(super) fn allows_undefined(&self) -> bool {
        self.has_lines_of_c || self.options.undeclared != Undeclared::Usual
    }

    /// Returns the type of which an undefined name may be a misspelling. Not searched for if it would not be shown.
    fn meant(&self, name: &str) -> Option<&str> {
        if !self.diagnostics.keeps_warnings() || self.diagnostics.exhausted() {
            return None;
        }
        let declared = self.schema.types[..self.declared].iter();
        similar::similar(name, declared.map(|def| &*def.name))
    }

    fn external(&mut self, name: &SpannedName) -> Type {
        let id = self.add_type(name, String::new());
        self.names.insert(name.text.clone(), id);
        Type::Named(id)
    }

    fn length(&mut self, bound: &LengthBound) -> Length {
        match bound {
            LengthBound::Fixed(length) => Length::Fixed(self.fixed_length(length)),
            LengthBound::Counted(max) => Length::Counted(self.maximum(max.as_ref())),
        }
    }

    fn fixed_length(&mut self, expression: &Expression) -> u32 {
        match self.number(expression, "length") {
            Some(0) => {
                let warning = Diagnostic::warning(expression.span, "this array holds nothing");
                self.diagnostics.push(warning);
                0
            }
            Some(value) => self.u32(value, expression.span, "length"),
            None => 0,
        }
    }

    /// Evaluates the bound of a counted type. One that depends on a name from elsewhere is no bound.
    fn maximum(&mut self, max: Option<&Expression>) -> u32 {
        let Some(expression) = max else {
            return u32::MAX;
        };
        match self.constants.value(expression, self.diagnostics) {
            Ok(value) => self.u32(value, expression.span, "bound"),
            Err(EvaluationError::Undefined(..)) if self.leave_to_c(expression) => u32::MAX,
            Err(EvaluationError::Undefined(span, name)) => {
                let message = format!("`{name}` is not defined in this interface");
                let warning = Diagnostic::warning(span, message).label("taken as no bound at all");
                self.diagnostics
                    .push(warning.hint(constants::remedy(&name)));
                u32::MAX
            }
            Err(error) => {
                self.report_huge(error, expression, "bound");
                u32::MAX
            }
        }
    }

    /// Reports a number that does not fit into 32 bits.
    fn report_huge(&mut self, error: EvaluationError, expression: &Expression, what: &str) {
        if let EvaluationError::Huge(span) = error {
            let message = format!("this {what} is too big: it does not fit into 32 bits");
            let error = Diagnostic::error(expression.span, message);
            self.diagnostics.push(match span == expression.span {
                true => error,
                false => error.related(span, "its value"),
            });
        }
    }

    /// Evaluates a number that has to be known, unless it is left to C; `what` describes it in the message.
    pub(super) fn number(&mut self, expression: &Expression, what: &str) -> Option<i128> {
        match self.constants.value(expression, self.diagnostics) {
            Ok(value) => Some(value),
            Err(EvaluationError::Undefined(..)) if self.leave_to_c(expression) => None,
            Err(EvaluationError::Undefined(span, name)) => {
                let message = format!("`{name}` is not defined, but this {what} has to be known");
                let mut hint = constants::remedy(&name);
                // A name with a namespace is no name of C.
                if !name.contains("::") {
                    hint += "; `tenon rpcgen` leaves it to C";
                }
                self.diagnostics
                    .push(Diagnostic::error(span, message).hint(hint));
                None
            }
            Err(error) => {
                self.report_huge(error, expression, what);
                None
            }
        }
    }

    pub(super) fn u32(&mut self, value: i128, span: Span, what: &str) -> u32 {
        u32::try_from(value).unwrap_or_else(|_| {
            let message = match value {
                ..0 => format!("a {what} cannot be negative, and this is {value}"),
                _ => format!("this {what} is {value}, which does not fit into 32 bits"),
            };
            self.diagnostics.push(Diagnostic::error(span, message));
            0
        })
    }

    pub(super) fn fields(&mut self, declarations: &[Declaration]) -> Vec<Field> {
        self.refuse_twice(
            "field",
            declarations.iter().map(|declaration| &declaration.name),
        );
        self.check_aliases(
            "field",
            declarations
                .iter()
                .map(|declaration| (&declaration.name, &*declaration.annotations)),
        );
        declarations
            .iter()
            .map(|declaration| self.field(declaration))
            .collect()
    }

    pub(super) fn field(&mut self, declaration: &Declaration) -> Field {
        let ty = self.type_use(&declaration.ty);
        Field {
            name: declaration.name.text.clone(),
            doc: declaration.doc.clone(),
            annotations: self.field_annotations(declaration, &ty),
            ty,
        }
    }

    /// Reports names of one scope that do not differ.
    pub(super) fn refuse_twice<'n>(
        &mut self,
        what: &str,
        names: impl Iterator<Item = &'n SpannedName>,
    ) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for name in names {
            if let Some(first) = seen.insert(&name.text, name.span) {
                let message = format!("there are two {what}s called `{}`", name.text);
                let error = Diagnostic::error(name.span, message);
                self.diagnostics.push(error.related(first, "the first one"));
            }
        }
    }

    pub(super) fn members(&mut self, members: &[EnumeratorDef]) -> Vec<EnumMember> {
        self.check_aliases(
            "member",
            members
                .iter()
                .map(|member| (&member.name, &*member.annotations)),
        );
        self.check_one_default(members);
        let mut next = Some(0);
        let mut resolved = Vec::new();
        for member in members {
            let value: Option<i128> = match &member.value {
                Some(value) => self.number(value, "value"),
                None => next,
            };
            // The successor of the largest number is rejected as that is.
            next = value.map(|value| value.saturating_add(1));
            resolved.push(EnumMember {
                name: member.name.text.clone(),
                doc: member.doc.clone(),
                annotations: self.member_annotations(&member.annotations),
                value: value.map_or(0, |value| self.member_value(value, member.name.span)),
            });
        }
        resolved
    }

    /// Converts the value of a member. RFC 4506 section 4.3: an enum is a signed 32-bit integer. C programs write flags
    /// of 32 bits all the same, and mean those bits.
    fn member_value(&mut self, value: i128, span: Span) -> i32 {
        if let Ok(value) = i32::try_from(value) {
            return value;
        }
        match u32::try_from(value) {
            Ok(bits) => {
                let message = format!("{value} does not fit into the 31 bits an enum has for it");
                let label = format!("taken as {}", bits as i32);
                self.diagnostics
                    .push(Diagnostic::warning(span, message).label(label));
                bits as i32
            }
            Err(_) => {
                let message = format!("the value of this member is {value}: too big for an enum");
                self.diagnostics.push(Diagnostic::error(span, message));
                0
            }
        }
    }
}
