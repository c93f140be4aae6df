//! The arguments of a macro: from what came out of other macros, and from the text behind.

use std::collections::VecDeque;

use crate::diagnostics::Diagnostic;
use crate::token::Token;

use super::definition::Parameters;
use super::hidden::Hidden;
use super::{Expansion, Word};

/// What stands behind a word of the text.
pub(in crate::preprocess) trait Rest {
    /// Whether `(` comes next.
    fn opens(&mut self) -> bool;

    /// Steps over the next word; `None` where arguments cannot go on.
    fn next(&mut self) -> Option<Token>;
}

/// Words of a line, and nothing behind it.
#[derive(Debug)]
pub(in crate::preprocess) struct Line<'a> {
    tokens: &'a [Token],
    /// How many of them have been taken.
    pub taken: usize,
}

impl<'a> Line<'a> {
    pub(in crate::preprocess) fn of(tokens: &'a [Token]) -> Line<'a> {
        Line { tokens, taken: 0 }
    }
}

impl Rest for Line<'_> {
    fn opens(&mut self) -> bool {
        self.tokens.get(self.taken).is_some_and(|next| next.is("("))
    }

    fn next(&mut self) -> Option<Token> {
        let next = self.tokens.get(self.taken).copied()?;
        self.taken += 1;
        Some(next)
    }
}

/// A call of a macro.
pub(super) struct Call {
    pub arguments: Vec<Vec<Word>>,
    /// What hides the `)` at its end.
    pub closed: Hidden,
}

/// Why there is no call.
pub(super) enum NoCall {
    /// What is wrong with the arguments.
    Wrong(String),
    /// There are too many words.
    TooMuch(Diagnostic),
}

impl Expansion<'_> {
    /// The arguments of a call; `None` if there is no call.
    pub(super) fn arguments(
        &mut self,
        parameters: &Parameters,
        pending: &mut VecDeque<Word>,
        rest: &mut dyn Rest,
    ) -> Option<Result<Call, NoCall>> {
        let opens = match pending.front() {
            Some(next) => next.token.is("("),
            None => rest.opens(),
        };
        opens.then(|| {
            let (words, closed) = self.closed(pending, rest)?;
            let arguments = split(words, parameters).map_err(NoCall::Wrong)?;
            Ok(Call { arguments, closed })
        })
    }

    /// The words between the parentheses, and what hides the last one.
    fn closed(
        &mut self,
        pending: &mut VecDeque<Word>,
        rest: &mut dyn Rest,
    ) -> Result<(Vec<Word>, Hidden), NoCall> {
        let mut words: Vec<Word> = Vec::new();
        // The `(`, of which it is known that it is there.
        let first = next(pending, rest, None);
        let mut open = 1usize;
        loop {
            let word = next(pending, rest, words.last().or(first.as_ref())).ok_or_else(|| {
                NoCall::Wrong("has arguments that are not closed by `)`".to_owned())
            })?;
            self.charge(1).map_err(NoCall::TooMuch)?;
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

/// The next word of the two, behind `last`.
fn next(pending: &mut VecDeque<Word>, rest: &mut dyn Rest, last: Option<&Word>) -> Option<Word> {
    pending.pop_front().or_else(|| {
        let token = rest.next()?;
        let is_behind = |last: &Word| last.token.spelled.is_right_before(token.spelled);
        Some(Word {
            spaced: !last.is_some_and(is_behind),
            ..Word::plain(token)
        })
    })
}

/// Cuts the words between the parentheses up, at their commas.
fn split(words: Vec<Word>, parameters: &Parameters) -> Result<Vec<Vec<Word>>, String> {
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
