//! Conditional inclusion: `#if` and its relatives.

use crate::ast::ExpressionKind;
use crate::cursor::TokenCursor;
use crate::diagnostics::Diagnostic;
use crate::expression;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::Preprocessor;
use super::macros::{ExpansionContext, LineTokens};

/// An `#if` that has no `#endif` yet.
#[derive(Debug)]
pub(super) struct ConditionalBlock {
    pub opened: Span,
    /// The current group is included.
    pub active: bool,
    /// The text around the whole `#if` is included.
    surroundings: bool,
    /// A group has been included already, so no further one can be.
    taken: bool,
    otherwise: bool,
}

impl Preprocessor<'_> {
    /// Handles `#if`, `#ifdef`, `#ifndef`, `#elif`, `#else` and `#endif`; false for others.
    pub(super) fn condition(&mut self, name: &str, at: Span, line: &[Token]) -> bool {
        match name {
            "if" | "ifdef" | "ifndef" => self.open_condition(name, at, line),
            "elif" => self.continue_condition(at, line, false),
            "else" => self.continue_condition(at, line, true),
            "endif" => self.close_condition(at),
            _ => return false,
        }
        true
    }

    /// Returns whether the current text is excluded.
    pub(super) fn skipping(&self) -> bool {
        let innermost = self.frame().conditions.last();
        innermost.is_some_and(|condition| !condition.active)
    }

    fn open_condition(&mut self, name: &str, at: Span, line: &[Token]) {
        let surroundings = !self.skipping();
        let active = surroundings
            && match name {
                "if" => self.holds(at, line),
                "ifdef" => self.names_macro(at, line),
                _ => !self.names_macro(at, line),
            };
        let condition = ConditionalBlock {
            opened: at,
            active,
            surroundings,
            taken: active,
            otherwise: false,
        };
        self.frame_mut().conditions.push(condition);
    }

    fn continue_condition(&mut self, at: Span, line: &[Token], otherwise: bool) {
        let Some(condition) = self.frame().conditions.last() else {
            return self.report(Diagnostic::error(
                at,
                "there is no `#if` that this belongs to",
            ));
        };
        if condition.otherwise {
            let error = Diagnostic::error(at, "this `#if` has had its `#else`");
            let error = error.related(condition.opened, "the `#if`");
            return self.report(error);
        }
        let open = condition.surroundings && !condition.taken;
        let active = open && (otherwise || self.holds(at, line));
        if let Some(condition) = self.frame_mut().conditions.last_mut() {
            condition.active = active;
            condition.taken |= active;
            condition.otherwise = otherwise;
        }
    }

    fn close_condition(&mut self, at: Span) {
        if self.frame_mut().conditions.pop().is_none() {
            self.report(Diagnostic::error(
                at,
                "there is no `#if` that this `#endif` belongs to",
            ));
        }
    }

    fn names_macro(&mut self, at: Span, line: &[Token]) -> bool {
        let name = line
            .first()
            .filter(|token| token.kind == TokenKind::Identifier);
        match name {
            Some(name) => self.macros.is_defined(self.sources.text(name.spelled)),
            None => {
                self.report(Diagnostic::error(at, "expected the name of a macro"));
                false
            }
        }
    }

    /// Evaluates an `#if` line. Names that are no macros count as 0, as in C.
    fn holds(&mut self, at: Span, line: &[Token]) -> bool {
        let result = self.condition_tokens(line).and_then(|tokens| {
            let end = line.last().map_or(at, |token| token.span);
            let mut cursor = TokenCursor::new(self.sources, &tokens, end);
            let nesting_max = self.options.limits.nesting_max;
            let expression = expression::parse(
                &mut cursor,
                expression::ExpressionContext::Anywhere,
                nesting_max,
            )?;
            if cursor.peek().kind != TokenKind::End {
                let message = format!("expected an operator, found {}", cursor.describe());
                return Err(Diagnostic::error(cursor.peek().span, message));
            }
            let is_text = matches!(expression.kind, ExpressionKind::Text(_));
            match expression::evaluate(&expression, &mut |_, _| Ok(0)) {
                Ok(value) if !is_text => Ok(value != 0),
                _ => Err(Diagnostic::error(
                    expression.span,
                    "this condition has no value",
                )),
            }
        });
        result.unwrap_or_else(|error| {
            self.report(error);
            false
        })
    }

    /// Returns the line with macros expanded and `defined` evaluated.
    fn condition_tokens(&mut self, line: &[Token]) -> Result<Vec<Token>, Diagnostic> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(token) = line.get(at) {
            let text = self.sources.text(token.spelled);
            if token.kind == TokenKind::Identifier && text == "defined" {
                at += self.answer_defined(&line[at..], &mut tokens)?;
                continue;
            }
            let mut rest = LineTokens::of(&line[at + 1..]);
            let words =
                self.macros
                    .expand(self.sources, ExpansionContext::Condition, *token, &mut rest)?;
            tokens.extend(words.into_iter().map(|word| word.token));
            at += 1 + rest.taken;
        }
        Ok(tokens)
    }

    /// Evaluates `defined NAME` or `defined(NAME)`; returns the number of tokens that it took.
    fn answer_defined(&self, line: &[Token], out: &mut Vec<Token>) -> Result<usize, Diagnostic> {
        let (name, length) = match line {
            [_, open, name, close, ..] if open.is("(") && close.is(")") => (name, 4),
            [_, name, ..] => (name, 2),
            _ => (&line[0], 1),
        };
        if length == 1 || name.kind != TokenKind::Identifier {
            let error = Diagnostic::error(line[0].span, "expected a name behind `defined`");
            return Err(error.hint("write `defined(NAME)`"));
        }
        let answer = self.macros.is_defined(self.sources.text(name.spelled));
        out.push(Token {
            kind: TokenKind::Defined(answer),
            ..line[0]
        });
        Ok(length)
    }
}
