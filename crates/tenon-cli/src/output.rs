//! Writing to stdout. Whoever reads may stop reading; that is no failure.

use std::io::{self, Write};

use crate::failure::Failure;

/// Prints `text` as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints `json` on one line, or spread out for people.
pub fn print_json(json: &serde_json::Value, compact: bool) -> Result<(), Failure> {
    let text = match compact {
        true => json.to_string(),
        false => format!("{json:#}"),
    };
    print(&(text + "\n"))
}
