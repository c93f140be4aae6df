//! Errors of JSON, with the path to their place.

use std::fmt::{self, Write};

use serde_json::Value as Json;

/// JSON (or a value to be written as JSON) that does not fit the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Path to the place of the error, as in `$.entries[3].name`.
    pub path: String,
    /// The expected and the found value, or another description of the error.
    pub problem: String,
}

impl JsonError {
    /// Makes an error for a value that is not as `expected`.
    pub(super) fn expected(expected: &str, found: &Json) -> Self {
        Self::new(format!("expected {expected}, found {}", describe(found)))
    }

    /// Makes an error for JSON that is not as `expected` as a whole.
    pub(crate) fn root(expected: &str, found: &Json) -> Self {
        Self::expected(expected, found).at_root()
    }

    /// Makes an error without a path, to which the callers add.
    pub(super) fn new(problem: String) -> Self {
        Self {
            path: String::new(),
            problem,
        }
    }

    /// Adds the field that it is in to the path.
    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.path.insert_str(0, &format!(".{name}"));
        self
    }

    /// Adds the element that it is in to the path.
    pub(super) fn in_element(mut self, position: usize) -> Self {
        self.path.insert_str(0, &format!("[{position}]"));
        self
    }

    /// Ends the path: this is where the JSON begins.
    pub(super) fn at_root(mut self) -> Self {
        self.path.insert(0, '$');
        self
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

impl std::error::Error for JsonError {}

/// JSON in a few words.
fn describe(found: &Json) -> String {
    match found {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => shortened(&number.to_string()),
        Json::String(text) => format!("the string {}", shortened(&format!("{text:?}"))),
        Json::Array(items) => format!("an array of {}", items.len()),
        Json::Object(members) => {
            let mut names = String::from("an object");
            let separators = std::iter::once(" with ").chain(std::iter::repeat(", "));
            for (name, separator) in members.keys().take(4).zip(separators) {
                // Writing to a string cannot fail.
                let _ = write!(names, "{separator}`{}`", shortened(name));
            }
            names
        }
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
