//! Annotations: statements in comments of the form `/*@ idempotent; raises no_such_key */`, which other generators skip.

use crate::ast::{Annotation, AnnotationKind, Expression, SpannedName};
use crate::cursor::TokenCursor;
use crate::diagnostics::Diagnostic;
use crate::expression::{self, ExpressionContext};
use crate::lexer::Lexer;
use crate::similar::closest;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::{ErrorReported, ItemStart, ParseResult, Parser};

/// The words that an annotation begins with.
const WORDS: [&str; 7] = [
    "idempotent",
    "raises",
    "stream",
    "deprecated",
    "sensitive",
    "alias",
    "default",
];

impl Parser<'_> {
    /// Returns the annotations of the item that started at `start` and ends in front of the current token, without those
    /// of the items in it.
    pub(super) fn annotations(&mut self, start: ItemStart) -> Vec<Annotation> {
        let end = self.cursor.previous().span;
        let comments = self
            .comments
            .annotations((start.position, start.span), (self.cursor.position(), end));
        let mut found = Vec::new();
        for comment in comments {
            if self.attached.insert((comment.file, comment.start)) {
                let _ = self.annotation_comment(comment, &mut found);
            }
        }
        found
    }

    /// Reports annotations that belong to nothing.
    pub(super) fn check_annotations(&mut self) {
        let list = self.comments.list;
        for span in list.iter().map(|comment| comment.span) {
            let is_attached = self.attached.contains(&(span.file, span.start));
            if !is_attached && self.comments.is_annotation(span) {
                let error = Diagnostic::error(span, "this annotation belongs to nothing");
                let hint = "write it on the line in front of what it is about, or on the same line";
                self.diagnostics.push(error.hint(hint));
            }
        }
    }

    /// Parses statements with `;` between them.
    fn annotation_comment(
        &mut self,
        comment: Span,
        found: &mut Vec<Annotation>,
    ) -> ParseResult<()> {
        let tokens = self.tokens_of(comment);
        let end = Span {
            start: comment.end - 2,
            ..comment
        };
        let mut cursor = TokenCursor::new(self.cursor.sources, &tokens, end);
        while cursor.peek().kind != TokenKind::End {
            let annotation = self.annotation(&mut cursor)?;
            let word = self.cursor.sources.text(annotation.span);
            let is_same = |other: &&Annotation| self.cursor.sources.text(other.span) == word;
            if let Some(first) = found.iter().find(is_same) {
                let message = format!("`{word}` is there twice");
                let error = Diagnostic::error(annotation.span, message);
                self.diagnostics
                    .push(error.related(first.span, "the first one"));
            } else {
                found.push(annotation);
            }
            if !cursor.eat(";") && cursor.peek().kind != TokenKind::End {
                return Err(self.unexpected(&cursor, "`;` or the end of the comment"));
            }
        }
        Ok(())
    }

    fn tokens_of(&self, comment: Span) -> Vec<Token> {
        let text = self.cursor.sources.whole(comment.file);
        let inner = comment.start as usize + "/*@".len()..comment.end as usize - "*/".len();
        let mut lexer = Lexer::within(comment.file, text, inner);
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::End {
                return tokens;
            }
            tokens.push(token);
        }
    }

    fn annotation(&mut self, cursor: &mut TokenCursor<'_>) -> ParseResult<Annotation> {
        let span = cursor.peek().span;
        let Some(word) = cursor.word() else {
            return Err(self.unexpected(cursor, "an annotation"));
        };
        cursor.advance();
        let kind = match word {
            "idempotent" => AnnotationKind::Idempotent,
            "sensitive" => AnnotationKind::Sensitive,
            "raises" => AnnotationKind::Raises(self.names(cursor, "the type of an error")?),
            "alias" => AnnotationKind::Alias(self.names(cursor, "a former name")?),
            "stream" => self.stream(cursor)?,
            "deprecated" => AnnotationKind::Deprecated(reason(cursor)),
            "default" => AnnotationKind::Default(self.default_value(cursor)?),
            unknown => {
                let message = format!("there is no annotation called `{unknown}`");
                let error = Diagnostic::error(span, message);
                return Err(self.fail(match closest(unknown, WORDS.into_iter()) {
                    Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                    None => error.hint(format!("there are: {}", WORDS.join(", "))),
                }));
            }
        };
        Ok(Annotation { span, kind })
    }

    /// Parses one name or several with commas between them.
    fn names(&mut self, cursor: &mut TokenCursor<'_>, what: &str) -> ParseResult<Vec<SpannedName>> {
        let mut names = Vec::new();
        loop {
            match cursor.path() {
                Some(name) => names.push(name),
                None => return Err(self.unexpected(cursor, what)),
            }
            if !cursor.eat(",") {
                return Ok(names);
            }
        }
    }

    fn stream(&mut self, cursor: &mut TokenCursor<'_>) -> ParseResult<AnnotationKind> {
        let (mut arguments, mut result) = (false, false);
        loop {
            match cursor.word() {
                Some("arguments") if !arguments => arguments = true,
                Some("result") if !result => result = true,
                _ => return Err(self.unexpected(cursor, "`arguments` or `result`, each once")),
            }
            cursor.advance();
            if !cursor.eat(",") {
                return Ok(AnnotationKind::Stream(arguments, result));
            }
        }
    }

    fn default_value(&mut self, cursor: &mut TokenCursor<'_>) -> ParseResult<Option<Expression>> {
        let next = cursor.peek();
        if next.is(";") || next.kind == TokenKind::End {
            return Ok(None);
        }
        let nesting_max = self.options.limits.nesting_max;
        let parsed = expression::parse(cursor, ExpressionContext::Anywhere, nesting_max);
        parsed.map(Some).map_err(|error| self.fail(error))
    }

    fn unexpected(&mut self, cursor: &TokenCursor<'_>, what: &str) -> ErrorReported {
        let found = match cursor.peek().kind {
            TokenKind::End => "the end of the comment".to_owned(),
            _ => cursor.describe(),
        };
        let message = format!("expected {what}, found {found}");
        self.fail(Diagnostic::error(cursor.peek().span, message))
    }
}

/// Parses a reason, which is a string.
fn reason(cursor: &mut TokenCursor<'_>) -> String {
    let token = cursor.peek();
    if token.kind != TokenKind::Text {
        return String::new();
    }
    cursor.advance();
    let text = cursor.text(token);
    text[1..text.len() - 1].to_owned()
}
