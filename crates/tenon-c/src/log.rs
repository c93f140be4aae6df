//! Events of the run time as lines of text.

use std::fmt::{self, Write};

use tracing::Level;
use tracing::field::{Field, Visit};

/// `tenon_log_level` of an event.
pub fn number(level: Level) -> u32 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        _ => 4,
    }
}

/// An event as a line: what happened, and then each field with its value.
#[derive(Debug, Default)]
pub struct LogLine {
    message: String,
    fields: String,
}

impl LogLine {
    /// Returns the text.
    pub fn into_text(self) -> String {
        match (self.message.is_empty(), self.fields.is_empty()) {
            (false, false) => format!("{} ({})", self.message, self.fields),
            (false, true) => self.message,
            (true, _) => self.fields,
        }
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let to = if field.name() == "message" {
            &mut self.message
        } else {
            let before = if self.fields.is_empty() { "" } else { ", " };
            self.fields.push_str(before);
            self.fields.push_str(field.name());
            self.fields.push_str(": ");
            &mut self.fields
        };
        // Writing to a string does not fail; a value that does is left out.
        let _ = write!(to, "{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_message_first() {
        let line = |message: &str, fields: &str| LogLine {
            message: message.into(),
            fields: fields.into(),
        };
        assert_eq!(line("lost", "id: 4").into_text(), "lost (id: 4)");
        assert_eq!(line("lost", "").into_text(), "lost");
        assert_eq!(line("", "id: 4").into_text(), "id: 4");
    }
}
