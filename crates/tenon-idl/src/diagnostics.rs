//! Diagnostics of an interface: errors and warnings, their locations and hints.

use crate::source::{SourceMap, Span};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The interface is usable, but may not mean what its author intends.
    Warning,
    /// There is no schema.
    Error,
}

impl Severity {
    /// Returns the word that introduces a diagnostic.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One error or warning. Render it with [`crate::render`], or take it apart with [`Diagnostic::report`].
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The problem, in one line.
    pub message: String,
    /// The span that it is about; `None` when a file could not be read at all.
    pub span: Option<Span>,
    /// The text under the marked span: usually what was expected.
    pub label: String,
    /// A related span with a description.
    pub related: Option<Box<RelatedSpan>>,
    /// Advice on the remedy.
    pub hint: Option<String>,
}

/// A span that is related to a diagnostic.
#[derive(Debug, Clone, PartialEq)]
pub struct RelatedSpan {
    /// The span.
    pub span: Span,
    /// The text under the span.
    pub what: String,
}

/// A diagnostic in machine-readable form: all locations resolved, no borrowed parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosticReport {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The file as the user named it; empty if there is no location.
    pub file: String,
    /// The line, from 1; 0 if there is no location.
    pub line: u32,
    /// The column in characters, from 1; 0 if there is no location.
    pub column: u32,
    /// The problem.
    pub message: String,
    /// The text under the marked span, usually what was expected; may be empty.
    pub label: String,
    /// Advice on the remedy.
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
        self.related = Some(Box::new(RelatedSpan { span, what }));
        self
    }

    /// Converts the diagnostic to its machine-readable form.
    pub fn report(&self, sources: &SourceMap) -> DiagnosticReport {
        let place = self.span.map(|span| sources.locate(span));
        let (file, line, column) =
            place.map_or_else(Default::default, |at| (at.file, at.line, at.column));
        DiagnosticReport {
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

/// Shortens a message: a name in a hostile file may be megabytes long.
fn clip(mut text: String) -> String {
    const CHARACTERS_MAX: usize = 500;
    if let Some((end, _)) = text.char_indices().nth(CHARACTERS_MAX) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Collects the diagnostics of a run, up to a limit.
#[derive(Debug)]
pub(crate) struct DiagnosticCollector {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

/// Errors that are kept: a file that is no interface at all would otherwise cause an error per token.
const ERRORS_MAX: usize = 50;
const WARNINGS_MAX: usize = 200;

impl DiagnosticCollector {
    pub(crate) fn new() -> DiagnosticCollector {
        DiagnosticCollector {
            list: Vec::new(),
            errors: 0,
            warnings: 0,
        }
    }

    /// Keeps `diagnostic`, unless there are too many of its severity.
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

    /// Returns whether the limit of errors is exceeded, so that further work on this input is useless.
    pub(crate) fn exhausted(&self) -> bool {
        self.errors > ERRORS_MAX
    }

    /// Returns whether a further warning would be kept.
    pub(crate) fn keeps_warnings(&self) -> bool {
        self.warnings < WARNINGS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns all diagnostics that were kept, in the order of the text.
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
