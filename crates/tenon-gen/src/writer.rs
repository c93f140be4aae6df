//! Writes source text: skeletons as raw text with `$name$` holes, indentation by nesting, and
//! the one place where text from an interface file is escaped.
//!
//! A skeleton knows its holes: an unknown or a forgotten one is a bug of the back end and
//! panics. A hole that stands alone on a line may be filled by a callback: the lines that it writes
//! inherit the indentation of the hole; if it writes none, the line disappears.

use std::fmt::Write;

const INDENT: &str = "    ";

/// Writes source text line by line.
#[derive(Debug, Default)]
pub struct SourceWriter {
    text: String,
    depth: usize,
    tabs: bool,
}

/// The text that fills a hole of a skeleton.
pub enum HoleContent<'a> {
    /// Text within a line.
    Text(&'a str),
    /// Whole lines.
    Lines(&'a dyn Fn(&mut SourceWriter)),
}

impl SourceWriter {
    /// Nothing written yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing written yet; indents with tabs, as is the habit of C.
    pub fn with_tabs() -> Self {
        Self {
            tabs: true,
            ..Self::default()
        }
    }

    /// Nothing written yet; begins as far in as this one is.
    pub fn beside(&self) -> Self {
        Self {
            text: String::new(),
            depth: self.depth,
            tabs: self.tabs,
        }
    }

    /// Returns the text that has been written.
    pub fn finish(self) -> String {
        self.text
    }

    /// Columns that the present indentation takes.
    pub fn column(&self) -> usize {
        self.depth * INDENT.len()
    }

    /// Writes one line; an empty one gets no indentation.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            let indent = match self.tabs {
                true => "\t",
                false => INDENT,
            };
            self.text.extend(std::iter::repeat_n(indent, self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Writes lines as they are, whatever the indentation.
    pub fn raw(&mut self, lines: &str) {
        self.text.push_str(lines);
        self.text.push('\n');
    }

    /// Writes text as it is: whole lines, or nothing.
    pub fn raw_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Writes `{` on a line of its own, the lines, and `}`.
    pub fn braces_below(&mut self, lines: impl FnOnce(&mut Self)) {
        self.line("{");
        self.indented(lines);
        self.line("}");
    }

    /// Writes an empty line, unless nothing stands before it.
    pub fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Writes lines one level further in.
    pub fn indented(&mut self, lines: impl FnOnce(&mut Self)) {
        self.depth += 1;
        lines(self);
        self.depth -= 1;
    }

    /// Writes `head {`, the lines, and `}`.
    pub fn braces(&mut self, head: &str, lines: impl FnOnce(&mut Self)) {
        self.line(format!("{head} {{"));
        self.indented(lines);
        self.line("}");
    }

    /// Writes a skeleton with its holes filled. Its first line, if empty, is left out.
    ///
    /// # Panics
    /// If a hole of the skeleton is not in `holes`, or one of `holes` not in the skeleton.
    pub fn skeleton(&mut self, skeleton: &str, holes: &[(&str, HoleContent<'_>)]) {
        for (name, _) in holes {
            assert!(
                skeleton.contains(&format!("${name}$")),
                "the skeleton has no hole ${name}$"
            );
        }
        let skeleton = skeleton.strip_prefix('\n').unwrap_or(skeleton);
        for line in skeleton.lines() {
            self.skeleton_line(line, holes);
        }
    }

    fn skeleton_line(&mut self, line: &str, holes: &[(&str, HoleContent<'_>)]) {
        let text = line.trim_start();
        let levels = (line.len() - text.len()) / INDENT.len();
        self.depth += levels;
        let alone = text
            .strip_prefix('$')
            .and_then(|rest| rest.strip_suffix('$'));
        match alone
            .filter(|name| !name.contains('$'))
            .map(|name| find(holes, name))
        {
            Some(HoleContent::Lines(lines)) => lines(self),
            Some(HoleContent::Text(filling)) => self.line(filling),
            None => self.line(fill(text, holes)),
        }
        self.depth -= levels;
    }

    /// Writes documentation from an interface file: each line behind `marker`.
    pub fn doc(&mut self, marker: &str, doc: &str) {
        for line in doc.lines() {
            let line = markdown(line);
            self.line(format!("{marker} {line}").trim_end());
        }
    }
}

fn fill(text: &str, holes: &[(&str, HoleContent<'_>)]) -> String {
    let mut filled = String::new();
    for (index, part) in text.split('$').enumerate() {
        match (index % 2 == 0, part) {
            (true, text) => filled.push_str(text),
            (false, name) => match find(holes, name) {
                HoleContent::Text(text) => filled.push_str(text),
                HoleContent::Lines(_) => panic!("the lines of ${name}$ do not stand alone"),
            },
        }
    }
    filled
}

fn find<'h, 'a>(holes: &'h [(&str, HoleContent<'a>)], name: &str) -> &'h HoleContent<'a> {
    match holes.iter().find(|(known, _)| *known == name) {
        Some((_, hole)) => hole,
        None => panic!("nothing fills the hole ${name}$"),
    }
}

/// One line of an interface's comment as Markdown that shows it as it is: no links, tags, lists or
/// headings by accident, no indented or fenced code (which rustdoc would run), no invisible
/// direction marks.
pub fn markdown(line: &str) -> String {
    let visible = line.chars().filter(|char| !is_invisible(*char));
    let visible: String = visible.collect::<String>().trim().to_owned();
    let is_code_paired = visible.matches('`').count().is_multiple_of(2) && !visible.contains("``");
    let mut shown = String::new();
    let mut in_code = false;
    let block_mark = block_mark(&visible);
    for (index, char) in visible.char_indices() {
        if block_mark == Some(index) {
            shown.push('\\');
        }
        in_code ^= is_code_paired && char == '`';
        let is_code_mark = char == '`' && is_code_paired;
        if !in_code && !is_code_mark && matches!(char, '\\' | '`' | '[' | '<' | '~') {
            shown.push('\\');
        }
        shown.push(char);
    }
    shown
}

/// Returns the position of the character that would make the line a heading, a quotation, a table
/// or an item of a list.
fn block_mark(line: &str) -> Option<usize> {
    let first_other = line.find(|char: char| !char.is_ascii_digit())?;
    let marks = match first_other {
        0 => "*-+#>=|",
        _ => ".)",
    };
    line[first_other..]
        .starts_with(|char| marks.contains(char))
        .then_some(first_other)
}

/// One line of text for a comment that is not documentation.
pub fn comment(text: &str) -> String {
    text.chars()
        .map(|char| if is_invisible(char) { ' ' } else { char })
        .collect()
}

/// Writes documentation from an interface file as a comment of C.
pub fn c_comment(w: &mut SourceWriter, doc: &str) {
    let harmless = |line: &str| {
        let line = comment(line).replace("*/", "* /").replace("/*", "/ *");
        line.trim().to_owned()
    };
    let lines: Vec<String> = doc.trim().lines().map(harmless).collect();
    match lines.as_slice() {
        [] => {}
        [only] => w.line(format!("/* {only} */")),
        lines => {
            w.line("/*");
            for line in lines {
                w.line(format!(" * {line}").trim_end());
            }
            w.line(" */");
        }
    }
}

/// A string literal, quotes included.
pub fn literal(text: &str) -> String {
    let mut literal = String::from('"');
    for char in text.chars() {
        match char {
            '\'' => literal.push('\''),
            char => {
                let _ = write!(literal, "{}", char.escape_default());
            }
        }
    }
    literal.push('"');
    literal
}

/// A string literal of C, quotes included. Control characters are left out, and what is not ASCII stays UTF-8.
pub fn c_literal(text: &str) -> String {
    let mut literal = String::from('"');
    for char in text.chars().filter(|char| !is_invisible(*char)) {
        if matches!(char, '"' | '\\') {
            literal.push('\\');
        }
        literal.push(char);
    }
    literal.push('"');
    literal
}

/// Control characters, and those that change the direction of text.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_lines_inherit_their_indentation() {
        let mut w = SourceWriter::new();
        w.skeleton(
            "
fn $name$() {
    $body$
    $nothing$
}
",
            &[
                ("name", HoleContent::Text("f")),
                (
                    "body",
                    HoleContent::Lines(&|w| w.braces("loop", |w| w.line("x();"))),
                ),
                ("nothing", HoleContent::Lines(&|_| {})),
            ],
        );
        assert_eq!(w.finish(), "fn f() {\n    loop {\n        x();\n    }\n}\n");
    }

    #[test]
    #[should_panic(expected = "nothing fills the hole $b$")]
    fn an_unknown_hole_is_a_bug() {
        SourceWriter::new().skeleton("$a$ $b$", &[("a", HoleContent::Text(""))]);
    }

    #[test]
    #[should_panic(expected = "the skeleton has no hole $b$")]
    fn a_hole_that_is_not_there_is_a_bug() {
        SourceWriter::new().skeleton(
            "$a$",
            &[("a", HoleContent::Text("")), ("b", HoleContent::Text(""))],
        );
    }

    #[test]
    fn text_of_an_interface_stays_text() {
        assert_eq!(
            markdown("    a [link] <b> `code[0]`"),
            r"a \[link] \<b> `code[0]`"
        );
        assert_eq!(markdown("``` one ` \u{202e}two\r"), r"\`\`\` one \` two");
        assert_eq!(literal("a\"\n\u{202e}'\\"), r#""a\"\n\u{202e}'\\""#);
        let mut w = SourceWriter::new();
        w.doc("///", "one\n\n*/ two");
        assert_eq!(w.finish(), "/// one\n///\n/// \\*/ two\n");
    }

    #[test]
    fn no_line_of_an_interface_begins_a_list_or_a_heading() {
        assert_eq!(markdown("* first"), r"\* first");
        assert_eq!(markdown("# define"), r"\# define");
        assert_eq!(markdown("12. twelfth"), r"12\. twelfth");
        assert_eq!(markdown("3 of a - b"), "3 of a - b");
    }
}
