//! Macros: what `#define`, `-D` and C itself leave behind, and their expansion (C11 6.10.3).

mod arguments;
mod definition;
mod hidden;
mod substitution;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::diagnostics::Diagnostic;
use crate::source::{Sources, Span};
use crate::token::{Token, TokenKind};

use arguments::NoCall;
pub(super) use arguments::{Line, Rest};
pub(super) use definition::{Macro, Parameters};
use hidden::Hidden;

/// Macros in macros, and calls in arguments of calls, beyond this are no honest interface.
const DEPTH_MAX: usize = 64;

/// What a text that macros make costs, beside its length: it is kept as a source of its own.
const MADE_TEXT_COST: usize = 16;

/// All macros of a run.
#[derive(Debug)]
pub(super) struct Macros {
    table: HashMap<String, Defined>,
    /// Definitions so far, by which they are numbered.
    definitions: u32,
    /// How many more words may come out of macros: a few lines can ask for billions.
    budget: usize,
}

/// A macro that is defined at the moment.
#[derive(Debug, Clone)]
pub(super) struct Defined {
    /// Its number among all definitions.
    id: u32,
    made: Rc<Macro>,
}

/// What words are expanded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// The text of the interface. `linux` and `unix` are names there, as in standard C.
    Text,
    /// A condition, where all macros count.
    Condition,
    /// A `%` line. What the C compiler defines by itself is left to it.
    Passthrough,
}

impl Macros {
    pub(super) fn new(budget: usize) -> Macros {
        Macros {
            table: HashMap::new(),
            definitions: 0,
            budget,
        }
    }

    pub(super) fn define(&mut self, name: &str, made: Macro) {
        self.definitions += 1;
        let defined = Defined {
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

    pub(super) fn get(&self, name: &str) -> Option<&Macro> {
        self.table.get(name).map(|defined| &*defined.made)
    }

    /// The macro that `name` stands for within such a text.
    pub(super) fn found(&self, name: &str, within: Within) -> Option<&Defined> {
        let defined = self.table.get(name)?;
        let is_built_in = defined.made.built_in;
        let counts = match within {
            Within::Condition => true,
            Within::Text => !is_built_in || name.starts_with('_'),
            Within::Passthrough => !is_built_in,
        };
        counts.then_some(defined)
    }

    /// What `token` stands for: itself, if it is not the name of a macro. The arguments of a macro are taken from
    /// `rest`, which is what stands behind it.
    ///
    /// # Errors
    /// The macro is called in a wrong way, or too much comes out of it.
    pub(super) fn expand(
        &mut self,
        sources: &mut Sources,
        within: Within,
        token: Token,
        rest: &mut dyn Rest,
    ) -> Result<Vec<Word>, Diagnostic> {
        let mut expansion = Expansion {
            macros: self,
            sources,
            span: token.span,
            within,
            depth: 0,
        };
        let mut out = Vec::new();
        expansion.words(VecDeque::from([Word::plain(token)]), rest, &mut out)?;
        Ok(out)
    }
}

/// A word, and what macros know of it.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub token: Token,
    /// White space stands in front of it.
    pub spaced: bool,
    /// The macros that it came out of, which it does not stand for again.
    hidden: Hidden,
}

impl Word {
    /// A word of the text.
    fn plain(token: Token) -> Word {
        Word {
            token,
            spaced: false,
            hidden: Hidden::default(),
        }
    }
}

/// The expansion of one word of the text.
struct Expansion<'a> {
    macros: &'a mut Macros,
    sources: &'a mut Sources,
    /// Where the outermost macro is used: all that comes out of it points there.
    span: Span,
    within: Within,
    /// Calls whose arguments are being expanded.
    depth: usize,
}

impl Expansion<'_> {
    /// Expands all words that are pending, and what comes out of them together with the rest.
    fn words(
        &mut self,
        mut pending: VecDeque<Word>,
        rest: &mut dyn Rest,
        out: &mut Vec<Word>,
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

    /// The macro that a word is to be replaced by.
    fn macro_of(&self, word: &Word) -> Option<Defined> {
        if word.token.kind != TokenKind::Identifier {
            return None;
        }
        let name = self.sources.text(word.token.spelled);
        let found = self.macros.found(name, self.within)?;
        (!word.hidden.has(found.id)).then(|| found.clone())
    }

    /// What a call of a macro with parameters stands for; `None` if it is not called here.
    fn call(
        &mut self,
        found: &Defined,
        parameters: &Parameters,
        word: &Word,
        pending: &mut VecDeque<Word>,
        rest: &mut dyn Rest,
    ) -> Result<Option<Vec<Word>>, Diagnostic> {
        let Some(call) = self.arguments(parameters, pending, rest) else {
            return Ok(None);
        };
        let call = call.map_err(|why| match why {
            NoCall::TooMuch(error) => error,
            NoCall::Wrong(why) => {
                let name = self.sources.text(word.token.spelled);
                Diagnostic::error(self.span, format!("`{name}` {why}"))
                    .related(found.made.name.span, "defined here")
            }
        })?;
        let hidden = word.hidden.common(&call.closed).with(found.id);
        self.body(&found.made, &call.arguments, word, hidden)
            .map(Some)
    }

    /// The body of a macro with arguments in the places of parameters. It stands where `word` stood.
    fn body(
        &mut self,
        made: &Macro,
        arguments: &[Vec<Word>],
        word: &Word,
        hidden: Hidden,
    ) -> Result<Vec<Word>, Diagnostic> {
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

    /// All that an argument stands for by itself.
    fn expanded(&mut self, argument: &[Word]) -> Result<Vec<Word>, Diagnostic> {
        if self.depth == DEPTH_MAX {
            return Err(self.too_much("macros are nested too deeply here"));
        }
        self.depth += 1;
        let mut out = Vec::new();
        let words = argument.iter().cloned().collect();
        self.words(words, &mut Line::of(&[]), &mut out)?;
        self.depth -= 1;
        Ok(out)
    }

    /// Takes words from the budget.
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
