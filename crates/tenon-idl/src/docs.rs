//! Doc comments: which comment belongs to what, and what it says without its markers.
//!
//! A comment belongs to the definition, field, member or procedure that starts on the line behind
//! it, or to the one that it follows on the same line. An empty line parts them. A notice of
//! copyright belongs to the file and documents nothing in it.

use crate::preprocess::Aside;
use crate::source::{Sources, Span};

/// All comments of a run, in the order of the words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comments<'a> {
    pub sources: &'a Sources,
    pub list: &'a [Aside],
}

impl Comments<'_> {
    /// What the comments in front of the word at `position`, which stands at `span`, say.
    pub(crate) fn leading(&self, position: usize, span: Span) -> String {
        let end = self.first_behind(position, span);
        let mut line = self.sources.physical_line(span);
        let mut start = end;
        while let Some(aside) = start.checked_sub(1).map(|index| self.list[index]) {
            let adjacent = aside.position == position
                && aside.first_on_line
                && aside.span.file == span.file
                && aside.span.end <= span.start
                && self.last_line(aside.span) + 1 >= line;
            if !adjacent {
                break;
            }
            line = self.sources.physical_line(aside.span);
            start -= 1;
        }
        self.join(&self.list[start..end])
    }

    /// What the comments behind something say: those between the words `first` and `last` (the
    /// word behind it) that stand on the line of `end`, its last word.
    pub(crate) fn trailing(&self, first: usize, last: usize, end: Span) -> String {
        let from = self.list.partition_point(|aside| aside.position <= first);
        let to = self.list.partition_point(|aside| aside.position <= last);
        self.on_line_of(&self.list[from..to], end)
    }

    /// What a comment behind a `#define` says; `position` is that of the word behind both.
    pub(crate) fn behind_macro(&self, position: usize, name: Span) -> String {
        let from = self.first_behind(position, name);
        let line = self.sources.physical_line(name);
        let on_line = |aside: &&Aside| {
            aside.position == position && self.sources.physical_line(aside.span) == line
        };
        let count = self.list[from..].iter().take_while(on_line).count();
        self.on_line_of(&self.list[from..from + count], name)
    }

    /// The first comment behind what stands at `span`, where `position` is that of the word
    /// there or of the next one.
    fn first_behind(&self, position: usize, span: Span) -> usize {
        self.list.partition_point(|aside| {
            let in_front = aside.span.file != span.file || aside.span.start < span.start;
            aside.position < position || (aside.position == position && in_front)
        })
    }

    fn on_line_of(&self, asides: &[Aside], end: Span) -> String {
        let line = self.sources.physical_line(end);
        let on_line = |aside: &Aside| {
            !aside.first_on_line
                && aside.span.file == end.file
                && self.sources.physical_line(aside.span) == line
        };
        let found: Vec<Aside> = asides.iter().copied().filter(on_line).collect();
        self.join(&found)
    }

    fn last_line(&self, span: Span) -> u32 {
        self.sources.physical_line(Span {
            start: span.end,
            ..span
        })
    }

    fn join(&self, asides: &[Aside]) -> String {
        let texts = asides
            .iter()
            .map(|aside| strip(self.sources.text(aside.span)));
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

/// A comment without its markers, the stars in front of its lines and empty lines around it.
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

/// Takes the star at the start of a line away, or the whole line where it is nothing but a rule.
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
