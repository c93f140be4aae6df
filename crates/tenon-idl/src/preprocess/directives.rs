//! Directives: lines that start with `#`.

use crate::diagnostics::Diagnostic;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::Preprocessor;
use super::macros::MacroDefinition;

/// Bytes of a file's name: Linux permits no longer ones.
const FILE_NAME_MAX: usize = 4096;

impl Preprocessor<'_> {
    /// Handles the directive that `hash` introduces.
    pub(super) fn directive(&mut self, hash: Token) {
        let Some(word) = self.frame_mut().lexer.next_on_line() else {
            return; // `#` alone is C's null directive
        };
        let name = self.sources.text(word.spelled).to_string();
        if name == "include" {
            return self.include_line(word.span);
        }
        let rest = self.frame().lexer.rest_of_line();
        let line = self.line();
        let at = hash.span.to(word.span);
        if self.condition(&name, at, &line) || self.skipping() {
            return;
        }
        match name.as_str() {
            "define" => self.define(at, &line),
            "undef" => self.undefine(at, &line),
            "line" => self.line_marker(at, &line),
            _ if word.kind == TokenKind::Number => {
                let line: Vec<Token> = std::iter::once(word).chain(line).collect();
                self.line_marker(at, &line);
            }
            "error" => {
                let text = self.sources.text(rest).trim().to_string();
                self.report(Diagnostic::error(
                    at,
                    format!("the interface refuses this: {text}"),
                ));
            }
            "warning" => {
                let text = self.sources.text(rest).trim().to_string();
                self.report(Diagnostic::warning(at, text));
            }
            "pragma" | "ident" | "sccs" => {}
            _ => self.unknown(at, &name),
        }
    }

    /// Reads the rest of the logical line; comments are stored apart. Of a line that is longer than an interface may
    /// be only the beginning is returned, and nothing behind it is read.
    pub(super) fn line(&mut self) -> Vec<Token> {
        let mut line = Vec::new();
        while let Some(token) = self.frame_mut().lexer.next_on_line() {
            match token.kind {
                TokenKind::Comment if self.skipping() => {}
                TokenKind::Comment => self.comment(token),
                _ if line.len() >= self.words_left() => {
                    self.macro_words = self.options.limits.tokens_max;
                    break;
                }
                _ => line.push(token),
            }
        }
        line
    }

    fn unknown(&mut self, at: Span, name: &str) {
        let message = format!("there is no directive `#{name}`");
        self.report(
            Diagnostic::error(at, message)
                .hint("a line for the generated C code starts with `%` instead"),
        );
    }

    fn define(&mut self, at: Span, line: &[Token]) {
        let Some(name) = self.macro_name(at, line) else {
            return;
        };
        self.macro_words += line.len() - 1;
        let made = match MacroDefinition::defined(name, &line[1..], self.sources) {
            Ok(made) => made,
            Err(error) => return self.report(error),
        };
        let text = self.sources.text(name.spelled).to_string();
        if !self.macros.is_defined(&text) {
            self.defined.push((text.clone(), self.unit.tokens.len()));
        }
        self.macros.define(&text, made);
    }

    fn undefine(&mut self, at: Span, line: &[Token]) {
        let Some(name) = self.macro_name(at, line) else {
            return;
        };
        let text = self.sources.text(name.spelled).to_string();
        self.macros.undefine(&text);
    }

    fn macro_name(&mut self, at: Span, line: &[Token]) -> Option<Token> {
        let name = line.first().copied();
        let name = name.filter(|token| token.kind == TokenKind::Identifier);
        if name.is_none() {
            self.report(Diagnostic::error(at, "expected the name of a macro"));
        }
        name
    }

    /// Handles `#line 7 "file.x"`, or `# 7 "file.x"` as a C preprocessor emits it.
    fn line_marker(&mut self, at: Span, line: &[Token]) {
        let number = line.first().and_then(|token| {
            let text = self.sources.text(token.spelled);
            text.parse::<u32>().ok()
        });
        let name = line.get(1).filter(|token| token.kind == TokenKind::Text);
        let name = name.map(|token| {
            self.sources
                .text(token.spelled)
                .trim_matches('"')
                .to_owned()
        });
        if name.as_ref().is_some_and(|name| name.len() > FILE_NAME_MAX) {
            return self.report(Diagnostic::error(at, "no file has so long a name"));
        }
        match number {
            Some(number) => self.sources.mark_line(at, number, name.as_deref()),
            None => self.report(Diagnostic::error(at, "expected a line number")),
        }
    }
}
