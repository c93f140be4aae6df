//! Renders diagnostics as text: the location, the line itself and a mark under it.

use std::fmt::Write;

use crate::diagnostics::{Diagnostic, Severity};
use crate::source::{SourceMap, Span};

/// The style of rendered diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// Without colours.
    #[default]
    Plain,
    /// With ANSI colours, for a terminal.
    Colored,
}

/// Renders one diagnostic: several lines, with an empty line behind them.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, style: Style) -> String {
    let color = match diagnostic.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let paint = AnsiPainter { style };
    let head = paint.with(color, diagnostic.severity.word());
    let message = paint.with(BOLD, &format!(": {}", visible(&diagnostic.message)));
    let mut out = format!("{head}{message}\n");
    let gutter = gutter_width(diagnostic, sources);
    if let Some(span) = diagnostic.span {
        let place = SourceExcerpt {
            sources,
            span,
            label: &diagnostic.label,
            mark: '^',
            color,
        };
        place.write(&mut out, gutter, paint);
    }
    if let Some(related) = &diagnostic.related {
        let place = SourceExcerpt {
            sources,
            span: related.span,
            label: &related.what,
            mark: '-',
            color: BLUE,
        };
        place.write(&mut out, gutter, paint);
    }
    if let Some(hint) = &diagnostic.hint {
        let blank = " ".repeat(gutter);
        let _ = writeln!(
            out,
            "{blank} {} {}",
            paint.with(BLUE, "= hint:"),
            visible(hint)
        );
    }
    out.push('\n');
    out
}

/// Returns the width of the longest line number.
fn gutter_width(diagnostic: &Diagnostic, sources: &SourceMap) -> usize {
    let spans = diagnostic.span.into_iter();
    let spans = spans.chain(diagnostic.related.as_ref().map(|related| related.span));
    let widths = spans.map(|span| sources.locate(span).line.to_string().len());
    widths.max().unwrap_or(1)
}

/// A line of a text with a mark under a part of it.
struct SourceExcerpt<'a> {
    sources: &'a SourceMap,
    span: Span,
    label: &'a str,
    mark: char,
    color: &'static str,
}

/// The part of a line that is shown; a hostile one may be megabytes long.
const CHARACTERS_BEFORE_MAX: usize = 80;
const CHARACTERS_MAX: usize = 120;

impl SourceExcerpt<'_> {
    fn write(&self, out: &mut String, gutter: usize, paint: AnsiPainter) {
        let location = self.sources.locate(self.span);
        let blank = " ".repeat(gutter);
        let arrow = paint.with(BLUE, "-->");
        let bar = paint.with(BLUE, "|");
        let number = paint.with(BLUE, &format!("{:>gutter$}", location.line));
        let (line, indent, width) = self.cut();
        let mark = self.mark.to_string().repeat(width);
        let mark = paint.with(
            self.color,
            format!("{mark} {}", visible(self.label)).trim_end(),
        );
        let file = visible(&location.file);
        let _ = writeln!(
            out,
            "{blank}{arrow} {file}:{}:{}",
            location.line, location.column
        );
        let _ = writeln!(out, "{blank} {bar}");
        let _ = writeln!(out, "{number} {bar} {line}");
        let _ = writeln!(out, "{blank} {bar} {}{mark}", " ".repeat(indent));
    }

    /// Returns the line around the marked part as it is shown, the width of the text in front of the mark
    /// and that of the mark itself.
    fn cut(&self) -> (String, usize, usize) {
        let line = self.sources.line_around(self.span);
        let before = self.sources.text(Span {
            end: self.span.start.min(line.end),
            ..line
        });
        let marked_end = self
            .span
            .end
            .clamp(self.span.start, line.end.max(self.span.start));
        let marked = self.sources.text(Span {
            end: marked_end,
            ..self.span
        });
        let after = self.sources.text(Span {
            start: marked_end,
            end: line.end,
            ..line
        });
        let before = last_characters(before, CHARACTERS_BEFORE_MAX);
        let marked = first_characters(marked, CHARACTERS_MAX);
        let after = first_characters(after, CHARACTERS_MAX);
        let (before, marked, after) = (visible(&before), visible(&marked), visible(&after));
        let (indent, width) = (before.chars().count(), marked.chars().count());
        (
            format!("{before}{marked}{after}").trim_end().to_string(),
            indent,
            width.max(1),
        )
    }
}

fn first_characters(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

fn last_characters(text: &str, max: usize) -> String {
    match text.char_indices().rev().nth(max) {
        Some((start, char)) => format!("...{}", &text[start + char.len_utf8()..]),
        None => text.to_string(),
    }
}

/// Makes text of the interface safe for a terminal: tabs become spaces, characters that have no width or
/// move the cursor become replacement characters.
fn visible(text: &str) -> String {
    let unsafe_to_show = |char: char| {
        char.is_control()
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '\t' => out.push_str("    "),
            _ if unsafe_to_show(char) => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(char),
        }
    }
    out
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const BOLD: &str = "1";

#[derive(Clone, Copy)]
struct AnsiPainter {
    style: Style,
}

impl AnsiPainter {
    fn with(self, color: &str, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_string(),
            Style::Colored => format!("\x1b[{color}m{text}\x1b[0m"),
        }
    }
}
