//! Generates the stubs of a user's crate while it is built.
//!
//! In `build.rs`:
//!
//! ```no_run
//! fn main() -> Result<(), tenon_build::Error> {
//!     tenon_build::compile("interfaces/nfs3.x")?;
//!     Ok(())
//! }
//! ```
//!
//! and in the module that uses the stubs:
//!
//! ```ignore
//! tenon::stubs!(mod nfs3;);
//! ```

mod error;

use std::path::{Path, PathBuf};

#[cfg(feature = "descriptor")]
use tenon_descriptor::Descriptor;
use tenon_gen::rust::{self, Form};
use tenon_idl::{Define, DiagnosticReport, Parsed, Style, Undeclared};
use tenon_plan::{Pass, Plans, Representation};
use tenon_schema::Schema;

pub use error::Error;

/// Generates stubs for the interface in the file `interface` with the default options. Returns the path
/// of the stubs: in `$OUT_DIR`, under the interface's name.
///
/// # Errors
/// The interface cannot be read or is invalid, or the stubs cannot be written.
pub fn compile(interface: impl AsRef<Path>) -> Result<PathBuf, Error> {
    Builder::new().compile(interface)
}

/// Generates stubs with options.
///
/// In `build.rs`:
///
/// ```no_run
/// fn main() -> Result<(), tenon_build::Error> {
///     tenon_build::Builder::new()
///         .derive("serde::Serialize")
///         .views(true)
///         .compile("interfaces/nfs3.x")?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    reading: tenon_idl::Options,
    stubs: rust::Options,
    out_dir: Option<PathBuf>,
    lean: bool,
    #[cfg(feature = "descriptor")]
    descriptor: bool,
}

impl Builder {
    /// Sets the default options: every dialect is read, and the stubs speak both protocols and are written
    /// to `$OUT_DIR`, to be brought in by `include!`.
    pub fn new() -> Self {
        Self {
            reading: tenon_idl::Options::default(),
            stubs: rust::Options {
                for_include: true,
                ..rust::Options::default()
            },
            out_dir: None,
            lean: true,
            #[cfg(feature = "descriptor")]
            descriptor: false,
        }
    }

