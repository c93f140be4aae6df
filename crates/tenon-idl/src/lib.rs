//! The interface language: `.x` text to a [`Schema`] and diagnostics.
//!
//! Reads all of RFC 4506 and RFC 5531 section 12, and by default the union of the dialects that
//! interfaces are written in: C's names of integers, types and constants that are declared
//! elsewhere, nested types, computed constants, several or named arguments, `//` comments, `%`
//! lines anywhere, and so on. Parameters may have a direction (`in`, `out`, `inout`). A preprocessor is built in.
//!
//! ```
//! let text = "struct point { int x; int y; };";
//! let parsed = tenon_idl::parse_text("point.x", text, &tenon_idl::Options::default());
//! assert_eq!(parsed.schema.expect("no errors").types[0].name, "point");
//! ```
//!
//! # Macros defined while a file is read
//! rpcgen reads a file once per output, each time with another symbol defined. A schema is read
//! with `RPC_HDR` defined as 1 (see [`Output`]), for the header declares all types, and
//! with the macros that a C preprocessor defines by itself, such as `__linux__`.
//!
//! # Strict reading
//! [`Options::strict_rpcgen`] rejects what Debian's rpcgen 1.4.3 rejects: computed constants, `0X`
//! and `5L` as numbers, types that are defined where they are used, `long long`, `program`,
//! `version`, `string`, `opaque` and the like as names, several arguments (rpcgen takes them with
//! `-N` only), their directions, pointers and arrays as results and arguments, strings without a bound, `//`
//! comments, indented and continued `%` lines, `namespace` and `pragma`, a comma behind the last
//! member of an enum, an empty enum, struct or version, `default` in front of a `case` or beside one, a union with
//! nothing else, the name of a variable behind the definition of a type, `struct *name { .. }`, a `;` that ends
//! nothing, and invisible characters.

mod ast;
mod cursor;
mod diagnostics;
mod docs;
mod dump;
mod expression;
mod lexer;
mod load;
mod options;
mod parser;
mod preprocess;
mod render;
mod resolve;
mod similar;
mod source;
mod token;
mod write;

use std::io::Read;
use std::path::Path;

use tenon_schema::Schema;
use tenon_schema::written::Written;

pub use diagnostics::{Diagnostic, DiagnosticReport, RelatedSpan, Severity};
pub use dump::dump;
pub use options::{Define, FileSource, Options, Output, ParseLimits, Undeclared};
pub use render::{Style, render};
pub use source::{FileId, SourceLocation, SourceMap, Span};
pub use write::{write_definitions, write_interface};

use diagnostics::DiagnosticCollector;

/// The result of reading an interface.
#[derive(Debug)]
pub struct Parsed {
    /// The meaning of the interface; `None` if there is an error among the diagnostics.
    pub schema: Option<Schema>,
    /// The spelling of the interface; `None` if there is no schema.
    pub written: Option<Written>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that the diagnostics point into.
    pub sources: SourceMap,
}

impl Parsed {
    /// Renders all diagnostics as text; empty if there are none.
    pub fn render(&self, style: Style) -> String {
        let rendered = self.diagnostics.iter();
        rendered
            .map(|diagnostic| render(diagnostic, &self.sources, style))
            .collect()
    }

    /// Returns all diagnostics in machine-readable form.
    pub fn reports(&self) -> Vec<DiagnosticReport> {
        let diagnostics = self.diagnostics.iter();
        diagnostics
            .map(|diagnostic| diagnostic.report(&self.sources))
            .collect()
    }
}

/// Reads the interface in the file `path` and what it includes. A file that cannot be read is a
/// diagnostic without a location.
pub fn parse_file(path: &Path, options: &Options) -> Parsed {
    match load::read(path, &options.files, options.limits.text_bytes_max) {
        Ok(Some(text)) => read_text(path, text, options),
        Ok(None) => unreadable(format!("there is no file `{}`", path.display())),
        Err(message) => unreadable(message),
    }
}

/// Reads the interface from `input`, such as stdin, to its end, and what it includes. Diagnostics call it
/// `name`, and its `#include "..."` lines start from the folder of `name`. Input that cannot be read, or is longer
/// than the limits allow, is a diagnostic without a location.
pub fn parse_input(name: &str, input: impl Read, options: &Options) -> Parsed {
    match load::read_input(name, input, options.limits.text_bytes_max) {
        Ok(text) => read_text(Path::new(name), text, options),
        Err(message) => unreadable(message),
    }
}

/// Reads the interface `text`, which diagnostics call `name`. Its `#include "..."` lines start
/// from the folder of `name`.
pub fn parse_text(name: &str, text: &str, options: &Options) -> Parsed {
    read_text(Path::new(name), text.to_string(), options)
}

fn unreadable(message: String) -> Parsed {
    Parsed {
        schema: None,
        written: None,
        diagnostics: vec![Diagnostic::without_place(message)],
        sources: SourceMap::default(),
    }
}

fn read_text(path: &Path, text: String, options: &Options) -> Parsed {
    let mut sources = SourceMap::default();
    let mut diagnostics = DiagnosticCollector::new();
    let unit = preprocess::preprocess(path, text, options, &mut sources, &mut diagnostics);
    let definitions = parser::parse(&unit, &sources, options, &mut diagnostics);
    let (schema, written) = resolve::resolve(
        definitions,
        &unit.passthrough,
        &sources,
        options,
        &mut diagnostics,
    );
    let is_whole = !diagnostics.has_errors();
    Parsed {
        schema: is_whole.then_some(schema),
        written: is_whole.then_some(written),
        diagnostics: diagnostics.into_list(),
        sources,
    }
}
