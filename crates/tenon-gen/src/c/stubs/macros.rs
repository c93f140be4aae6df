//! Finds names that the preprocessor would replace though they mean something else.

use std::collections::BTreeSet;

/// The kind of a generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StubFileKind {
    /// It defines the macros. Numbers stand in it between brackets, behind `=` and in other macros.
    Header,
    /// It includes the header, and nothing in front of that is replaced. Numbers of the interface's stand behind it
    /// between brackets and behind `case` alone.
    Source,
}

/// A name of `defined` that stands in `text` for something other than its number. The lines in `passed` are the
/// interface's own C, which may mean the macros.
pub fn misread<'a>(
    defined: &BTreeSet<&'a str>,
    text: &str,
    passed: &BTreeSet<&str>,
    file: StubFileKind,
) -> Option<&'a str> {
    let code = code(text);
    let is_in_front =
        |(line, _): &(&str, &str)| file == StubFileKind::Source && !includes_own(line);
    let lines = code.lines().zip(text.lines()).skip_while(is_in_front);
    let mut lines = lines.filter(|(line, whole)| !is_exempt(line, file) && !passed.contains(whole));
    lines.find_map(|(line, _)| misread_in_line(defined, line, file))
}

/// Returns whether a line without its literals includes a header that is not the system's.
fn includes_own(line: &str) -> bool {
    line.starts_with("#include") && !line.contains('<')
}

/// Returns whether no name is replaced in a line, or only names that are numbers.
fn is_exempt(line: &str, file: StubFileKind) -> bool {
    line.starts_with("#include") || (file == StubFileKind::Header && line.starts_with("#define"))
}

fn misread_in_line<'a>(
    defined: &BTreeSet<&'a str>,
    line: &str,
    file: StubFileKind,
) -> Option<&'a str> {
    let mut at = 0;
    for word in line.split(|char: char| !char.is_ascii_alphanumeric() && char != '_') {
        if let (Some(name), false) = (defined.get(word), is_number(&line[..at], file)) {
            return Some(name);
        }
        // One character separates two words.
        at += word.len();
        at += line[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Returns whether the name behind `before` in a line is a number, or an operand that one is computed from.
fn is_number(before: &str, file: StubFileKind) -> bool {
    let count = |mark| before.matches(mark).count();
    let is_behind = match file {
        StubFileKind::Header => before.contains('='),
        StubFileKind::Source => before.trim_start().starts_with("case ") && !before.contains(':'),
    };
    is_behind || count('[') > count(']')
}

/// The text without comments and literals, in as many lines.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        code.push_str(&rest[..at]);
        let length = skipped(&rest[at..]);
        let (skipped, behind) = rest[at..].split_at(length);
        code.extend(skipped.chars().filter(|char| *char == '\n'));
        code.push(' ');
        rest = behind;
    }
    code + rest
}

/// Returns the length of the comment or literal that a text begins with; 1 for a slash that is but a slash.
fn skipped(text: &str) -> usize {
    if let Some(comment) = text.strip_prefix("/*") {
        return comment.find("*/").map_or(text.len(), |end| end + 4);
    }
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with('/') {
        return 1;
    }
    let quote = text.as_bytes()[0];
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        if byte == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    text.len()
}
