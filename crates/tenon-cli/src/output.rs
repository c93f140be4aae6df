//! Writing to stdout. The reader may stop reading; that is no failure.

use std::io::{self, Write};

use crate::failure::CommandFailure;

/// Prints `text` as it is.
pub fn print(text: &str) -> Result<(), CommandFailure> {
    print_bytes(text.as_bytes())
}

/// Prints bytes that are no text.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CommandFailure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandFailure::new(
            format!("cannot write to stdout: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints `json` on one line, or spread out for people.
pub fn print_json(json: &serde_json::Value, compact: bool) -> Result<(), CommandFailure> {
    print(&(json_text(json, compact) + "\n"))
}

/// Returns `json` on one line, or spread out for people, without what a terminal would take for a command.
pub fn json_text(json: &serde_json::Value, compact: bool) -> String {
    harmless(&match compact {
        true => json.to_string(),
        false => format!("{json:#}"),
    })
}

/// Returns text of another machine on one line, without what a terminal would take for a command.
pub fn one_line(text: &str) -> String {
    harmless(text).replace('\n', "\\n")
}

/// The same JSON, whatever a server's texts do to a terminal. JSON escapes control characters below U+0020 by itself;
/// those of U+007F to U+009F begin commands of terminals as well, and some characters turn the order of others round.
/// All of them can stand in strings only.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        let is_command = char.is_control() && char != '\n';
        let turns_round = matches!(char,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match is_command || turns_round {
            true => text.push_str(&format!("\\u{:04x}", u32::from(char))),
            false => text.push(char),
        }
    }
    text
}
