//! The tokens of an interface.

use crate::source::Span;

/// One token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// The span of its spelling: in the body of a macro, if it comes from one.
    pub spelled: Span,
    /// The span of its use, at which diagnostics point.
    pub span: Span,
    /// Only white space is in front of it on its line.
    pub first_on_line: bool,
}

/// The kind of a token. Keywords are identifiers; the parser recognises them by their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier,
    Number,
    /// `'a'`.
    Character,
    /// `"abc"`.
    Text,
    /// Operators and brackets.
    Punctuation(&'static str),
    /// `/* .. */` or `// ..`.
    Comment,
    /// A whole `%` line, continuation lines included.
    Passthrough,
    /// The value of `defined(NAME)` in a condition.
    Defined(bool),
    /// Invalid input.
    Bad(LexError),
    /// The end of the text.
    End,
}

/// The reason why a token is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LexError {
    Character,
    UnclosedComment,
    UnclosedText,
    UnclosedCharacter,
}

impl Token {
    pub(crate) fn is(&self, punctuation: &str) -> bool {
        matches!(self.kind, TokenKind::Punctuation(mark) if mark == punctuation)
    }
}
