//! Namespaces: `namespace name { .. }`. RFC 4506 has none; xdrpp and xdrgen do.

use crate::ast::Definition;
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use crate::token::Token;

use super::{ErrorReported, ParseResult, Parser};

/// Characters of a path: all names of a namespace begin with its path, so a long one would be multiplied.
const PATH_MAX: usize = 500;

/// The namespace in which definitions are parsed.
#[derive(Debug)]
pub(super) struct NamespaceScope {
    /// The path of the namespace; empty outside of all.
    pub namespace: String,
    /// The column in which definitions start there.
    pub column: u32,
    /// The column of the line that opens the namespace; 0 outside of all.
    opened_in: u32,
}

impl NamespaceScope {
    pub(super) fn outermost() -> NamespaceScope {
        NamespaceScope {
            namespace: String::new(),
            column: 1,
            opened_in: 0,
        }
    }
}

impl Parser<'_> {
    /// Parses `namespace name { .. }` and appends its definitions to `definitions`. A namespace may be opened several
    /// times, hold others, and be opened together with those around it: `namespace outer::inner { .. }`.
    pub(super) fn namespace(&mut self, definitions: &mut Vec<Definition>) -> ParseResult<()> {
        let keyword = self.cursor.advance();
        self.dialect(keyword.span, "rpcgen knows no namespaces");
        let namespace = self.namespace_path()?;
        let open = self.cursor.peek();
        if open.is(";") {
            let error = Diagnostic::error(open.span, "a namespace encloses its definitions");
            return Err(self.fail(error.hint("write `namespace name { .. }` around them")));
        }
        self.expect("{", "and the definitions")?;
        if self.depth >= self.options.limits.nesting_max {
            let error = Diagnostic::error(open.span, "namespaces are nested too deeply here");
            return Err(self.fail(error));
        }
        let first = self.cursor.peek();
        let inner = NamespaceScope {
            namespace,
            column: if first.first_on_line {
                self.column(first)
            } else {
                self.scope.column
            },
            opened_in: self.column(keyword),
        };
        let outer = std::mem::replace(&mut self.scope, inner);
        self.depth += 1;
        let closed = self.namespace_body(open.span, definitions);
        self.depth -= 1;
        self.scope = outer;
        closed
    }

    /// Parses the name of a namespace and returns its path.
    fn namespace_path(&mut self) -> ParseResult<String> {
        let mut path = self.scope.namespace.clone();
        let start = self.cursor.peek().span;
        loop {
            let name = self.name("the name of the namespace")?;
            if !path.is_empty() {
                path.push_str("::");
            }
            path.push_str(&name.text);
            if path.len() > PATH_MAX {
                let error =
                    Diagnostic::error(start.to(name.span), "this namespace has too long a name");
                return Err(self.fail(error));
            }
            if !self.cursor.eat("::") {
                return Ok(path);
            }
        }
    }

    /// Parses the definitions behind the `{` at `open`, and the `}`.
    fn namespace_body(&mut self, open: Span, definitions: &mut Vec<Definition>) -> ParseResult<()> {
        let mut has_failed = false;
        while !self.cursor.eat("}") {
            if self.at_end() || self.diagnostics.exhausted() {
                if !has_failed {
                    let error = Diagnostic::error(open, "this `{` is not closed");
                    self.diagnostics.push(error);
                }
                return Err(ErrorReported);
            }
            let before = self.cursor.position();
            if let Err(ErrorReported) = self.definition(definitions) {
                has_failed = true;
                self.recover(before);
            }
        }
        self.cursor.eat(";");
        Ok(())
    }

    /// Returns whether `token`, the current one, is the `}` of the namespace: that of a type or program is followed by
    /// `;` or `=`.
    pub(super) fn ends_namespace(&self, token: Token) -> bool {
        let is_brace = token.is("}") && token.first_on_line;
        is_brace
            && self.column(token) <= self.scope.opened_in
            && ![";", "="]
                .iter()
                .any(|mark| self.cursor.peek_by(1).is(mark))
    }
}
