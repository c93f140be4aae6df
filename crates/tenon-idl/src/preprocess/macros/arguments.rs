//! The arguments of a macro: from the expansion of other macros, and from the text behind.

use std::collections::VecDeque;

use crate::diagnostics::Diagnostic;
use crate::token::Token;

use super::definition::MacroParameters;
use super::hidden::HideSet;
use super::{MacroExpansion, MacroToken};

/// A source of the tokens behind a macro's name in the text.
pub(in crate::preprocess) trait TokenSource {
    /// Returns whether `(` comes next.
    fn opens(&mut self) -> bool;

    /// Reads the next token; `None` where arguments cannot continue.
    fn next(&mut self) -> Option<Token>;
}

/// The tokens of a line, and nothing behind it.
#[derive(Debug)]
pub(in crate::preprocess) struct LineTokens<'a> {
    tokens: &'a [Token],
    /// Number of tokens that have been taken.
    pub taken: usize,
}

impl<'a> LineTokens<'a> {
    pub(in crate::preprocess) fn of(tokens: &'a [Token]) -> LineTokens<'a> {
        LineTokens { tokens, taken: 0 }
    }
}

impl TokenSource for LineTokens<'_> {
    fn opens(&mut self) -> bool {
        self.tokens.get(self.taken).is_some_and(|next| next.is("("))
    }

    fn next(&mut self) -> Option<Token> {
        let next = self.tokens.get(self.taken).copied()?;
        self.taken += 1;
        Some(next)
    }
}

/// The arguments of a macro call.
pub(super) struct MacroCall {
    pub arguments: Vec<Vec<MacroToken>>,
    /// The hide set of the `)` at its end.
    pub closed: HideSet,
}

/// The reason why a call is invalid.
pub(super) enum MacroCallError {
    /// The arguments are malformed; the text says how.
    Wrong(String),
    /// There are too many tokens.
    TooMuch(Diagnostic),
}

impl MacroExpansion<'_> {
    /// Reads the arguments of a call; `None` if there is no call.
    pub(super) fn arguments(
        &mut self,
        parameters: &MacroParameters,
        pending: &mut VecDeque<MacroToken>,
        rest: &mut dyn TokenSource,
    ) -> Option<Result<MacroCall, MacroCallError>> {
        let opens = match pending.front() {
            Some(next) => next.token.is("("),
            None => rest.opens(),
        };
        opens.then(|| {
            let (words, closed) = self.closed(pending, rest)?;
            let arguments = split(words, parameters).map_err(MacroCallError::Wrong)?;
            Ok(MacroCall { arguments, closed })
        })
    }

    /// Returns the tokens between the parentheses, and the hide set of the closing one.
    fn closed(
        &mut self,
        pending: &mut VecDeque<MacroToken>,
        rest: &mut dyn TokenSource,
    ) -> Result<(Vec<MacroToken>, HideSet), MacroCallError> {
        let mut words: Vec<MacroToken> = Vec::new();
        // The `(`, which is known to be there.
        let first = next(pending, rest, None);
        let mut open = 1usize;
        loop {
            let word = next(pending, rest, words.last().or(first.as_ref())).ok_or_else(|| {
                MacroCallError::Wrong("has arguments that are not closed by `)`".to_owned())
            })?;
            self.charge(1).map_err(MacroCallError::TooMuch)?;
            if word.token.is("(") {
                open += 1;
            } else if word.token.is(")") {
                open -= 1;
            }
            if open == 0 {
                return Ok((words, word.hidden));
            }
            words.push(word);
        }
    }
}

/// Returns the next token of the two sources, behind `last`.
fn next(
    pending: &mut VecDeque<MacroToken>,
    rest: &mut dyn TokenSource,
    last: Option<&MacroToken>,
) -> Option<MacroToken> {
    pending.pop_front().or_else(|| {
        let token = rest.next()?;
        let is_behind = |last: &MacroToken| last.token.spelled.is_right_before(token.spelled);
        Some(MacroToken {
            spaced: !last.is_some_and(is_behind),
            ..MacroToken::plain(token)
        })
    })
}

/// Splits the tokens between the parentheses at their commas.
fn split(
    words: Vec<MacroToken>,
    parameters: &MacroParameters,
) -> Result<Vec<Vec<MacroToken>>, String> {
    let most = parameters.names.len();
    let mut arguments = vec![Vec::new()];
    let mut open = 0usize;
    for word in words {
        let is_last = parameters.takes_rest && arguments.len() == most;
        if open == 0 && word.token.is(",") && !is_last {
            arguments.push(Vec::new());
            continue;
        }
        if word.token.is("(") {
            open += 1;
        } else if word.token.is(")") {
            open -= 1;
        }
        if let Some(argument) = arguments.last_mut() {
            argument.push(word);
        }
    }
    if most == 0 && arguments.len() == 1 && arguments[0].is_empty() {
        arguments.clear();
    }
    if parameters.takes_rest && arguments.len() + 1 == most {
        arguments.push(Vec::new());
    }
    match arguments.len() {
        count if count == most => Ok(arguments),
        count => Err(format!(
            "takes {most} argument{}, and here are {count}",
            if most == 1 { "" } else { "s" }
        )),
    }
}
