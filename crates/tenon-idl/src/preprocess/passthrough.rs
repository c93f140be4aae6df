//! `%` lines: text for C, in which a preprocessor that runs before rpcgen expands macros as anywhere else.

use crate::diagnostics::Diagnostic;
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{LexError, Token, TokenKind};

use super::macros::{ExpansionContext, LineTokens, MacroToken};
use super::{PassthroughLine, Preprocessor};

/// The end of a comment.
const COMMENT_END: &str = "*/";

impl Preprocessor<'_> {
    /// Adds a `%` line to the output.
    pub(super) fn passthrough(&mut self, token: Token) {
        let expanded = match self.expanded_line(token) {
            Ok(expanded) => expanded,
            Err(error) => {
                self.report(error);
                None
            }
        };
        let trivia = self.trivia(token);
        self.unit
            .passthrough
            .push(PassthroughLine { trivia, expanded });
    }

    /// Returns the text behind the `%` with macros expanded; `None` if there are none in it.
    fn expanded_line(&mut self, line: Token) -> Result<Option<String>, Diagnostic> {
        let words = self.words_of_line(line.spelled);
        let mut text = String::new();
        let mut done = line.spelled.start + 1;
        let mut at = 0;
        while let Some(token) = words.get(at) {
            at += 1;
            let name = self.sources.text(token.spelled);
            let is_name = token.kind == TokenKind::Identifier;
            if !is_name
                || self
                    .macros
                    .found(name, ExpansionContext::Passthrough)
                    .is_none()
            {
                continue;
            }
            let mut rest = LineTokens::of(&words[at..]);
            let made = self.macros.expand(
                self.sources,
                ExpansionContext::Passthrough,
                *token,
                &mut rest,
            )?;
            at += rest.taken;
            text.push_str(self.between(line, done, token.spelled.start));
            self.append(&mut text, &made);
            done = words[at - 1].spelled.end;
            let behind = self.between(line, done, line.spelled.end).chars().next();
            if behind.is_some_and(|next| runs_together(&text, next)) {
                text.push(' ');
            }
        }
        if done == line.spelled.start + 1 {
            return Ok(None);
        }
        text.push_str(self.between(line, done, line.spelled.end));
        Ok(Some(text))
    }

    /// Returns the tokens of a line without comments, one of which may have begun in an earlier line.
    fn words_of_line(&mut self, line: Span) -> Vec<Token> {
        let text = self.sources.whole(line.file);
        let mut start = line.start as usize + 1;
        let end = line.end as usize;
        if self.is_in_comment {
            match text[start..end].find(COMMENT_END) {
                Some(length) => start += length + COMMENT_END.len(),
                None => return Vec::new(),
            }
        }
        let mut lexer = Lexer::within(line.file, text, start..end);
        let words = std::iter::from_fn(|| Some(lexer.next()));
        let words = words.take_while(|token| token.kind != TokenKind::End);
        let words: Vec<Token> = words
            .filter(|token| token.kind != TokenKind::Comment)
            .collect();
        let last = words.last().map(|token| token.kind);
        self.is_in_comment = last == Some(TokenKind::Bad(LexError::UnclosedComment));
        words
    }

    /// Returns the text of a line from one position to another.
    fn between(&self, line: Token, start: u32, end: u32) -> &str {
        self.sources.text(Span {
            start,
            end,
            ..line.spelled
        })
    }

    /// Appends the expansion of a macro. Tokens that were separate do not run together.
    fn append(&self, text: &mut String, words: &[MacroToken]) {
        for (index, word) in words.iter().enumerate() {
            let spelled = self.sources.text(word.token.spelled);
            let stood_together = index > 0
                && words[index - 1]
                    .token
                    .spelled
                    .is_right_before(word.token.spelled);
            let first = spelled.chars().next();
            let apart =
                (index > 0 && word.spaced) || first.is_some_and(|first| runs_together(text, first));
            if apart && !stood_together {
                text.push(' ');
            }
            text.push_str(spelled);
        }
    }
}

/// Returns whether the end of a text and the next character may be read as one token of C.
fn runs_together(text: &str, next: char) -> bool {
    let is_letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let is_operator = |char: char| "+-*/%<>=!&|^#:.".contains(char);
    text.chars().next_back().is_some_and(|last| {
        (is_letter(last) && is_letter(next)) || (is_operator(last) && is_operator(next))
    })
}
