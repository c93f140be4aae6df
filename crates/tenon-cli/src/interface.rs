//! Reading interface files as the command line asks, with diagnostics on stderr.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::Path;

use tenon_descriptor::{BYTES_MAX, Descriptor, MAGIC, is_descriptor};
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

    /// Reads `file`, which may be a descriptor; its diagnostics go to stderr.
    pub fn schema(&self, file: &Path) -> Result<Schema, CommandFailure> {
        match descriptor(file)? {
            Some(descriptor) => Ok(descriptor.into_schema()),
            None => self.parsed(file).map(|(schema, _)| schema),
        }
    }

    /// Reads `file`: what it means, and how it is written, which a descriptor does not say.
    pub fn written(&self, file: &Path) -> Result<(Schema, Written), CommandFailure> {
        if descriptor(file)?.is_some() {
            return Err(needs_file(&shown(file)));
        }
        self.parsed(file)
    }

    fn parsed(&self, file: &Path) -> Result<(Schema, Written), CommandFailure> {
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

/// Reads a descriptor; `None` if `file` is something else, or cannot be read, which its parser says.
pub fn descriptor(file: &Path) -> Result<Option<Descriptor>, CommandFailure> {
    match is_stdin(file) {
        true => {
            let mut stdin = io::stdin().lock();
            // What was looked at stays in the buffer, for the parser.
            let begins_so = stdin.fill_buf().is_ok_and(is_descriptor);
            begins_so.then(|| read_descriptor(file, stdin)).transpose()
        }
        false => {
            let Ok(mut opened) = File::open(file) else {
                return Ok(None);
            };
            let mut start = [0; MAGIC.len()];
            let begins_so = opened.read_exact(&mut start).is_ok() && is_descriptor(&start);
            let whole = start.chain(opened);
            begins_so.then(|| read_descriptor(file, whole)).transpose()
        }
    }
}

/// The failure of what needs the interface file of the descriptor that messages call `shown`.
pub fn needs_file(shown: &str) -> CommandFailure {
    let message =
        format!("{shown}: this is a descriptor, and C is written like its interface file");
    CommandFailure::new(message).hint("give the interface file")
}

fn read_descriptor(file: &Path, from: impl Read) -> Result<Descriptor, CommandFailure> {
    let mut bytes = Vec::new();
    // One byte more than there may be shows that it is too large.
    let read = from.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    let failed = |error: &dyn Display| CommandFailure::new(format!("{}: {error}", shown(file)));
    read.map_err(|error| failed(&error))?;
    Descriptor::parse(&bytes).map_err(|error| failed(&error))
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
