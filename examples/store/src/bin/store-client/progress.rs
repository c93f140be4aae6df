//! How far a transfer is, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Pause between two lines.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows on stderr how many bytes were transferred, if that is a terminal.
pub struct Progress {
    verb: &'static str,
    bytes: u64,
    /// All bytes, if that is known.
    total: Option<u64>,
    /// When to show it next; `None` if stderr is no terminal.
    next: Option<Instant>,
}

impl Progress {
    /// Begins with no bytes. The verb says what is done with them.
    pub fn new(verb: &'static str, total: Option<u64>) -> Self {
        let is_shown = io::stderr().is_terminal();
        Self {
            verb,
            bytes: 0,
            total,
            next: is_shown.then(|| Instant::now() + PAUSE),
        }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let now = Instant::now();
        if let Some(next) = &mut self.next
            && now >= *next
        {
            *next = now + PAUSE;
            let of = self.total.map(|total| format!(" of {total}"));
            let (bytes, verb) = (self.bytes, self.verb);
            eprint!("\r{verb} {bytes}{} bytes ", of.unwrap_or_default());
            let _ = io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    /// Clears the line.
    fn drop(&mut self) {
        if self.next.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