    /// Adds a folder that `#include` searches.
    #[must_use]
    pub fn include_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.reading.include_dirs.push(folder.into());
        self
    }

    /// Defines a macro of the interface: `NAME`, which stands for 1, or `NAME=VALUE`.
    #[must_use]
    pub fn define(mut self, definition: &str) -> Self {
        self.reading.defines.push(Define::parse(definition));
        self
    }

    /// Rejects interfaces that rpcgen rejects.
    #[must_use]
    pub fn strict_rpcgen(mut self, strict: bool) -> Self {
        self.reading.strict_rpcgen = strict;
        self
    }

    /// Sets whether types that the interface does not define are taken to be declared by the module around the stubs.
    /// Otherwise they are an error, unless the interface has `%` lines.
    #[must_use]
    pub fn allow_undefined(mut self, allow: bool) -> Self {
        self.reading.undeclared = if allow {
            Undeclared::Allowed
        } else {
            Undeclared::Usual
        };
        self
    }

    /// Writes to `folder` instead of `$OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Writes a file that is a module by itself (`mod nfs3;`) instead of one for `include!`.
    #[must_use]
    pub fn module_file(mut self) -> Self {
        self.stubs.for_include = false;
        self
    }

    /// Derives a further trait, such as `serde::Serialize`, for every type. Serde's need its crate with the feature
    /// `derive`, and the crate `tenon-wire` with the feature `serde`, among the dependencies.
    #[must_use]
    pub fn derive(mut self, path: &str) -> Self {
        self.stubs.derives.push(path.to_owned());
        self
    }

    /// The path of the crate `tenon` in the user's crate; `::tenon` by default.
    #[must_use]
    pub fn tenon_path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.stubs.tenon);
        self
    }

    /// Leaves out the definitions of included files; the module around the stubs has to provide them.
    #[must_use]
    pub fn skip_included(mut self) -> Self {
        self.stubs.skip_included = true;
        self
    }

    /// Sets whether code for the lean representation is generated beside that for XDR, so that clients and
    /// services speak the lean protocol beside ONC RPC. It is by default; without it there
    /// is less to compile.
    #[must_use]
    pub fn lean(mut self, lean: bool) -> Self {
        self.lean = lean;
        self
    }

    /// Adds views: for each type that holds something worth borrowing another one, with values that
    /// borrow it from the message that they are read from. The methods of a server take them as their
    /// arguments.
    #[must_use]
    pub fn views(mut self, views: bool) -> Self {
        self.stubs.views = views;
        self
    }

    /// Has servers write results of known size in place: the method of a procedure that
    /// returns opaque data or an array of a fixed size, or a struct, that consists of nothing but numbers
    /// is handed a `&mut` of it, in the reply wherever that is possible. Asynchronous methods are, too.
    #[must_use]
    pub fn reserved(mut self, reserved: bool) -> Self {
        self.stubs.reserved = reserved;
        self
    }

    /// Makes strings `String`: one that is not UTF-8 is refused where it is read. By default they are `BString`, which
    /// holds any bytes, as the interface permits.
    #[must_use]
    pub fn utf8_strings(mut self, utf8: bool) -> Self {
        self.stubs.utf8_strings = utf8;
        self
    }

    /// Adds asynchronous clients on tokio, `FooV1AsyncClient`, and the trait `FooV1Async` for services with
    /// asynchronous methods, with `FooV1AsyncService` that serves it. They depend on the crate
    /// `tenon-tokio`.
    #[must_use]
    pub fn tokio(mut self, tokio: bool) -> Self {
        self.stubs.tokio = tokio.then(|| "::tenon_tokio".to_owned());
        self
    }

    /// Writes the descriptor of the interface, too: a file beside the stubs that ends in `.descriptor`, which the crate
    /// `tenon-reflection` tells tools of. It needs the feature `descriptor`.
    #[cfg(feature = "descriptor")]
    #[must_use]
    pub fn descriptor(mut self, descriptor: bool) -> Self {
        self.descriptor = descriptor;
        self
    }

    /// Generates stubs for the interface in the file `interface`, tells cargo from which files they were
    /// generated, and returns their path: a file with the name of the interface in snake case, so that
    /// it can be a module: `blob_store.rs` for `BlobStore.x`.
    ///
    /// # Errors
    /// The interface cannot be read or is invalid, or the stubs cannot be written.
    pub fn compile(&self, interface: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let interface = interface.as_ref();
        let folder = self.folder()?;
        let parsed = tenon_idl::parse_file(interface, &self.reading);
        tell_cargo(&parsed);
        let problems = parsed.render(Style::Plain);
        let schema = parsed.schema.ok_or(Error::Interface(problems))?;
        let stubs = self.stubs(interface, &schema)?;
        let path = folder.join(rust::file_name(interface));
        #[cfg(feature = "descriptor")]
        if self.descriptor {
            let descriptor = Descriptor::new(&schema)?;
            write(path.with_extension("descriptor"), descriptor.bytes())?;
        }
        write(path, stubs.as_bytes())
    }

    fn folder(&self) -> Result<PathBuf, Error> {
        let from_cargo = || std::env::var_os("OUT_DIR").map(PathBuf::from);
        self.out_dir
            .clone()
            .or_else(from_cargo)
            .ok_or(Error::NoFolder)
    }

    fn stubs(&self, interface: &Path, schema: &Schema) -> Result<String, Error> {
        let lean = self.lean.then_some(Representation::LEAN);
        let representations = [Representation::XDR].into_iter().chain(lean);
        let plans =
            representations.map(|representation| Plans::new(schema, representation, Pass::ALL));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let forms: Vec<_> = plans.iter().filter_map(Form::of).collect();
        let name = interface.file_name().unwrap_or_default();
        let options = rust::Options {
            source: name.to_string_lossy().into_owned(),
            ..self.stubs.clone()
        };
        Ok(rust::generate(schema, &forms, &options)?)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

fn write(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, Error> {
    match std::fs::write(&path, bytes) {
        Ok(()) => Ok(path),
        Err(source) => Err(Error::Write { path, source }),
    }
}

/// Prints cargo's directives: the files that were read, so that a change of one triggers a rebuild, and the warnings.
fn tell_cargo(parsed: &Parsed) {
    for name in parsed
        .sources
        .names()
        .filter(|name| Path::new(name).is_file())
    {
        println!("cargo::rerun-if-changed={name}");
    }
    for report in parsed
        .reports()
        .iter()
        .filter(|report| report.severity == "warning")
    {
        println!("cargo::warning={}", in_one_line(report));
    }
}

/// Formats a diagnostic as a single line, since Cargo takes no others.
fn in_one_line(report: &DiagnosticReport) -> String {
    let (file, line, message) = (&report.file, report.line, &report.message);
    let hint = report.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{file}:{line}: {message}{hint}").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_has_its_hint_in_the_same_line() {
        let text = "struct visitor { int visits; };\nstruct pair { vistor a; visitor b; };";
        let parsed = tenon_idl::parse_text("pair.x", text, &tenon_idl::Options::default());
        let reports = parsed.reports();
        let line = in_one_line(&reports[0]);
        let expected =
            "pair.x:2: the type `vistor` is not defined in this interface; did you mean `visitor`?";
        assert!(line.starts_with(expected), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}
