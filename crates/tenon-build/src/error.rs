//! The reasons why stubs cannot be generated.

use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "descriptor")]
use tenon_descriptor::DescriptorError;
use tenon_gen::rust::Refused;
use tenon_plan::PlanError;

/// An error that prevents stubs from being generated. A build script that returns it prints it in full: `{:?}` is `{}`.
pub enum Error {
    /// The interface has errors: all of them, rendered as text.
    Interface(String),
    /// The interface has types that no message can hold.
    Plans(PlanError),
    /// Values of the interface are too large for the stack of a thread.
    Stubs(Refused),
    /// The interface has no descriptor.
    #[cfg(feature = "descriptor")]
    Descriptor(DescriptorError),
    /// There is no `OUT_DIR` and no other folder was named: this is no build script.
    NoFolder,
    /// The stubs cannot be written.
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(problems) => write!(f, "the interface has errors\n\n{problems}"),
            Self::Plans(error) => error.fmt(f),
            Self::Stubs(error) => error.fmt(f),
            #[cfg(feature = "descriptor")]
            Self::Descriptor(error) => error.fmt(f),
            Self::NoFolder => f.write_str(
                "OUT_DIR is not set: call this from a build script, or name a folder with out_dir",
            ),
            Self::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write { source, .. } => Some(source),
            Self::Plans(error) => Some(error),
            Self::Stubs(error) => Some(error),
            #[cfg(feature = "descriptor")]
            Self::Descriptor(error) => Some(error),
            Self::Interface(_) | Self::NoFolder => None,
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plans(error)
    }
}

#[cfg(feature = "descriptor")]
impl From<DescriptorError> for Error {
    fn from(error: DescriptorError) -> Self {
        Self::Descriptor(error)
    }
}

impl From<Refused> for Error {
    fn from(error: Refused) -> Self {
        Self::Stubs(error)
    }
}
