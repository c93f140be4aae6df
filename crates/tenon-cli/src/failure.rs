//! How a command ends that could not do its work: what went wrong, what to do, exit status 1, or 2 if the command
//! line is wrong.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub struct CommandFailure {
    message: Option<String>,
    hint: Option<String>,
    is_usage: bool,
}

impl CommandFailure {
    /// Creates a failure that stderr has not heard of yet.
    pub fn new(message: impl Display) -> Self {
        Self {
            message: Some(message.to_string()),
            hint: None,
            is_usage: false,
        }
    }

    /// Options that do not go together, or lack one.
    pub fn usage(message: impl Display) -> Self {
        Self {
            is_usage: true,
            ..Self::new(message)
        }
    }

    /// Creates a failure that has been explained already, by diagnostics for instance.
    pub fn explained() -> Self {
        Self {
            message: None,
            hint: None,
            is_usage: false,
        }
    }

    /// Says what to do about it.
    pub fn hint(self, hint: impl Display) -> Self {
        Self {
            hint: Some(hint.to_string()),
            ..self
        }
    }

    /// The error message, if it was not yet written to stderr.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Tells stderr and hands out the exit status.
    pub fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            eprintln!("tenon: {message}");
        }
        if let Some(hint) = self.hint {
            eprintln!("  hint: {hint}");
        }
        ExitCode::from(match self.is_usage {
            true => 2,
            false => 1,
        })
    }
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        Self::new(error)
    }
}
