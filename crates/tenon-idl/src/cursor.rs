//! A position among the words that the preprocessor left.

use crate::ast::Name;
use crate::source::{Sources, Span};
use crate::token::{Token, TokenKind};

/// Looks at one word and steps over it.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub sources: &'a Sources,
    tokens: &'a [Token],
    end: Token,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Over `tokens`, which end at `end`.
    pub(crate) fn new(sources: &'a Sources, tokens: &'a [Token], end: Span) -> Cursor<'a> {
        let end = Token {
            kind: TokenKind::End,
            spelled: Span {
                start: end.end,
                ..end
            },
            span: end,
            first_on_line: false,
        };
        Cursor {
            sources,
            tokens,
            end,
            at: 0,
        }
    }

    /// The number of words in front.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The word at hand.
    pub(crate) fn peek(&self) -> Token {
        self.peek_by(0)
    }

    /// The word `ahead` words behind the one at hand.
    pub(crate) fn peek_by(&self, ahead: usize) -> Token {
        self.tokens
            .get(self.at + ahead)
            .copied()
            .unwrap_or(self.end)
    }

    /// The word in front of the one at hand.
    pub(crate) fn previous(&self) -> Token {
        let index = self.at.checked_sub(1);
        index
            .and_then(|index| self.tokens.get(index).copied())
            .unwrap_or(self.end)
    }

    /// Steps over the word at hand; stays at the end.
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    /// Steps over `punctuation` if it is at hand.
    pub(crate) fn eat(&mut self, punctuation: &str) -> bool {
        let found = self.peek().is(punctuation);
        if found {
            self.advance();
        }
        found
    }

    /// Steps over the word `keyword` if it is at hand.
    pub(crate) fn eat_word(&mut self, keyword: &str) -> bool {
        let found = self.at_word(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Whether the word `keyword` is at hand.
    pub(crate) fn at_word(&self, keyword: &str) -> bool {
        self.word() == Some(keyword)
    }

    /// The identifier at hand.
    pub(crate) fn word(&self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == TokenKind::Identifier).then(|| self.text(token))
    }

    /// Steps over the path at hand, `name`, `outer::name` or `::name`; `None` if there is none.
    pub(crate) fn path(&mut self) -> Option<Name> {
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
        Some(Name {
            text,
            span: start.span.to(last.span),
        })
    }

    /// How a word is spelled.
    pub(crate) fn text(&self, token: Token) -> &'a str {
        self.sources.text(token.spelled)
    }

    /// The word at hand as an error message calls it.
    pub(crate) fn describe(&self) -> String {
        match self.peek().kind {
            TokenKind::End => "the end".to_string(),
            _ => format!("`{}`", shorten(self.text(self.peek()))),
        }
    }
}

/// Hostile words may be megabytes long.
fn shorten(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
