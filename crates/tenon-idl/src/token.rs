//! The words of an interface.

use crate::source::Span;

/// One word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// Where it is spelled: in the body of a macro, if it comes from one.
    pub spelled: Span,
    /// Where it is used: what a diagnostic points at.
    pub span: Span,
    /// Nothing but white space is in front of it on its line.
    pub first_on_line: bool,
}

/// The kinds of word. Keywords are identifiers; the parser knows them by their place.
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
    /// The answer to `defined(NAME)` in a condition.
    Defined(bool),
    /// What is no word at all.
    Bad(Bad),
    /// Nothing is left.
    End,
}

/// What can be wrong with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
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
