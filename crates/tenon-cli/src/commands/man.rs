//! `tenon man`.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::args::CliArgs;
use crate::failure::CommandFailure;

/// Writes a manual page of the command and of each of its commands into `folder`.
///
/// # Errors
/// The folder or a page cannot be written.
pub fn run(folder: &Path) -> Result<(), CommandFailure> {
    let written = fs::create_dir_all(folder).and_then(|()| {
        let command = CliArgs::command().name("tenon").flatten_help(false);
        clap_mangen::generate_to(command, folder)
    });
    written.map_err(|error| CommandFailure::new(format!("{}: {error}", folder.display())))
}
