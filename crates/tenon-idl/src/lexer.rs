//! Text to tokens. Reports nothing itself: invalid input becomes [`TokenKind::Bad`], so that
//! text which a condition excludes can be skipped.

use std::ops::Range;
use std::sync::Arc;

use crate::source::{FileId, Span};
use crate::token::{LexError, Token, TokenKind};

/// Reads one text, token by token.
#[derive(Debug, Clone)]
pub(crate) struct Lexer {
    file: FileId,
    text: Arc<str>,
    at: usize,
    end: usize,
    at_line_start: bool,
}

/// The longest first, so that `<<=` is never read as `<` `<=`.
const PUNCTUATION: &[&str] = &[
    "::", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "{", "}", "(", ")", "[", "]", "<", ">",
    ";", ":", ",", "=", "*", "+", "-", "/", "%", "&", "|", "^", "~", "!", "#", "?", ".",
];

impl Lexer {
    pub(crate) fn new(file: FileId, text: Arc<str>) -> Lexer {
        Lexer {
            file,
            at: 0,
            end: text.len(),
            text,
            at_line_start: true,
        }
    }

    /// Creates a lexer of a part of a line, which is not at the start of that line.
    pub(crate) fn within(file: FileId, text: Arc<str>, part: Range<usize>) -> Lexer {
        Lexer {
            at: part.start,
            end: part.end,
            at_line_start: false,
            ..Lexer::new(file, text)
        }
    }

    /// Reads the next token, on this line or a later one.
    pub(crate) fn next(&mut self) -> Token {
        while !self.skip_blanks() {
            self.at += 1;
            self.at_line_start = true;
        }
        self.word()
    }

    /// Reads the next token of this logical line, if there is one.
    pub(crate) fn next_on_line(&mut self) -> Option<Token> {
        (self.skip_blanks() && self.at < self.end).then(|| self.word())
    }

    /// Returns the rest of this line without moving.
    pub(crate) fn rest_of_line(&self) -> Span {
        let end = self
            .rest()
            .find('\n')
            .map_or(self.end, |length| self.at + length);
        self.span(self.at, end)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            start: start as u32,
            end: end as u32,
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..self.end]
    }

    /// Skips white space and line splices; false if it stopped at a line end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let Some(char) = rest.chars().next() else {
                return true;
            };
            let skipped = match char {
                '\n' => return false,
                '\\' => match splice(rest) {
                    Some(length) => length,
                    None => return true,
                },
                _ if is_blank(char) => char.len_utf8(),
                _ => return true,
            };
            self.at += skipped;
        }
    }

    fn word(&mut self) -> Token {
        let first_on_line = std::mem::replace(&mut self.at_line_start, false);
        let start = self.at;
        let (kind, length) = self.recognise(first_on_line);
        self.at += length;
        let span = self.span(start, self.at);
        Token {
            kind,
            spelled: span,
            span,
            first_on_line,
        }
    }

    /// Returns the kind of the next token and its length in bytes.
    fn recognise(&self, first_on_line: bool) -> (TokenKind, usize) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return (TokenKind::End, 0);
        };
        match first {
            '%' if first_on_line => (TokenKind::Passthrough, passthrough_length(rest)),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '/' if rest.starts_with("//") => (TokenKind::Comment, line_length(rest)),
            '"' => quoted(rest, '"', TokenKind::Text, LexError::UnclosedText),
            '\'' => quoted(
                rest,
                '\'',
                TokenKind::Character,
                LexError::UnclosedCharacter,
            ),
            '0'..='9' => (TokenKind::Number, number_length(rest)),
            'a'..='z' | 'A'..='Z' | '_' => (TokenKind::Identifier, word_length(rest)),
            _ => punctuation(rest, first),
        }
    }
}

/// Returns whether `char` is white space or one of the invisible characters that come with text pasted from a web page.
fn is_blank(char: char) -> bool {
    is_invisible(char) || (char != '\n' && char.is_whitespace())
}

/// Returns whether `char` has no width; such characters are written by accident.
pub(crate) fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// Returns the length of a line splice: a backslash with the line end behind it.
fn splice(rest: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"]
        .iter()
        .find(|mark| rest.starts_with(**mark))
        .map(|mark| mark.len())
}

fn punctuation(rest: &str, first: char) -> (TokenKind, usize) {
    let known = PUNCTUATION.iter().find(|mark| rest.starts_with(**mark));
    match known {
        Some(mark) => (TokenKind::Punctuation(mark), mark.len()),
        None => (TokenKind::Bad(LexError::Character), first.len_utf8()),
    }
}

fn word_length(rest: &str) -> usize {
    rest.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
        .unwrap_or(rest.len())
}

/// Returns the length of a number; as in C23, a `'` between two digits separates them.
fn number_length(rest: &str) -> usize {
    let mut length = word_length(rest);
    while let Some(more) = rest[length..].strip_prefix('\'') {
        match word_length(more) {
            0 => break,
            digits => length += 1 + digits,
        }
    }
    length
}

fn line_length(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

fn block_comment(rest: &str) -> (TokenKind, usize) {
    match rest[2..].find("*/") {
        Some(length) => (TokenKind::Comment, length + 4),
        None => (TokenKind::Bad(LexError::UnclosedComment), rest.len()),
    }
}

/// Reads a literal between two `quote`s on one line; a backslash escapes the character behind it.
fn quoted(rest: &str, quote: char, kind: TokenKind, unclosed: LexError) -> (TokenKind, usize) {
    let mut protected = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            '\n' => return (TokenKind::Bad(unclosed), at),
            _ if protected => protected = false,
            '\\' => protected = true,
            _ if char == quote => return (kind, at + 1),
            _ => {}
        }
    }
    (TokenKind::Bad(unclosed), rest.len())
}

/// Returns the length of a `%` line, which continues as long as its lines end in a backslash.
fn passthrough_length(rest: &str) -> usize {
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    rest[..length].trim_end_matches(['\n', '\r']).len()
}
