//! Namespaces: `namespace name { .. }`. RFC 4506 knows none; xdrpp and xdrgen do.

use crate::ast::Definition;
use crate::diagnostics::Diagnostic;
use crate::source::Span;
use crate::token::Token;

use super::{Failed, Parse, Parser};

/// Characters of a path. All names of a namespace begin with its path, so a long one would be multiplied.
const PATH_MAX: usize = 500;

/// Where definitions are read.
#[derive(Debug)]
pub(super) struct Scope {
    /// The path of the namespace; empty outside of all.
    pub namespace: String,
    /// The column in which definitions start there.
    pub column: u32,
    /// The column of the line that opens the namespace; 0 outside of all.
    opened_in: u32,
}

impl Scope {
    pub(super) fn outermost() -> Scope {
        Scope {
            namespace: String::new(),
            column: 1,
            opened_in: 0,
        }
    }
}

impl Parser<'_> {
    /// `namespace name { .. }`: appends what it holds to `definitions`. A namespace may be opened several times, hold
    /// others, and be opened together with those around it: `namespace outer::inner { .. }`.
    pub(super) fn namespace(&mut self, definitions: &mut Vec<Definition>) -> Parse<()> {
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
        let inner = Scope {
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

    /// The path of the namespace whose name is at hand.
    fn namespace_path(&mut self) -> Parse<String> {
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

    /// The definitions behind the `{` at `open`, and the `}`.
    fn namespace_body(&mut self, open: Span, definitions: &mut Vec<Definition>) -> Parse<()> {
        let mut has_failed = false;
        while !self.cursor.eat("}") {
            if self.at_end() || self.diagnostics.exhausted() {
                if !has_failed {
                    let error = Diagnostic::error(open, "this `{` is not closed");
                    self.diagnostics.push(error);
                }
                return Err(Failed);
            }
            let before = self.cursor.position();
            if let Err(Failed) = self.definition(definitions) {
                has_failed = true;
                self.recover(before);
            }
        }
        self.cursor.eat(";");
        Ok(())
    }

    /// Whether `token`, the one at hand, is the `}` of the namespace: that of a type or program has something behind it.
    pub(super) fn ends_namespace(&self, token: Token) -> bool {
        let is_brace = token.is("}") && token.first_on_line;
        is_brace
            && self.column(token) <= self.scope.opened_in
            && ![";", "="]
                .iter()
                .any(|mark| self.cursor.peek_by(1).is(mark))
    }
}
