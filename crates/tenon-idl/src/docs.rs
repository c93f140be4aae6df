//! Doc comments: attaches comments to definitions and strips their markers.
//!
//! A comment belongs to the definition, field, member or procedure that starts on the line behind
//! it, or to the one that it follows on the same line. An empty line separates them. A notice of
//! copyright belongs to the file and documents nothing in it. Annotations are found in the same places.

use crate::preprocess::TokenTrivia;
use crate::source::{SourceMap, Span};

/// All comments of a run, in the order of the tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocComments<'a> {
    pub sources: &'a SourceMap,
    pub list: &'a [TokenTrivia],
}

impl DocComments<'_> {
    /// Returns the text of the comments in front of the token at `position`, which stands at `span`.
    pub(crate) fn leading(&self, position: usize, span: Span) -> String {
        self.join(self.in_front(position, span))
    }

    /// Returns the annotations of an item: in front of its token `first`, which stands at `start`, and behind it on the
    /// line of `end`, its last token. The token behind the item is `last`. The same may be there twice.
    pub(crate) fn annotations(
        &self,
        (first, start): (usize, Span),
        (last, end): (usize, Span),
    ) -> Vec<Span> {
        let leading = self.in_front(first, start).iter().copied();
        let leading = leading.chain(self.on_line_in_front(first, start));
        let all = leading.chain(self.behind(first, last, end));
        let spans = all.map(|comment| comment.span);
        spans.filter(|span| self.is_annotation(*span)).collect()
    }

    /// Returns whether a comment has annotations: it begins with `/*@`.
    pub(crate) fn is_annotation(&self, comment: Span) -> bool {
        self.sources.text(comment).starts_with("/*@")
    }

    /// Returns the comments that belong to the token at `position`, which stands at `span`, and are in front of it.
    fn in_front(&self, position: usize, span: Span) -> &[TokenTrivia] {
        let end = self.first_behind(position, span);
        let mut line = self.sources.physical_line(span);
        let mut start = end;
        while let Some(comment) = start.checked_sub(1).map(|index| self.list[index]) {
            let adjacent = comment.position == position
                && comment.first_on_line
                && comment.span.file == span.file
                && comment.span.end <= span.start
                && self.last_line(comment.span) + 1 >= line;
            if !adjacent {
                break;
            }
            line = self.sources.physical_line(comment.span);
            start -= 1;
        }
        &self.list[start..end]
    }

    /// Returns the text of the comments behind an item: those between the tokens `first` and `last` (the
    /// token behind it) that stand on the line of `end`, its last token.
    pub(crate) fn trailing(&self, first: usize, last: usize, end: Span) -> String {
        self.join(&self.behind(first, last, end))
    }

    fn behind(&self, first: usize, last: usize, end: Span) -> Vec<TokenTrivia> {
        let from = self
            .list
            .partition_point(|comment| comment.position <= first);
        let to = self
            .list
            .partition_point(|comment| comment.position <= last);
        self.on_line_of(&self.list[from..to], end)
    }

    /// Returns the text of a comment behind a `#define`; `position` is that of the token behind both.
    pub(crate) fn behind_macro(&self, position: usize, name: Span) -> String {
        let from = self.first_behind(position, name);
        let line = self.sources.physical_line(name);
        let on_line = |comment: &&TokenTrivia| {
            comment.position == position && self.sources.physical_line(comment.span) == line
        };
        let count = self.list[from..].iter().take_while(on_line).count();
        self.join(&self.on_line_of(&self.list[from..from + count], name))
    }

    /// Returns the comments between the token at `position`, which stands at `span`, and the one in front of it that are
    /// on its line.
    fn on_line_in_front(&self, position: usize, span: Span) -> impl Iterator<Item = TokenTrivia> {
        let line = self.sources.physical_line(span);
        let end = self.first_behind(position, span);
        let comments = self.list[..end].iter().rev().copied();
        comments.take_while(move |comment| {
            comment.position == position
                && comment.span.file == span.file
                && self.sources.physical_line(comment.span) == line
        })
    }

    /// Returns the index of the first comment behind `span`, where `position` is that of the token
    /// there or of the next one.
    fn first_behind(&self, position: usize, span: Span) -> usize {
        self.list.partition_point(|comment| {
            let in_front = comment.span.file != span.file || comment.span.start < span.start;
            comment.position < position || (comment.position == position && in_front)
        })
    }

    fn on_line_of(&self, comments: &[TokenTrivia], end: Span) -> Vec<TokenTrivia> {
        let line = self.sources.physical_line(end);
        let on_line = |comment: &TokenTrivia| {
            !comment.first_on_line
                && comment.span.file == end.file
                && self.sources.physical_line(comment.span) == line
        };
        comments.iter().copied().filter(on_line).collect()
    }

    fn last_line(&self, span: Span) -> u32 {
        self.sources.physical_line(Span {
            start: span.end,
            ..span
        })
    }

    fn join(&self, comments: &[TokenTrivia]) -> String {
        let documenting = comments
            .iter()
            .filter(|comment| !self.is_annotation(comment.span));
        let texts = documenting.map(|comment| strip(self.sources.text(comment.span)));
        let texts: Vec<String> = texts
            .filter(|text| !text.is_empty() && !is_notice(text))
            .collect();
        texts.join("\n")
    }
}

fn is_notice(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["copyright", "spdx-license-identifier"]
        .iter()
        .any(|word| text.contains(word))
}

/// Strips the markers of a comment, the stars in front of its lines and empty lines around it.
fn strip(comment: &str) -> String {
    let lines: Vec<&str> = match comment.strip_prefix("//") {
        Some(line) => vec![line.trim_start_matches(['/', '!']).trim()],
        None => block_lines(comment),
    };
    let said = |line: &&str| !line.is_empty();
    let start = lines.iter().position(said).unwrap_or(lines.len());
    let end = lines.iter().rposition(said).map_or(start, |last| last + 1);
    lines[start..end].join("\n")
}

fn block_lines(comment: &str) -> Vec<&str> {
    let inner = comment.strip_prefix("/*").unwrap_or(comment);
    let inner = inner.strip_suffix("*/").unwrap_or(inner);
    inner.lines().map(undecorated).collect()
}

/// Strips the star at the start of a line, or the whole line if it is nothing but a rule.
fn undecorated(line: &str) -> &str {
    let line = line.trim();
    let is_rule = line
        .chars()
        .all(|char| matches!(char, '*' | '-' | '=' | '_' | '#'));
    if is_rule {
        return "";
    }
    line.trim_start_matches('*').trim_start()
}
