//! Reading interface files as the command line asks, with diagnostics on stderr.

use std::io::{self, IsTerminal};
use std::path::Path;

use tenon_exec::Interface;
use tenon_idl::{Define, Options, Parsed, Style, Undeclared};
use tenon_plan::Representation;
use tenon_schema::Schema;
use tenon_schema::written::Written;

use crate::args::InterfaceArgs;
use crate::failure::CommandFailure;

/// Name of an interface that is read from stdin, in diagnostics and stubs.
const STDIN: &str = "<stdin>";

/// Returns whether the command line names stdin in place of an interface file.
pub fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Returns what messages call `file`.
pub fn shown(file: &Path) -> String {
    if is_stdin(file) {
        STDIN.to_owned()
    } else {
        file.display().to_string()
    }
}

/// Returns the name of `file` without its folder, as stubs mention it.
pub fn source_name(file: &Path) -> String {
    if is_stdin(file) {
        return STDIN.to_owned();
    }
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl InterfaceArgs {
    /// Returns the options of the front end.
    pub fn options(&self) -> Options {
        Options {
            include_dirs: self.include.clone(),
            defines: self.define.iter().map(|text| Define::parse(text)).collect(),
            strict_rpcgen: self.strict_rpcgen,
            undeclared: if self.allow_undefined {
                Undeclared::Allowed
            } else {
                Undeclared::Usual
            },
            ..Options::default()
        }
    }

    /// Reads `file`, or stdin if that is `-`.
    pub fn parse(&self, file: &Path) -> Parsed {
        if is_stdin(file) {
            tenon_idl::parse_input(STDIN, io::stdin().lock(), &self.options())
        } else {
            tenon_idl::parse_file(file, &self.options())
        }
    }

    /// Reads `file`; its diagnostics go to stderr.
    pub fn schema(&self, file: &Path) -> Result<Schema, CommandFailure> {
        self.written(file).map(|(schema, _)| schema)
    }

    /// Reads `file`: what it means, and how it is written.
    pub fn written(&self, file: &Path) -> Result<(Schema, Written), CommandFailure> {
        let parsed = self.parse(file);
        show(&parsed);
        let both = parsed.schema.zip(parsed.written);
        both.ok_or_else(CommandFailure::explained)
    }

    /// Reads `file` and makes its plans for XDR.
    pub fn interface(&self, file: &Path) -> Result<Interface, CommandFailure> {
        self.interface_in(file, Representation::XDR)
    }

    /// Reads `file` and makes its plans for a representation.
    pub fn interface_in(
        &self,
        file: &Path,
        representation: Representation,
    ) -> Result<Interface, CommandFailure> {
        let schema = self.schema(file)?;
        Interface::with_representation(schema, representation)
            .map_err(|error| CommandFailure::new(format!("{}: {error}", shown(file))))
    }
}

/// Prints diagnostics for people.
pub fn show(parsed: &Parsed) {
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let style = match is_colored {
        true => Style::Colored,
        false => Style::Plain,
    };
    eprint!("{}", parsed.render(style));
}
