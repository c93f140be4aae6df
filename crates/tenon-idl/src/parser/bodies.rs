//! The bodies of enums, structs and unions (RFC 4506 sections 4.3, 4.14, 4.15).

use crate::ast::{Declaration, EnumeratorDef, Expression, TypeBody, UnionArm, UnionBody};
use crate::diagnostics::Diagnostic;
use crate::expression::ExpressionContext;
use crate::source::Span;

use super::{ErrorReported, ParseResult, Parser};

impl Parser<'_> {
    /// Parses the body of the type that `keyword` introduces.
    pub(super) fn body(&mut self, keyword: &str) -> ParseResult<TypeBody> {
        match keyword {
            "enum" => Ok(TypeBody::Enum(self.enum_body()?)),
            "union" => Ok(TypeBody::Union(Box::new(self.union_body()?))),
            _ => Ok(TypeBody::Struct(self.struct_body()?)),
        }
    }

    fn enum_body(&mut self) -> ParseResult<Vec<EnumeratorDef>> {
        self.expect("{", "and the members")?;
        let mut members = Vec::new();
        loop {
            let end = self.cursor.peek();
            if end.is("}") {
                match members.is_empty() {
                    true => {
                        let error = Diagnostic::error(end.span, "an enum has members");
                        let hint = "without any there is no value of it, nor of what contains it";
                        self.diagnostics.push(error.hint(hint));
                    }
                    false => self.dialect(end.span, "no `,` behind the last member"),
                }
                break;
            }
            members.push(self.member()?);
            if !self.cursor.previous().is(",") {
                break;
            }
        }
        self.expect("}", "or `,` and another member")?;
        Ok(members)
    }

    /// Parses `NAME = value` with the `,` behind it, so that a comment behind the `,` belongs to the member.
    fn member(&mut self) -> ParseResult<EnumeratorDef> {
        let start = self.start();
        let name = self.name("the name of a member")?;
        let value = match self.cursor.eat("=") {
            true => Some(self.expression(ExpressionContext::Anywhere)?),
            false => None,
        };
        self.cursor.eat(",");
        Ok(EnumeratorDef {
            doc: self.doc(start),
            annotations: self.annotations(start),
            name,
            value,
        })
    }

    fn struct_body(&mut self) -> ParseResult<Vec<Declaration>> {
        let open = self.cursor.peek();
        self.expect("{", "and the fields")?;
        let mut fields = Vec::new();
        while !self.cursor.eat("}") {
            if self.at_end() {
                let error = Diagnostic::error(open.span, "this `{` is not closed");
                return Err(self.fail(error));
            }
            match self.field() {
                Ok(field) => fields.push(field),
                Err(ErrorReported) if self.recover_in_body() => {}
                Err(ErrorReported) => return Err(ErrorReported),
            }
        }
        if fields.is_empty() {
            self.dialect(open.span, "a struct has fields");
        }
        Ok(fields)
    }

    fn field(&mut self) -> ParseResult<Declaration> {
        let span = self.cursor.peek().span;
        self.declaration()?.ok_or_else(|| {
            let error = Diagnostic::error(span, "a struct holds nothing that is `void`");
            self.fail(error.hint("leave it out"))
        })
    }

    /// Parses `switch (type name) { case .. }`.
    fn union_body(&mut self) -> ParseResult<UnionBody> {
        if !self.cursor.eat_word("switch") {
            return Err(self.expected(
                "`switch`",
                "a union is written `union name switch (type name) { case 1: .. }`",
            ));
        }
        self.expect("(", "and the discriminant")?;
        let specifier = self.specifier()?;
        let discriminant = self.declarator(specifier, "the name of the discriminant")?;
        self.expect(")", "")?;
        let open = self.cursor.peek().span;
        self.expect("{", "and the cases")?;
        let mut union = UnionBody {
            discriminant,
            arms: Vec::new(),
            default: None,
        };
        let mut has_failed = false;
        while !self.cursor.eat("}") {
            match self.union_part(&mut union) {
                Ok(()) => {}
                Err(ErrorReported) if !self.at_end() && self.recover_in_body() => has_failed = true,
                Err(ErrorReported) => return Err(ErrorReported),
            }
        }
        if !has_failed {
            self.check_arms(&union, open);
        }
        Ok(union)
    }

    /// Reports a union without arms, of which there is no value.
    fn check_arms(&mut self, union: &UnionBody, open: Span) {
        match (&union.default, union.arms.is_empty()) {
            (None, true) => {
                let error = Diagnostic::error(open, "a union has arms");
                let hint = "without any there is no value of it, nor of what contains it";
                self.diagnostics.push(error.hint(hint));
            }
            (Some(_), true) => self.dialect(open, "a union has a `case`"),
            (_, false) => {}
        }
    }

    /// Parses `case 1: case 2: int x;` or `default: void;`.
    fn union_part(&mut self, union: &mut UnionBody) -> ParseResult<()> {
        let start = self.cursor.peek();
        if let Some(span) = union.default.as_ref().map(|_| start.span) {
            self.dialect(span, "`default` comes last");
        }
        let mut cases = Vec::new();
        let mut is_default = false;
        loop {
            if self.cursor.eat_word("case") {
                cases.push(self.case_label()?);
            } else if self.cursor.at_word("default") && self.cursor.peek_by(1).is(":") {
                is_default = true;
                self.cursor.advance();
                self.cursor.advance();
            } else {
                break;
            }
        }
        if cases.is_empty() && !is_default {
            return Err(self.expected("`case`, `default` or `}`", ""));
        }
        if is_default && !cases.is_empty() {
            self.dialect(start.span, "`default` stands alone");
        }
        let field = self.declaration()?;
        if is_default && union.default.is_some() {
            let error = Diagnostic::error(start.span, "this union has a `default` already");
            return Err(self.fail(error));
        }
        // A label beside `default` selects what `default` selects anyway.
        match is_default {
            true => union.default = Some(field),
            false => union.arms.push(UnionArm { cases, field }),
        }
        Ok(())
    }

    fn case_label(&mut self) -> ParseResult<Expression> {
        let label = self.expression(ExpressionContext::Anywhere)?;
        self.expect(":", "")?;
        Ok(label)
    }
}
