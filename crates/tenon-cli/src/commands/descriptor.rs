//! `tenon descriptor`.

use std::fs;
use std::io::{self, IsTerminal};

use tenon_descriptor::Descriptor;

use crate::args::DescriptorArgs;
use crate::failure::CommandFailure;
use crate::interface::shown;
use crate::output;

pub fn run(args: &DescriptorArgs) -> Result<(), CommandFailure> {
    let schema = args.interface.schema(&args.file)?;
    let descriptor = Descriptor::new(&schema)
        .map_err(|error| CommandFailure::new(format!("{}: {error}", shown(&args.file))))?;
    match &args.out {
        _ if args.identity => output::print(&format!("{}\n", descriptor.identity())),
        Some(file) => fs::write(file, descriptor.bytes()).map_err(|error| {
            CommandFailure::new(format!("cannot write {}: {error}", file.display()))
        }),
        None if io::stdout().is_terminal() => {
            let failure = CommandFailure::usage("a descriptor is no text for a terminal");
            Err(failure.hint("say with -o FILE where it belongs, or ask for its --identity"))
        }
        None => output::print_bytes(descriptor.bytes()),
    }
}
