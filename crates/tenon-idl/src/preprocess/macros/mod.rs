//! Macros of `#define`, of `-D` and of C itself, and their expansion (C11 6.10.3).

mod arguments;
mod definition;
mod hidden;
mod substitution;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::diagnostics::Diagnostic;
use crate::source::{SourceMap, Span};
use crate::token::{Token, TokenKind};

use arguments::MacroCallError;
pub(super) use arguments::{LineTokens, TokenSource};
pub(super) use definition::{MacroDefinition, MacroParameters};
use hidden::HideSet;

/// Depth of macros in macros, and of calls in arguments of calls: deeper ones are hostile.
const DEPTH_MAX: usize = 64;

/// The cost of a text that `#` or `##` makes, beside its length: it is kept as a source of its own.
const MADE_TEXT_COST: usize = 16;

/// All macros of a run.
#[derive(Debug)]
pub(super) struct MacroTable {
    table: HashMap<String, MacroEntry>,
    /// Definitions so far, by which they are numbered.
    definitions: u32,
    /// Number of tokens that macros may still produce: a few lines could produce billions.
    budget: usize,
}

/// A macro that is currently defined.
#[derive(Debug, Clone)]
pub(super) struct MacroEntry {
    /// Its number among all definitions.
    id: u32,
    made: Rc<MacroDefinition>,
}

/// The context in which tokens are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpansionContext {
    /// The text of the interface. `linux` and `unix` are names there, as in standard C.
    Text,
    /// A condition, in which all macros are expanded.
    Condition,
    /// A `%` line. Macros that the C compiler defines by itself are left to it.
    Passthrough,
}

impl MacroTable {
    pub(super) fn new(budget: usize) -> MacroTable {
        MacroTable {
            table: HashMap::new(),
            definitions: 0,
            budget,
        }
    }

    pub(super) fn define(&mut self, name: &str, made: MacroDefinition) {
        self.definitions += 1;
        let defined = MacroEntry {
            id: self.definitions,
            made: Rc::new(made),
        };
        self.table.insert(name.to_string(), defined);
    }

    pub(super) fn undefine(&mut self, name: &str) {
        self.table.remove(name);
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&MacroDefinition> {
        self.table.get(name).map(|defined| &*defined.made)
    }

    /// Returns the macro that `name` stands for in such a context.
    pub(super) fn found(&self, name: &str, within: ExpansionContext) -> Option<&MacroEntry> {
        let defined = self.table.get(name)?;
        let is_built_in = defined.made.built_in;
        let counts = match within {
            ExpansionContext::Condition => true,
            ExpansionContext::Text => !is_built_in || name.starts_with('_'),
            ExpansionContext::Passthrough => !is_built_in,
        };
        counts.then_some(defined)
    }

    /// Expands `token`, which stands for itself if it is not the name of a macro. The arguments of a macro are read
    /// from `rest`, the tokens behind it.
    ///
    /// # Errors
    /// The macro is called incorrectly, or its expansion is too long.
    pub(super) fn expand(
        &mut self,
        sources: &mut SourceMap,
        within: ExpansionContext,
        token: Token,
        rest: &mut dyn TokenSource,
    ) -> Result<Vec<MacroToken>, Diagnostic> {
        let mut expansion = MacroExpansion {
            macros: self,
            sources,
            span: token.span,
            within,
            depth: 0,
        };
        let mut out = Vec::new();
        expansion.words(VecDeque::from([MacroToken::plain(token)]), rest, &mut out)?;
        Ok(out)
    }
}

/// A token during macro expansion.
#[derive(Debug, Clone)]
pub(super) struct MacroToken {
    pub token: Token,
    /// White space stands in front of it.
    pub spaced: bool,
    /// The macros that it was expanded from, which do not expand it again.
    hidden: HideSet,
}

impl MacroToken {
    /// Creates a token of the text.
    fn plain(token: Token) -> MacroToken {
        MacroToken {
            token,
            spaced: false,
            hidden: HideSet::default(),
        }
    }
}

/// The expansion of one token of the text.
struct MacroExpansion<'a> {
    macros: &'a mut MacroTable,
    sources: &'a mut SourceMap,
    /// The use of the outermost macro: all tokens of its expansion point there.
    span: Span,
    within: ExpansionContext,
    /// Number of nested calls of which the arguments are being expanded.
    depth: usize,
}

