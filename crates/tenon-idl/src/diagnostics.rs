//! What a run has to say about an interface: errors, warnings, where and what to do.

use crate::source::{Sources, Span};

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The interface is usable, but may not mean what its author thinks.
    Warning,
    /// There is no schema.
    Error,
}

impl Severity {
    /// The word that introduces a diagnostic.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One remark. Render it with [`crate::render`], or take it apart with [`Diagnostic::report`].
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; `None` when a file could not be read at all.
    pub span: Option<Span>,
    /// What to write under the marked text: usually what was expected.
    pub label: String,
    /// Another place that has to do with it, and what is there.
    pub related: Option<Box<Related>>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Another place that has to do with a diagnostic.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What is there.
    pub what: String,
}

/// A diagnostic for machines: all places resolved, no borrowed parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The file as the user named it; empty if there is no place.
    pub file: String,
    /// The line, from 1; 0 if there is no place.
    pub line: u32,
    /// The column in characters, from 1; 0 if there is no place.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What was expected; may be empty.
    pub label: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    pub(crate) fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, Some(span), message.into())
    }

    pub(crate) fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, Some(span), message.into())
    }

    pub(crate) fn without_place(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, None, message.into())
    }

    fn new(severity: Severity, span: Option<Span>, message: String) -> Diagnostic {
        Diagnostic {
            severity,
            message: clip(message),
            span,
            label: String::new(),
            related: None,
            hint: None,
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = clip(label.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(clip(hint.into()));
        self
    }

    pub(crate) fn related(mut self, span: Span, what: impl Into<String>) -> Diagnostic {
        let what = clip(what.into());
        self.related = Some(Box::new(Related { span, what }));
        self
    }

    /// The machine form.
    pub fn report(&self, sources: &Sources) -> Report {
        let place = self.span.map(|span| sources.locate(span));
        let (file, line, column) =
            place.map_or_else(Default::default, |at| (at.file, at.line, at.column));
        Report {
            severity: self.severity.word(),
            file,
            line,
            column,
            message: self.message.clone(),
            label: self.label.clone(),
            hint: self.hint.clone(),
        }
    }
}

/// A name in a hostile file may be megabytes long.
fn clip(mut text: String) -> String {
    const CHARACTERS_MAX: usize = 500;
    if let Some((end, _)) = text.char_indices().nth(CHARACTERS_MAX) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Collects the diagnostics of a run and knows when it is enough.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

/// A file that is no interface at all would otherwise draw an error per token.
const ERRORS_MAX: usize = 50;
const WARNINGS_MAX: usize = 200;

impl Diagnostics {
    pub(crate) fn new() -> Diagnostics {
        Diagnostics {
            list: Vec::new(),
            errors: 0,
            warnings: 0,
        }
    }

    /// Keeps `diagnostic`, unless there are more than anybody reads.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let (count, max) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, ERRORS_MAX),
            Severity::Warning => (&mut self.warnings, WARNINGS_MAX),
        };
        *count += 1;
        if *count <= max {
            self.list.push(diagnostic);
        }
    }

    /// Whether further work on this input only makes noise.
    pub(crate) fn exhausted(&self) -> bool {
        self.errors > ERRORS_MAX
    }

    /// Whether a further warning would be kept.
    pub(crate) fn keeps_warnings(&self) -> bool {
        self.warnings < WARNINGS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All that was kept, in the order of the text.
    pub(crate) fn into_list(mut self) -> Vec<Diagnostic> {
        self.list
            .sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.file, span.start)));
        if self.exhausted() {
            let message = format!("more than {ERRORS_MAX} errors; the rest is not shown");
            self.list.push(Diagnostic::without_place(message));
        }
        self.list
    }
}
