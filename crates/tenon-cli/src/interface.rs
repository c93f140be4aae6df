//! Reading interface files as the command line asks, with diagnostics on stderr.

use std::io::IsTerminal;
use std::path::Path;

use tenon_exec::Interface;
use tenon_idl::{Define, Options, Parsed, Style, Undeclared};
use tenon_plan::Representation;
use tenon_schema::Schema;
use tenon_schema::written::Written;

use crate::args::InterfaceArgs;
use crate::failure::Failure;

impl InterfaceArgs {
    /// How the front end is to read.
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

    /// Reads `file`; its diagnostics go to stderr.
    pub fn schema(&self, file: &Path) -> Result<Schema, Failure> {
        self.written(file).map(|(schema, _)| schema)
    }

    /// Reads `file`: what it means, and how it is written.
    pub fn written(&self, file: &Path) -> Result<(Schema, Written), Failure> {
        let parsed = tenon_idl::parse_file(file, &self.options());
        show(&parsed);
        let both = parsed.schema.zip(parsed.written);
        both.ok_or_else(Failure::explained)
    }

    /// Reads `file` and makes its plans for XDR.
    pub fn interface(&self, file: &Path) -> Result<Interface, Failure> {
        self.interface_in(file, Representation::XDR)
    }

    /// Reads `file` and makes its plans for a representation.
    pub fn interface_in(
        &self,
        file: &Path,
        representation: Representation,
    ) -> Result<Interface, Failure> {
        let schema = self.schema(file)?;
        Interface::with_representation(schema, representation)
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))
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
