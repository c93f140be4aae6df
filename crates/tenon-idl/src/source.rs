//! The source texts of a run, and spans that point into them.

use std::sync::Arc;

use tenon_schema::Origin;

/// A text of [`SourceMap`], by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A range of bytes of one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// Returns the span from the start of `self` to the end of `last`; `self` alone if they are in
    /// different files.
    pub fn to(self, last: Span) -> Span {
        if self.file != last.file || last.end < self.start {
            return self;
        }
        Span {
            end: last.end,
            ..self
        }
    }

    /// Returns whether `next` stands right behind it.
    pub(crate) fn is_right_before(self, next: Span) -> bool {
        self.file == next.file && self.end == next.start
    }
}

/// A file, line and column to show to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file as the user named it, or as a `#line` names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// One text.
#[derive(Debug)]
struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    line_starts: Vec<u32>,
    included: bool,
    /// `#line` markers in the order of the text.
    markers: Vec<LineMarker>,
}

/// "From here on, count from this line of that file."
#[derive(Debug)]
struct LineMarker {
    /// The physical line (from 0) that the marker applies to: the one behind it.
    physical: u32,
    line: u32,
    /// Shared by all definitions behind it: a name may be long, and many definitions may have it.
    name: Arc<str>,
    /// The named file is neither that of the text nor the one that its first marker names.
    elsewhere: bool,
}

/// The name of the text that the definitions of the command line form.
const COMMAND_LINE: &str = "<command line>";

/// All texts of a run: the main file, what it includes, and the command line's
/// definitions.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a text. A text has to be smaller than 4 GiB, which the loader's limit ensures.
    pub(crate) fn add(&mut self, name: &str, text: String, included: bool) -> FileId {
        let line_starts = line_starts(&text);
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
            line_starts,
            included,
            markers: Vec::new(),
        });
        FileId(self.files.len() as u32 - 1)
    }

    /// Records that the line behind that of `at` is line `line` of `name`, or of the file that was named last if there
    /// is no `name`.
    pub(crate) fn mark_line(&mut self, at: Span, line: u32, name: Option<&str>) {
        let physical = self.physical_line(at) + 1;
        let file = &mut self.files[at.file.0 as usize];
        let (name, elsewhere) = match (name, file.markers.last()) {
            (Some(name), None) => (name.into(), false),
            (Some(name), Some(_)) => (
                name.into(),
                *name != *file.markers[0].name && *name != *file.name,
            ),
            (None, Some(last)) => (Arc::clone(&last.name), last.elsewhere),
            (None, None) => (Arc::clone(&file.name), false),
        };
        file.markers.push(LineMarker {
            physical,
            line,
            name,
            elsewhere,
        });
    }

    /// Adds a definition of the command line.
    pub(crate) fn add_command_line(&mut self, text: String) -> FileId {
        self.add(COMMAND_LINE, text, true)
    }

    /// Returns whether `span` lies in a definition of the command line.
    pub(crate) fn is_command_line(&self, span: Span) -> bool {
        &*self.files[span.file.0 as usize].name == COMMAND_LINE
    }

    /// Returns the whole text of a file.
    pub(crate) fn whole(&self, file: FileId) -> Arc<str> {
        Arc::clone(&self.files[file.0 as usize].text)
    }

    /// Returns the names of all texts, those of included files among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.name)
    }

    /// Returns the text of `span`.
    pub fn text(&self, span: Span) -> &str {
        let text = &self.files[span.file.0 as usize].text;
        text.get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    /// Returns the location at which `span` starts, to show to the user.
    pub fn locate(&self, span: Span) -> SourceLocation {
        let physical = self.physical_line(span);
        let file = &self.files[span.file.0 as usize];
        let start = file.line_starts[physical as usize];
        let before = Span {
            start,
            end: span.start,
            file: span.file,
        };
        let (marker, line) = file.counted(physical);
        SourceLocation {
            file: marker.map_or(&file.name, |marker| &marker.name).to_string(),
            line,
            column: self.text(before).chars().count() as u32 + 1,
        }
    }

    /// Returns the line in which `span` starts, as a span without its line end.
    pub(crate) fn line_around(&self, span: Span) -> Span {
        let file = &self.files[span.file.0 as usize];
        let physical = self.physical_line(span) as usize;
        let start = file.line_starts[physical];
        let next = file.line_starts.get(physical + 1).copied();
        let whole = Span {
            start,
            end: next.unwrap_or(file.text.len() as u32),
            ..span
        };
        let kept = self.text(whole).trim_end_matches(['\n', '\r']).len() as u32;
        Span {
            end: start + kept,
            ..whole
        }
    }

    /// Returns the number of the line in which `span` starts, from 0, regardless of `#line`.
    pub(crate) fn physical_line(&self, span: Span) -> u32 {
        let starts = &self.files[span.file.0 as usize].line_starts;
        starts.partition_point(|start| *start <= span.start) as u32 - 1
    }

    /// Returns the location of a definition in the form of the schema.
    pub(crate) fn origin(&self, span: Span) -> Origin {
        let file = &self.files[span.file.0 as usize];
        let (marker, line) = file.counted(self.physical_line(span));
        Origin {
            included: file.included || marker.is_some_and(|marker| marker.elsewhere),
            file: Arc::clone(marker.map_or(&file.name, |marker| &marker.name)),
            line,
        }
    }
}

impl SourceFile {
    /// Returns the marker that applies to a physical line (from 0), if there is one, and the number it yields.
    fn counted(&self, physical: u32) -> (Option<&LineMarker>, u32) {
        let count = self
            .markers
            .partition_point(|marker| marker.physical <= physical);
        match count.checked_sub(1).map(|index| &self.markers[index]) {
            Some(marker) => {
                let line = marker.line.saturating_add(physical - marker.physical);
                (Some(marker), line)
            }
            None => (None, physical + 1),
        }
    }
}

fn line_starts(text: &str) -> Vec<u32> {
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at as u32 + 1))
        .collect()
}
