//! A position in the tokens that the preprocessor produced.

use crate::ast::SpannedName;
use crate::source::{SourceMap, Span};
use crate::token::{Token, TokenKind};

/// Reads tokens one by one, with lookahead.
#[derive(Debug, Clone)]
pub(crate) struct TokenCursor<'a> {
    pub sources: &'a SourceMap,
    tokens: &'a [Token],
    end: Token,
    at: usize,
}

impl<'a> TokenCursor<'a> {
    /// Creates a cursor over `tokens`, which end at `end`.
    pub(crate) fn new(sources: &'a SourceMap, tokens: &'a [Token], end: Span) -> TokenCursor<'a> {
        let end = Token {
            kind: TokenKind::End,
            spelled: Span {
                start: end.end,
                ..end
            },
            span: end,
            first_on_line: false,
        };
        TokenCursor {
            sources,
            tokens,
            end,
            at: 0,
        }
    }

    /// Returns the number of tokens in front of the cursor.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the current token.
    pub(crate) fn peek(&self) -> Token {
        self.peek_by(0)
    }

    /// Returns the token that is `ahead` tokens behind the current one.
    pub(crate) fn peek_by(&self, ahead: usize) -> Token {
        self.tokens
            .get(self.at + ahead)
            .copied()
            .unwrap_or(self.end)
    }

    /// Returns the token in front of the current one.
    pub(crate) fn previous(&self) -> Token {
        let index = self.at.checked_sub(1);
        index
            .and_then(|index| self.tokens.get(index).copied())
            .unwrap_or(self.end)
    }

    /// Steps over the current token; stays at the end.
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    /// Steps over `punctuation` if it is the current token.
    pub(crate) fn eat(&mut self, punctuation: &str) -> bool {
        let found = self.peek().is(punctuation);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over the word `keyword` if it is the current token.
    pub(crate) fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.at_word(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Returns whether the current token is the word `keyword`.
    pub(crate) fn at_word(&self, keyword: &str) -> bool {
        self.word() == Some(keyword)
    }

    /// Returns the current token if it is an identifier.
    pub(crate) fn word(&self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == TokenKind::Identifier).then(|| self.text(token))
    }

    /// Steps over a path, `name`, `outer::name` or `::name`; `None` if there is none.
    pub(crate) fn path(&mut self) -> Option<SpannedName> {
        let start = self.peek();
        let is_rooted = start.is("::");
        if self.peek_by(usize::from(is_rooted)).kind != TokenKind::Identifier {
            return None;
        }
        let mut text = String::new();
        if is_rooted {
            self.advance();
            text.push_str("::");
        }
        text.push_str(self.text(self.peek()));
        let mut last = self.advance();
        while self.peek().is("::") && self.peek_by(1).kind == TokenKind::Identifier {
            self.advance();
            last = self.advance();
            text.push_str("::");
            text.push_str(self.text(last));
        }
        Some(SpannedName {
            text,
            span: start.span.to(last.span),
        })
    }

    /// Returns the spelling of a token.
    pub(crate) fn text(&self, token: Token) -> &'a str {
        self.sources.text(token.spelled)
    }

    /// Describes the current token for an error message.
    pub(crate) fn describe(&self) -> String {
        match self.peek().kind {
            TokenKind::End => "the end".to_string(),
            _ => format!("`{}`", shorten(self.text(self.peek()))),
        }
    }
}

/// Shortens a token for a message: a hostile one may be megabytes long.
fn shorten(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
