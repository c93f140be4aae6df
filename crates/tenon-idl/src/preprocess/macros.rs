//! Object macros: what `#define` and `-D` leave behind, and their expansion.

use std::collections::HashMap;

use crate::diagnostics::Diagnostic;
use crate::source::{Sources, Span};
use crate::token::{Token, TokenKind};

/// A macro.
#[derive(Debug, Clone)]
pub(super) struct Macro {
    pub name: Token,
    pub body: Vec<Token>,
    /// `#define f(x) ..`: known, but never expanded.
    pub function_like: bool,
}

/// All macros of a run.
#[derive(Debug)]
pub(super) struct Macros {
    table: HashMap<String, Macro>,
    /// How many more tokens may come out of macros: a few lines can ask for billions.
    budget: usize,
}

/// Macros in macros beyond this are no honest interface.
const DEPTH_MAX: usize = 64;

impl Macros {
    pub(super) fn new(budget: usize) -> Macros {
        Macros {
            table: HashMap::new(),
            budget,
        }
    }

    pub(super) fn define(&mut self, name: &str, made: Macro) {
        self.table.insert(name.to_string(), made);
    }

    pub(super) fn undefine(&mut self, name: &str) {
        self.table.remove(name);
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Macro> {
        self.table.get(name)
    }

    /// Appends what `token` stands for to `out`: itself, if it is not the name of a macro.
    pub(super) fn expand(
        &mut self,
        sources: &Sources,
        token: Token,
        out: &mut Vec<Token>,
    ) -> Result<(), Diagnostic> {
        let mut expansion = Expansion {
            table: &self.table,
            budget: &mut self.budget,
            sources,
            span: token.span,
            active: Vec::new(),
        };
        expansion.token(token, out)
    }
}

/// The expansion of one word of the text.
struct Expansion<'a> {
    table: &'a HashMap<String, Macro>,
    budget: &'a mut usize,
    sources: &'a Sources,
    /// Where the outermost macro is used: all that comes out of it points there.
    span: Span,
    /// The macros being expanded, which stand for themselves inside themselves (C11 6.10.3.4).
    active: Vec<&'a str>,
}

impl<'a> Expansion<'a> {
    fn token(&mut self, token: Token, out: &mut Vec<Token>) -> Result<(), Diagnostic> {
        let sources = self.sources;
        let name = sources.text(token.spelled);
        let found = (token.kind == TokenKind::Identifier)
            .then(|| self.table.get(name))
            .flatten();
        match found {
            Some(made) if !made.function_like && !self.active.contains(&name) => {
                self.body(name, made, out)
            }
            _ => {
                out.push(Token {
                    span: self.span,
                    ..token
                });
                Ok(())
            }
        }
    }

    fn body(
        &mut self,
        name: &'a str,
        made: &'a Macro,
        out: &mut Vec<Token>,
    ) -> Result<(), Diagnostic> {
        if self.active.len() >= DEPTH_MAX {
            return Err(self.too_much("macros are nested too deeply here"));
        }
        self.active.push(name);
        for token in &made.body {
            if *self.budget == 0 {
                return Err(self.too_much("macros produce too many words here"));
            }
            *self.budget -= 1;
            self.token(*token, out)?;
        }
        self.active.pop();
        Ok(())
    }

    fn too_much(&self, message: &str) -> Diagnostic {
        Diagnostic::error(self.span, message).hint("write the interface without these macros")
    }
}
