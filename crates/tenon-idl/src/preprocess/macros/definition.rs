//! Macro definitions: the parameters and the replacement list of a `#define`.

use crate::diagnostics::Diagnostic;
use crate::source::{SourceMap, Span};
use crate::token::{Token, TokenKind};

/// A macro.
#[derive(Debug, Clone)]
pub(in crate::preprocess) struct MacroDefinition {
    pub name: Token,
    pub body: Vec<ReplacementPart>,
    /// Those of `#define f(x) ..`.
    pub parameters: Option<MacroParameters>,
    /// The macro is predefined, and so it is by the preprocessor of the C compiler.
    pub built_in: bool,
}

/// The parameters of a macro.
#[derive(Debug, Clone, Default)]
pub(in crate::preprocess) struct MacroParameters {
    pub names: Vec<String>,
    /// The last one takes all further arguments: `...`
    pub takes_rest: bool,
}

/// A part of the replacement list of a macro.
#[derive(Debug, Clone, Copy)]
pub(in crate::preprocess) struct ReplacementPart {
    pub kind: ReplacementKind,
    /// White space stands in front of it.
    pub spaced: bool,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::preprocess) enum ReplacementKind {
    /// A token.
    Word(Token),
    /// An argument, expanded unless it is pasted.
    Parameter(usize),
    /// `#x`: an argument as a string.
    Text(usize),
    /// `##`: the tokens in front and behind become one.
    Paste,
}

impl MacroDefinition {
    /// Creates a macro without parameters.
    pub(in crate::preprocess) fn plain(name: Token, body: &[Token]) -> MacroDefinition {
        MacroDefinition {
            name,
            body: parts(body, &MacroParameters::default(), &SourceMap::default()),
            parameters: None,
            built_in: false,
        }
    }

    /// Parses the tokens behind `#define`.
    ///
    /// # Errors
    /// Its parameters are malformed.
    pub(in crate::preprocess) fn defined(
        name: Token,
        words: &[Token],
        sources: &SourceMap,
    ) -> Result<MacroDefinition, Diagnostic> {
        // C11 6.10.3: parameters start right behind the name, a body behind a space.
        let has_parameters = words
            .first()
            .is_some_and(|first| first.is("(") && name.span.is_right_before(first.span));
        if !has_parameters {
            return Ok(MacroDefinition::plain(name, words));
        }
        let (parameters, length) = parameters(&words[1..], sources).map_err(|span| {
            let error = Diagnostic::error(span.unwrap_or(name.span), "malformed parameters");
            error.hint("write `#define name(first, second) ..`, or `...` as the last one")
        })?;
        Ok(MacroDefinition {
            name,
            body: parts(&words[1 + length..], &parameters, sources),
            parameters: Some(parameters),
            built_in: false,
        })
    }
}

/// Parses the parameters; also returns the number of tokens up to the `)`. The error is the span of the problem.
fn parameters(
    words: &[Token],
    sources: &SourceMap,
) -> Result<(MacroParameters, usize), Option<Span>> {
    let mut found = MacroParameters::default();
    let mut at = 0;
    if words.first().is_some_and(|word| word.is(")")) {
        return Ok((found, 1));
    }
    loop {
        let word = words.get(at).ok_or(None)?;
        if is_rest(&words[at..]) {
            found.names.push("__VA_ARGS__".to_owned());
            found.takes_rest = true;
            at += 3;
        } else if word.kind == TokenKind::Identifier {
            found.names.push(sources.text(word.spelled).to_owned());
            at += 1;
            // GCC's `rest...`
            if is_rest(&words[at..]) {
                found.takes_rest = true;
                at += 3;
            }
        } else {
            return Err(Some(word.span));
        }
        let behind = words.get(at).ok_or(None)?;
        at += 1;
        if behind.is(")") {
            return Ok((found, at));
        }
        if found.takes_rest || !behind.is(",") {
            return Err(Some(behind.span));
        }
    }
}

/// Returns whether `...` comes first.
fn is_rest(words: &[Token]) -> bool {
    words.len() >= 3 && words[..3].iter().all(|word| word.is("."))
}

fn parts(
    words: &[Token],
    parameters: &MacroParameters,
    sources: &SourceMap,
) -> Vec<ReplacementPart> {
    let mut parts = Vec::new();
    let parameter = |word: &Token| {
        let is_name = word.kind == TokenKind::Identifier && !parameters.names.is_empty();
        let mut names = parameters.names.iter();
        is_name
            .then(|| names.position(|name| name == sources.text(word.spelled)))
            .flatten()
    };
    let mut rest = words;
    let mut end: Option<Span> = None;
    while let [first, behind @ ..] = rest {
        let spaced = end.is_some_and(|end| !end.is_right_before(first.spelled));
        let second = behind.first();
        let (kind, taken) = match second {
            Some(second) if is_paste(first, second) => (ReplacementKind::Paste, 2),
            Some(second) if first.is("#") && parameter(second).is_some() => (
                ReplacementKind::Text(parameter(second).unwrap_or_default()),
                2,
            ),
            _ => match parameter(first) {
                Some(index) => (ReplacementKind::Parameter(index), 1),
                None => (ReplacementKind::Word(*first), 1),
            },
        };
        end = Some(rest[taken - 1].spelled);
        parts.push(ReplacementPart { kind, spaced });
        rest = &rest[taken..];
    }
    parts
}

fn is_paste(first: &Token, second: &Token) -> bool {
    first.is("#") && second.is("#") && first.spelled.is_right_before(second.spelled)
}
