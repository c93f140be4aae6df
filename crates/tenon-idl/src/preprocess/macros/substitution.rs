//! Substitution of arguments into the body of a macro: `#` makes strings of them, `##` makes one token of two.

use crate::diagnostics::Diagnostic;
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{Token, TokenKind};

use super::definition::{MacroDefinition, ReplacementKind, ReplacementPart};
use super::{ExpansionContext, MADE_TEXT_COST, MacroExpansion, MacroToken};

impl MacroExpansion<'_> {
    pub(super) fn substitute(
        &mut self,
        made: &MacroDefinition,
        arguments: &[Vec<MacroToken>],
    ) -> Result<Vec<MacroToken>, Diagnostic> {
        let mut expanded: Vec<Option<Vec<MacroToken>>> = vec![None; arguments.len()];
        let mut out: Vec<MacroToken> = Vec::new();
        let mut parts = made.body.iter().peekable();
        let mut is_pasted = false;
        // The left operand of a `##` is missing if an argument is empty.
        let mut is_empty_in_front = true;
        while let Some(part) = parts.next() {
            if let ReplacementKind::Paste = part.kind {
                is_pasted = true;
                continue;
            }
            let pastes = parts
                .peek()
                .is_some_and(|next| matches!(next.kind, ReplacementKind::Paste));
            let mut words = match part.kind {
                ReplacementKind::Parameter(index) if !is_pasted && !pastes => {
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

    /// Returns a part of a body without expansion, arguments too.
    fn unexpanded(
        &mut self,
        part: &ReplacementPart,
        arguments: &[Vec<MacroToken>],
    ) -> Result<Vec<MacroToken>, Diagnostic> {
        match part.kind {
            ReplacementKind::Word(token) => Ok(vec![MacroToken::plain(token)]),
            ReplacementKind::Parameter(index) => Ok(arguments[index].clone()),
            ReplacementKind::Text(index) => {
                let text = self.as_text(&arguments[index]);
                Ok(vec![MacroToken::plain(self.made_text(text)?)])
            }
            ReplacementKind::Paste => Ok(Vec::new()),
        }
    }

    /// Joins the last token of `out` with the first one of `words`.
    fn paste(
        &mut self,
        made: &MacroDefinition,
        part: &ReplacementPart,
        out: &mut Vec<MacroToken>,
        words: Vec<MacroToken>,
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
            out.push(MacroToken {
                token,
                spaced: left.spaced,
                hidden: left.hidden.common(&right.hidden),
            });
        }
        out.extend(words);
        Ok(())
    }

    /// Converts tokens to a string (C11 6.10.3.2).
    fn as_text(&self, words: &[MacroToken]) -> String {
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

    /// Creates a token that has no place in the text, so that its spelling becomes a source of its own.
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
        if self.within == ExpansionContext::Passthrough && length > 0 {
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

/// Returns whether a part is the parameter for all further arguments.
fn takes_rest(made: &MacroDefinition, part: &ReplacementPart) -> bool {
    made.parameters.as_ref().is_some_and(|parameters| {
        let last = parameters.names.len().checked_sub(1);
        parameters.takes_rest
            && matches!(part.kind, ReplacementKind::Parameter(index) if Some(index) == last)
    })
}

/// Removes the comma of GCC's `, ## __VA_ARGS__` if there are no further arguments.
fn drop_comma(out: &mut Vec<MacroToken>) {
    if out.last().is_some_and(|word| word.token.is(",")) {
        out.pop();
    }
}
