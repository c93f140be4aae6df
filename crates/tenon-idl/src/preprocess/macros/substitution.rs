//! The body of a macro with its arguments: `#` makes strings of them, `##` makes one word of two.

use crate::diagnostics::Diagnostic;
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::definition::{Macro, Part, PartKind};
use super::{Expansion, MADE_TEXT_COST, Within, Word};

impl Expansion<'_> {
    pub(super) fn substitute(
        &mut self,
        made: &Macro,
        arguments: &[Vec<Word>],
    ) -> Result<Vec<Word>, Diagnostic> {
        let mut expanded: Vec<Option<Vec<Word>>> = vec![None; arguments.len()];
        let mut out: Vec<Word> = Vec::new();
        let mut parts = made.body.iter().peekable();
        let mut is_pasted = false;
        // Nothing stands in front of a `##` where an argument is empty.
        let mut is_empty_in_front = true;
        while let Some(part) = parts.next() {
            if let PartKind::Paste = part.kind {
                is_pasted = true;
                continue;
            }
            let pastes = parts
                .peek()
                .is_some_and(|next| matches!(next.kind, PartKind::Paste));
            let mut words = match part.kind {
                PartKind::Parameter(index) if !is_pasted && !pastes => {
                    if expanded[index].is_none() {
                        expanded[index] = Some(self.expanded(&arguments[index])?);
                    }
                    expanded[index].clone().unwrap_or_default()
                }
                _ => self.unexpanded(part, arguments)?,
            };
            self.charge(words.len())?;
            if let Some(first) = words.first_mut() {
                first.spaced = part.spaced;
            }
            if is_pasted && !is_empty_in_front && !words.is_empty() {
                self.paste(made, part, &mut out, words)?;
                is_empty_in_front = false;
            } else {
                if is_pasted && words.is_empty() && takes_rest(made, part) {
                    drop_comma(&mut out);
                }
                is_empty_in_front = words.is_empty() && (!is_pasted || is_empty_in_front);
                out.extend(words);
            }
            is_pasted = false;
        }
        Ok(out)
    }

    /// A part of a body as it is written, arguments too.
    fn unexpanded(
        &mut self,
        part: &Part,
        arguments: &[Vec<Word>],
    ) -> Result<Vec<Word>, Diagnostic> {
        match part.kind {
            PartKind::Word(token) => Ok(vec![Word::plain(token)]),
            PartKind::Parameter(index) => Ok(arguments[index].clone()),
            PartKind::Text(index) => {
                let text = self.as_text(&arguments[index]);
                Ok(vec![Word::plain(self.made_text(text)?)])
            }
            PartKind::Paste => Ok(Vec::new()),
        }
    }

    /// Joins the last word of `out` with the first one of `words`.
    fn paste(
        &mut self,
        made: &Macro,
        part: &Part,
        out: &mut Vec<Word>,
        words: Vec<Word>,
    ) -> Result<(), Diagnostic> {
        let mut words = words.into_iter();
        let (Some(left), Some(right)) = (out.pop(), words.next()) else {
            return Ok(());
        };
        // GCC's `, ## __VA_ARGS__`
        if left.token.is(",") && takes_rest(made, part) {
            out.extend([left, right]);
        } else {
            let text = [left.token, right.token].map(|token| self.sources.text(token.spelled));
            let text = text.concat();
            let token = self.made_text(text)?;
            out.push(Word {
                token,
                spaced: left.spaced,
                hidden: left.hidden.common(&right.hidden),
            });
        }
        out.extend(words);
        Ok(())
    }

    /// The words as a string (C11 6.10.3.2).
    fn as_text(&self, words: &[Word]) -> String {
        let mut text = String::from("\"");
        for (index, word) in words.iter().enumerate() {
            if index > 0 && word.spaced {
                text.push(' ');
            }
            let spelled = self.sources.text(word.token.spelled);
            let is_quoted = matches!(word.token.kind, TokenKind::Text | TokenKind::Character);
            for char in spelled.chars() {
                if is_quoted && matches!(char, '"' | '\\') {
                    text.push('\\');
                }
                text.push(char);
            }
        }
        text.push('"');
        text
    }

    /// A word that stands nowhere, so that its text becomes a source of its own.
    fn made_text(&mut self, text: String) -> Result<Token, Diagnostic> {
        self.charge(MADE_TEXT_COST + text.len() / 4)?;
        let shown: String = text.chars().take(60).collect();
        let length = text.len();
        let file = self.sources.add("<macro>", text, true);
        let mut lexer = Lexer::within(file, self.sources.whole(file), 0..length);
        let token = lexer.next();
        let is_word = lexer.next().kind == TokenKind::End
            && !matches!(
                token.kind,
                TokenKind::Bad(_) | TokenKind::Comment | TokenKind::End
            );
        if is_word {
            return Ok(token);
        }
        // C has more operators, and forms of numbers, than the language of interfaces.
        if self.within == Within::Passthrough && length > 0 {
            let spelled = Span {
                end: length as u32,
                ..token.spelled
            };
            return Ok(Token { spelled, ..token });
        }
        let message = format!("a macro makes `{shown}` by `#` or `##`, which is not one word");
        Err(Diagnostic::error(self.span, message))
    }
}

/// Whether a part is the parameter for all further arguments.
fn takes_rest(made: &Macro, part: &Part) -> bool {
    made.parameters.as_ref().is_some_and(|parameters| {
        let last = parameters.names.len().checked_sub(1);
        parameters.takes_rest
            && matches!(part.kind, PartKind::Parameter(index) if Some(index) == last)
    })
}

/// GCC's `, ## __VA_ARGS__` without further arguments: the comma goes, too.
fn drop_comma(out: &mut Vec<Word>) {
    if out.last().is_some_and(|word| word.token.is(",")) {
        out.pop();
    }
}
