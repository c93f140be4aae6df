//! Programs, versions and procedures (RFC 5531 section 12).

use crate::ast::{
    Definition, DefinitionKind, Expression, ParameterDirection, ProcedureDef, ProcedureParameter,
    ProgramDef, TypeUse, TypeUseKind, VersionDef,
};
use crate::diagnostics::Diagnostic;
use crate::expression::ExpressionContext;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::types::TypeSpecifier;
use super::{ErrorReported, ParseResult, Parser, is_reserved};

impl Parser<'_> {
    /// Parses `program NAME { version .. } = number;`.
    pub(super) fn program(&mut self) -> ParseResult<Definition> {
        self.cursor.advance();
        let name = self.name("the name of the program")?;
        let open = self.cursor.peek().span;
        self.expect("{", "and the versions")?;
        let mut versions = Vec::new();
        while !self.cursor.eat("}") {
            match self.version() {
                Ok(version) => versions.push(version),
                Err(ErrorReported) if !self.at_end() && self.recover_in_body() => {}
                Err(ErrorReported) => return Err(ErrorReported),
            }
        }
        if versions.is_empty() {
            let error = Diagnostic::error(open, "a program has at least one version");
            self.diagnostics.push(error);
        }
        let number = self.number("the program")?;
        let program = ProgramDef { number, versions };
        Ok(Definition::new(name, DefinitionKind::Program(program)))
    }

    fn version(&mut self) -> ParseResult<VersionDef> {
        let start = self.start();
        if !self.cursor.eat_word("version") {
            return Err(self.expected("`version` or `}`", ""));
        }
        let name = self.name("the name of the version")?;
        let open = self.cursor.peek().span;
        self.expect("{", "and the procedures")?;
        let mut procedures = Vec::new();
        while !self.cursor.eat("}") {
            match self.procedure() {
                Ok(procedure) => procedures.push(procedure),
                Err(ErrorReported) if !self.at_end() && self.recover_in_body() => {}
                Err(ErrorReported) => return Err(ErrorReported),
            }
        }
        if procedures.is_empty() {
            self.dialect(open, "a version has procedures");
        }
        let number = self.number("the version")?;
        Ok(VersionDef {
            doc: self.doc(start),
            annotations: self.annotations(start),
            name,
            number,
            procedures,
        })
    }

    /// Parses `= number;` behind a program, version or procedure.
    fn number(&mut self, of: &str) -> ParseResult<Expression> {
        self.expect("=", &format!("and the number of {of}"))?;
        let number = self.expression(ExpressionContext::Anywhere)?;
        self.semicolon()?;
        Ok(number)
    }

    /// Parses `result NAME(arguments) = number;`.
    fn procedure(&mut self) -> ParseResult<ProcedureDef> {
        let start = self.start();
        let specifier = self.specifier()?;
        let result = match specifier {
            TypeSpecifier::Void(_) => None,
            other => Some(self.passed_type(other)?),
        };
        let name = self.name("the name of the procedure")?;
        self.expect("(", "and the arguments")?;
        let arguments = self.arguments()?;
        let number = self.number("the procedure")?;
        Ok(ProcedureDef {
            doc: self.doc(start),
            annotations: self.annotations(start),
            name,
            number,
            arguments,
            result,
            outputs: Vec::new(),
        })
    }

    /// Parses the type of a result: like a field without a name.
    fn passed_type(&mut self, specifier: TypeSpecifier) -> ParseResult<TypeUse> {
        let token = self.cursor.peek();
        if ["*", "<", "["].iter().any(|mark| token.is(mark)) {
            self.dialect(token.span, "a result is one word: use a typedef");
        }
        let optional = self.optional();
        self.nameless(specifier, optional)
    }

    /// Parses a type without a name. A `string` needs no bound as an argument or a result.
    fn nameless(
        &mut self,
        specifier: TypeSpecifier,
        optional: Option<Span>,
    ) -> ParseResult<TypeUse> {
        let bare = !self.cursor.peek().is("<") && !self.cursor.peek().is("[");
        match specifier {
            TypeSpecifier::String(span) if bare && optional.is_none() => Ok(TypeUse {
                span,
                kind: TypeUseKind::String(None),
            }),
            other => self.declared_type(other, optional),
        }
    }

    fn arguments(&mut self) -> ParseResult<Vec<ProcedureParameter>> {
        let mut arguments = Vec::new();
        if self.cursor.eat(")") {
            return Ok(arguments);
        }
        loop {
            let direction = self.direction();
            let specifier = self.specifier()?;
            match specifier {
                TypeSpecifier::Void(span)
                    if !(arguments.is_empty() && self.cursor.peek().is(")")) =>
                {
                    let error = Diagnostic::error(span, "`void` stands alone or not at all");
                    return Err(self.fail(error));
                }
                TypeSpecifier::Void(_) => {}
                other => arguments.push(self.argument(direction, other)?),
            }
            if !self.cursor.eat(",") {
                break;
            }
            let span = self.cursor.previous().span;
            self.dialect(span, "several arguments need rpcgen's option -N");
        }
        self.expect(")", "")?;
        Ok(arguments)
    }

    /// Parses `in`, `out` or `inout`. A type may have such a name, too: then only the name of the parameter follows,
    /// and not a type and a name.
    fn direction(&mut self) -> ParameterDirection {
        let direction = match self.cursor.word() {
            Some("in") => ParameterDirection::In,
            Some("out") => ParameterDirection::Out,
            Some("inout") => ParameterDirection::InOut,
            _ => return ParameterDirection::In,
        };
        if !self.begins_parameter() {
            return ParameterDirection::In;
        }
        let span = self.cursor.advance().span;
        self.dialect(
            span,
            "arguments go there, results come back: there are no directions",
        );
        direction
    }

    /// Returns whether the tokens behind the current one are a type and a declarator, not just a name.
    fn begins_parameter(&self) -> bool {
        let [next, then] = [1, 2].map(|ahead| self.cursor.peek_by(ahead));
        let is_word = |token: Token| token.kind == TokenKind::Identifier;
        let is_followed = is_word(then) || then.is("*") || then.is("{");
        is_word(next) && (is_followed || is_reserved(self.cursor.text(next)))
    }

    fn argument(
        &mut self,
        direction: ParameterDirection,
        specifier: TypeSpecifier,
    ) -> ParseResult<ProcedureParameter> {
        let optional = self.optional();
        let name = match self.cursor.word() {
            Some(_) => Some(self.name("the name of the argument")?),
            None => None,
        };
        let ty = self.nameless(specifier, optional)?;
        if matches!(ty.kind, TypeUseKind::Array(..) | TypeUseKind::Opaque(_)) {
            self.dialect(ty.span, "no argument is an array: use a typedef");
        }
        if name.is_none() && direction != ParameterDirection::In {
            let error = Diagnostic::error(ty.span, "a parameter that comes back has a name");
            self.diagnostics.push(error);
        }
        Ok(ProcedureParameter {
            direction,
            name,
            ty,
        })
    }
}