impl MacroExpansion<'_> {
    /// Expands all pending tokens, and rescans the results together with the rest.
    fn words(
        &mut self,
        mut pending: VecDeque<MacroToken>,
        rest: &mut dyn TokenSource,
        out: &mut Vec<MacroToken>,
    ) -> Result<(), Diagnostic> {
        while let Some(word) = pending.pop_front() {
            let Some(found) = self.macro_of(&word) else {
                out.push(word);
                continue;
            };
            let expanded = match &found.made.parameters {
                None => {
                    let hidden = word.hidden.with(found.id);
                    Some(self.body(&found.made, &[], &word, hidden)?)
                }
                Some(parameters) => self.call(&found, parameters, &word, &mut pending, rest)?,
            };
            match expanded {
                Some(expanded) => {
                    for word in expanded.into_iter().rev() {
                        pending.push_front(word);
                    }
                }
                // The name of a macro that is not called.
                None => out.push(word),
            }
        }
        Ok(())
    }

    /// Returns the macro that replaces a token.
    fn macro_of(&self, word: &MacroToken) -> Option<MacroEntry> {
        if word.token.kind != TokenKind::Identifier {
            return None;
        }
        let name = self.sources.text(word.token.spelled);
        let found = self.macros.found(name, self.within)?;
        (!word.hidden.has(found.id)).then(|| found.clone())
    }

    /// Expands a call of a macro with parameters; `None` if it is not called here.
    fn call(
        &mut self,
        found: &MacroEntry,
        parameters: &MacroParameters,
        word: &MacroToken,
        pending: &mut VecDeque<MacroToken>,
        rest: &mut dyn TokenSource,
    ) -> Result<Option<Vec<MacroToken>>, Diagnostic> {
        let Some(call) = self.arguments(parameters, pending, rest) else {
            return Ok(None);
        };
        let call = call.map_err(|why| match why {
            MacroCallError::TooMuch(error) => error,
            MacroCallError::Wrong(why) => {
                let name = self.sources.text(word.token.spelled);
                Diagnostic::error(self.span, format!("`{name}` {why}"))
                    .related(found.made.name.span, "defined here")
            }
        })?;
        let hidden = word.hidden.common(&call.closed).with(found.id);
        self.body(&found.made, &call.arguments, word, hidden)
            .map(Some)
    }

    /// Returns the body of a macro with arguments substituted for parameters. It replaces `word`.
    fn body(
        &mut self,
        made: &MacroDefinition,
        arguments: &[Vec<MacroToken>],
        word: &MacroToken,
        hidden: HideSet,
    ) -> Result<Vec<MacroToken>, Diagnostic> {
        if hidden.count() > DEPTH_MAX {
            return Err(self.too_much("macros are nested too deeply here"));
        }
        self.charge(1)?;
        let mut words = self.substitute(made, arguments)?;
        for word in &mut words {
            word.token.span = self.span;
            word.hidden = word.hidden.and(&hidden);
        }
        if let Some(first) = words.first_mut() {
            first.spaced = word.spaced;
        }
        Ok(words)
    }

    /// Expands an argument by itself.
    fn expanded(&mut self, argument: &[MacroToken]) -> Result<Vec<MacroToken>, Diagnostic> {
        if self.depth == DEPTH_MAX {
            return Err(self.too_much("macros are nested too deeply here"));
        }
        self.depth += 1;
        let mut out = Vec::new();
        let words = argument.iter().cloned().collect();
        self.words(words, &mut LineTokens::of(&[]), &mut out)?;
        self.depth -= 1;
        Ok(out)
    }

    /// Charges a number of tokens to the budget.
    fn charge(&mut self, words: usize) -> Result<(), Diagnostic> {
        match self.macros.budget.checked_sub(words) {
            Some(left) => {
                self.macros.budget = left;
                Ok(())
            }
            None => Err(self.too_much("macros produce too many words here")),
        }
    }

    fn too_much(&self, message: &str) -> Diagnostic {
        Diagnostic::error(self.span, message).hint("write the interface without these macros")
    }
}
